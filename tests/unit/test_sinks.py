"""Sinks get the rows, numbers and events of a run, in threads of their own; one that fails or hangs ends nothing."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import tcpsbed
from tcpsbed import shipped
from tcpsbed.cli.app import app
from tcpsbed.errors import TcpsbedError
from tcpsbed.studio import sinks
from tcpsbed.studio.collector import ROW, Collector
from tcpsbed.studio.sinks import openmetrics, running

pytest.importorskip("websockets", reason="needs the package websockets")

OWN = """
import time
import tcpsbed
class Kept(tcpsbed.Sink):
    seen = []
    def begin(self, plan):
        self.seen.append(("begin", plan["name"]))
    def rows(self, rows, now_s):
        self.seen.append(("rows", len(rows)))
    def take(self, now):
        self.seen.append(("take", now["t_s"]))
    def event(self, t_s, name):
        self.seen.append(("event", name))
    def end(self):
        self.seen.append(("end", self.target))
class Fails(tcpsbed.Sink):
    def take(self, now):
        raise ValueError("boom")
class Hangs(tcpsbed.Sink):
    def take(self, now):
        time.sleep(60)
class Half(tcpsbed.Sink):
    pass
"""


@pytest.fixture(scope="module")
def run(shipped_scenarios: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    settings = ['duration="4 s"', 'warmup="0 s"', 'measure.signals=["tactile-teleoperator.sense"]']
    settings += ["events=[{at='2 s', link='l1', loss='5 %', name='l1 loses'}]"]
    out = tmp_path_factory.mktemp("sinks") / "run"
    return tcpsbed.run(shipped_scenarios / "quickstart.toml", out=out, set=settings)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def played(run: Any, to: Any, until_s: float = 4.0) -> None:
    """Gives a sink, or sinks, what a page would give them, 50 ms at a time and numbers at each quarter of a second."""
    plan = json.loads((run.folder / "plan.json").read_text())
    rows, collector = np.fromfile(run.folder / "records.bin", ROW), Collector(plan)
    to.begin(plan)
    for tick in range(1, round(until_s / 0.05) + 1):
        end = tick * 50_000_000
        new = rows[(rows["time"] < end) & (rows["time"] >= end - 50_000_000)]
        collector.add(new.tobytes(), end / 1e9, 0)
        for one in to.running if isinstance(to, running.Sinks) else ():
            while one.waiting.full() and one.thread.is_alive():  # faster than a page: nothing is to be missed
                time.sleep(0.001)
        to.rows(new.tobytes() if isinstance(to, running.Sinks) else new, end / 1e9)
        if tick % 5 == 0:
            to.take(collector.lately())


@pytest.fixture
def scraped() -> Iterator[openmetrics.OpenMetrics]:
    made = openmetrics.OpenMetrics("0")
    yield made
    made.server.shutdown()


def get(where: str, path: str = "/metrics", **headers: str) -> tuple[str, str]:
    asked = urllib.request.Request(where.replace("/metrics", path), headers=headers)
    with urllib.request.urlopen(asked, timeout=10) as got:
        return got.headers["Content-Type"], got.read().decode()


def families(text: str) -> dict[str, Any]:
    parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="needs prometheus_client")
    return {family.name: family for family in parser.text_string_to_metric_families(text)}


def values(family: Any, suffix: str = "") -> dict[tuple[str, ...], float]:
    return {
        tuple(one.labels.values()): one.value for one in family.samples if one.name == family.name + suffix
    }


# [OpenMetrics 1.0 §5]
def test_what_is_scraped_is_openmetrics_and_the_numbers_are_those_of_the_summary(
    run: Any, scraped: Any
) -> None:
    kind, empty = get(scraped.where)
    assert kind == openmetrics.CONTENT and families(empty).keys() >= {"tcpsbed_flow_delay_seconds"}
    played(run, scraped)
    found = families(get(scraped.where)[1])
    by_flow = run.summary["flows"]
    for name, key in (("sent", "sent"), ("delivered", "delivered")):
        counted = values(found[f"tcpsbed_flow_{name}"], "_total")
        assert counted == {(flow,): pytest.approx(told[key], abs=2) for flow, told in by_flow.items()}
    delay = found["tcpsbed_flow_delay_seconds"]
    assert (delay.type, delay.unit) == ("histogram", "seconds")
    sums, counts = values(delay, "_sum"), values(delay, "_count")
    for flow, told in by_flow.items():
        assert 1e3 * sums[flow,] / counts[flow,] == pytest.approx(told["delay_ms"]["mean"], rel=2e-3), flow
        buckets = [
            (float(bound), count) for (of, bound), count in values(delay, "_bucket").items() if of == flow
        ]
        below = [bound for bound, count in buckets if count < 0.99 * counts[flow,]][-1]
        assert below < told["delay_ms"]["p99"] / 1e3 <= 2.01 * below, flow
    drops = values(found["tcpsbed_flow_drops"], "_total")
    assert {(flow, f"{at} {reason}"): n for (flow, at, reason), n in drops.items()} == {
        (flow, what): n for flow, told in by_flow.items() for what, n in told["drops"].items()
    }
    lately = values(found["tcpsbed_flow_delay_lately_seconds"])
    parts = values(found["tcpsbed_path_latency_seconds"])
    for flow in by_flow:
        total = sum(value for (of, _, _), value in parts.items() if of == flow)
        assert total == pytest.approx(lately[flow, "mean"], rel=0.02)
    assert values(found["tcpsbed_queue_bytes"]).keys() == {
        (queue["link"],) for queue in run.summary["queues"]
    }
    assert found["tcpsbed_run"].type == "info" and values(found["tcpsbed_run"], "_info") == {
        ("quickstart", "1"): 1
    }
    scraped.end()
    after = families(get(scraped.where)[1])
    assert values(after["tcpsbed_flow_sent"], "_total") == values(found["tcpsbed_flow_sent"], "_total")
    assert values(after["tcpsbed_flow_delay_lately_seconds"]) == {}


def test_names_units_and_meanings_come_from_the_table_of_metrics() -> None:
    by_name = {family.name: family for family in openmetrics.FAMILIES}
    assert len(by_name) == len(openmetrics.FAMILIES)
    for name, family in by_name.items():
        assert re.fullmatch(r"tcpsbed_[a-z][a-z0-9_]*", name)
        assert name.endswith(f"_{family.unit}" if family.unit else "") and family.metric.meaning
    assert by_name["tcpsbed_flow_loss_ratio"].metric in openmetrics.flow.FLOW


def test_a_scraper_that_comes_by_another_name_is_refused(scraped: Any) -> None:
    with pytest.raises(urllib.error.HTTPError, match="403"):
        get(scraped.where, Host="example.org")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(scraped.where, "/other")


def test_the_dashboard_asks_for_metrics_that_exist(scraped: Any) -> None:
    board = json.loads(get(scraped.where, "/grafana.json")[1])
    assert board == json.loads((shipped.DATA / "grafana.json").read_text())
    suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "info": ("_info",)}
    known = {
        family.name + suffix for family in openmetrics.FAMILIES for suffix in suffixes.get(family.kind, ("",))
    }
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked += [one["definition"] for one in board["templating"]["list"] if "definition" in one]
    named = [name for text in asked for name in re.findall(r"tcpsbed_\w+", text)]
    assert set(named) <= known and all(re.search(r"tcpsbed_\w+", text) for text in asked)
    labels = {label for text in asked for label in re.findall(r"(\w+)=~?\"", text)}
    assert labels <= {"flow", "statistic"}
    assert {"title", "uid", "schemaVersion", "panels", "templating", "time", "annotations"} <= board.keys()
    assert [panel["id"] for panel in board["panels"]] == [*range(1, len(board["panels"]) + 1)]
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        assert {"type", "title", "datasource", "fieldConfig", "options", "targets"} <= panel.keys()
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24
        taken |= cells


def test_a_sink_of_the_users_gets_everything_in_order(run: Any, own: Path) -> None:
    made = running.Sinks(["./mine.py:Kept=here"])
    played(run, made)
    made.text({"k": "over"})
    seen = made.running[0].sink.seen  # type: ignore[attr-defined]
    assert seen[0] == ("begin", "quickstart") and seen[-1] == ("end", "here")
    assert ("event", "l1 loses") in seen
    rows = sum(what for kind, what in seen if kind == "rows")
    assert rows == pytest.approx((run.folder / "records.bin").stat().st_size / 32, rel=0.01)
    assert [what for kind, what in seen if kind == "take"][-1] == 4.0


def test_a_change_by_hand_has_its_name(run: Any, own: Path) -> None:
    made = running.Sinks(["./mine.py:Kept"])
    made.begin(json.loads((run.folder / "plan.json").read_text()))
    made.text({"k": "asked", "refused": "no", "event": {"name": "never"}})
    made.text({"k": "asked", "at_ns": 1, "event": {"name": "l1: 5 ms (by hand)"}})
    row = np.zeros(1, ROW)
    row["kind"], row["index"] = running.EVENT, 1
    made.rows(row.tobytes(), 0.1)
    made.end()
    assert made.running[0].sink.seen[-2] == ("event", "l1: 5 ms (by hand)")  # type: ignore[attr-defined]


def test_a_sink_that_fails_is_said_once_and_the_others_go_on(run: Any, own: Path, capfd: Any) -> None:
    made = running.Sinks(["./mine.py:Fails", "./mine.py:Kept"])
    played(run, made)
    made.end()
    assert [what for kind, what in made.running[1].sink.seen if kind == "take"][-1] == 4.0  # type: ignore[attr-defined]
    told = capfd.readouterr().err.splitlines()
    assert len(told) == 1
    assert told[0].startswith("tcpsbed: sink ./mine.py:Fails: ValueError: boom, at mine.py:")
    assert told[0].endswith("; the run and the page go on without it")


def test_a_sink_that_hangs_misses_calls_and_nobody_waits(
    run: Any, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "LAST_S", 0.1)
    made = running.Sinks(["./mine.py:Hangs"])
    begun = time.monotonic()
    for number in range(1000):
        made.take({"t_s": number})
    made.end()
    assert time.monotonic() - begun < 1
    assert made.running[0].missed >= 1000 - 1 - running.MOST_WAITING


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "openmetric",
            r'--sink: found "openmetric" .did you mean openmetrics\?.; allowed: .*"./mine.py:Mine"',
        ),
        (
            "./mine.py:Half",
            r"found \"Half\", which is not a sink; allowed: class Half\(tcpsbed.Sink\) with take",
        ),
        ("./mine.py:None_", "the module has no such name"),
        ("./lost.py:Mine", "the module cannot be imported"),
        ("openmetrics=here", r'found "here"; allowed: a port, such as openmetrics=9464'),
        ("openmetrics=99999", "allowed: a port"),
    ],
)
def test_what_cannot_be_a_sink_is_refused_with_a_remedy(own: Path, given: str, said: str) -> None:
    with pytest.raises(TcpsbedError, match=said):
        sinks.opened(given)


def test_a_port_that_is_taken_is_refused(scraped: Any) -> None:
    with pytest.raises(TcpsbedError, match="Address already in use; allowed: another port"):
        sinks.opened(f"openmetrics={scraped.port}")


def test_the_command_refuses_a_sink_before_the_run(shipped_scenarios: Path, tmp_path: Path) -> None:
    given = [
        "studio",
        str(shipped_scenarios / "quickstart.toml"),
        "--out",
        str(tmp_path / "out"),
        "--sink",
        "nowhere",
    ]
    done = CliRunner().invoke(app, given)
    assert (
        done.exit_code == 2 and 'found "nowhere"; allowed: foxglove, mcap, openmetrics, rerun' in done.stderr
    )
    assert not (tmp_path / "out").exists()
