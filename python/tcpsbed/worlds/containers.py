"""A container per node, by Podman or Docker; without them plain network namespaces, with a note.

```
 emulator or ns-3 ══ TUN device ══ namespace ── tcpsbed node     in a container of the image localhost/tcpsbed
       (outside)        handed over a socket in the run's folder of shared memory, which every container sees
```
The image is made from a tar of a root file system with Python in it (`tcpsbed image BASE.tar`), without a registry.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

from tcpsbed.errors import DataError, WorldError
from tcpsbed.worlds.local import Namespaces
from tcpsbed.worlds.process import ControlChannel, Process

IMAGE = "localhost/tcpsbed"
"""Name of the image, tagged with the version of this package."""
HOME = "opt/tcpsbed"
"""Where the package is in it."""
ENGINES: dict[str, tuple[str, ...]] = {"podman": ("podman",), "docker": ("docker",)}
"""Commands that run containers, the first that works is taken."""
RIGHTS = ("SYS_ADMIN", "NET_ADMIN", "SYS_NICE", "IPC_LOCK")
"""What a node uses: a network namespace with a device, and, where allowed, a priority and locked memory."""
LIMITS = ("nofile=1024:1024", "nproc=4096:4096")
"""Within those of any machine; engines ask for more than some allow."""
ANSWER_S = 60.0


class Containers(Namespaces):
    """A container a node, its network the emulator's or ns-3's."""

    name: ClassVar[str] = "containers"
    shares_files: ClassVar[bool] = False
    what: ClassVar[str] = "one container per node, by Podman or Docker"
    instead: str | None = None

    @classmethod
    def fallback(cls) -> str | None:
        """Plain network namespaces, where there is no engine or no image."""
        lack = lacking()
        return None if lack is None else f"plain network namespaces: {lack}"

    def told(self) -> dict[str, Any]:
        """What stood in for containers, where something did."""
        return super().told() | ({} if self.instead is None else {"fallback": self.instead})

    def launch(self) -> list[ControlChannel]:
        """Starts a container a node, or a process in a namespace where there is no engine or no image."""
        command, self.instead = engine(), self.fallback()
        if command is None or self.instead is not None:
            print(f"tcpsbed: containers are not available; used instead: {self.instead}", file=sys.stderr)
            return super().launch()
        self.isolate()
        self.started: list[ControlChannel] = []
        for id, node in enumerate(self.job.plan["nodes"]):
            words = self._command(command, id)
            self.started.append(Process(node["name"], self.job.ring(id), words))
        return self.started

    def _command(self, engine: tuple[str, ...], id: int) -> list[str]:
        """The command of a node: its files have the same paths inside, and nothing else of this machine is visible."""
        places = {self.job.memory: "", self.job.folder.absolute(): ""}
        if self.job.scenario is not None:
            places |= {self.job.scenario.folder: ":ro"}
        # A name of this run, so that what is left of a killed one can be found and ended.
        words = [*engine, "run", "--rm", "-i", "--name", f"{self.job.memory.name}-{id}", "--network", "none"]
        words += ["--device", "/dev/net/tun", *(f"--cap-add={right}" for right in RIGHTS)]
        words += [word for limit in LIMITS for word in ("--ulimit", limit)]
        words += [word for place, kind in places.items() for word in ("-v", f"{place}:{place}{kind}")]
        return [*words, image(), "python3", "-P", "-m", "tcpsbed", "node"]

    def teardown(self) -> None:
        """Ends the nodes, and whatever containers of this run are still there."""
        super().teardown()
        command = engine()
        if command is not None and hasattr(self, "started"):
            names = [f"{self.job.memory.name}-{id}" for id in range(len(self.job.plan["nodes"]))]
            _ask(command, "rm", "-f", *names)


def image() -> str:
    """The image of this version."""
    return f"{IMAGE}:{metadata.version('tcpsbed')}"


@cache
def engine() -> tuple[str, ...] | None:
    """The command that runs containers here; `None` if none works."""
    for name, command in ENGINES.items():
        if shutil.which(name) and _ask(command, "info").returncode == 0:
            return command
    return None


def lacking() -> str | None:
    """What lacks for containers: an engine, or the image; `None` if nothing does."""
    command = engine()
    if command is None:
        return "no engine that works (Debian: apt-get install podman runc)"
    if _ask(command, "image", "inspect", image()).returncode:
        return f"{command[0]} has no image {image()} (tcpsbed image BASE.tar makes it)"
    return None


def make_image(base: Path) -> str:
    """Makes the image from a tar of a root file system with Python 3.11 or newer; returns its name.

    Raises
    ------
    WorldError, DataError
        If there is no engine, the tar cannot be read, or no node starts in the image.
    """
    command = engine()
    if command is None:
        raise WorldError(f"containers: {lacking()}")
    with tempfile.TemporaryDirectory(prefix="tcpsbed-image-") as folder:
        whole = Path(folder) / "image.tar"
        _add_package(base, whole)
        done = _ask(
            command, "import", "--change", f"ENV PYTHONPATH=/{HOME}", str(whole), image(), seconds=600
        )
    if done.returncode:
        raise WorldError(f"{base}: {command[0]} cannot import it: {done.stderr.strip()[-300:]}")
    tried = _ask(
        command,
        "run",
        "--rm",
        "--network",
        "none",
        *_limits(),
        image(),
        "python3",
        "-c",
        "import tcpsbed._tcps",
    )
    if tried.returncode:
        raise WorldError(f"{base}: no node starts in the image: {tried.stderr.strip()[-300:]}")
    return image()


def _add_package(base: Path, whole: Path) -> None:
    """Copies a tar and puts this package at its end."""
    package = Path(__file__).parents[1]
    try:
        with tarfile.open(base) as old, tarfile.open(whole, "w") as new:
            for member in old:
                new.addfile(member, old.extractfile(member) if member.isreg() else None)
            new.add(package, f"{HOME}/tcpsbed", filter=_without_caches)
    except (tarfile.TarError, EOFError):
        raise DataError("found no tar", file=base, allowed="a tar of a root file system") from None


def _without_caches(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if member.name.endswith(("__pycache__", ".pyc")) else member


def _limits() -> list[str]:
    return [word for limit in LIMITS for word in ("--ulimit", limit)]


def _ask(engine: tuple[str, ...], *words: str, seconds: float = ANSWER_S) -> subprocess.CompletedProcess[str]:
    """The answer of an engine; silence counts as failure."""
    try:
        return subprocess.run(
            [*engine, *words], capture_output=True, text=True, errors="replace", timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(engine, 1, "", f"no answer for {seconds:g} s")
