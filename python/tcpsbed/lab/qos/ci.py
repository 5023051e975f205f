"""Verdicts for continuous integration: JUnit XML, which every CI shows, and annotations of GitHub.

```text
limit kept      <testcase/>
limit broken    <testcase><failure message="found 41.2 ms, allowed at most 30"/></testcase>     ::error file=…,line=…
flow absent     <testcase><skipped/></testcase>                                                 ::notice
run disturbed   <testcase name="run"><error/></testcase>                                        ::warning
```
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from tcpsbed.lab.qos import check
from tcpsbed.lab.qos.check import Verdict
from tcpsbed.lab.qos.profile import Profile

_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not have."""


@dataclass(frozen=True)
class Checked:
    """A run that was compared with a profile.

    Attributes
    ----------
    profile : Profile
        Its limits.
    verdicts : sequence of Verdict
        What came out.
    absent : sequence of str
        Flows of the profile that the run does not have.
    errors, disturbed : sequence of str
        Why the numbers prove nothing, if so.
    run : str
        The folder of the run or sweep.
    world, seed : str
        Of the run, or of all of a sweep.
    took_s : float
        How long it took.
    """

    profile: Profile
    verdicts: Sequence[Verdict]
    absent: Sequence[str]
    errors: Sequence[str]
    disturbed: Sequence[str]
    run: str
    world: str = ""
    seed: str = ""
    took_s: float = 0.0


def checked(summary: Mapping[str, Any], profile: Profile, run: str) -> Checked:
    """A run compared with a profile; parameters and errors are those of `check.check`, `run` is the folder's name."""
    return Checked(
        profile,
        check.check(summary, profile),
        check.left_out(summary, profile),
        list(summary.get("errors", ())),
        list(summary.get("disturbances", ())),
        run,
        str(summary.get("world", "")),
        str(summary.get("seed", "")),
        float((summary.get("wall") or {}).get("total_s") or 0.0),
    )


def checked_all(summaries: Mapping[str, Mapping[str, Any]], profile: Profile, run: str) -> Checked:
    """The runs of a sweep compared with a profile: the name of each, such as its overrides, stands before its flows."""
    each = {name: checked(summary, profile, run) for name, summary in summaries.items()}
    return Checked(
        profile,
        [replace(one, flow=f"{name}: {one.flow}") for name, found in each.items() for one in found.verdicts],
        [f"{name}: {flow}" for name, found in each.items() for flow in found.absent],
        [f"{name}: {text}" for name, found in each.items() for text in found.errors],
        [f"{name}: {text}" for name, found in each.items() for text in found.disturbed],
        run,
        ", ".join(dict.fromkeys(found.world for found in each.values())),
        ", ".join(dict.fromkeys(found.seed for found in each.values())),
        math.fsum(found.took_s for found in each.values()),
    )


def junit(checked: Checked) -> str:
    """The verdicts as JUnit XML: one suite, a test for each limit, one for the run."""
    broken = sum(not one.passed for one in checked.verdicts)
    amiss = bool(checked.errors or checked.disturbed)
    counts = {
        "tests": str(len(checked.verdicts) + len(checked.absent) + 1),
        "failures": str(broken),
        "errors": str(int(amiss)),
        "skipped": str(len(checked.absent)),
        "time": f"{checked.took_s:.3f}",
    }
    above = {key: value for key, value in counts.items() if key != "skipped"}  # as Jenkins' schema has it
    suites = ET.Element("testsuites", {"name": "tcpsbed check-qos"} | above)
    suite = ET.SubElement(suites, "testsuite", {"name": _clean(checked.profile.name)} | counts)
    properties = ET.SubElement(suite, "properties")
    about = {
        "run": checked.run,
        "world": checked.world,
        "seed": checked.seed,
        "source": checked.profile.source,
    }
    for name, value in about.items():
        ET.SubElement(properties, "property", {"name": name, "value": _clean(str(value))})
    run = _case(suite, checked.profile.name, "run")
    run.set("time", counts["time"])
    if amiss:
        said = [
            *(f"ERROR: {one}" for one in checked.errors),
            *(f"DISTURBED: {one}" for one in checked.disturbed),
        ]
        message = "the numbers of this run prove nothing"
        ET.SubElement(run, "error", {"message": message, "type": "disturbed"}).text = _clean("\n".join(said))
    for one in checked.verdicts:
        case = _case(suite, f"{checked.profile.name}.{one.flow}", f"{one.metric} {one.limits}")
        if not one.passed:
            ET.SubElement(case, "failure", {"message": _clean(_found(one)), "type": "limit"}).text = _clean(
                str(one)
            )
    for flow in checked.absent:
        case = _case(suite, f"{checked.profile.name}.{flow}", "limits")
        ET.SubElement(case, "skipped", {"message": "the run has no such flow"})
    ET.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suites, encoding="unicode")}\n'


def _case(suite: ET.Element, classname: str, name: str) -> ET.Element:
    return ET.SubElement(
        suite, "testcase", {"classname": _clean(classname), "name": _clean(name), "time": "0"}
    )


def _clean(text: str) -> str:
    return _NO_XML.sub("�", text)


def _found(one: Verdict) -> str:
    value = f"{one.found:g} {one.unit}".rstrip() if math.isfinite(one.found) else "nothing"
    return f"found {value}, allowed {one.limits}"


def github(checked: Checked, root: Path) -> Iterator[str]:
    """Lines that GitHub Actions shows beside the commit, a file of `root` with its line.

    A profile that comes with tcpsbed is no file of the repository: its annotations have a title only.
    """
    for text in checked.errors:
        yield _annotation("error", "ERROR", text)
    for text in checked.disturbed:
        yield _annotation("warning", "DISTURBED", text)
    for one in checked.verdicts:
        if not one.passed:
            yield _annotation("error", f"{one.flow} {one.metric}", _found(one), _within(one, root))
    if checked.absent:
        text = f"skipped, because the run has no such flow: {', '.join(checked.absent)}"
        yield _annotation("notice", checked.profile.name, text)


def _within(one: Verdict, root: Path) -> dict[str, str]:
    """File and line of a limit, where that is in the repository."""
    if one.file is None or not one.file.is_file() or not one.file.resolve().is_relative_to(root.resolve()):
        return {}
    file = one.file.resolve().relative_to(root.resolve()).as_posix()
    return {"file": file} | ({} if one.line is None else {"line": str(one.line)})


def _annotation(kind: str, title: str, text: str, place: dict[str, str] | None = None) -> str:
    """A workflow command, as GitHub escapes it."""
    properties = (place or {}) | {"title": title}
    escaped = (f"{key}={_escaped(value, ':,')}" for key, value in properties.items())
    return f"::{kind} {','.join(escaped)}::{_escaped(text)}"


def _escaped(text: str, more: str = "") -> str:
    for letter in f"%\r\n{more}":
        text = text.replace(letter, f"%{ord(letter):02X}")
    return text
