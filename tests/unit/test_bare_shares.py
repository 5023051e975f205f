"""A bare fraction where a percent sign belongs may mean half or half a percent: it is refused with both spellings."""

import pytest

from tcpsbed import scenarios
from tcpsbed.errors import ConfigError

LINK = """
[components]
tactile-operator = "a"
tactile-teleoperator = "b"
[flows.kinematic]
[links.wan]
from = "a"
to = "b"
rate = "1 Mbit/s"
"""


@pytest.fixture
def linked(tmp_path):
    path = tmp_path / "linked.toml"
    path.write_text(LINK)
    return path


@pytest.mark.parametrize(
    "setting",
    [
        "links.wan.loss=0.5",
        "links.wan.loss={ kind = 'random', p = 0.5 }",
        "links.wan.forward.loss=0.5",
        "links.wan.loss={ kind = 'gilbert-elliott', p = 0.5, r = '1 %' }",
        "links.wan.loss={ kind = 'gilbert-elliott', p = '1 %', r = '1 %', loss_bad = 0.5 }",
        "links.wan.duplicate=0.5",
        "links.wan.corrupt=0.5",
        "links.wan.queue={ discipline = 'red', min = '5 kB', max = '9 kB', max_p = 0.5 }",
        "links.wan.queue={ discipline = 'red', min = '5 kB', max = '9 kB', weight = 0.5 }",
        "links.wan.radio={ kind = 'nr', block_error = 0.5 }",
        "traffic.web={ on = 'wan', utilisation = 0.5 }",
        "events=[{ at = '1 s', link = 'wan', loss = 0.5 }]",
    ],
)
def test_a_bare_fraction_is_refused_with_both_spellings(linked, setting):
    with pytest.raises(ConfigError) as refused:
        scenarios.load(linked, [setting])
    said = str(refused.value)
    assert said.startswith(f"--set {setting.split('=')[0]}")
    assert (
        'found 0.5, a share without a percent sign; allowed: "0.5 %", or "50 %" if 0.5 of 1 is meant' in said
    )


def test_a_file_is_told_its_line(linked):
    linked.write_text(LINK + "loss = 0.01\n")
    with pytest.raises(ConfigError, match=r'linked.toml:10: links.wan.loss: found 0.01.*"0.01 %", or "1 %"'):
        scenarios.load(linked)


@pytest.mark.parametrize("value", ["0", "0.0", "0 %"])
def test_nothing_is_nothing_in_both_readings(linked, value):
    assert scenarios.load(linked, [f"links.wan.loss={value}"]).links["wan"].loss.p == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [("delay", 15), ("rate", 1e6), ("queue", 15000), ("outages", [[1, 2]]), ("slots", {"cycle": 1})],
)
def test_other_quantities_are_never_bare(linked, key, value):
    with pytest.raises(ConfigError, match=f"links.wan.{key}.*"):
        scenarios.load(linked, [f"links.wan.{key}={str(value).replace(': ', '=').replace(chr(39), '')}"])
