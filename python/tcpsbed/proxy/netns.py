"""A command in a network namespace behind an emulated network, and perhaps another one at the far side of it.

```text
 near 10.77.0.1 ── COMMAND ══ emulated network ══ COMMAND, or ports that lead out ── far 10.77.0.2
```
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcpsbed.errors import WorldError
from tcpsbed.proxy import door
from tcpsbed.proxy.door import Door
from tcpsbed.proxy.profile import Profile
from tcpsbed.proxy.proxy import waiting

NEAR_IP, FAR_IP = "10.77.0.1", "10.77.0.2"
"""Addresses of the sides; commands find them in `TCPSBED_NEAR` and `TCPSBED_FAR`."""


@dataclass(frozen=True)
class Ended:
    """How a command behind an emulated network ended: its exit status, and what the emulator did."""

    status: int
    outcome: dict[str, Any]


def reach(text: str) -> Door:
    """A port of the far side that leads out: `7100/udp` to the same port of this computer, or `80=robot:8080/tcp`."""
    port, _, kind = text.partition("/")
    if "=" not in text:
        text = f"{port}={door.LOOPBACK}:{port}" + (f"/{kind}" if kind else "")
    return door.parse(text, listen=FAR_IP)


def run(
    profile: Profile,
    near: Sequence[str],
    *,
    far: Sequence[str] = (),
    reaching: Sequence[Door] = (),
    capture: Path | None = None,
) -> Ended:
    """Runs a command behind an emulated network until it ends. Nothing is left behind, however it ends.

    Parameters
    ----------
    profile : Profile
        What lies between the sides.
    near, far : sequence of str
        The command, and another one at the far side, which ends with it.
    reaching : sequence of Door
        Ports of the far side that lead out, from `reach`.
    capture : Path, optional
        Where packets are captured (pcapng).

    Raises
    ------
    WorldError
        If there can be no namespaces here, or a command cannot be started.
    """
    settings = {
        "proxy": {
            "network": profile.network,
            "seed": profile.seed,
            "capture": None if capture is None else str(capture.absolute()),
        }
        | waiting(),
        "near": list(near),
        "far": list(far),
        "reach": [one.settings() for one in reaching],
    }
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as folder:
        told, report = Path(folder) / "settings.json", Path(folder) / "report.json"
        told.write_text(json.dumps(settings), encoding="utf-8")
        status = _run([sys.executable, "-m", "tcpsbed", "inside", str(told), str(report)])
        if not report.exists():
            raise WorldError(
                f"the emulated network ended with status {status} before it could tell how it went"
            )
        found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    if "error" in found:
        raise WorldError(found["error"])
    return Ended(status, found["outcome"])


def _run(command: list[str]) -> int:
    """Runs a command; Ctrl-C is for what runs inside, a request to end ends it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = subprocess.Popen(command, preexec_fn=_heed)
    heard = signal.signal(signal.SIGTERM, lambda *_: child.kill())
    try:
        return child.wait()
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, heard)


def _heed() -> None:
    """What is ignored stays ignored in a new program: commands should hear Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
