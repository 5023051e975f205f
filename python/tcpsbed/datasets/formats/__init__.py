"""File formats of recordings: one file each, one line in `READERS`."""

from collections.abc import Callable
from pathlib import Path

from tcpsbed.datasets.formats import jigsaws, kinesthetic, lerobot, mouse, table, vibtac12
from tcpsbed.datasets.formats.lines import head
from tcpsbed.datasets.track import Track

#: Name in a scenario -> reader of a file.
READERS: dict[str, Callable[..., Track]] = {
    "csv": table.read,
    "jigsaws": jigsaws.read,
    "lerobot": lerobot.read,
    "mouse": mouse.read,
    "kinesthetic": kinesthetic.read,
    "vibtac12": vibtac12.read,
}
#: Formats whose recordings are folders.
FOLDERS = {"lerobot": lerobot, "vibtac12": vibtac12}


def is_data_set(path: Path) -> bool:
    """Tell whether a path is the folder of a data set of one of `FOLDERS`."""
    try:
        return path.is_dir() and any(module.is_data_set(path) for module in FOLDERS.values())
    except (OSError, ValueError):  # a name too long, or with a zero in it
        return False


def guess(path: Path) -> str:
    """Return the name of the format that a file or folder seems to have, by its ending and its first line."""
    if path.is_dir():
        return next((name for name, module in FOLDERS.items() if module.is_data_set(path)), "csv")
    if path.suffix == ".parquet":
        return "lerobot"
    first = next((line for line in head(path) if line.strip()), "")
    for name, module in (("mouse", mouse), ("kinesthetic", kinesthetic), ("jigsaws", jigsaws)):
        if module.looks_like(first):
            return name
    return "csv"
