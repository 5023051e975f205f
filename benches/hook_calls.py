"""What a hook call costs from a thread that stays attached: Rust, C, numba, plain Python."""

from __future__ import annotations

import json

from measure import HERE, CannotMeasureError, Result, Row, compile_library

TITLE = "Hook calls from a thread that stays attached"
VALUES = 6
BATCHES = 200


def codes() -> dict[str, tuple[dict[str, str], float]]:
    """The four kinds of code and their bars in nanoseconds."""
    python = str(HERE / "hooks" / "plain.py")
    library = str(compile_library("copy"))
    return {
        "Rust (zoh)": ({"kind": "builtin", "name": "zoh"}, 20),
        "C": ({"kind": "library", "name": library, "symbol": "copy"}, 20),
        "numba": ({"kind": "python", "name": python, "symbol": "copy"}, 20),
        "plain Python": ({"kind": "python", "name": python, "symbol": "Copy"}, 300),
    }


def measure(quick: bool) -> Result:
    """Batches of calls through the hook interface; nanoseconds a call."""
    from tcpsbed import _tcps

    time_hook = getattr(_tcps, "time_hook", None)
    if time_hook is None:
        raise CannotMeasureError("the native module has no time_hook")
    calls = 1_000 if quick else 20_000
    rows, raw = [], {}
    for name, (code, bar_ns) in codes().items():
        ns = sorted(time_hook(json.dumps(code), VALUES, calls, BATCHES))
        p50, p99 = ns[len(ns) // 2], ns[int(len(ns) * 0.99)]
        rows.append(
            Row(
                f"{name}, {VALUES} values",
                f"p50 {p50:.1f} ns, p99 {p99:.1f} ns",
                "",
                "",
                f"{bar_ns} ns",
                p50 <= bar_ns,
            )
        )
        raw[name] = {"p50_ns": p50, "p99_ns": p99, "batches": BATCHES, "calls": calls}
    return Result("hook_calls", TITLE, rows, raw)
