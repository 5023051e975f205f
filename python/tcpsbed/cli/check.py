"""`tcpsbed check` itself: the content of a scenario, or its first error.

A plain command, a file and `--set`, is read here: the library that reads the others takes as long as the check.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tcpsbed.cli.apart import apart
from tcpsbed.errors import counted, printable

ELSEWHERE = "a run on sockets needs it"
"""What is said of a key file that is not there: in virtual time keys follow from the seed."""


def check(file: Path, overrides: Sequence[str], world: str | None = None) -> None:
    """Validates a scenario; for a world, too, if there is one."""
    from tcpsbed import scenarios
    from tcpsbed.scenarios.compile import room
    from tcpsbed.scenarios.compile.channels import absent_keys

    scenario = scenarios.load(file, overrides)
    apart(scenario)
    plan = scenarios.check(scenario)
    notes = [f"key file {name} is not here: {ELSEWHERE}" for name in absent_keys(scenario)]
    if world is not None:
        from tcpsbed.worlds import acceptance

        if lack := acceptance.check(scenario, plan, world):
            notes.append(f"world {world} is not ready here: it needs {lack}")
    kinds = (("component", "components"), ("flow", "flows"), ("node", "nodes"))
    parts = [counted(len(plan.get(key, ())), word) for word, key in kinds]
    parts.append(counted(len((plan.get("network") or {}).get("links", ())), "link"))
    accepted = "valid" if world is None else f"valid in world {world}"
    print(f"{file}: {accepted}. {', '.join(parts)}, {plan['duration_ns'] / 1e9:g} s, seed {plan['seed']}")
    for note in notes:
        print(f"tcpsbed: note: {printable(note)}", file=sys.stderr)
    for warning in room.warnings(plan):
        print(f"tcpsbed: warning: {warning}", file=sys.stderr)


def read(file: Path, overrides: Sequence[str]) -> None:
    """Reads a scenario whose author nobody knows, and lists what a run of it would execute."""
    from tcpsbed import scenarios
    from tcpsbed.scenarios import unrun

    unrun.forbid()
    scenario = scenarios.load(file, overrides)
    print(
        f"{file}: reads as a scenario. Nothing of it was imported or started, so code and its parameters are unchecked"
    )
    named = unrun.named(scenario)
    print("A run would execute:" if named else "A run would execute no code but that of tcpsbed")
    width = max((len(one.key) for one in named), default=0)
    for one in named:
        print(f"  {one.key:<{width}}  {printable(one.text)}  ({one.what})")
    outside = unrun.read_outside(scenario)
    print(
        f"A run would {'open' if outside else 'open no'} files outside the scenario's folder{':' * bool(outside)}"
    )
    for opened in outside:
        print(f"  {printable(f'{opened.place}: {opened.key}: {opened.path}  ({opened.what})')}")


def plain(words: Sequence[str]) -> tuple[Path, list[str]] | None:
    """File and overrides of the words behind `check`; `None` if there is any other word."""
    files, overrides, rest = [], [], iter(words)
    for word in rest:
        if word == "--set":
            overrides += [next(rest, "-")]
        else:
            files += [word]
    if len(files) != 1 or any(word.startswith("-") or not word for word in files + overrides):
        return None
    return Path(files[0]), overrides
