"""`openmetrics`: numbers for Prometheus, Grafana and other scrapers on `http://127.0.0.1:PORT/metrics`.

Names, units and meanings are those of the table of metrics (docs/summary.md), in base units: `delay_ms` of a flow
is `tcpsbed_flow_delay_seconds`. [OpenMetrics 1.0 §5]
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from tcpsbed import shipped
from tcpsbed.analysis.metrics import flow, network, place, split
from tcpsbed.analysis.metrics.metric import Metric
from tcpsbed.analysis.records import KINDS, REASONS, Names
from tcpsbed.door import Sink
from tcpsbed.errors import ConfigError
from tcpsbed.media.packages import need
from tcpsbed.studio.ledger import Ledger, Moments
from tcpsbed.studio.limits import Refusals
from tcpsbed.studio.listening import Listening
from tcpsbed.studio.sinks import port_of
from tcpsbed.studio.site import MOST_BYTES, MOST_GREETING_S, Door

PORT = 9464
"""As exporters for Prometheus have it by default (OpenTelemetry)."""
CONTENT = "application/openmetrics-text; version=1.0.0; charset=utf-8"
DASHBOARD = shipped.DATA / "grafana.json"
UNITS = {
    "ms": ("seconds", 1e-3),
    "s": ("seconds", 1.0),
    "B": ("bytes", 1.0),
    "share": ("ratio", 1.0),
    "count": ("", 1.0),
}
"""Unit in OpenMetrics, and what one of ours is in it."""
BOUNDS_S = tuple(
    float(f"{step * 10.0**power:.3g}") for power in range(-4, 1) for step in (1, 1.5, 2, 3, 5, 7)
)
"""Upper bounds of the histogram of delays: 0.1 ms to 7 s."""
SENT, DROPPED, QUEUE, GAP = (1 + KINDS.index(kind) for kind in ("sent", "dropped", "queue", "gap"))
Labels = dict[str, str]
Sample = tuple[str, Labels, float]
"""Suffix, labels, value."""


@dataclass(frozen=True)
class Family:
    """A metric of the table as a family of samples.

    Parameters
    ----------
    of
        What it is about: `flow`, `queue`, `node` ...
    metric
        From the table.
    kind
        `counter`, `gauge`, `histogram` or `info`.
    about
        What its value is about, behind the meaning of the metric; empty: the run so far.
    called
        Its name in place of that of the metric.
    """

    of: str
    metric: Metric
    kind: str
    about: str = ""
    called: str = ""

    @property
    def unit(self) -> str:
        """Its base unit; empty for numbers of things."""
        return UNITS[self.metric.unit][0] if self.metric.unit else ""

    @property
    def name(self) -> str:
        """Such as `tcpsbed_flow_delay_seconds`."""
        base = self.called or self.metric.key.removesuffix(f"_{self.metric.unit}").removesuffix("_bytes")
        return "_".join(
            part for part in ("tcpsbed", self.of, base if base != self.unit else "", self.unit) if part
        )

    def lines(self, samples: Iterable[Sample]) -> Iterator[str]:
        """Its text, without a sample if there is none."""
        yield f"# TYPE {self.name} {self.kind}"
        if self.unit:
            yield f"# UNIT {self.name} {self.unit}"
        yield f"# HELP {self.name} {_escaped('; '.join(filter(None, (self.metric.meaning, self.about))))}"
        scale = UNITS[self.metric.unit][1] if self.metric.unit else 1.0
        for suffix, labels, value in samples:
            value *= 1.0 if suffix in ("_bucket", "_count") else scale
            told = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            yield f"{self.name}{suffix}{f'{{{told}}}' if told else ''} {value:.12g}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _of(parts: tuple[Metric, ...], key: str) -> Metric:
    return next(metric for metric in parts if metric.key == key)


_FLOW, _QUEUE = partial(_of, flow.FLOW), partial(_of, network.QUEUE)
LATELY, LOSSES, NEWEST = "over the last 2 s", "over the last 10 s", "the newest sample"
RUN = Family("", Metric("run", "the run that is watched"), "info")
TIME = Family("", Metric("run_time_s", "time of the run", "s"), "gauge")
ROWS = Family("", Metric("rows", "rows of the record that the page got", "count"), "counter")
LEFT_OUT = Family(
    "",
    Metric("rows_left_out", "rows that the page was not sent because it was too slow; the record has them", "count"),
    "counter",
)  # fmt: skip
SENT_SAMPLES = Family("flow", _FLOW("sent"), "counter")
CAME = Family("flow", _FLOW("delivered"), "counter")
PAYLOAD = Family("flow", _FLOW("payload_bytes"), "counter")
DELAY = Family("flow", _FLOW("delay_ms"), "histogram")
DELAY_LATELY = Family("flow", _FLOW("delay_ms"), "gauge", f"mean, p50, p99, max {LATELY}", "delay_lately")
LOSS = Family("flow", _FLOW("loss"), "gauge", LOSSES)
DROPS = Family("flow", _FLOW("drops"), "counter")
PATH = Family("path", _of(flow.PATH, "latency_ms"), "gauge", f"mean {LATELY}")
CAUSES = Family("split", _of(split.SPLIT.part("parts").parts, "mean_ms"), "gauge", f"by cause, {LATELY}")
QUEUE_BYTES = Family("queue", _QUEUE("bytes"), "gauge", NEWEST)
QUEUE_PACKETS = Family("queue", _QUEUE("packets"), "gauge", NEWEST)
QUEUE_DELAY = Family("queue", _QUEUE("delay_ms"), "gauge", NEWEST)
STALLS = Family("node", _of(place.NODE, "gaps_over_1ms"), "counter")
FAMILIES = (
    RUN, TIME, ROWS, LEFT_OUT, SENT_SAMPLES, CAME, PAYLOAD, DELAY, DELAY_LATELY, LOSS, DROPS, PATH, CAUSES, QUEUE_BYTES,
    QUEUE_PACKETS, QUEUE_DELAY, STALLS,
)  # fmt: skip


class OpenMetrics(Sink):
    """Numbers for Prometheus and Grafana, to be scraped. Target: a port of 127.0.0.1, 9464 without one."""

    def __init__(self, target: str) -> None:
        super().__init__(target)
        port = port_of("openmetrics", target, PORT)
        sync: Any = need("websockets.sync.server", "the sink openmetrics", "studio")
        self.lock = threading.Lock()
        self.tally: Tally | None = None
        self.now: dict[str, Any] = {}
        try:
            self.server = sync.serve(
                lambda connection: None,
                sock=Door(Listening(port=port), Refusals()),
                process_request=self._answer,
                max_size=MOST_BYTES,
                open_timeout=MOST_GREETING_S,
            )
        except OSError as error:
            found = f"port {port}: {error.strerror}"
            raise ConfigError(
                found, key="--sink openmetrics", allowed="another port, such as openmetrics=0"
            ) from None
        self.port: int = self.server.socket.getsockname()[1]
        self.where = f"http://127.0.0.1:{self.port}/metrics"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def begin(self, plan: dict[str, Any]) -> None:
        """Counts from nought."""
        with self.lock:
            self.tally = Tally(plan, Moments.of(self.scenario))

    def rows(self, rows: np.ndarray[Any, Any], now_s: float) -> None:
        """Counts."""
        with self.lock:
            assert self.tally is not None
            self.tally.add(rows, now_s)

    def take(self, now: dict[str, Any]) -> None:
        """Keeps the numbers for the next scrape."""
        with self.lock:
            self.now = now

    def end(self) -> None:
        """Counters stay for a last scrape; nothing is about now any more."""
        with self.lock:
            self.now = {key: self.now[key] for key in ("rows", "left_out") if key in self.now}

    def text(self) -> str:
        """What a scraper gets."""
        with self.lock:
            found = {} if self.tally is None else self.tally.samples() | _lately(self.now)
        lines = [line for family in FAMILIES for line in family.lines(found.get(family, ()))]
        return "\n".join([*lines, "# EOF", ""])

    def _answer(self, connection: Any, request: Any) -> Any:
        """Only to who asks for this machine by its own name: a page of another site cannot read it (DNS rebinding)."""
        host = urlsplit(f"//{request.headers.get('Host', '')}").hostname
        if host not in ("127.0.0.1", "localhost"):
            return connection.respond(HTTPStatus.FORBIDDEN, f"found the host {host}; allowed: 127.0.0.1\n")
        path = urlsplit(request.path).path
        if path not in ("/metrics", "/grafana.json"):
            return connection.respond(HTTPStatus.NOT_FOUND, "allowed: /metrics, /grafana.json\n")
        is_board = path == "/grafana.json"
        response = connection.respond(
            HTTPStatus.OK, DASHBOARD.read_text(encoding="utf-8") if is_board else self.text()
        )
        del response.headers["Content-Type"]
        response.headers["Content-Type"] = "application/json" if is_board else CONTENT
        return response


class Tally:
    """Counts of a run, from its rows as they come."""

    def __init__(self, plan: dict[str, Any], moments: Moments | None = None) -> None:
        self.ledger = Ledger(plan, moments)
        self.about = {"name": str(plan["name"]), "seed": str(plan["seed"])}
        self.names = Names.of(plan)
        self.flows, self.nodes = self.names.flows[:-1], self.names.nodes[:-1]
        self.links = [link["name"] for link in plan["network"]["links"]]
        flows = len(self.flows)
        self.sent, self.came, self.dated, self.payload, self.delay_ns = (np.zeros(flows) for _ in range(5))
        self.delays = np.zeros((flows, len(BOUNDS_S) + 1))
        self.drops: Counter[tuple[str, str, str, str]] = Counter()
        self.queues: dict[int, np.void] = {}
        self.gaps = np.zeros(len(self.nodes))
        self.now_s = 0.0

    def add(self, rows: np.ndarray[Any, Any], now_s: float) -> None:
        """Counts new rows, seen at this moment of the run."""
        self.now_s = now_s
        arrivals = self.ledger.add(rows)
        self.sent[:], self.came[:] = np.array(self.ledger.counts()).reshape(-1, 2).T
        came, charged = arrivals.first[arrivals.counted], arrivals.charged
        _count(self.dated, came["flow"])
        _count(self.payload, charged["flow"], charged["size"])
        delay_ns = np.maximum(came["value"], 0)  # clocks that differ; a sum of a histogram may not fall
        _count(self.delay_ns, came["flow"], delay_ns)
        buckets = np.searchsorted(np.array(BOUNDS_S) * 1e9, delay_ns)
        np.add.at(self.delays, (came["flow"], buckets), 1)
        for row in rows[(rows["kind"] == QUEUE) & (rows["point"] < len(self.links))]:
            self.queues[int(row["point"])] = row
        rows = rows[rows["time"] >= self.ledger.moments.warmup_ns]
        _count(self.gaps, rows["node"][(rows["kind"] == GAP) & (rows["node"] < len(self.nodes))])
        self._count_drops(rows[(rows["kind"] == DROPPED) & (rows["flow"] < len(self.flows))])

    def _count_drops(self, rows: np.ndarray[Any, Any]) -> None:
        places = self.names.place_codes(rows)
        for row, place_ in zip(rows, places, strict=True):
            where = self.names.places[place_]
            kind = "link" if where in self.links else "component"
            self.drops[self.flows[row["flow"]], kind, where, REASONS[row["detail"]]] += 1

    def samples(self) -> dict[Family, list[Sample]]:
        """Samples by family."""
        found: dict[Family, list[Sample]] = {
            RUN: [("_info", self.about, 1.0)],
            TIME: [("", {}, self.now_s)],
            SENT_SAMPLES: _by(self.flows, "flow", self.sent),
            CAME: _by(self.flows, "flow", self.came),
            PAYLOAD: _by(self.flows, "flow", self.payload),
            DELAY: [one for number in range(len(self.flows)) for one in self._histogram(number)],
            DROPS: [
                ("_total", {"flow": name, kind: where, "reason": reason}, float(count))
                for (name, kind, where, reason), count in self.drops.items()
            ],
            STALLS: _by(self.nodes, "node", self.gaps),
        }
        for family, field, unit in (
            (QUEUE_PACKETS, "index", 1.0),
            (QUEUE_BYTES, "size", 1.0),
            (QUEUE_DELAY, "value", 1e-6),
        ):
            found[family] = [
                ("", {"link": self.links[link]}, float(row[field]) * unit)
                for link, row in self.queues.items()
            ]
        return found

    def _histogram(self, number: int) -> Iterator[Sample]:
        of = {"flow": self.flows[number]}
        for bound, count in zip((*map(str, BOUNDS_S), "+Inf"), np.cumsum(self.delays[number]), strict=True):
            yield "_bucket", of | {"le": bound}, float(count)
        yield "_count", of, float(self.dated[number])
        yield "_sum", of, float(self.delay_ns[number]) / 1e6


def _count(into: np.ndarray[Any, Any], numbers: np.ndarray[Any, Any], weights: Any = None) -> None:
    into += np.bincount(numbers, weights, len(into))


def _by(names: list[str], label: str, values: np.ndarray[Any, Any]) -> list[Sample]:
    return [("_total", {label: name}, float(value)) for name, value in zip(names, values, strict=True)]


def _lately(now: dict[str, Any]) -> dict[Family, list[Sample]]:
    """What the page shows of the last seconds."""
    flows = now.get("flows", ())
    return {
        ROWS: [("_total", {}, now["rows"])] if "rows" in now else [],
        LEFT_OUT: [("_total", {}, now["left_out"])] if "left_out" in now else [],
        DELAY_LATELY: [
            ("", {"flow": one["name"], "statistic": key}, one[f"{key}_ms"])
            for one in flows
            for key in ("mean", "p50", "p99", "max")
            if f"{key}_ms" in one
        ],
        LOSS: [("", {"flow": one["name"]}, one["loss"]) for one in flows if one["loss"] is not None],
        PATH: [
            ("", {"flow": one["name"], "what": part["what"], "place": part["name"]}, part["ms"])
            for one in flows
            for part in one["parts"]
        ],
        CAUSES: [
            ("", {"flow": one["name"], "cause": cause["name"]}, cause["ms"])
            for one in flows
            for cause in one["causes"]
        ],
    }
