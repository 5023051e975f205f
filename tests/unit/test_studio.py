"""What the studio's page is told of a run, and that its feed never waits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcpsbed
from tcpsbed import scenarios
from tcpsbed.analysis.records import KINDS
from tcpsbed.runs import session
from tcpsbed.scenarios.compile import compile_plan
from tcpsbed.scenarios.dump import dump_document
from tcpsbed.studio import collector, feed, server, whole
from tcpsbed.studio.collector import ROW, Collector
from tcpsbed.studio.ledger import Moments
from tcpsbed.studio.listening import Listening
from tcpsbed.worlds import Steering


@pytest.fixture(scope="module")
def run(shipped_scenarios: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("studio") / "run"
    return tcpsbed.run(shipped_scenarios / "quickstart.toml", out=out, set=['duration="6 s"', 'warmup="0 s"'])


def told(run: Any, until_s: float = 6.0) -> Collector:
    """A collector that has seen a run as it would go on, 50 ms at a time."""
    rows = np.fromfile(run.folder / "records.bin", ROW)
    made = Collector(json.loads((run.folder / "plan.json").read_text()))
    for tick in range(1, round(until_s / 0.05) + 1):
        end = tick * 50_000_000
        new = rows[(rows["time"] < end) & (rows["time"] >= end - 50_000_000)]
        made.add(new.tobytes(), end / 1e9, 0)
    return made


def test_curves_are_those_of_the_summary(run: Any) -> None:
    made = told(run)
    curves = made.curves_from(0)
    for number, (name, flow) in enumerate(run.summary["flows"].items()):
        delivered = np.array(curves["delivered"][number])
        mean = np.array([v or 0.0 for v in curves["mean_ms"][number]])
        assert delivered.sum() == pytest.approx(flow["delivered"], abs=2), name
        assert (mean * delivered).sum() / delivered.sum() == pytest.approx(flow["delay_ms"]["mean"], rel=2e-3)
        assert max(v for v in curves["most_ms"][number] if v) == pytest.approx(
            flow["delay_ms"]["max"], rel=1e-3
        )
        assert sum(curves["sent"][number]) == pytest.approx(flow["sent"], abs=2), name


def test_a_live_page_is_told_of_outages_when_they_come(run: Any) -> None:
    plan = json.loads((run.folder / "plan.json").read_text())
    plan["network"]["links"][0]["outages"] = [[1_000_000_000, 2_000_000_000]]
    made, name = Collector(plan), plan["network"]["links"][0]["name"]
    made.add(b"", 0.9, 0)
    assert made.events == []
    made.add(b"", 1.0, 0)
    made.add(b"", 1.5, 0)
    assert made.events == [{"t_s": 1, "name": f"outage of {name} begins"}]
    made.add(b"", 9.0, 0)
    assert [event["t_s"] for event in made.events] == [1, 2] and made.lately()["events"] == made.events


def test_the_greatest_age_is_that_of_the_summary_though_a_loop_stalled(run: Any) -> None:
    """A loop that stalls writes its rows late, with the times of the arrivals: meanwhile the others write theirs."""
    rows = np.fromfile(run.folder / "records.bin", ROW)
    made = Collector(json.loads((run.folder / "plan.json").read_text()))
    arrives = rows["kind"] == 1 + KINDS.index("delivered")
    for tick in range(1, 121):
        end = tick * 50_000_000
        stalled = 60 < tick < 66
        since = np.where(arrives & (tick == 66), 300_000_000, 50_000_000)
        new = rows[(rows["time"] < end) & (rows["time"] >= end - since) & ~(arrives & stalled)]
        made.add(new.tobytes(), end / 1e9, 0)
        if tick == 65:
            shown = made.curves_from(0)["oldest_ms"]
            assert all(max(v for v in curve if v) > 200 for curve in shown), (
                "nothing has come, as far as is known"
            )
    curves = made.curves_from(0)["oldest_ms"]
    for curve, (name, flow) in zip(curves, run.summary["flows"].items(), strict=True):
        assert max(v for v in curve if v) == pytest.approx(flow["age_ms"]["max"], rel=0.02), name


def test_the_warm_up_that_no_table_counts_is_marked(run: Any) -> None:
    plan = json.loads((run.folder / "plan.json").read_text())
    assert Collector(plan, Moments(1_500_000_000)).health()["unseen"] == [(0.0, 1.5)]
    assert Collector(plan).health()["unseen"] == []


def test_rows_that_are_missing_make_no_data_look_old(run: Any) -> None:
    rows = np.fromfile(run.folder / "records.bin", ROW)
    made = Collector(json.loads((run.folder / "plan.json").read_text()))
    for tick in range(1, 121):
        end, gone = tick * 50_000_000, 60 < tick < 66
        new = rows[(rows["time"] < end) & (rows["time"] >= end - 50_000_000)]
        made.add(b"" if gone else new.tobytes(), end / 1e9, 100 * max(min(tick - 60, 5), 0))
    for curve, (name, flow) in zip(
        made.curves_from(0)["oldest_ms"], run.summary["flows"].items(), strict=True
    ):
        assert max(v for v in curve if v) <= 1.001 * flow["age_ms"]["max"], name


def test_the_last_seconds_say_where_the_time_went(run: Any) -> None:
    lately = told(run).lately()
    for flow in lately["flows"]:
        assert sum(part["ms"] for part in flow["parts"]) == pytest.approx(flow["mean_ms"], rel=0.01)
        assert flow["loss"] == 0
    assert lately["flows"][0]["rate_hz"] == pytest.approx(1000, rel=0.03)


def messages(address: str) -> dict[str, Any]:
    """What a viewer is told, by kind, until it has the numbers of the whole run."""
    client = pytest.importorskip("websockets.sync.client", reason="needs the package websockets")
    found: dict[str, Any] = {}
    with client.connect(address.replace("http", "ws").replace("/?", "/live?"), max_size=None) as viewer:
        while not found.get("now", {}).get("whole"):
            told = json.loads(viewer.recv(timeout=20))
            found[told["k"]] = told
    return found


def test_the_page_of_a_run_that_is_over_has_the_numbers_of_its_summary(run: Any) -> None:
    with feed.Feed(run.folder, run.folder, why="over") as made:
        made.over(run.folder)
        told = messages(made.address)
    assert told["plan"]["plan"]["name"] == "quickstart"
    assert not told["steered"]["by"] and told["over"]["report"] == ""
    now = told["now"]
    assert now["whole"] and (now["rows"], now["left_out"]) == (run.summary["records"]["rows"], 0)
    for flow, (name, summary) in zip(now["flows"], run.summary["flows"].items(), strict=True):
        assert (flow["name"], flow["loss"], flow["n"]) == (name, summary["loss"], summary["delivered"])
        assert {key: flow[f"{key}_ms"] for key in ("mean", "p50", "p99", "max")}.items() <= summary[
            "delay_ms"
        ].items()
        path = run.summary["path"][name]
        assert [(part["name"], part["ms"]) for part in flow["parts"]] == [
            (part["name"], part["latency_ms"]["mean"]) for part in path
        ]
        causes = {cause["name"]: cause["ms"] for cause in flow["causes"]}
        assert causes == {part["part"]: part["mean_ms"] for part in run.summary["split"][name]["parts"]}
    for number, flow in enumerate(run.summary["flows"].values()):
        assert sum(told["bins"]["sent"][number]) == pytest.approx(flow["sent"], abs=2)


def test_tables_of_a_run_that_has_gone_are_refused_with_the_reason(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("websockets", reason="needs the package websockets")
    folder = tmp_path / "run"
    made = server.Studio(Listening(), folder)
    try:
        assert made.text("/more.json") is None, "the run goes on"
        made.over = True
        refused = json.loads(made.text("/more.json")[0])  # type: ignore[index]
        assert "html" not in refused and str(folder) in refused["refused"]
        shutil.copytree(run.folder, folder)
        found = made.text("/more.json")
        assert json.loads(found[0])["html"]["more"]  # type: ignore[index]
        shutil.rmtree(folder)
        assert made.text("/more.json") == found, "it is read once"
    finally:
        made.server.socket.close()


def test_a_page_that_missed_rows_has_all_of_them_when_the_run_is_over(run: Any) -> None:
    with feed.Feed(run.folder, run.folder) as made:
        made((run.folder / "records.bin").read_bytes()[: 32 * 1000], 0.5, "")
        made.left_out = 7
        made.over(run.folder)
        told = messages(made.address)
    assert told["now"]["left_out"] == 0 and told["now"]["rows"] == run.summary["records"]["rows"]


def test_a_sample_that_does_not_come_in_time_is_lost(run: Any) -> None:
    rows = np.fromfile(run.folder / "records.bin", ROW)
    gone = (rows["kind"] == 1 + KINDS.index("delivered")) & (rows["flow"] == 0) & (rows["index"] % 10 == 3)
    made = Collector(json.loads((run.folder / "plan.json").read_text()))
    made.add(rows[~gone & (rows["time"] < 5e9)].tobytes(), 5.0, 0)
    assert made.lately()["flows"][0]["loss"] == pytest.approx(0.1, abs=0.01)


def test_bins_join_when_there_are_too_many(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "MOST_BINS", 20)
    curves, whole = told(run), run.summary["flows"]["kinematic"]
    assert curves.generation == 2 and curves.width_s == pytest.approx(0.4)
    assert sum(curves.curves_from(0)["delivered"][0]) == pytest.approx(whole["delivered"], abs=400)


def test_a_feed_whose_reader_hangs_leaves_rows_out_and_does_not_wait(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "MOST_WAITING", 1 << 20)
    deaf = [sys.executable, "-c", 'import time; print(\'{"address": ""}\', flush=True); time.sleep(60)']
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda _, **keys: start(deaf, **keys))
    with feed.Feed(run.folder, run.folder) as made:
        begun = time.process_time()
        for number in range(100):
            made(b"\0" * 32 * 2000, number * 0.05, "")
        assert made.left_out > 100_000
        assert len(made.waiting) <= feed.MOST_WAITING + 10_000
        assert time.process_time() - begun < 2
        os.kill(made.process.pid, 9)
        made.process.wait()
        made(b"\0" * 32, 9.0, "")
        assert not made.waiting


def test_a_page_that_is_too_slow_does_not_fall_behind(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    deaf = [sys.executable, "-c", 'import time; print(\'{"address": ""}\', flush=True); time.sleep(60)']
    start, now = subprocess.Popen, [100.0]
    monkeypatch.setattr(subprocess, "Popen", lambda _, **keys: start(deaf, **keys))
    with feed.Feed(run.folder, run.folder) as made:
        monkeypatch.setattr(feed.time, "monotonic", lambda: now[0])
        while not made.waiting:
            made(b"\0" * 32 * 2000, 0.0, "{}")
        assert made.left_out == 0
        now[0] += 0.9
        made(b"\0" * 32 * 2000, 1.0, "{}")
        assert made.left_out == 0
        now[0] += 0.2
        waiting = len(made.waiting)
        made(b"\0" * 32 * 2000, 1.1, "{}")
        assert (made.left_out, len(made.waiting) - waiting) == (2000, feed.HEADER.size + 8), (
            "no rows, no split"
        )


def test_after_a_gap_the_last_seconds_do_not_reach_behind_it(run: Any) -> None:
    rows = np.fromfile(run.folder / "records.bin", ROW)
    made = Collector(json.loads((run.folder / "plan.json").read_text()))
    name = made.plan["flows"][0]["name"]

    def split(samples: int, sum_ns: float, t_s: float) -> None:
        made.split([{"flow": name, "samples": samples, "parts_ns": {"queueing": {"sum": sum_ns}}}], t_s)

    made.add(rows[rows["time"] < 1e9].tobytes(), 1.0, 0)
    split(100, 1e9, 1.0)
    assert [cause["ms"] for cause in made.lately()["flows"][0]["causes"]] == [10.0]
    made.add(rows[(rows["time"] >= 4e9) & (rows["time"] < 5e9)].tobytes(), 5.0, 1000)
    now = made.lately()
    assert (now["span_s"], now["partial"], now["flows"][0]["causes"]) == (2.0, True, [])
    split(1000, 10e9, 5.0)
    assert made.lately()["flows"][0]["causes"] == [], "of the samples of the gap nothing is shown"
    for t_s in (6.0, 7.0, 8.0):
        made.add(rows[(rows["time"] >= (t_s - 1) * 1e9) & (rows["time"] < t_s * 1e9)].tobytes(), t_s, 1000)
        split(int(200 * t_s), 4e9 * t_s, t_s)
    now = made.lately()
    assert [cause["ms"] for cause in now["flows"][0]["causes"]] == [20.0]
    assert (now["span_s"], now["partial"]) == (2.0, False)


def test_what_was_done_by_hand_in_virtual_time_is_done_again_by_the_saved_scenario(
    shipped_scenarios: Path, tmp_path: Path
) -> None:
    scenario = scenarios.load(shipped_scenarios / "quickstart.toml", ['duration="3 s"', 'warmup="0 s"'])
    steering = Steering(scenario, pace=None)
    asked: list[tuple[float, dict[str, Any]]] = [
        (1.0, {"link": "access", "delay": "41 ms", "by": "viewer 2", "name": "later"}),
        (2.0, {"flow": "video", "running": False}),
    ]
    seen: list[tuple[int, float]] = []
    done: list[dict[str, Any]] = []

    def live(rows: bytes, t_s: float, split: str) -> None:
        seen.append((len(rows), t_s))
        while asked and t_s >= asked[0][0]:
            event = asked.pop(0)[1]
            done.append(event | {"as": steering.event(**event)[0]})

    with session.place(scenario, tmp_path / "run") as place:
        session.record(scenario, place, world="virtual", live=live, steering=steering)
    run = tcpsbed.Run(tmp_path / "run")
    assert sum(size for size, _ in seen) == (tmp_path / "run" / "records.bin").stat().st_size
    assert seen[-1][1] == 3.0 and len(seen) > 5
    assert [event["t_s"] for event in run.summary["events"]] == [event["as"]["at_ns"] / 1e9 for event in done]
    who = [{"name": "later (viewer 2)", "by": "viewer 2"}, {"name": "flow video stops"}]
    assert [{key: event[key] for key in event if key != "t_s"} for event in run.summary["events"]] == who
    planned = json.loads((tmp_path / "run" / "plan.json").read_text())["events"]
    assert [event["name"] for event in planned] == ["later (viewer 2)", "flow video stops"]
    assert run.summary["flows"]["kinematic"]["delay_ms"]["max"] > 40
    answers = [{"k": "asked", "at_ns": event.pop("as")["at_ns"], "event": event} for event in done]
    text = (tmp_path / "run" / "scenario.toml").read_text()
    (tmp_path / "steered.toml").write_text(server.saved(text, [*answers, {"k": "asked", "refused": "no"}]))
    again = scenarios.load(tmp_path / "steered.toml")
    with session.place(again, tmp_path / "again") as place:
        session.record(again, place, world="virtual")
    repeated = tcpsbed.Run(tmp_path / "again").summary["events"]
    assert repeated == run.summary["events"]
    assert (tmp_path / "again" / "records.bin").read_bytes() == (
        tmp_path / "run" / "records.bin"
    ).read_bytes()


@pytest.mark.parametrize("pace", [4.0, 0.5])
def test_a_paced_run_takes_its_time(shipped_scenarios: Path, tmp_path: Path, pace: float) -> None:
    scenario = scenarios.load(shipped_scenarios / "quickstart.toml", ['duration="1 s"', 'warmup="0 s"'])
    begun = time.monotonic()
    moments: list[tuple[float, float]] = []
    with session.place(scenario, tmp_path / "run") as place:
        session.record(
            scenario,
            place,
            world="virtual",
            live=lambda _, t_s, split: moments.append((t_s, time.monotonic() - begun)),
            steering=Steering(scenario, pace=pace),
        )
    (t0, begun_s), (t1, ended_s) = moments[0], moments[-2]
    assert ended_s - begun_s >= 0.9 * (t1 - t0) / pace
    assert len(moments) >= 5


def test_in_virtual_time_the_causes_of_a_delay_add_up(shipped_scenarios: Path, tmp_path: Path) -> None:
    scenario = scenarios.load(shipped_scenarios / "quickstart.toml", ['duration="4 s"', 'warmup="0 s"'])
    made: list[Collector] = []

    def live(rows: bytes, t_s: float, split: str) -> None:
        if not made:
            made.append(Collector(json.loads((place.path / "plan.json").read_text())))
        if split:  # the last rows come without
            made[0].add(rows, t_s, 0)
            made[0].split(json.loads(split), t_s)

    with session.place(scenario, tmp_path / "run") as place:
        session.record(scenario, place, world="virtual", live=live, steering=Steering(scenario))
    for flow in made[0].lately()["flows"]:
        assert sum(cause["ms"] for cause in flow["causes"]) == pytest.approx(flow["arrived_ms"], rel=0.01), (
            flow
        )
    assert {"queueing", "propagation"} <= {cause["name"] for cause in flow["causes"]}


def test_who_asked_is_in_the_event_of_any_client(run: Any, shipped_scenarios: Path) -> None:
    steering = Steering(scenarios.load(shipped_scenarios / "quickstart.toml"))
    with feed.Feed(run.folder, run.folder, steering=steering) as made:
        event = {"link": "l1", "delay": "5 ms", "by": "somebody else"}
        made._ask({"id": "1", "by": 3, "event": event})
        answer, events = made.asked[0]
        assert steering.by == {events[0]["name"]: "viewer 3"}
    assert events[0]["name"] == "link l1 delay 5 ms (viewer 3)" and "by" not in events[0]
    assert answer["event"] == event | {"by": "viewer 3", "name": events[0]["name"]}
    assert 'by = "viewer 3"' in server.saved("", [answer | {"at_ns": 1}])


@pytest.mark.parametrize(
    "jitter",
    [
        {"kind": "./mine.py:Nothing"},
        "mine:Nothing",
        {"delay": {"kind": "./mine.so:f"}},
        {"trace": "secret"},
        {"delay": {"histogram": "secret"}, "reorder": True},
    ],
)
def test_an_event_of_a_page_runs_no_code_and_reads_no_file(
    run: Any, shipped_scenarios: Path, tmp_path: Path, jitter: Any
) -> None:
    (tmp_path / "mine.py").write_text("from pathlib import Path\nPath(__file__).with_name('ran').touch()\n")
    (tmp_path / "secret").write_text("root:secret\n")
    (tmp_path / "scenario.toml").write_bytes((shipped_scenarios / "quickstart.toml").read_bytes())
    steering, told = Steering(scenarios.load(tmp_path / "scenario.toml")), []
    with feed.Feed(run.folder, run.folder, steering=steering) as made:
        made._tell = told.append  # type: ignore[method-assign]
        made._ask({"id": "1", "event": {"link": "l1", "jitter": jitter}})
        assert not made.asked
    assert "allowed: a built-in" in told[0]["refused"] or "pages read no files" in told[0]["refused"]
    assert "root" not in told[0]["refused"] and not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["grüße", "😀", 'a "b" \\ c\n', "\x7f\x00", "# no remark"])
def test_any_name_of_an_event_is_saved_as_toml(name: str) -> None:
    event = {"link": "l1", "delay": "5 ms", "up": True, "name": name}
    text = server.saved("seed = 1\n", [{"k": "asked", "at_ns": 1_500_000_000, "event": event}])
    assert tomllib.loads(text) == {"seed": 1, "events": [{"at": "1.500000000 s"} | event]}


def test_the_first_change_of_a_saved_demonstration_waits_for_nobody(shipped_scenarios: Path) -> None:
    """The changes keep their distances, and come behind the scenario's own event; a later one of its own moves nothing."""
    change = {"link": "line", "delay": "40 ms"}
    told = [{"k": "asked", "at_ns": at * 1_000_000_000, "event": change} for at in (363, 370)]
    text = scenarios.dump(scenarios.load(shipped_scenarios / "demo.toml"))
    own = {"at": "400 s", "link": "line", "up": True}
    document = tomllib.loads(text)
    late = dump_document(document | {"events": [*document["events"], own]})
    for scenario, wanted in (
        (text, [5, 12]),
        (late, [363, 370]),
        (text.replace(server.HAND, "zoh"), [363, 370]),
    ):
        events = tomllib.loads(server.saved(scenario, told))["events"]
        times = [round(float(one["at"].split()[0]), 6) for one in events if one.get("delay")]
        assert times == wanted


def test_what_was_done_is_saved_behind_the_events_of_the_scenario() -> None:
    own = {"at": "0 s", "flow": "video", "running": False}
    done = {"link": "l1", "jitter": {"kind": "exponential", "mean": "4 ms"}}
    text = server.saved(dump_document({"events": [own]}), [{"k": "asked", "at_ns": 0, "event": done}])
    assert tomllib.loads(text) == {"events": [own, {"at": "0.000000000 s"} | done]}


@pytest.mark.parametrize(
    ("name", "command"), [("quickstart", "run"), ("console", "console"), ("demo", "console")]
)
def test_a_saved_scenario_names_the_command_that_starts_it(
    shipped_scenarios: Path, name: str, command: str
) -> None:
    text = server.saved(scenarios.dump(scenarios.load(shipped_scenarios / f"{name}.toml")), [])
    assert text.startswith(f"# Start it with: tcpsbed {command} FILE"), text[:100]


def test_the_page_knows_the_limits_of_each_supervisor(shipped_scenarios: Path, tmp_path: Path) -> None:
    def found(name: str, *more: str) -> dict[str, Any]:
        plan = compile_plan(scenarios.load(shipped_scenarios / f"{name}.toml", list(more)), tmp_path)
        return dict(whole.shown(plan)["supervisors"])

    limits = {"hold_ms": 100, "stop_ms": 500, "recover_ms": 50, "engage": "auto", "oldest_ms": 950}
    assert found("demo") == {"ss-embsys": limits}, "those that it does not name are the defaults"
    given = ("hooks.safety.params.end_to_end_ms=3000", 'hooks.safety.params.engage="near"')
    assert found("demo", *given) == {"ss-embsys": limits | {"oldest_ms": 2950, "engage": "near"}}
    assert found("quickstart") == {}


def test_a_saved_scenario_keeps_its_folder_for_a_recording_and_tells_nobody_to_give_keys_away(
    tmp_path: Path,
) -> None:
    base = f'base = "{tmp_path}"\n'
    (tmp_path / "take").mkdir()
    (tmp_path / "k.pem").touch()
    recording = base + '[flows.a.source]\nrecording = "take"\n'
    secured = '[channels.c.security]\nmethod = "aead"\nkey_file = "k.pem"\n'
    for text, beside in (
        (recording, "beside it: take\n"),
        (base + secured, "with the keys"),
        (recording + secured, "it: take\n"),
    ):
        said = server.saved(text, [])
        assert tomllib.loads(said)["base"] == str(tmp_path) and beside in said
    assert "base" not in tomllib.loads(server.saved(base + f'calibration = "{tmp_path / "k.pem"}"\n', []))


@pytest.mark.parametrize(
    ("name", "base"),
    [("quickstart", None), ("conveyor", "shipped:scenarios"), ("own", "folder")],
)
def test_a_saved_scenario_can_be_given_to_somebody_else(
    shipped_scenarios: Path, tmp_path: Path, name: str, base: str | None
) -> None:
    """Without files it has no `base`, with shipped ones that of the package; of others a comment says what to take along."""
    file = shipped_scenarios / f"{name}.toml"
    if name == "own":
        (tmp_path / "hand.csv").write_text("t,x\n0,1\n1,2\n")
        quick = scenarios.load(shipped_scenarios / "quickstart.toml").document
        flow = quick["flows"]["kinematic"] | {"source": {"recording": "hand.csv"}}
        file = tmp_path / "own.toml"
        file.write_text(dump_document(quick | {"flows": quick["flows"] | {"kinematic": flow}}))
    text = server.saved(scenarios.dump(scenarios.load(file)), [])
    found = tomllib.loads(text)
    assert found.get("base") == (str(tmp_path) if base == "folder" else base)
    assert ("put the files that it names beside it: hand.csv" in text) == (name == "own")
    if name != "own":
        assert str(shipped_scenarios.parent) not in text
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "saved.toml").write_text(text)
    again = scenarios.load(tmp_path / "elsewhere" / "saved.toml")
    before = scenarios.compile_plan(scenarios.load(file), tmp_path / "inputs")
    assert scenarios.compile_plan(again, tmp_path / "inputs") == before | {"name": again.name}
