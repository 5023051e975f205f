"""`tcpsbed rerun`: an archive, run again and compared."""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcpsbed.cli.colour import tables
from tcpsbed.cli.failures import DISTURBED, FAILED, guarded
from tcpsbed.cli.options import Jobs, Quiet
from tcpsbed.clocks import SIMULATED
from tcpsbed.errors import counted, one_line
from tcpsbed.inputs import LIBRARY
from tcpsbed.runs.progress import Progress

if TYPE_CHECKING:
    from tcpsbed.archive.content import Cell, Content
    from tcpsbed.archive.reading import Archive
    from tcpsbed.archive.verify import Summary, Verdict

HELP = """Run an archive again and compare.

\b
Examples:
  tcpsbed rerun artifact.zip
  tcpsbed rerun artifact.zip --out artifact      and keep the unpacked files
  tcpsbed rerun artifact.zip --json

A scenario is a program: what an archive holds runs with your rights. In virtual time all records must be the same; with
code in Python, MuJoCo or C, they may be others on another processor, and metrics may differ by 1 %. On the machine's clock,
95 % intervals over the seeds must overlap. Exit status 0 if every run agrees, 1 if one differs or fails, 3 if runs cannot
be judged.
"""
SHORT = 12
"""Digits of a hash in a table."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("rerun", help=HELP)(guarded(rerun))


def rerun(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.zip", help="From tcpsbed archive.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Unpack here, and keep it [default: a temporary folder].",
            show_default=False,
        ),
    ] = None,
    jobs: Jobs = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdicts as JSON, and nothing else.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Runs an archive again; see HELP."""
    from tcpsbed.archive import reading

    with reading.opened(file) as archive, _place(out, file) as folder:
        for line in _warnings(archive.content):
            print(f"tcpsbed: {line}", file=sys.stderr)
        verdicts = _verdicts(archive, folder, jobs, quiet=quiet or as_json)
        document = json.dumps([_told(one) for one in verdicts], indent=1)
        if out is not None:
            (folder / "rerun.json").write_text(document + "\n", encoding="utf-8")
        if as_json:
            print(document)
        elif not quiet:
            print(tables(_table(verdicts)))
            print(_counted(verdicts))
    if any(one.passed is False for one in verdicts):
        raise typer.Exit(FAILED)
    if any(one.passed is None for one in verdicts):
        raise typer.Exit(DISTURBED)


@contextmanager
def _place(out: Path | None, file: Path) -> Iterator[Path]:
    """Where it is unpacked."""
    from tcpsbed import results

    if out is not None:
        with results.writing(out, "rerun", inputs=[file]) as place:
            yield place.path
        return
    with tempfile.TemporaryDirectory(prefix="tcpsbed-") as made:
        yield Path(made)


def _verdicts(archive: Archive, folder: Path, jobs: int | None, *, quiet: bool) -> list[Verdict]:
    from tcpsbed.archive import verify
    from tcpsbed.processes import cores

    cells = archive.content.cells
    before = {cell: verify.kept(archive.summary(cell)) for cell in cells}
    scenario = archive.unpack(folder)
    with (
        tempfile.TemporaryDirectory(prefix="tcpsbed-") as work,
        Progress(f"rerun of {len(cells)}", quiet=quiet) as bar,
    ):
        found: dict[Cell, Summary | str] = {}
        for simulated in (True, False):
            some = [cell for cell in cells if (cell.world in SIMULATED) == simulated]
            done = len(found)
            new = verify.again(
                scenario,
                Path(work),
                some,
                jobs or (cores() if simulated else 1),
                lambda number, _, done=done: bar((done + number) / len(cells)),  # type: ignore[misc]
            )
            found |= dict(zip(some, new, strict=True))
    told = verify.verdicts(before, found)
    return [replace(one, said=one_line(one.said.replace(f"{folder.resolve()}/", ""))) for one in told]


def _warnings(content: Content) -> Iterator[str]:
    """What to know before it runs: code in it, other versions, packages that are missing."""
    from importlib import metadata

    from tcpsbed.analysis import machine

    code = [
        Path(name).name
        for name in content.files
        if name.endswith((".py", ".c")) or LIBRARY.fullmatch(Path(name).name)
    ]
    yield "a scenario is a program, and runs with your rights" + (
        f": here {', '.join(code[:8])}" if code else ""
    )
    here = machine.versions()
    mine = (here.get("tcpsbed"), here.get("commit"))
    for found in dict.fromkeys((one.get("tcpsbed"), one.get("commit")) for one in content.versions):
        if found != mine:
            made, now = (" ".join(map(str, filter(None, one))) for one in (found, mine))
            yield one_line(f"made with tcpsbed {made}; here {now}: records may differ")
    packages: dict[str, str | None] = {}
    for name in content.packages:
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = None
    packages |= {"python": here["python"]}
    other = [
        f"{name} {version} (here {packages[name] or 'not installed'})"
        for name, version in content.packages.items()
        if packages[name] != version
    ]
    if other:
        yield one_line(f"other versions than in the archive: {', '.join(other)}")
    here_cpu = machine.machine().get("cpu", "")
    cpus = dict.fromkeys(str(one.get("cpu", "")) for one in content.machines)
    if any(cpu != here_cpu for cpu in cpus):
        yield one_line(f"another processor than in the archive: {', '.join(cpus)} (here {here_cpu})")


def _told(one: Verdict) -> dict[str, object]:
    """A verdict as JSON."""
    cell = one.cell
    return {
        "settings": cell.settings,
        "seed": cell.seed,
        "world": cell.world,
        "archived_sha256": cell.records_sha256,
        "records_sha256": one.records_sha256,
        "passed": one.passed,
        "ran": one.ran,
        "verdict": one.said,
    }


def _table(verdicts: Sequence[Verdict]) -> str:
    from tcpsbed.views import text
    from tcpsbed.views.folder import differing
    from tcpsbed.views.markup import Column, words
    from tcpsbed.views.numbers import NONE

    settings = [[word for word in one.cell.settings if not word.startswith("seed=")] for one in verdicts]
    rows = [
        (
            name or NONE,
            one.cell.world,
            one.cell.seed,
            one.cell.records_sha256[:SHORT] or NONE,
            one.records_sha256[:SHORT] or NONE,
            one.said,
        )
        for name, one in zip(differing(settings), verdicts, strict=True)
    ]
    columns = (
        words("settings"),
        words("world"),
        Column("seed"),
        words("archived"),
        words("here"),
        words("verdict"),
    )
    return text.table(columns, rows)


def _counted(verdicts: Sequence[Verdict]) -> str:
    names = {True: "agree", False: "DIFFER", None: "not judged"}
    found = Counter(names[one.passed] if one.ran else "failed" for one in verdicts)
    shown = [*names.values(), *(["failed"] if found["failed"] else [])]
    return f"{counted(len(verdicts), 'run')}: " + ", ".join(f"{found[name]} {name}" for name in shown)
