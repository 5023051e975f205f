"""Notices and bill of materials of the wheel: crates of the native module, Rust's library, uPlot.

``--write`` writes NOTICE-third-party, which the wheel carries beside LICENSE and NOTICE, and sbom.cdx.json (CycloneDX 1.6),
which it carries among its metadata (PEP 770); without it the command fails where a file, or the licence expression in
pyproject.toml, does not say all that is linked.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NOTICES = ROOT / "NOTICE-third-party"
BILL = ROOT / "sbom.cdx.json"
UPLOT_VERSION = "1.6.32"
UPLOT = ROOT / "python/tcpsbed/views/vendor/LICENSE-uPlot"
RUST = "Rust's standard library (MIT OR Apache-2.0, here MIT), https://github.com/rust-lang/rust"
RUST_COPYRIGHT = "Copyright (c) The Rust Project Contributors"
LINE = "-" * 116
HEAD = f"""What is compiled into tcpsbed's native module or copied into its package, and is not its own work.
Written by tools/notices.py from Cargo.lock.

{RUST}
  {RUST_COPYRIGHT}
  The text of the MIT license is below.
"""
PREFERRED = ("MIT", "ISC", "0BSD", "BSD-3-Clause", "Apache-2.0", "Zlib")
"""Of the licences that a crate offers, the first of these is taken."""


def linked() -> list[dict[str, Any]]:
    """The crates that end up in the native module on Linux: no tools of the build, no macros."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    command += ["--filter-platform", "x86_64-unknown-linux-gnu"]
    read = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    packages = {package["id"]: package for package in read["packages"]}
    needs = {node["id"]: node["deps"] for node in read["resolve"]["nodes"]}
    waiting = [id_ for id_, package in packages.items() if package["name"] == "tcps-py"]
    found: dict[str, dict[str, Any]] = {}
    while waiting:
        id_ = waiting.pop()
        if id_ in found or any("proc-macro" in target["kind"] for target in packages[id_]["targets"]):
            continue
        found[id_] = packages[id_]
        waiting += [need["pkg"] for need in needs[id_] if any(k["kind"] is None for k in need["dep_kinds"])]
    others = [package for package in found.values() if package["source"] is not None]
    return sorted(others, key=lambda package: (package["name"], package["version"]))


def taken(expression: str) -> list[str]:
    """The licences under which a crate is taken: of each alternative one."""
    chosen = []
    for part in expression.replace("/", " OR ").split(" AND "):
        offered = [name.strip() for name in part.strip("() ").split(" OR ")]
        chosen.append(next((name for name in PREFERRED if name in offered), offered[0]))
    return sorted(set(chosen))


def texts(package: dict[str, Any]) -> Iterator[str]:
    """Licence files of a crate: that of the licence under which it is taken, or all where none is named like one."""
    folder = Path(package["manifest_path"]).parent
    files = [
        file for file in sorted(folder.iterdir()) if re.match(r"licen[cs]e|copying|notice", file.name, re.I)
    ]
    names = taken(package["license"])
    own = [file for file in files if len(names) == 1 and names[0].upper() in file.stem.upper()]
    if not files:
        sys.exit(f"no licence file in {package['name']} {package['version']}: its notice cannot be written")
    for file in own or files:
        yield "\n".join(line.rstrip() for line in file.read_text(encoding="utf-8").strip().splitlines())


def notices(crates: list[dict[str, Any]]) -> str:
    """The whole file: every text once, with the crates that are under it."""
    under: dict[str, list[str]] = defaultdict(list)
    for package in crates:
        for text in texts(package):
            name = f"{package['name']} {package['version']} ({' AND '.join(taken(package['license']))})"
            under[text].append(name)
    under["\n".join(line.rstrip() for line in UPLOT.read_text(encoding="utf-8").strip().splitlines())].append(
        f"uPlot {UPLOT_VERSION} (MIT), https://github.com/leeoniya/uPlot"
    )
    parts = [f"{LINE}\n" + "\n".join(names) + f"\n\n{text}\n" for text, names in under.items()]
    return "\n".join([HEAD, *parts])


def bill(crates: list[dict[str, Any]]) -> str:
    """The bill of materials: tcpsbed, and what is in its wheel; the same text for the same crates."""
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    sums = {(each["name"], each["version"]): each.get("checksum") for each in locked}

    def part(kind: str, where: str, name: str, version: str, licence: str) -> dict[str, Any]:
        purl = f"pkg:{where}/{name}@{version}"
        licences = [{"expression": licence.replace("/", " OR ")}]
        return {
            "type": kind,
            "bom-ref": purl,
            "name": name,
            "version": version,
            "licenses": licences,
            "purl": purl,
        }

    parts = [
        part("library", "cargo", each["name"], each["version"], each["license"])
        | {"hashes": [{"alg": "SHA-256", "content": sums[each["name"], each["version"]]}]}
        for each in crates
    ]
    parts.append(
        {
            "type": "library",
            "name": "Rust's standard library",
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
        }
    )
    parts.append(part("library", "npm", "uplot", UPLOT_VERSION, "MIT"))
    whole = part("application", "pypi", "tcpsbed", cargo["version"], cargo["license"])
    found = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": {"component": whole}}
    return json.dumps(found | {"components": parts}, indent=1) + "\n"


def lacking(crates: list[dict[str, Any]]) -> list[str]:
    """Licences of what is linked that the expression in pyproject.toml does not have."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = {"MIT"} | {name for package in crates for name in taken(package["license"])}
    return sorted(found - set(project["license"].split(" AND ")))


def stale() -> list[str]:
    """What does not say all that is linked."""
    crates = linked()
    bad = [f"pyproject.toml: license: does not name {name}" for name in lacking(crates)]
    for file, text in ((NOTICES, notices(crates)), (BILL, bill(crates))):
        if not file.is_file() or file.read_text(encoding="utf-8") != text:
            bad.append(f"{file.name} is stale; write it again: .venv/bin/python tools/notices.py --write")
    return bad


def main() -> int:
    """Write the file, or say what is stale."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write both files again")
    if parser.parse_args().write:
        crates = linked()
        NOTICES.write_text(notices(crates), encoding="utf-8")
        BILL.write_text(bill(crates), encoding="utf-8")
    bad = stale()
    print("\n".join(bad) or "notices: all that is linked has its own")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
