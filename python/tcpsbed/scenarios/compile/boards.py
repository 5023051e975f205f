"""Boards of components: their line, their firmware, and the flows that pass them."""

from __future__ import annotations

from typing import Any

from tcpsbed._tcps import BOARD_BYTES, BOARD_CHANNELS, BOARD_SAFE_VALUES
from tcpsbed.scenarios.compile.book import Book, Instance, Way
from tcpsbed.scenarios.compile.files import existing
from tcpsbed.scenarios.model.entries import Chosen
from tcpsbed.scenarios.model.place import Board
from tcpsbed.scenarios.origin import Key

KINDS = ("ms-embsys", "ms-embsys-app", "ss-embsys", "ss-embsys-app")
"""Components that can be boards."""
FIRMWARE = ("host", "qemu")
"""Firmware of the project: compiled for this machine, and for a Cortex-M3 in QEMU."""
_MOST_MS = 0xFFFF
_MOST_US = 0xFFFFFFFF
_MOST_F32 = 3.4028234663852886e38
_ELF, _ARM = b"\x7fELF", 40


def board(book: Book, instance: Instance) -> dict[str, Any] | None:
    """The board of a component as the plan has it. What is attached names the project's own firmware by `FIRMWARE`; the
    world that needs it puts the compiled file there.
    """
    model = instance.model.board
    if model is None:
        return None
    key: Key = ("components", instance.id, "board")
    if instance.kind not in KINDS:
        raise book.scenario.error(key, f"found a board at {instance.kind}", f"a board at {', '.join(KINDS)}")
    if instance.model.delay is not None:
        found = "found a delay of a board, which takes the time that its work takes"
        raise book.scenario.error((*key[:2], "delay"), found, "cost, or rate of the line")
    _check_flows(book, instance, key)
    return {
        "rate_bps": model.rate_bps,
        "watchdog_ms": _watchdog_ms(book, key, model),
        "safe": _safe(book, key, instance, model),
        "work_us": _work_us(book, instance),
        "attached": _attached(book, key, model),
    }


def no_steps(book: Book, instance: Instance, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The empty steps of a board, whose firmware does the work."""
    if steps:
        kind = steps[0]["kind"]
        found = f"found code ({kind}) at {instance.id}, whose board runs its firmware"
        raise book.scenario.error(
            ("components", instance.id, "board"), found, "code at a component beside it"
        )
    return steps


def _check_flows(book: Book, instance: Instance, key: Key) -> None:
    """Checks that a board is between two components of every flow, and that samples fit into its frames."""
    passing = [way for way in book.ways if instance in way.path]
    for way in passing:
        if instance in (way.path[0], way.path[-1]):
            found = f"found the board {instance.id} at an end of the way"
            allowed = "a component before and behind it, such as tactile-operator or tactile-teleoperator"
            raise book.scenario.error(way.key, found, allowed)
        if (most := _most_bytes(way)) > BOARD_BYTES:
            found = f"found samples of {most} B that pass the board {instance.id}"
            raise book.scenario.error(way.key, found, f"at most {BOARD_BYTES} B, or another path (via, path)")
        if way.model.blocking_send:
            found = f"found blocking_send in a flow that passes the board {instance.id}"
            raise book.scenario.error((*way.key, "blocking_send"), found, "false")
    if len(passing) > BOARD_CHANNELS:
        found = f"found {len(passing)} flows that pass it"
        raise book.scenario.error(key, found, f"at most {BOARD_CHANNELS}, or several boards (ss-embsys-app)")


def _most_bytes(way: Way) -> int:
    """Bytes of a sample, as far as the scenario determines them; a longer one is dropped at the board."""
    if way.model.picture is not None or way.model.sound is not None:
        return BOARD_BYTES + 1
    return way.model.sample_bytes or 0


def _watchdog_ms(book: Book, key: Key, model: Board) -> int:
    ms, rest = divmod(model.watchdog_ns, 1_000_000)
    if rest or ms > _MOST_MS:
        found = f"found {model.watchdog_ns / 1e6:g} ms"
        raise book.scenario.error(
            (*key, "watchdog"), found, f"whole milliseconds up to {_MOST_MS}, 0 for none"
        )
    return ms


def _safe(book: Book, key: Key, instance: Instance, model: Board) -> Any:
    safe = model.safe
    if safe is None:
        safe = "hold" if instance.kind.startswith("ss-") else "zero"
    if isinstance(safe, list):
        if len(safe) > BOARD_SAFE_VALUES:
            found = f"found {len(safe)} values"
            raise book.scenario.error((*key, "safe"), found, f"at most {BOARD_SAFE_VALUES}; others are 0")
        if too_large := [value for value in safe if abs(value) > _MOST_F32]:
            allowed = "numbers that 4 bytes hold, up to 3.4e38"
            raise book.scenario.error((*key, "safe"), f"found {too_large[0]:g}", allowed)
    return "hold" if safe == "hold" else {"values": [] if safe == "zero" else safe}


def _work_us(book: Book, instance: Instance) -> int:
    """The least time that it holds a sample: the board itself waits for it, so that it is the same in both worlds."""
    cost = instance.model.cost
    if cost is None:
        return 0
    key: Key = ("components", instance.id, "cost")
    span_ns = cost.plan.get("span_ns") if isinstance(cost, Chosen) else None
    if span_ns is None or span_ns % 1000 or span_ns // 1000 > _MOST_US:
        raise book.scenario.error(
            key, "found no whole number of microseconds", 'at a board a span such as "20 us"'
        )
    return int(span_ns) // 1000


def _attached(book: Book, key: Key, model: Board) -> dict[str, Any]:
    if model.line is not None and model.firmware is not None:
        found = (
            "found both line (a board that is already connected) and firmware (a board that tcpsbed starts)"
        )
        raise book.scenario.error((*key, "firmware"), found, "line or firmware, not both")
    if model.line is not None:
        return {"kind": "port", "path": str((book.scenario.folder / model.line).resolve())}
    firmware = model.firmware or "host"
    if firmware in FIRMWARE:
        return {"kind": "qemu" if firmware == "qemu" else "program", "path": firmware}
    path = existing(book.scenario, (*key, "firmware"), firmware)
    with path.open("rb") as file:
        head = file.read(20)
    is_image = head.startswith(_ELF) and int.from_bytes(head[18:20], "little") == _ARM
    return {"kind": "qemu" if is_image else "program", "path": str(path)}
