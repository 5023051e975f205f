"""The machine of a run: hardware, kernel and versions."""

from __future__ import annotations

import platform
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from tcpsbed import _tcps
from tcpsbed.processes import cores

PARTS = ("numpy", "pyarrow", "numba", "mujoco", "av", "simplejpeg", "onnxruntime")
"""Packages whose version may change a result."""
_PRODUCTS = {
    "KVM",
    "VMware",
    "VirtualBox",
    "QEMU",
    "Bochs",
    "Xen",
    "Virtual Machine",
    "Google Compute",
    "Amazon EC2",
}


def machine() -> dict[str, Any]:
    """Processor, cores, system and whether it is a virtual machine.

    Returns
    -------
    dict
        `cpu`, `cores` (those that this process may use), `kernel`, `system`, `python`, `governor` (where it can be read),
        `virtual` (the hypervisor's name, `"yes"`, or absent).
    """
    found = {
        "cpu": _cpu_model(),
        "cores": cores(),
        "system": f"{platform.system()} {platform.machine()}",
        "kernel": platform.release(),
        "python": platform.python_version(),
        "governor": _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "virtual": _hypervisor(),
    }
    return {key: value for key, value in found.items() if value}


def versions() -> dict[str, str]:
    """Versions of tcpsbed with its commit, of Python and of the packages that are loaded."""
    found = {"tcpsbed": _tcps.version(), "commit": commit(), "python": platform.python_version()}
    found |= {part: _version(part) for part in PARTS if part in sys.modules}
    return {key: value for key, value in found.items() if value}


def installed() -> dict[str, str]:
    """Versions of Python and of all packages that may change a result, whether they are loaded or not."""
    return {"python": platform.python_version()} | {part: _version(part) for part in PARTS}


@cache
def commit() -> str:
    """The commit of the source tree that runs, with `-dirty` where that was changed; empty for an installed package."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError:
        return ""
    return said.stdout.strip()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _cpu_model() -> str:
    for line in _text("/proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "cpu model"):
            return value.strip()
    return platform.processor()


def _hypervisor() -> str:
    product = _text("/sys/class/dmi/id/product_name")
    named = next((name for name in sorted(_PRODUCTS) if name.lower() in product.lower()), "")
    flagged = any(
        line.startswith("flags") and " hypervisor" in line for line in _text("/proc/cpuinfo").splitlines()
    )
    return named or ("yes" if flagged else "")


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
