"""File formats of recordings: one file each, one line in `READERS`."""

from collections.abc import Callable
from pathlib import Path

from tcpsbed.datasets.formats import jigsaws, kinesthetic, lerobot, mouse, table
from tcpsbed.datasets.formats.lines import head
from tcpsbed.datasets.track import Track

#: Name in a scenario -> reader of a file.
READERS: dict[str, Callable[..., Track]] = {
    "csv": table.read,
    "jigsaws": jigsaws.read,
    "lerobot": lerobot.read,
    "mouse": mouse.read,
    "kinesthetic": kinesthetic.read,
}


def guess(path: Path) -> str:
    """Return the name of the format that a file seems to have, by its ending and its first line."""
    if path.suffix == ".parquet":
        return "lerobot"
    first = next((line for line in head(path) if line.strip()), "")
    for name, module in (("mouse", mouse), ("kinesthetic", kinesthetic), ("jigsaws", jigsaws)):
        if module.looks_like(first):
            return name
    return "csv"
