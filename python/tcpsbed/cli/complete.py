"""Shell completion: each function returns the words that complete an option or argument."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

SCENARIO_ENDINGS = (".toml", ".xlsx")


def worlds() -> list[str]:
    """Values of `--world`."""
    from tcpsbed.worlds import registry

    return [*registry.names(), *registry.pairs()]


def links() -> list[str]:
    """Profiles of `proxy` and `netns`."""
    from tcpsbed.proxy import shipped

    return ["list", *shipped()]


def limits() -> list[str]:
    """Profiles of `check-qos`."""
    from tcpsbed.lab.qos import profile

    return ["list", *profile.shipped()]


def works() -> list[tuple[str, str]]:
    """Published works."""
    from tcpsbed.lab.reproduce.works import WORKS

    return [("all", "every work"), *((work.name, work.reference) for work in WORKS)]


def scenarios() -> list[str]:
    """Scenarios and examples that ship."""
    from tcpsbed import shipped

    return list(shipped.listed())


def pages() -> list[tuple[str, str]]:
    """Pages of the documentation."""
    from tcpsbed import shipped

    return list(shipped.pages().items())


def scenario_files(incomplete: str) -> list[str]:
    """Files of scenarios, and folders that may hold some."""
    return _paths(incomplete, lambda path: path.suffix in SCENARIO_ENDINGS)


def run_folders(incomplete: str) -> list[str]:
    """Folders of runs, those in `runs` too, and folders that may hold some."""
    found = _paths(incomplete, is_run) + (
        _paths("runs/", is_run) if not incomplete.startswith("runs/") else []
    )
    return [name for name in found if name.startswith(incomplete)]


def result_folders(incomplete: str) -> list[str]:
    """Folders of runs and of sweeps, those in `runs` too."""

    def fits(path: Path) -> bool:
        return is_run(path) or is_sweep(path)

    found = [*_paths(incomplete, fits), *_paths("runs/", fits)]
    return [name for name in dict.fromkeys(found) if name.startswith(incomplete)]


def figures() -> list[tuple[str, str]]:
    """Kinds of figures."""
    from tcpsbed.figures import KINDS

    return list(KINDS.items())


def styles() -> list[str]:
    """Styles of figures."""
    from tcpsbed.drawing import STYLES

    return list(STYLES)


def scenarios_and_runs(incomplete: str) -> list[str]:
    """Scenarios and folders of runs."""
    return list(dict.fromkeys([*scenario_files(incomplete), *run_folders(incomplete)]))


def is_run(path: Path) -> bool:
    """Whether a folder holds a finished run."""
    return (path / "summary.json").is_file()


def is_sweep(path: Path) -> bool:
    """Whether a folder holds a sweep."""
    return (path / "sweep.json").is_file()


def _paths(incomplete: str, fits: Callable[[Path], bool]) -> list[str]:
    """Paths that begin like this: those that fit, and folders with a stroke behind them."""
    folder = Path(incomplete if incomplete.endswith("/") else Path(incomplete).parent)
    with suppress(OSError):
        found = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
        begun = [(path, str(path)) for path in found if str(path).startswith(incomplete.removeprefix("./"))]
        shown = [(path, "./" * incomplete.startswith("./") + text) for path, text in begun]
        return [text if fits(path) else f"{text}/" for path, text in shown if fits(path) or path.is_dir()]
    return []
