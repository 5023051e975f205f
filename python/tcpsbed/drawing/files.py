"""Files of figures: their formats, and in each its command, its seeds and the versions; no dates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from tcpsbed import _tcps, results
from tcpsbed.errors import DataError
from tcpsbed.palette import matplotlib

ENDINGS = (".pdf", ".svg", ".png", ".pgf")
SETTINGS = {"pdf.fonttype": 42, "pgf.rcfonts": False, "svg.hashsalt": "tcpsbed"}
"""Letters of a PDF stay letters (TrueType), those of a PGF are the document's, and names in an SVG are no random ones."""


@dataclass(frozen=True)
class Origin:
    """Where a figure comes from.

    Attributes
    ----------
    title
        What it shows.
    command
        Draws it again.
    facts
        Seeds, worlds, versions, and what is amiss with the runs, a phrase each.
    """

    title: str = ""
    command: str = ""
    facts: tuple[str, ...] = ()

    def metadata(self, ending: str) -> dict[str, Any]:
        """As a format has it; without the date that matplotlib would add."""
        maker, facts = _maker(), "; ".join(self.facts)
        if ending == ".pdf":
            told = {"Title": self.title, "Subject": self.command, "Keywords": facts}
            return _present(told) | {"Creator": maker, "CreationDate": None}
        if ending == ".svg":
            told = {"Title": self.title, "Description": self.command, "Keywords": facts}
            return _present(told) | {"Creator": maker, "Date": None}
        if ending == ".png":
            told = {"Title": self.title, "Description": self.command, "Comment": facts}
            return _present(told) | {"Software": maker}
        return {}

    @property
    def lines(self) -> list[str]:
        """As lines of a comment."""
        return [line for line in (self.title, self.command, *self.facts, _version()) if line]


def _maker() -> str:
    return f"{_version()}, matplotlib {matplotlib().__version__}"


def _version() -> str:
    return f"tcpsbed {_tcps.version()}"


def _present(told: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in told.items() if value}


def drawable(
    file: Path, *, force: bool = False, reads: Iterable[Path | str] = (), key: str = "--figure"
) -> None:
    """Refuses a file that no figure can be written to, before what it shows is measured.

    Raises
    ------
    DataError
        If its ending is none of a figure, or matplotlib is absent.
    """
    matplotlib("figure")
    if file.suffix.lower() not in ENDINGS:
        allowed = f"a file ending in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
        raise DataError(f'found the ending "{file.suffix}"', file=file, key=key, allowed=allowed)
    results.may_write(file, force=force, reads=reads)


def saved(figure: Any, file: Path, origin: Origin | None = None, *, dpi: int = 150) -> Path:
    """Writes a figure; the same figure and origin are the same bytes."""
    ending, origin, drawn = file.suffix.lower(), origin or _of(figure), BytesIO()
    with results.whole(file) as part:
        with matplotlib().rc_context(SETTINGS):
            if ending == ".pgf":
                drawn.writelines(f"%% {line}\n".encode() for line in origin.lines)
                with _without_latex(figure):
                    figure.savefig(drawn, format="pgf")
            else:
                figure.savefig(drawn, format=ending[1:], dpi=dpi, metadata=origin.metadata(ending))
        part.write_bytes(
            drawn.getvalue()
        )  # matplotlib hides the error of a full disk behind others of its own
    return file


def _of(figure: Any) -> Origin:
    """The origin of a figure that bears its caption as a title."""
    titles = [figure.get_suptitle(), *(axes.get_title(loc="left") for axes in figure.axes)]
    return Origin(next(filter(None, titles), ""))


SPECIAL = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "→": r"$\rightarrow$"} | {
    one: f"\\{one}" for one in "_&#{}"
}
"""Letters that TeX takes for something else; matplotlib escapes the percent sign and the circumflex itself."""


@contextmanager
def _without_latex(figure: Any) -> Iterator[None]:
    """Writes PGF where no LaTeX is installed: sizes of texts are those of matplotlib's own fonts."""
    backend, bases = matplotlib("backends.backend_pgf"), matplotlib("backend_bases")
    before, table = backend.RendererPgf, str.maketrans(SPECIAL)

    class Renderer(before):  # type: ignore[misc,valid-type]
        get_text_width_height_descent = bases.RendererBase.get_text_width_height_descent

        def draw_text(self, gc: Any, x: Any, y: Any, s: str, *args: Any, **more: Any) -> None:
            super().draw_text(gc, x, y, s if "$" in s else s.translate(table), *args, **more)

    backend.RendererPgf = Renderer
    try:
        yield
    finally:
        backend.RendererPgf = before
