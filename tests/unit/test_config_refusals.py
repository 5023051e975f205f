"""Input that once got past the checks: each is refused with its key."""

import pytest

from tcpsbed import config
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
    return config.load(path, overrides)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ('duration="1e5000000000 s"', "too large"),
        (
            'measure.echo=[{flow="kinematic", points=["all"]}, {flow="kinematic", points=["all"]}]',
            "a second time",
        ),
        ('hooks.kinematics={run="..:x", at="tactile-operator"}', "no module"),
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
        config.check(scenario(tmp_path, override))
    assert override.split("=")[0].split(".")[0] in str(refused.value)


def test_every_refusal_is_one_line(tmp_path):
    with pytest.raises(TcpsbedError) as refused:
        config.check(scenario(tmp_path, 'flows.kinematic.rate="-1 Hz"'))
    assert "\n" not in str(refused.value)
