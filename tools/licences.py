"""Licences of everything that tcpsbed is built from or installs.

Crates: the licence expressions of ``cargo metadata`` against the list in deny.toml (and cargo-deny
itself, where it is installed). Python packages: those that a plain ``pip install tcpsbed`` or one of its
extras brings, and the shared libraries that their wheels bundle. ``--wheel FILE`` looks into a built
wheel of tcpsbed instead.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import notices

ROOT = Path(__file__).resolve().parent.parent
# Spellings of package authors that are no SPDX expression.
SPELLINGS = {
    "bsd license": "BSD-3-Clause",
    "bsd": "BSD-3-Clause",
    "bsd-3-clause license": "BSD-3-Clause",
    "apache": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "mit license": "MIT",
    "apache 2.0": "Apache-2.0",
    "3-clause bsd license": "BSD-3-Clause",
    "python software foundation license": "PSF-2.0",
    "isc license (iscl)": "ISC",
    "isc license": "ISC",
}
PYTHON_ALSO = {"PSF-2.0", "HPND", "MIT-CMU", "0BSD", "Python-2.0", "MPL-2.0"}
COPYLEFT = re.compile(r"\b(A?GPL)\b|(?<!L)GPL-|GNU (Affero )?General Public", re.I)


def allowed(expression: str, names: set[str]) -> bool:
    """Whether an SPDX expression can be met with allowed licences only."""
    text = expression.replace("/", " OR ")
    for name in sorted(
        set(re.findall(r"[\w.+-]+(?: WITH [\w.-]+)?", text)) - {"AND", "OR"}, key=len, reverse=True
    ):
        text = re.sub(rf"(?<![\w.+-]){re.escape(name)}(?![\w.+-])", str(name in names), text)
    words = text.replace("AND", "and").replace("OR", "or").split()
    return bool(eval(" ".join(words), {"__builtins__": {}}))


def crates(names: set[str]) -> list[str]:
    """Crates whose licence is not on the list."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    read = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    bad = []
    for package in sorted(read["packages"], key=lambda each: each["name"]):
        licence = package["license"] or "none given"
        print(f"crate    {package['name']:28} {package['version']:14} {licence}")
        if not allowed(licence, names):
            bad.append(f"crate {package['name']}: {licence}")
    if shutil.which("cargo-deny"):
        done = subprocess.run(["cargo", "deny", "check", "licenses", "bans", "sources"], cwd=ROOT)
        bad += ["cargo deny"] if done.returncode else []
    return bad


def requirements() -> list[str]:
    """Names of all packages that tcpsbed and its extras need, with what those need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    waiting = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        waiting += [need for need in extra if not need.startswith("tcpsbed")]
    found: list[str] = []
    while waiting:
        need = waiting.pop()
        name = re.split(r"[^\w.-]", need, maxsplit=1)[0]
        if name.lower() in found or "extra ==" in need:
            continue
        try:
            waiting += distribution(name).requires or []
        except PackageNotFoundError:
            continue
        found.append(name.lower())
    return sorted(found)


def licence_of(package: Distribution) -> str:
    """A package's licence as SPDX where that is possible."""
    meta: Any = package.metadata
    given = meta.get("License-Expression") or meta.get("License") or ""
    trove = [
        line.split(" :: ")[-1] for line in meta.get_all("Classifier") or [] if line.startswith("License ::")
    ]
    if not given or "\n" in given or len(given) > 60:
        given = trove[0] if trove else given.splitlines()[0] if given else "none given"
    return SPELLINGS.get(given.strip().lower(), given.strip())


def packages(names: set[str]) -> list[str]:
    """Python packages whose licence is not on the list, with the libraries bundled in their wheels."""
    bad = []
    for name in requirements():
        package = distribution(name)
        licence = licence_of(package)
        print(f"package  {name:28} {package.version:14} {licence}")
        for file in package.files or []:
            if ".libs/" in str(file) and ".so" in file.name:
                print(f"  bundles {file.name}")
        plain = re.sub(r"[\w.-]+ WITH GCC-exception-[\d.]+|LGPL-[\w.-]+", "MIT", licence)
        try:
            good = allowed(plain, names)
        except SyntaxError:
            good = False
        if COPYLEFT.search(plain) or not good:
            bad.append(f"package {name}: {licence}")
    return bad


def firmware() -> list[str]:
    """The sources of the firmware, which an installed package compiles."""
    place = ROOT / "python" / "tcpsbed" / "firmware"
    return sorted(str(file.relative_to(place)) for file in place.rglob("*") if file.is_file())


def wheel(path: Path) -> list[str]:
    """What a wheel must hold and must not hold."""
    archive = zipfile.ZipFile(path)
    held = archive.namelist()
    needed = (
        "licenses/LICENSE",
        "NOTICE",
        "NOTICE-third-party",
        "vendor/LICENSE-uPlot",
        "sboms/sbom.cdx.json",
        *(f"tcpsbed/firmware/{name}" for name in firmware()),
    )
    bad = [f"no {name} in the wheel" for name in needed if not any(n.endswith(name) for n in held)]
    expression = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["license"]
    metadata = next((archive.read(n).decode() for n in held if n.endswith(".dist-info/METADATA")), "")
    if f"License-Expression: {expression}\n" not in metadata:
        bad.append(f"the wheel's metadata does not say {expression}")
    for name in held:
        if ".libs/" in name or re.search(r"(^|/)ns3/|/benches/|\.cc$|tcpsbed-ns3", name):
            bad.append(f"{name} has no place in the wheel")
        for folder in (str(ROOT), str(Path.home())):
            if len(folder) > 1 and f"{folder}/".encode() in archive.read(name):
                bad.append(f"{name} names the folder {folder}")
    return bad


def main() -> int:
    """Print what was found; exit 1 where a licence is not allowed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="look into this wheel of tcpsbed only")
    path = parser.parse_args().wheel
    names = set(tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))["licenses"]["allow"])
    bad = wheel(path) if path else crates(names) + packages(names | PYTHON_ALSO) + notices.stale()
    print("\n".join(f"not allowed: {line}" for line in bad) or "licences: all are allowed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
