"""What a hook call costs from a thread that stays attached: Rust, C, numba, plain Python."""

from __future__ import annotations

import json

from measure import HERE, Result, Row, compile_library

TITLE = "Hook calls from a thread that stays attached"


def codes() -> dict[str, tuple[dict[str, str], float | None]]:
    """The four kinds of code and their targets in nanoseconds; numpy's own copy of a slice has none."""
    python = str(HERE / "hooks" / "plain.py")
    library = str(compile_library("copy"))
    return {
        "Rust (zoh) that copies": ({"kind": "builtin", "name": "zoh"}, 20),
        "C that copies": ({"kind": "library", "name": library, "symbol": "copy"}, 20),
        "numba that copies": ({"kind": "python", "name": python, "symbol": "copy"}, 20),
        "plain Python, the call alone": ({"kind": "python", "name": python, "symbol": "Say"}, 300),
        "plain Python that copies": ({"kind": "python", "name": python, "symbol": "Copy"}, None),
    }


def measure(quick: bool) -> Result:
    """Blocks of 1000 calls through the hook interface; nanoseconds a call."""
    from tcpsbed import _tcps

    rows, raw = [], {}
    for name, (code, bar_ns) in codes().items():
        ns = sorted(_tcps.time_hook(json.dumps(code), 200 if quick else 5000))
        p50, p99 = ns[len(ns) // 2], ns[int(len(ns) * 0.99)]
        told = f"p50 {p50:.1f} ns, p99 {p99:.1f} ns"
        bar, holds = (f"{bar_ns} ns", p50 <= bar_ns) if bar_ns else ("", None)
        rows.append(Row(f"{name}, 6 values", told, "", "", bar, holds))
        raw[name] = {"p50_ns": p50, "p99_ns": p99, "blocks": len(ns)}
    return Result("hook_calls", TITLE, rows, raw)
