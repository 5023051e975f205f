"""`tcpsbed data`: recordings for experiments that do not ship."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcpsbed.cli.failures import FAILED, guarded
from tcpsbed.nearest import close_match

if TYPE_CHECKING:
    from tcpsbed.datasets import store

HELP = """Fetch recordings that published experiments take and that do not ship, for their size or their licence.

\b
Examples:
  tcpsbed data                        the list: what each is for, size, licence, installed or not
  tcpsbed data captures mahimahi      fetch these
  tcpsbed data all                    all that can be fetched

Each file comes from its public source and is kept only if its SHA-256 is right; a file that is there is never written
over. They go into the folder that TCPSBED_DATA names, else ~/.cache/tcpsbed/recordings. Each recording has the
licence of its source, not that of tcpsbed. Needs pooch: pip install 'tcpsbed[data]'. --registry takes a list of your own.
"""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("data", help=HELP)(guarded(data))


def data(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Recordings, or all.", show_default=False)
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="DIR", help="Another folder than the usual one.", show_default=False),
    ] = None,
    registry: Annotated[
        Path | None,
        typer.Option("--registry", metavar="FILE", help="Another list of recordings.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The list as JSON.")] = False,
) -> None:
    """Lists or fetches recordings; see HELP."""
    from tcpsbed.datasets import store
    from tcpsbed.errors import ConfigError
    from tcpsbed.results import refuse_dash

    known = store.listed(registry or store.REGISTRY)
    place = to or store.folder()
    refuse_dash(place, "a folder, such as recordings", "--to")
    if place.exists() and not place.is_dir():
        raise ConfigError(
            "is a file", file=place, allowed="a folder, such as recordings, for --to or in TCPSBED_DATA"
        )
    if not names:
        _list(known, place, as_json=as_json)
        return
    failed = False
    for name in _chosen(names, known):
        failed |= not _fetch(known[name], place)
    if failed:
        sys.exit(FAILED)


def _chosen(names: list[str], known: dict[str, store.Recording]) -> list[str]:
    from tcpsbed.errors import ConfigError

    if names == ["all"]:
        return [name for name, recording in known.items() if not recording.ask]
    for name in names:
        if name not in known:
            raise ConfigError(f'found "{name}"', key="data: NAME", allowed=close_match(name, ["all", *known]))
    return names


def _fetch(recording: store.Recording, place: Path) -> bool:
    """Whether all files are present; prints the error otherwise, so that the next recording is still fetched."""
    from tcpsbed.datasets import store
    from tcpsbed.errors import DataError

    print(f"{recording.name}: {recording.what}\n  licence {recording.licence}, from {recording.source}")
    try:
        new = store.fetch(recording, place)
    except DataError as error:
        print(error, file=sys.stderr)
        return False
    print("".join(f"  {file}\n" for file in new) or "  is installed already\n", end="")
    return True


def _list(known: dict[str, store.Recording], place: Path, *, as_json: bool) -> None:
    from tcpsbed.datasets import store

    if as_json:
        rows = [
            {
                "name": name,
                "what": found.what,
                "licence": found.licence,
                "source": found.source,
                "bytes": found.bytes,
                "here": not found.missing(place),
                "how": store.how(found, place),
            }
            for name, found in known.items()
        ]
        print(json.dumps(rows, indent=1))
        return
    print(f"in {place}:")
    for name, found in known.items():
        print(f"  {name}: {found.what}")
        print(f"      {found.bytes / 1e6:.1f} MB, licence {found.licence}, from {found.source}")
        print(f"      {_state(found, place)}")


def _state(recording: store.Recording, place: Path) -> str:
    from tcpsbed.datasets import store

    if not recording.missing(place):
        return "installed"
    return f"{'ask its owners' if recording.ask else 'download with'}: {store.how(recording, place)}"
