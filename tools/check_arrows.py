"""Who may import whom, checked; and the crates in ARCHITECTURE.md drawn from what is imported.

Rust: the dependencies in each crate's Cargo.toml (also those of its tests) and every ``tcps_…::`` path
in its sources; between the modules at the top of a crate, every path from ``crate`` or ``super`` outside
tests; between the files of a crate, circles (``rust_files.py``). Python: every import of ``tcpsbed.…``, also
those inside functions; between files, circles, but for types. ``--write`` draws the part of ARCHITECTURE.md
between ``<!-- arrows:crates -->`` and ``<!-- /arrows -->`` again; without it a stale drawing fails, and so does a
page over its length.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from rust_files import circles, file_arrows

ROOT = Path(__file__).resolve().parent.parent
DRAWING = ROOT / "ARCHITECTURE.md"

# Direct arrows; what a room may import is all that it reaches along them.
CRATES = {
    "tcps-core": [],
    "tcps-wire": ["tcps-core"],
    "tcps-transport": ["tcps-wire"],
    "tcps-net": ["tcps-plan"],
    "tcps-control": ["tcps-core"],
    "tcps-plan": ["tcps-wire"],
    "tcps-analysis": ["tcps-plan"],
    "tcps-node": ["tcps-plan", "tcps-transport", "tcps-control"],
    "tcps-run": ["tcps-node", "tcps-net", "tcps-analysis"],
    "tcps-py": ["tcps-run", "tcps-analysis"],
}
# The same between the modules at the top of a crate; `lib.rs` stands on all of them.
MODULES = {
    "tcps-transport": {
        "channel": [],
        "clockfit": [],
        "meter": [],
        "missing": [],
        "outbox": [],
        "params": ["channel"],
        "reassembly": [],
        "had": [],
        "congestion": ["params"],
        "playout": ["params"],
        "udp": ["channel", "outbox", "params", "reassembly", "had"],
        "clocksync": ["clockfit", "udp"],
        "framing": ["udp"],
        "inbox": ["udp"],
        "backlog": ["framing"],
        "numbered": ["inbox"],
        "kernel_tcp": ["framing"],
        "standing": [],
        "fec": ["udp"],
        "tls": ["channel"],
        "tcp": ["backlog", "congestion", "standing", "tls"],
        "quic": ["backlog", "standing", "tls"],
        "rtp": ["congestion", "udp", "meter", "missing"],
        "telehaptic": ["rtp"],
        "literature": ["fec", "numbered", "telehaptic"],
        "security": ["outbox", "params"],
        "registry": ["literature", "kernel_tcp", "quic", "tcp"],
    },
    "tcps-net": {
        "error": [],
        "medium": [],
        "own": ["packet"],
        "packet": [],
        "pages": [],
        "turns": [],
        "windows": [],
        "passage": ["packet"],
        "pipe": ["packet"],
        "access": ["turns"],
        "jitter": ["own", "packet"],
        "loss": [],
        "opportunity": ["turns"],
        "queue": ["error", "own", "packet", "windows"],
        "traffic": ["error", "own", "packet"],
        "ahead": ["queue"],
        "check": ["error", "loss", "queue", "traffic"],
        "line": ["access", "error", "jitter", "loss", "own", "packet"],
        "link": ["ahead", "line", "opportunity"],
        "topology": ["link", "traffic"],
        "network": ["check", "medium", "passage", "pipe", "topology", "traffic"],
        "change": ["network"],
        "flight": ["network"],
        "serve": ["network"],
    },
    "tcps-run": {
        "addresses": [],
        "attack": [],
        "background": [],
        "batch": [],
        "boundary": [],
        "cpu": [],
        "crash": ["threads"],
        "kernel_tcp": [],
        "network_rows": [],
        "pcapng": [],
        "recorder": ["threads"],
        "replay": [],
        "threads": [],
        "library": ["crash"],
        "assets": ["library"],
        "carrier": ["addresses", "background", "threads"],
        "os": ["addresses", "pcapng", "threads"],
        "emu": ["assets", "carrier", "os"],
        "events": ["os"],
        "recording": ["attack", "emu", "events", "network_rows"],
        "real": ["assets", "kernel_tcp", "recording"],
        "virtual_time": [
            "assets",
            "attack",
            "boundary",
            "carrier",
            "cpu",
            "kernel_tcp",
            "network_rows",
            "pcapng",
            "recorder",
        ],
        "proxy": ["recording"],
    },
}
PACKAGES = {
    "nearest": [],
    "errors": ["nearest"],
    "inputs": ["errors"],
    "interrupts": ["_tcps"],
    "keyfile": ["inputs", "results"],
    "clocks": [],
    "palette": ["errors"],
    "drawing": ["palette", "results", "_tcps"],
    "processes": ["errors"],
    "watched": ["processes"],
    "shadows": [],
    "_tcps": [],
    "results": ["inputs"],
    "beside": ["inputs"],
    "door": ["_tcps", "errors"],
    "hooks": ["beside", "door", "interrupts"],
    "isolated": ["hooks", "inputs", "library", "watched"],
    "library": ["errors"],
    "linear": ["_tcps", "errors"],
    "shipped": ["errors"],
    "documents": ["inputs"],
    "datasets": ["documents"],
    "media": ["datasets", "hooks"],
    "robots": ["hooks", "linear", "processes"],
    "devices": ["media"],
    "scenarios": ["datasets", "keyfile", "robots", "devices", "results", "shipped", "_tcps"],
    "worlds": ["scenarios", "hooks", "clocks", "_tcps"],
    "doctor": ["worlds"],
    "analysis": ["worlds", "drawing"],
    "views": ["analysis"],
    "runs": ["views", "doctor", "interrupts"],
    "executors": ["tcpsbed", "analysis"],
    "tcpsbed": [],
    "campaign": ["tcpsbed", "runs", "executors", "studio"],
    "proxy": ["views"],
    "console": ["media", "robots"],
    "studio": ["console", "proxy"],
    "lab.control": ["tcpsbed", "runs", "executors"],
    "lab.qos": ["lab.control"],
    "lab.reproduce": ["lab.control", "studio"],
    "lab.study": ["tcpsbed", "runs", "console"],
    "lab": [],
    "figures": ["campaign"],
    "archive": ["campaign"],
    "api": ["figures", "lab.reproduce"],
    "cli": ["api", "archive", "lab.qos", "lab.reproduce", "lab.study", "proxy", "shadows", "studio"],
}

LAB_FACES = {
    "tcpsbed", "_tcps", "analysis", "analysis.metrics", "analysis.records", "analysis.signals", "analysis.stats", "clocks",
    "datasets.builtin", "datasets.recordings", "documents", "errors", "hooks", "inputs", "media.camera", "media.codecs",
    "nearest", "drawing", "executors", "linear", "palette", "processes", "results", "robots", "runs.given", "runs.session",
    "scenarios", "scenarios.units", "shipped", "studio.freeze", "views.markup", "views.numbers", "views.text", "worlds",
}  # fmt: skip
"""What ``lab`` may import: what the testbed shows."""
LAB_EXCEPT = {
    "analysis.disturbances": "the step experiment judges a plan that it has run itself",
    "analysis.facts": "the step experiment judges a plan that it has run itself",
    "analysis.machine": "a reproduction names the state of the code",
    "analysis.operator": "a study records what its subjects do",
    "analysis.playout": "policies are compared on the same arrivals",
    "datasets.formats.vibtac12": "a reproduction asks for one data set",
    "datasets.pcapng": "a reproduction counts captured bytes",
    "datasets.store": "reproductions fetch their data sets",
    "media.line": "a scripted subject reads pictures",
    "robots.axes": "a plant that is code answers an impulse of each command",
    "media.packages": "a scripted subject reads pictures",
    "media.picture_code": "a scripted subject reads pictures",
    "results.files": "a study keeps its files like a run",
    "robots.arm": "a figure draws the arm",
    "robots.cell": "a figure draws the arm",
    "robots.feel": "a reproduction measures a surface",
    "robots.scene": "a reproduction puts two scenes together",
    "scenarios.codes": "runs with code of the user's follow one another",
    "scenarios.compile.graphs": "a figure draws a graph",
    "scenarios.explain": "files of studies are read like scenarios",
    "scenarios.fields": "files of studies are read like scenarios",
    "scenarios.load": "files of studies are read like scenarios",
    "scenarios.model.entries": "a control loop needs the defaults of its hook and robot",
    "scenarios.model.table": "files of studies are read like scenarios",
    "scenarios.origin": "files of studies and profiles are read like scenarios",
    "views.tables": "limits are on fields of tables",
    "worlds.firmware": "a reproduction asks for the compiler",
    "worlds.ns3_program": "a reproduction asks for ns-3",
    "worlds.real": "the step experiment runs a plan, not a scenario",
    "worlds.virtual": "the step experiment runs a plan, not a scenario",
}
"""And what it reaches into besides, with the reason."""

# Arrows between files of a crate that may close a circle, at most five, each with its reason.
CIRCLES: dict[tuple[str, str], str] = {
    (
        "crates/tcps-control/src/hooks/supervisor.rs",
        "crates/tcps-control/src/registry.rs",
    ): "its agent is any hook, by name",
    (
        "crates/tcps-control/src/sampling/deadband.rs",
        "crates/tcps-control/src/registry.rs",
    ): "its predictor is any, by name",
}
MOST_CIRCLES = 5
MOST_LINES = 200
"""Of ARCHITECTURE.md, which is read in ten minutes."""

Arrows = dict[str, dict[str, str]]


def reach(direct: dict[str, list[str]], room: str) -> set[str]:
    """All rooms that a room may import."""
    found: set[str] = set()
    waiting = list(direct.get(room, []))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += direct[name]
    return found


def place(path: Path, line: int | None = None) -> str:
    """A place in the tree."""
    return f"{path.relative_to(ROOT)}" + (f":{line}" if line else "")


def rust_arrows() -> Arrows:
    """Crate -> crate it uses -> one place where it does."""
    arrows: Arrows = defaultdict(dict)
    for manifest in sorted(ROOT.glob("crates/*/Cargo.toml")):
        crate = manifest.parent.name
        arrows[crate].update({})
        read = tomllib.loads(manifest.read_text(encoding="utf-8"))
        for table in ("dependencies", "dev-dependencies", "build-dependencies"):
            for name in read.get(table, {}):
                if name.startswith("tcps-"):
                    arrows[crate].setdefault(name, place(manifest))
        for source in sorted(manifest.parent.glob("**/*.rs")):
            for number, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
                for name in re.findall(r"\btcps_\w+(?=::)", line.partition("//")[0]):
                    name = name.replace("_", "-")
                    if name != crate:
                        arrows[crate].setdefault(name, place(source, number))
    return arrows


def used(text: str, module: list[str]) -> list[tuple[str, int]]:
    """Dotted paths in its crate that a Rust module names outside its tests, each with its line."""
    code = re.sub(r"//.*|\bpub\s*\([^)]*\)", "", text.partition("#[cfg(test)]\nmod tests {")[0])
    found: list[tuple[str, int]] = []
    for match in re.finditer(r"(?<!\$)\b(crate|(?:super::)*super)::(?:(\w+)|\{)", code):
        ups = match[1].count("super")
        names = [match[2]] if match[2] else listed(code[match.end() :])
        base = module[: len(module) - ups] if ups else []
        line = code.count("\n", 0, match.start()) + 1
        found += [(".".join([*base, name]), line) for name in names]
    return found


def listed(text: str) -> list[str]:
    """First names of the paths up to the brace that closes."""
    depth, names = 0, [""]
    for token in re.findall(r"\w+|[{},]", text):
        depth += (token == "{") - (token == "}")
        if depth < 0:
            break
        if token == "," and not depth:
            names.append("")
        elif not names[-1]:
            names[-1] = token
    return [name for name in names if name]


def module_arrows(crate: str) -> Arrows:
    """Module at the top of a crate -> module it uses -> one place where it does."""
    base = ROOT / "crates" / crate / "src"
    arrows: Arrows = defaultdict(dict)
    for path in sorted(base.glob("**/*.rs")):
        inside = [part for part in path.relative_to(base).with_suffix("").parts if part != "mod"]
        if inside == ["lib"] or "tests" in inside:
            continue
        arrows[inside[0]].update({})
        for name, line in used(path.read_text(encoding="utf-8"), inside):
            target = name.split(".")[0]
            target = target if target in MODULES[crate] else "lib"
            if target != inside[0]:
                arrows[inside[0]].setdefault(target, place(path, line))
    return arrows


def file_circles(crates: Path, allowed: dict[tuple[str, str], str]) -> list[str]:
    """Circles between the files of a crate, and arrows that are allowed to close one but close none."""
    found, closing = [], set()
    for source in sorted(crates.glob("*/src")):
        arrows = file_arrows(source)
        names = {file: file.relative_to(crates.parent).as_posix() for file in arrows}
        inside = {file: number for number, circle in enumerate(circles(arrows)) for file in circle}
        for file, targets in arrows.items():
            for target in [t for t in targets if (names[file], names[t]) in allowed]:
                if file in inside and inside[file] == inside.get(target):
                    closing.add((names[file], names[target]))
                del targets[target]
        for circle in circles(arrows):
            found.append(f"{names[circle[0]]}: {len(circle)} files use one another in a circle:")
            found += [
                f"  {names[file]}:{line} uses {names[target]}"
                for file in circle
                for target, line in sorted(arrows[file].items())
                if target in circle
            ]
    stale = sorted(set(allowed) - closing)
    found += [
        f"tools/check_arrows.py: {file} -> {target} closes no circle any more" for file, target in stale
    ]
    if len(allowed) > MOST_CIRCLES:
        found.append(f"tools/check_arrows.py allows {len(allowed)} arrows in circles; at most {MOST_CIRCLES}")
    return found


def imported(tree: ast.AST, module: list[str]) -> list[tuple[str, int]]:
    """Dotted names of `tcpsbed` that a module of the package `module` imports, each with its line."""
    names: list[tuple[str, int]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = module[: len(module) - node.level + 1] if node.level else []
            base += (node.module or "").split(".") if node.module else []
            names += [(".".join([*base, alias.name]), node.lineno) for alias in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            names += [(str(arg.value), node.lineno) for arg in node.args[:1] if isinstance(arg, ast.Constant)]
    return [(name, line) for name, line in names if name.split(".")[0] == "tcpsbed"]


def python_file_arrows(base: Path) -> dict[Path, dict[Path, int]]:
    """File -> file whose names it imports, but for types -> the line; what a package hands on counts as its file."""
    names = {}
    for path in sorted(base.glob("**/*.py")):
        parts = path.relative_to(base.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    found = {}
    for name, path in names.items():
        tree = _Used().visit(ast.parse(path.read_text(encoding="utf-8")))
        inside = name.split(".")
        found[name] = imported(tree, inside if path.name == "__init__.py" else inside[:-1])

    def home(name: str) -> str:
        while name not in names:
            package, _, last = name.rpartition(".")
            handed_on = [given for given, _ in found.get(package, ()) if given.endswith(f".{last}")]
            name = handed_on[0] if handed_on and handed_on[0] != name else package
        return name

    arrows: dict[Path, dict[Path, int]] = {}
    for name, uses in found.items():
        targets = [(names[home(used)], line) for used, line in reversed(uses)]
        arrows[names[name]] = {target: line for target, line in targets if target != names[name]}
    return arrows


class _Used(ast.NodeTransformer):
    """Takes away what only a checker of types reads."""

    def visit_If(self, node: ast.If) -> ast.AST:
        test = ast.unparse(node.test)
        if "TYPE_CHECKING" in test and not test.startswith("not "):
            node.body = []
        return self.generic_visit(node)


def python_circles(base: Path) -> list[str]:
    """Circles between Python files."""
    arrows = python_file_arrows(base)
    return [
        f"{file.relative_to(base.parent)}:{line} uses {target.relative_to(base.parent)}, in a circle of {len(circle)} files"
        for circle in circles(arrows)
        for file in circle
        for target, line in sorted(arrows[file].items())
        if target in circle
    ]


def lab_reaches(base: Path) -> list[str]:
    """Modules that ``lab`` imports but may not, and exceptions that nothing needs."""
    found, needed = [], set()
    for path in sorted(base.glob("lab/**/*.py")):
        inside = path.relative_to(base.parent).with_suffix("").parts[:-1]
        for name, line in imported(ast.parse(path.read_text(encoding="utf-8")), list(inside)):
            while name not in ("tcpsbed", "tcpsbed._tcps") and not _is_module(
                base.parent / name.replace(".", "/")
            ):
                name = name.rpartition(".")[0]
            module = name.removeprefix("tcpsbed.")
            needed.add(module)
            if module.split(".")[0] != "lab" and module not in LAB_FACES | LAB_EXCEPT.keys():
                found.append(f"{place(path, line)}: lab imports {module}, which LAB_FACES does not have")
    return found + [
        f"tools/check_arrows.py: lab imports {name} no more" for name in sorted(LAB_EXCEPT.keys() - needed)
    ]


def _is_module(path: Path) -> bool:
    return path.is_dir() or path.with_suffix(".py").is_file()


def package(inside: Sequence[str]) -> str:
    """The room of a module below `tcpsbed`; each package of the laboratory is one."""
    return ".".join(inside[: 2 if "lab" in inside[:1] else 1]).removesuffix(".__init__")


def python_arrows() -> Arrows:
    """Package -> package it imports -> one place where it does."""
    base = ROOT / "python" / "tcpsbed"
    arrows: Arrows = defaultdict(dict)
    for path in sorted(base.glob("**/*.py")):
        inside = path.relative_to(base).with_suffix("").parts
        room = {"__init__": "tcpsbed", "__main__": "cli"}.get(inside[0]) or package(inside)
        arrows[room].update({})
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if room == "tcpsbed":  # which hands on what is imported when it is first used
            tree = _Used().visit(tree)
        for name, line in imported(tree, ["tcpsbed", *inside[:-1]]):
            target = package(name.split(".")[1:])
            target = target if target in PACKAGES or (base / target).exists() else "tcpsbed"
            if target != room:
                arrows[room].setdefault(target, place(path, line))
    return arrows


def violations(arrows: Arrows, allowed: dict[str, list[str]]) -> list[str]:
    """Arrows that nobody allowed, as sentences."""
    found = []
    for room, targets in sorted(arrows.items()):
        if room not in allowed:
            found.append(f"{room} is a room that tools/check_arrows.py does not know")
            continue
        may = reach(allowed, room)
        for target, where in sorted(targets.items()):
            if target not in may:
                names = ", ".join(sorted(may)) or "nothing"
                found.append(f"{where}: {room} imports {target}; it may import {names}")
    return found


def essential(arrows: Arrows) -> list[tuple[str, str]]:
    """The arrows that remain when those that others imply are left out."""
    direct = {room: [t for t in targets if t in arrows] for room, targets in arrows.items()}
    return [
        (room, target)
        for room in sorted(direct)
        for target in sorted(direct[room])
        if not any(target in reach(direct, other) for other in direct[room] if other != target)
    ]


def mermaid(arrows: Arrows) -> str:
    """A drawing in which an arrow points at what is imported."""
    lines = ["```mermaid", "flowchart RL"]
    lines += [f"  {room} --> {target}" for room, target in essential(arrows)]
    return "\n".join([*lines, "```"])


def drawn(text: str, part: str) -> str:
    """The document with its drawing made anew."""
    pattern = re.compile(r"(<!-- arrows:crates -->\n).*?(<!-- /arrows -->)", re.S)
    return pattern.sub(lambda match: f"{match[1]}{part}\n{match[2]}", text)


def main() -> int:
    """Check the arrows and the drawing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="draw ARCHITECTURE.md again")
    write = parser.parse_args().write
    rust, python = rust_arrows(), python_arrows()
    modules = {crate: module_arrows(crate) for crate in MODULES}
    found = violations(rust, CRATES) + violations(python, PACKAGES)
    found += [line for crate, arrows in modules.items() for line in violations(arrows, MODULES[crate])]
    found += file_circles(ROOT / "crates", CIRCLES) + python_circles(ROOT / "python" / "tcpsbed")
    found += lab_reaches(ROOT / "python" / "tcpsbed")
    text = DRAWING.read_text(encoding="utf-8")
    if (lines := text.count("\n")) > MOST_LINES:
        found.append(f"ARCHITECTURE.md has {lines} lines; at most {MOST_LINES}")
    new = drawn(text, mermaid(rust))
    if write:
        DRAWING.write_text(new, encoding="utf-8")
    elif new != text:
        found.append("ARCHITECTURE.md does not show the code as it is: run make drawing")
    print("\n".join(found) or "all arrows are allowed, and ARCHITECTURE.md shows them")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
