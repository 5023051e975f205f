"""`tcpsbed check` warns of samples that no queue holds, and of cross traffic beyond its line; the engine is the judge."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import tcpsbed
from tcpsbed import scenarios
from tcpsbed.cli.app import app
from tcpsbed.scenarios.compile import room

TEXT = """
duration = "2 s"
[components]
tactile-operator = "a"
tactile-teleoperator = "b"
[flows.video]
direction = "forward"
rate = "5 Hz"
sample = "{size} B"
[topology]
routers = ["n"]
[links.first]
from = "a"
to = "n"
{first}
[links.l1]
from = "n"
to = "b"
rate = "10 Mbit/s"
queue = "{queue}"
"""


def tried(folder: Path, size: int, queue: str, first: str = "") -> tuple[list[str], float]:
    """The warnings of a scenario, and the share of its samples that a run loses."""
    file = folder / "one.toml"
    file.write_text(TEXT.format(size=size, queue=queue, first=first))
    said = room.warnings(scenarios.check(scenarios.load(file)))
    return said, tcpsbed.run(file, out=folder / "run").summary["flows"]["video"]["loss"]


@pytest.mark.parametrize("size", [1177, 20_000, 105_256])
def test_the_queue_that_is_named_is_the_smallest_that_loses_nothing(tmp_path: Path, size: int) -> None:
    said, loss = tried(tmp_path, size, "600 B")
    named = said[0].split('queue = "')[1].split(" B")[0]
    assert loss == 1 and f"samples of {size} B never" in said[0] and "the queue holds 600 B" in said[0]
    assert tried(tmp_path, size, f"{int(named) - 1} B")[1] == 1
    assert tried(tmp_path, size, f"{named} B") == ([], 0)


def test_packets_count_and_a_link_before_it_that_is_as_slow_makes_room(tmp_path: Path) -> None:
    said, loss = tried(tmp_path, 20_000, "16 packets")
    assert loss == 1 and 'links.l1.queue = "17 packets"' in said[0]
    assert tried(tmp_path, 20_000, "17 packets") == ([], 0)
    assert tried(tmp_path, 20_000, "2000 B", 'rate = "10 Mbit/s"') == ([], 0)
    said, loss = tried(tmp_path, 20_000, "5 packets", 'rate = "20 Mbit/s"')
    assert said and loss == 1


def test_check_warns_of_a_picture_that_is_too_large_and_not_of_the_quickstart(
    shipped_scenarios: Path,
) -> None:
    whole = ["--set", 'flows.video.source={ frames = "builtin:clip", start = "0 s" }']
    quickstart = ["check", str(shipped_scenarios / "quickstart.toml")]
    done = CliRunner().invoke(app, [*quickstart, *whole])
    assert done.exit_code == 0 and "valid." in done.stdout
    assert "warning: flows.video: samples of up to 105256 B (1 of the 125" in done.stderr
    done = CliRunner().invoke(app, quickstart)
    assert done.exit_code == 0 and done.stderr == ""
    room_for_all = [whole[1], 'links.l1.queue="120 kB"']
    assert (
        room.warnings(scenarios.check(scenarios.load(shipped_scenarios / "quickstart.toml", room_for_all)))
        == []
    )


CROSS = """
[traffic.cbr]
on = "l1"
rate = "{rate}"
packet = "500 B"
[traffic.early]
on = "l1"
rate = "4 Mbit/s"
stop = "{stop}"
"""


@pytest.mark.parametrize(
    ("rate", "stop", "times"),
    [("3 Gbit/s", "1 s", "300 times"), ("8 Mbit/s", "1 s", "1.2 times"), ("6 Mbit/s", "2 s", "")],
)
def test_cross_traffic_beyond_the_rate_of_its_line_is_told(
    tmp_path: Path, rate: str, stop: str, times: str
) -> None:
    file = tmp_path / "one.toml"
    file.write_text(TEXT.format(size=100, queue="60000 B", first="") + CROSS.format(rate=rate, stop=stop))
    said = room.warnings(scenarios.check(scenarios.load(file)))
    fair = ['links.l1.queue={limit="60000 B",discipline="fq-codel"}']
    assert room.warnings(scenarios.check(scenarios.load(file, fair))) == [], "it has a queue of its own"
    assert [times in one and "traffic.cbr, traffic.early: up to " in one for one in said] == [True] * (
        2 if times else 0
    ), said
