"""`ro-crate-metadata.json`: the archive as a research object; and `README.md`.

RO-Crate 1.1 (Sefton et al. 2021) wants one descriptor, one root data set and an entity for each file. The run is a
`CreateAction` whose instrument is tcpsbed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from tcpsbed.archive.content import ABOUT, CRATE, RESULTS, SCENARIO, Content
from tcpsbed.archive.results_in import Found
from tcpsbed.datasets import store

CONTEXT = "https://w3id.org/ro/crate/1.1/context"
NOT_STATED = "not stated"
_FORMATS = {
    ".json": "application/json",
    ".toml": "application/toml",
    ".csv": "text/csv",
    ".md": "text/markdown",
    ".py": "text/x-python",
    ".c": "text/x-csrc",
    ".parquet": "application/vnd.apache.parquet",
    ".xml": "application/xml",
    ".wav": "audio/wav",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_TCPSBED, _COMMAND = "#tcpsbed", "#command"

Entity = dict[str, Any]


# https://www.researchobject.org/ro-crate/specification/1.1
def metadata(
    content: Content, files: Mapping[str, tuple[int, str]], found: Found, licence: str
) -> dict[str, Any]:
    """The JSON-LD document.

    Parameters
    ----------
    content : Content
        What the archive holds.
    files : dict
        Size in bytes and SHA-256 of its files so far, by name.
    found : Found
        Whose results they are.
    licence : str
        Of the archive; empty: not stated.
    """
    names = [*sorted(files), ABOUT]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": content.title,
        "description": f"{_counted(content)} of the tcpsbed scenario {content.title}, with all that it takes to run again: "
        f"tcpsbed rerun FILE.zip. Command: {content.command}",
        "datePublished": found.date,
        "license": {"@id": _licence_id(licence)} if licence else NOT_STATED,
        "hasPart": _references(names),
        "mentions": {"@id": _COMMAND},
    }
    descriptor = {
        "@id": CRATE,
        "@type": "CreativeWork",
        "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        "about": {"@id": "./"},
    }
    command = {
        "@id": _COMMAND,
        "@type": "CreateAction",
        "name": content.command,
        "instrument": {"@id": _TCPSBED},
        "object": _references(name for name in names if name.startswith(f"{SCENARIO}/")),
        "result": _references(name for name in names if name.startswith(f"{RESULTS}/")),
    }
    licences = _licences()
    parts = [_file(name, files.get(name), licences) for name in names]
    graph = [descriptor, root, *parts, command, *_software(content)]
    if licence:
        about = "licence of this archive, but for files with another"
        graph.append(
            {"@id": _licence_id(licence), "@type": "CreativeWork", "name": licence, "description": about}
        )
    return {"@context": [CONTEXT, {"sha256": "https://schema.org/sha256"}], "@graph": graph}


def _licence_id(licence: str) -> str:
    return licence if licence.startswith(("https://", "http://")) else "#licence"


def _references(names: Iterable[str]) -> list[dict[str, str]] | dict[str, str]:
    """References to files; one alone is no list, as RO-Crate recommends."""
    found = [{"@id": _id(name)} for name in names]
    return found[0] if len(found) == 1 else found


def _id(name: str) -> str:
    """A name as a relative URI."""
    from urllib.parse import quote

    return quote(name)


def _file(name: str, known: tuple[int, str] | None, licences: Mapping[str, tuple[str, str]]) -> Entity:
    entity: Entity = {"@id": _id(name), "@type": "File", "name": PurePosixPath(name).name}
    if form := _FORMATS.get(PurePosixPath(name).suffix.lower()):
        entity["encodingFormat"] = form
    if known is not None:
        entity |= {"contentSize": str(known[0]), "sha256": known[1]}
        if known[1] in licences:
            entity["license"], entity["isBasedOn"] = licences[known[1]]
    return entity


def _licences() -> dict[str, tuple[str, str]]:
    """Licence and source of the recordings that tcpsbed can fetch, by the SHA-256 of their files."""
    known = store.listed().values()
    return {file.sha256: (one.licence, file.url or one.source) for one in known for file in one.files}


def _software(content: Content) -> Iterator[Entity]:
    versions = ", ".join(dict.fromkeys(_version(one) for one in content.versions))
    yield {
        "@id": _TCPSBED,
        "@type": "SoftwareApplication",
        "name": "tcpsbed",
        "version": versions or "unknown",
        "softwareRequirements": [{"@id": f"#package-{name}"} for name in content.packages],
    }
    for name, version in content.packages.items():
        yield {
            "@id": f"#package-{name}",
            "@type": "SoftwareApplication",
            "name": name,
            "version": version,
        }


def _version(one: Mapping[str, Any]) -> str:
    commit = one.get("commit")
    return f"{one.get('tcpsbed', 'unknown')}" + (f" ({commit})" if commit else "")


def _counted(content: Content) -> str:
    worlds = " and ".join(sorted({cell.world for cell in content.cells}))
    count = len(content.cells)
    return f"{count} run{'s' if count > 1 else ''} (world {worlds})"


def readme(content: Content) -> str:
    """What a reader does with the archive."""
    lines: Sequence[str] = (
        f"# {content.title}",
        "",
        f"{_counted(content)} with tcpsbed, made by",
        "",
        f"    {content.command}",
        "",
        "A scenario can hold code, which runs with your rights. To run everything again and compare:",
        "",
        "    tcpsbed rerun FILE.zip",
        "",
        f"`{SCENARIO}/` holds the scenario with all files that it names, `{RESULTS}/` the summaries, and",
        f"`{ABOUT}` the runs with their settings, versions, machines and hashes. To run the scenario by",
        "hand, unpack it and use the command above.",
        "",
    )
    return "\n".join(lines)
