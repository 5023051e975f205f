"""Input that once got past the checks: each is refused with its key."""

from pathlib import Path

import pytest

from tcpsbed import scenarios
from tcpsbed.errors import ConfigError, TcpsbedError

PLAIN = """
duration = "100 ms"
[nodes.a]
[nodes.b]
[components]
tactile-operator = "a"
tactile-teleoperator = "b"
[flows.kinematic]
rate = "100 Hz"
sample = "24 B"
"""


def scenario(tmp_path, *overrides):
    path = tmp_path / "plain.toml"
    path.write_text(PLAIN)
    return scenarios.load(path, overrides)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ('duration="1e5000000000 s"', "too large"),
        (
            'measure.echo=[{flow="kinematic", points=["all"]}, {flow="kinematic", points=["all"]}]',
            "a second time",
        ),
        ('hooks.kinematics={run="..:x", at="tactile-operator"}', "not a module"),
        ('hooks.kinematics={run="./leaves.py:x", at="tactile-operator"}', "fails"),
        (
            'flows.kinematic.transport={kind="rtp", feedback="20 ms", congestion="gcc"}',
            "no flow of the channel has pictures that follow",
        ),
    ],
)
def test_it_is_refused_with_its_key(tmp_path, override, says):
    (tmp_path / "leaves.py").write_text("import sys\nsys.exit(3)\n")
    with pytest.raises(ConfigError, match=says) as refused:
        scenarios.check(scenario(tmp_path, override))
    assert override.split("=")[0].split(".")[0] in str(refused.value)


def test_every_refusal_is_one_line(tmp_path):
    with pytest.raises(TcpsbedError) as refused:
        scenarios.check(scenario(tmp_path, 'flows.kinematic.rate="-1 Hz"'))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "override", "said"),
    [
        (
            "quickstart",
            'flows.haptic.sample="2 B"',
            'found "2 B", which is not a multiple of 4 B; allowed: 4 B for each value that the robot senses, such as "12 B"',
        ),
        (
            "quickstart",
            'flows.haptic.sample="16 B"',
            'found "16 B" beside a hook "force" that gives 3 values; .*"12 B"',
        ),
        (
            "quickstart",
            'flows.kinematic.sample="16 B"',
            'found "16 B" beside a source of 6 values a sample; .*"24 B"',
        ),
        (
            "quickstart",
            'flows.audio.sample="160 B"',
            'found "160 B" beside a source that has the size of each frame',
        ),
        ("conveyor", 'flows.haptic.sample="30 B"', 'found "30 B", which is not a multiple of 4 B'),
    ],
)
def test_a_size_of_a_sample_that_its_source_decides_otherwise_is_refused(
    shipped_scenarios: Path, name: str, override: str, said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        scenarios.check(scenarios.load(shipped_scenarios / f"{name}.toml", [override]))


def test_another_source_needs_no_other_size_of_a_sample(shipped_scenarios: Path) -> None:
    """The size in the file was that of the source in the file."""
    other = ["flows.kinematic.source={ recording = 'builtin:fabric' }"]
    loaded = scenarios.load(shipped_scenarios / "polachan-replay.toml", other)
    assert loaded.flows["kinematic"].sample_bytes == 24
    scenarios.check(loaded)


@pytest.mark.parametrize("override", ['flows.haptic.sample="12 B"', 'flows.kinematic.sample="24 B"'])
def test_a_size_of_a_sample_that_its_source_has_is_taken(shipped_scenarios: Path, override: str) -> None:
    scenarios.check(scenarios.load(shipped_scenarios / "quickstart.toml", [override]))
