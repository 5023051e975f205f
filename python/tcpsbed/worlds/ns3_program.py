"""The program `tcpsbed-ns3`: found or compiled on this machine against its ns-3, once for each state of its sources.

It is licensed under GPL-2.0-only, as ns-3 is, and no binary of it is part of this package: its sources are in the
folder ``ns3/`` of the project.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from tcpsbed.errors import WorldError
from tcpsbed.processes import cores
from tcpsbed.worlds import compiled

SOURCES = "TCPSBED_NS3"
"""Environment variable that names the folder of the sources, where the package is not run from the project."""
PACKAGES = "apt-get install libns3-dev libgsl-dev pkg-config g++ make"
"""What compiles it on Debian."""
MODULES = (
    "ns3-internet", "ns3-point-to-point", "ns3-csma", "ns3-lte", "ns3-wifi", "ns3-fd-net-device", "ns3-tap-bridge", "gsl",
)  # fmt: skip
"""What pkg-config must know. The GNU Scientific Library is no declared dependency of libns3-dev, yet it is linked."""
LENA = "ns3-nr"
"""5G-LENA to pkg-config."""
LENA_NEEDS = (
    "5G-LENA, the module nr, in a version from 2.3 to 3.1: put it into contrib/nr of the sources of ns-3 that it goes with, "
    "compile and install that, and name the folder with its ns3-nr.pc in PKG_CONFIG_PATH (tcpsbed docs ns3)"
)
"""How to have it."""
LENA_OLDEST = "3.37"
"""The ns-3 of version 2.3: what pkg-config knows of the module is the version of ns-3 that it was compiled with."""
COMPILE_S = 900


def sources() -> Path | None:
    """The folder of the sources; `None` if it is not there."""
    named = os.environ.get(SOURCES)
    place = Path(named) if named else Path(__file__).resolve().parents[3] / "ns3"
    return place if (place / "src" / "main.cc").is_file() else None


def missing() -> str | None:
    """What lacks for compiling it; `None` if nothing does."""
    if sources() is None:
        return f"the folder ns3/ of the project, named by the environment variable {SOURCES}"
    lacking = [tool for tool in ("pkg-config", "g++", "make") if shutil.which(tool) is None]
    if lacking or subprocess.run(["pkg-config", "--exists", *MODULES], capture_output=True).returncode:
        return f"ns-3 and a compiler: {PACKAGES}"
    return None


def lena() -> str | None:
    """What lacks for links over 5G-LENA, beside what lacks for all; `None` if nothing does."""
    known = shutil.which("pkg-config") and subprocess.run(
        ["pkg-config", "--exists", LENA], capture_output=True
    )
    if not known or known.returncode:
        return LENA_NEEDS
    age = lena_age()
    return f"{LENA_NEEDS}; that of {_asked('--variable=includedir')} is {age}" if age else None


def lena_age() -> str | None:
    """Why the installed version of 5G-LENA is unsupported; `None` if it is supported."""
    oldest = ["pkg-config", f"--atleast-version={LENA_OLDEST}", LENA]
    if subprocess.run(oldest, capture_output=True).returncode:
        return "earlier than 2.3"
    # From 3.2 on it has a core network of its own (see the Makefile).
    headers = Path(_asked("--variable=includedir")) / "ns3"
    return "later than 3.1" if (headers / "nr-epc-pgw-application.h").exists() else None


def _asked(what: str) -> str:
    """pkg-config's answer about 5G-LENA."""
    return subprocess.run(
        ["pkg-config", what, LENA], capture_output=True, text=True, errors="replace"
    ).stdout.strip()


def built() -> Path:
    """The program, compiled if it has not been.

    Raises
    ------
    WorldError
        If ns-3 or a compiler is missing, or it does not compile.
    """
    if lack := missing():
        raise WorldError(f"ns-3 is not ready here: it needs {lack}")
    place = sources()
    assert place is not None
    folder = compiled.cache("ns3") / _state(place)
    jobs = f"-j{min(cores(), 4)}"
    compiled.once(folder, place, "tcpsbed-ns3", [jobs], COMPILE_S)
    return folder / "tcpsbed-ns3"


def _state(place: Path) -> str:
    """What the program depends on: its sources, and the version of ns-3."""
    return compiled.state([place / "Makefile", *sorted((place / "src").iterdir())], version())


def version() -> str:
    """The identity of an ns-3 installation on this machine."""
    if shutil.which("pkg-config") is None:
        return ""
    modules = [*MODULES, LENA] if lena() is None else MODULES
    library = subprocess.run(
        ["pkg-config", "--libs", *modules], capture_output=True, text=True, errors="replace"
    ).stdout
    return f"{library}{sorted(str(path) for path in Path('/usr/lib').glob('*/libns3*-core.so*'))}"
