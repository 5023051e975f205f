"""Runs the benchmarks, side by side with what they are measured against, and writes docs/benchmarks.md.

    benches/run.py                 all of them, as long as docs/benchmarks.md says
    benches/run.py --quick         shorter and fewer windows; prints, and leaves docs/benchmarks.md alone
    benches/run.py --only relay    one of them

Each leaves bench-out/NAME.json. A target that is missed ends the program with 1; what cannot be
measured here (ns-3 is not installed, say) is told and is no failure.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time

from measure import OUT, CannotMeasureError, Result, Row
from tables import as_text, write_document

BENCHES = [
    "against_ns3",
    "over_worlds",
    "same_session",
    "lte",
    "memory",
    "operators",
    "check",
    "determinism",
    "relay",
    "rate",
    "latency",
    "secured",
    "emulator",
    "proxy",
    "endpoint",
    "hook_calls",
    "node_cost",
    "campaign",
    "step_batch",
    "step_real",
    "edge_hold",
    "video",
    "robot_host",
    "board",
    "telerobot",
    "console",
    "studio",
]


def measured(name: str, quick: bool) -> Result:
    """One benchmark; what it cannot measure is told in its row."""
    module = importlib.import_module(name)
    begin = time.monotonic()
    try:
        result: Result = module.measure(quick)
    except CannotMeasureError as reason:
        result = Result(name, module.TITLE, [Row("not measured", str(reason), "", "", "")])
    result.seconds = round(time.monotonic() - begin, 1)
    return result


def main() -> int:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short windows, a look and no document")
    parser.add_argument("--only", help="names, with commas between: " + ", ".join(BENCHES))
    options = parser.parse_args()
    names = options.only.split(",") if options.only else BENCHES
    if unknown := set(names) - set(BENCHES):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # commands would compile all that they import each time
    OUT.mkdir(exist_ok=True)
    fails = unmeasured = 0
    for name in names:
        result = measured(name, options.quick)
        place = OUT / (f"{name}.quick.json" if options.quick else f"{name}.json")
        place.write_text(json.dumps(result.as_json(), indent=1), encoding="utf-8")
        print(as_text(result), flush=True)
        fails += sum(row.holds is False for row in result.rows)
        unmeasured += sum("not measured" in (row.what, row.measured) for row in result.rows)
    if not options.quick:
        write_document()
    told = f"{fails} targets are missed" if fails else "every target that was measured is met"
    print(f"{told}; {unmeasured} rows could not be measured" if unmeasured else told)
    return 1 if fails else 0


if __name__ == "__main__":
    sys.exit(main())
