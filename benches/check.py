"""Processor time of `tcpsbed check`, beside that of loading the libraries that other commands need."""

from __future__ import annotations

import sys

from measure import ROOT, Result, Row, median, run_program, spread, tcpsbed

TITLE = "Checking a scenario"
SCENARIO = ROOT / "scenarios" / "quickstart.toml"
LIBRARIES = "import typer, numpy"


def measure(quick: bool) -> Result:
    """Both in turns, after one of each that fills the caches of the disk."""
    checks, loads = [], []
    for _ in range(3 if quick else 15):
        checks.append(tcpsbed("check", SCENARIO).processor_s)
        loads.append(run_program([sys.executable, "-c", LIBRARIES]).processor_s)
    check_s, load_s = median(checks[1:]), median(loads[1:])
    row = Row(
        "processor time of tcpsbed check, quickstart",
        f"{spread(checks[1:])} s",
        f"{LIBRARIES}: {spread(loads[1:])} s",
        f"{check_s / load_s:.2f}",
        "0.25 s",
        check_s <= 0.25,
    )
    return Result("check", TITLE, [row], {"check_s": checks, "load_s": loads})
