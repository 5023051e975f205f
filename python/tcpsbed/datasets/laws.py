"""Distributions of sizes and spans in files: measured ones as cumulative curves, fitted ones as parameters."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcpsbed import inputs
from tcpsbed.datasets import builtin
from tcpsbed.datasets.formats.lines import numbers
from tcpsbed.datasets.formats.table import layout
from tcpsbed.errors import DataError

#: What a page of the web is made of, in the order of `tcps_net::traffic::pages::PagesSpec`.
PAGE = ("request", "main", "embedded", "object", "parse", "think")

_MAH = {"request": "HttpRequestLength", "reply": "HttpReplyLength", "think": "HttpThinkTime"}
_MAH_CONNECTIONS = "HttpConnections"


def empirical(path: Path) -> dict[str, Any]:
    """Return a measured distribution.

    Parameters
    ----------
    path
        Lines of `value count cumulative` or `value cumulative` (the cumulative probability last), as Mah's
        `.cdf` files have them; or a table under a header with a column `cdf` and one of values.

    Returns
    -------
    dict
        The law `empirical` with its values in rising order and their cumulative probabilities, the last 1.

    Raises
    ------
    DataError
        No two columns, values or probabilities that fall, or a last probability that is not 1.
    """
    values, cumulative, first_line = _curve(path)
    for column in (values, cumulative):
        wrong = np.flatnonzero((np.diff(column, prepend=0.0) < 0) | ~np.isfinite(column))
        if len(wrong):
            row = int(wrong[0])
            raise DataError(
                f"found {column[row]:g}",
                file=path,
                line=first_line + row,
                allowed="values and cumulative probabilities that rise from 0",
            )
    if abs(cumulative[-1] - 1.0) > 1e-6:
        raise DataError(
            f"found a last probability of {cumulative[-1]:g}",
            file=path,
            line=first_line + len(values) - 1,
            allowed="1",
        )
    cumulative[-1] = 1.0
    # Of equal values the last has the whole probability.
    last = np.append(np.diff(values) > 0, True)
    return {"kind": "empirical", "values": values[last].tolist(), "cumulative": cumulative[last].tolist()}


def pages(name: str, base: Path) -> dict[str, Any]:
    """Return the laws of a page of the web: of requests, objects, their number, and the times between.

    Parameters
    ----------
    name
        `builtin:web`, `builtin:3gpp-http`, or a path: a JSON file with a law for each of `request`,
        `main`, `object` (bytes), `embedded` (number), `parse` and `think` (seconds); or a folder with
        `HttpRequestLength.cdf`, `HttpReplyLength.cdf`, `HttpConnections.cdf` and `HttpThinkTime.cdf`
        (Mah 1997), where a page has one main object and an embedded one for each further connection.
    base
        Folder that a relative path starts from.

    Raises
    ------
    DataError
        A file or a law that is missing.
    """
    path = _pages_path(name, base)
    if path.is_dir():
        return _mah(path)
    laws = inputs.from_json(path, "a JSON file of laws, or a folder", inputs.DOCUMENT_BYTES)
    missing = [name for name in PAGE if not isinstance(laws, dict) or not isinstance(laws.get(name), dict)]
    if missing:
        raise DataError(
            f"found no law for {', '.join(missing)}", file=path, allowed=f"laws for {', '.join(PAGE)}"
        )
    return {name: laws[name] for name in PAGE}


def _pages_path(name: str, base: Path) -> Path:
    known = [builtin.PREFIX + page for page in builtin.PAGES]
    if name in known:
        return builtin.DATA / builtin.PAGES[name.removeprefix(builtin.PREFIX)]
    path = builtin.located(name, base, f"{', '.join(known)}, a JSON file or a folder").resolve()
    if name.startswith(builtin.PREFIX) or not path.exists():
        raise DataError(
            f'"{name}"', allowed=f"{', '.join(known)}, a JSON file or a folder, looked for at {path}"
        )
    return path


def _mah(folder: Path) -> dict[str, Any]:
    """Mah's distributions: every file of a page has a connection of its own."""
    laws = {name: empirical(_file(folder, file)) for name, file in _MAH.items()}
    connections = empirical(_file(folder, _MAH_CONNECTIONS))
    connections["values"] = [max(0.0, value - 1.0) for value in connections["values"]]
    nothing = {"kind": "constant", "value": 0.0}
    return {
        "request": laws["request"],
        "main": laws["reply"],
        "embedded": connections,
        "object": laws["reply"],
        "parse": nothing,
        "think": laws["think"],
    }


def _file(folder: Path, name: str) -> Path:
    path = folder / f"{name}.cdf"
    if not path.is_file():
        files = ", ".join(f"{known}.cdf" for known in (*_MAH.values(), _MAH_CONNECTIONS))
        raise DataError(f"found no {name}.cdf", file=folder, allowed=f"a folder with {files}")
    return path


def _curve(path: Path) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Return values, cumulative probabilities and the line of the first."""
    inputs.regular(path, "a file of a cumulative distribution")
    separator, names, skip = layout(path)
    table = numbers(path, separator, skip)
    if len(table) == 0 or table.shape[1] < 2:
        raise DataError(
            "found fewer than two columns", file=path, allowed="values and cumulative probabilities"
        )
    lower = [name.lower() for name in names]
    if "cdf" in lower:
        if len(names) != table.shape[1]:
            found = f"found {table.shape[1]} values under {len(names)} names"
            raise DataError(found, file=path, line=skip + 1, allowed="one name for each column")
        at = lower.index("cdf")
        other = 0 if at else 1
        return table[:, other].copy(), table[:, at].copy(), skip + 1
    return table[:, 0].copy(), table[:, -1].copy(), skip + 1
