"""`tcpsbed.Scenario`: read from a file, made in Python, written as TOML; the same records each way."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from test_api_run import SHORT

import tcpsbed
from tcpsbed import Flow, Link, Queue, Scenario, shipped
from tcpsbed.errors import ConfigError
from tcpsbed.scenarios import completion


@pytest.fixture
def short(tmp_path: Path) -> Path:
    file = tmp_path / "short.toml"
    file.write_text(SHORT)
    return file


def made(**more: Any) -> Scenario:
    """The scenario of SHORT, made in Python."""
    return Scenario(
        name="short",
        duration="1 s",
        components={"tactile-operator": "a", "tactile-teleoperator": "b"},
        flows={"kinematic": Flow(rate="200 Hz")},
        links={"wan": Link(from_="a", to="b", rate="1 Mbit/s", delay="1 ms", loss="10 %")},
        measure={"grace": "10 ms"},
        **more,
    )


def test_a_scenario_made_in_python_is_that_of_the_file(short: Path) -> None:
    file = made().write(short.parent / "written.toml")
    runs = [tcpsbed.run(one, out=short.parent / f"{i}") for i, one in enumerate((made(), file, short))]
    assert len({run.summary.records_sha256 for run in runs}) == 1
    assert file.read_text() == made().to_toml()
    assert 'from = "a"' in file.read_text() and "base" not in file.read_text()


@pytest.mark.parametrize("name", ["quickstart", "dumbbell-udp", "pick-and-place"])
def test_a_shipped_scenario_reads_back_as_the_same(name: str, tmp_path: Path) -> None:
    first = Scenario.read(shipped.find(name))
    again = Scenario.read(first.write(tmp_path / "again.toml"))
    assert again.model_dump(exclude=["base"]) == first.model_dump(exclude=["base"])
    assert again.folder == first.folder or not first.files[1:]


def test_a_shipped_scenario_needs_no_copy() -> None:
    found = Scenario.shipped("quickstart", set={"links.l1.rate": "2 Mbit/s"}, duration="1 s", seed=3)
    assert (found.links["l1"].rate_bps, found.duration_ns, found.seed) == (2e6, 1_000_000_000, 3)
    for wrong in ("quickstar", "quickstart.ipynb", "own_robot.py", None, 5, ["quickstart"], "x" * 10_000):
        with pytest.raises(ConfigError, match=r'^name: found ".*; allowed: .*such as quickstart'):
            Scenario.shipped(wrong)


def test_overrides_are_those_of_a_run(short: Path) -> None:
    first = Scenario.read(short, set={"links.wan.rate": "2 Mbit/s"}, duration="2 s", seed=3)
    assert (first.links["wan"].rate_bps, first.duration_ns, first.seed) == (2e6, 2_000_000_000, 3)
    second = first.changed({"links.wan.queue": Queue(limit="20 packets")}, seed=4)
    assert (second.seed, second.links["wan"].queue.limit) == (4, ("limit_packets", 20))
    assert first.seed == 3 and first.links["wan"].queue is None


def test_a_table_of_one_scenario_is_taken_by_another(short: Path) -> None:
    wan = Scenario.read(short).links["wan"]
    other = Scenario(
        components={"tactile-operator": "a", "tactile-teleoperator": "b"},
        flows={"kinematic": {"rate": "200 Hz"}},
        links={"wan": wan},
    )
    assert other.links["wan"] == wan and other.name == "scenario"


def test_relative_paths_start_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hand.csv").write_text("t_s,x\n0,0\n1,1\n")
    monkeypatch.chdir(tmp_path)
    scenario = made(calibration="hand.csv")
    monkeypatch.chdir("/")
    assert scenario.folder == tmp_path and scenario.files == [tmp_path / "hand.csv"]
    assert f'base = "{tmp_path}"' in scenario.to_toml()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Link(rate="2 Mbi/s"), r'^Link: rate: found "2 Mbi/s", with the unknown unit "Mbi/s" \(did you mean Mbit/s'),
        (lambda: Flow(rat="1 Hz"), r"^Flow: rat: unknown key \(did you mean rate\?\)"),
        (lambda: Link(rate=object()), "^Link: rate: found .* of type object; allowed: text"),
        (lambda: made(seed=-1), "^Scenario: seed: found -1"),
        (lambda: Scenario(flows={"mine": Flow(rate="1 Hz")}, components={}), "^Scenario: flows.mine.direction is missing"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_message(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


def test_a_file_of_the_user_stays(short: Path) -> None:
    with pytest.raises(ConfigError, match="force=True"):
        made().write(short)
    assert short.read_text() == SHORT
    assert made().write(short, force=True).read_text() == made().to_toml()


def test_the_parameters_are_the_keys_of_the_tables() -> None:
    assert completion.FILE.read_text(encoding="utf-8") == completion.module(), (
        "stale: tools/tables.py --write"
    )
    for table in completion.TABLES:
        assert getattr(tcpsbed, table.__name__) is table


def test_keys_are_parameters() -> None:
    found = inspect.signature(Link).parameters
    assert {"rate", "delay", "from_", "to"} <= set(found)
    assert found["delay"].default is None and inspect.signature(Scenario).parameters["seed"].default == 1
