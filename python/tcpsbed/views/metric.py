"""Numbers of a flow, a link or a metric of the user's that are named by their paths, such as `haptic.delay_ms.p99`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tcpsbed.analysis import attacks, metrics
from tcpsbed.analysis.stats import Interval, interval
from tcpsbed.errors import ConfigError
from tcpsbed.nearest import meant
from tcpsbed.scenarios.fields import Refusal
from tcpsbed.scenarios.units import refuse, shown
from tcpsbed.views.numbers import finite
from tcpsbed.views.tables import Field, field, fields

QUALITY = ("coded_bps", "psnr_db", "ssim")
"""What is kept of pictures and sound, beside their age."""
EFFECTS = "effects"
"""List of what events did, by their names."""
LISTS = ("network", "queues", EFFECTS)
"""Lists of a summary whose entries have a name: links and their queues, with a direction, and events."""
OWN = "metrics"
"""List of the user's metrics; also the name of the table of those that are of no flow or link."""
METRIC = (
    "a metric, such as haptic.delay_ms.p99, haptic.loss, video.psnr_db, network.l1.forward.loss, "
    "effects.NAME.accepted_share of the attack NAME, "
    "or metrics.Mine.haptic.value of your own class Mine"
)


@dataclass(frozen=True)
class Metric:
    """A number of a flow, a link or the like: its path, such as `haptic.delay_ms.p99`, and its column in a table of runs.

    Attributes
    ----------
    path
        As in a summary; of a flow without `flows`.
    flow
        Of which flow, or link: `haptic`, `network.l1.forward`; of a user's metric what its value is of, or `metrics`.
    column
        What it is there.
    listed
        `network` or `queues` of a link, `effects` of an event, `metrics` of a user's metric; empty of a flow.
    label
        Another name for people; empty: that of the column.
    """

    path: str
    flow: str
    column: Field
    listed: str = ""
    label: str = ""

    def interval(self, values: Sequence[float]) -> Interval:
        """The mean of its values, one of each seed, with a 95 % interval that is no narrower than what it tells apart."""
        return interval(values, self.column.bin(max(map(abs, values))))

    @property
    def title(self) -> str:
        """How it is called where people read it."""
        return self.label or self.column.title

    @property
    def key(self) -> str:
        """Its key in a row of the table: `delay_p99_ms`."""
        return self.column.name

    @property
    def part(self) -> str:
        """The part of a summary that has it."""
        return self.listed or ("media" if self.column.path[0] in QUALITY else "flows")

    def number(self, summary: Mapping[str, Any]) -> float | None:
        """Its value in a summary."""
        found = summary.get(self.part) or {}
        if not self.listed:
            return self.column.number(found.get(self.flow) or {})
        if self.listed == OWN:
            row = self._row(summary)
            return finite(row.get("value")) if row else None
        key = metrics.section(self.listed).parts[0].key
        return next(
            (self.column.number(one) for one in found if f"{self.listed}.{one.get(key)}" == self.flow), None
        )

    def dressed(self, labels: Mapping[str, str], summary: Mapping[str, Any]) -> Metric:
        """It with its label, by its path; a user's also with the unit that a summary has of it."""
        found = replace(self, label=labels.get(self.path, ""))
        row = self._row(summary) if self.listed == OWN else None
        if row is None:
            return found
        return replace(
            found,
            column=replace(self.column, metric=replace(self.column.metric, unit=str(row.get("unit") or ""))),
        )

    def _row(self, summary: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The row of a user's metric in a summary."""
        wanted = (self.column.metric.key, "" if self.flow == OWN else self.flow)
        rows = summary.get(OWN) or ()
        return next((row for row in rows if (row.get("name"), row.get("of")) == wanted), None)


def metric(path: str) -> Metric:
    """The metric with this path.

    Raises
    ------
    Refusal
        If nothing can have it.
    """
    section, _, rest = path.partition(".")
    if section == OWN and rest.endswith(".value"):
        name, _, of = rest.removesuffix(".value").partition(".")
        return Metric(path, of or OWN, Field(metrics.Metric(name, label=name), (OWN, name)), OWN)
    for listed in (section, "") if section in LISTS else ("",):
        known = _columns(listed)
        for name in sorted(known, key=len, reverse=True):
            flow = path.removesuffix(f".{name}")
            if flow not in (path, "", listed):
                return Metric(path, flow, known[name], listed)
    raise refuse(f"found {shown(path)}{meant(rest, known)}", METRIC)


def named(path: str, key: str) -> Metric:
    """The metric of an option, or of a parameter.

    Raises
    ------
    ConfigError
        If nothing can have it.
    """
    try:
        return metric(path)
    except Refusal as error:
        raise ConfigError(error.context["found"], key=key, allowed=error.context["allowed"]) from None


def effects(summaries: Iterable[Mapping[str, Any]]) -> list[str]:
    """The attacks that some of these summaries have, as the flows of their metrics: `effects.forged commands`."""
    every = (
        one for summary in summaries for one in summary.get(EFFECTS) or () if one.get("kind") in attacks.NOUNS
    )
    return list(dict.fromkeys(f"{EFFECTS}.{one['name']}" for one in every))


def of_effects(*keys: str) -> tuple[Field, ...]:
    """Columns of an event."""
    known = _columns(EFFECTS)
    return tuple(known[key] for key in keys)


def _columns(listed: str = "") -> dict[str, Field]:
    """What the table of a campaign has of a flow, or of an entry of such a list, by its path."""
    found = [one for one in fields(metrics.section(listed or "flows").parts) if one.metric.unit]
    found += [field(metrics.section(EFFECTS).parts, "accepted_share")] if listed == EFFECTS else []
    found += [] if listed else [field(metrics.section("media").parts, key) for key in QUALITY]
    columns = (replace(one, metric=replace(one.metric, rare=False)) for one in found)  # 0 is a result here
    return {".".join(filter(None, [*one.path, one.statistic])): one for one in columns}
