"""What tests of a work share: its study, run once, short, and the rows by key. A module names its work as `WORK`.

Where that takes more than ten seconds it also says `LONG = True`: what needs the study is slow then, and a part of it is
tried alone beside.
"""

from __future__ import annotations

import re

import pytest

from tcpsbed.lab.reproduce.rows import Row
from tcpsbed.lab.reproduce.study import Study
from tcpsbed.lab.reproduce.works import find


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what needs a long study."""
    for item in items:
        if (
            isinstance(item, pytest.Function)
            and getattr(item.module, "LONG", False)
            and "study" in item.fixturenames
        ):
            item.add_marker("slow")


@pytest.fixture(scope="module")
def study(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """All experiments of the work, short."""
    return find(request.module.WORK).reproduce(tmp_path_factory.mktemp("figures"), full=False)


@pytest.fixture(scope="module")
def rows(study: Study) -> dict[str, Row]:
    """The rows by key."""
    return {row.key: row for row in study.rows}


@pytest.fixture(scope="module")
def unexplained(study: Study) -> list[str]:
    """Rows that are not within and whose entry does not say why (`refuted`)."""
    return [row.key for row in study.rows if row.verdict == "missed, unexplained"]


GIVEN = re.compile(r"([\d.]+) ?(us|ms|s|Hz|kHz|%|B|kbit/s|Mbit/s)(?![\w/])")
"""A value with its unit in what an input is said to be set to."""


@pytest.fixture(scope="module")
def not_set(study: Study) -> list[str]:
    """Inputs of which a value is said to be set that no scenario of the study had."""
    there = set(study.inputs)
    return [
        f"{row.key}: {number} {unit}"
        for row in study.rows
        if row.ours is not None
        for number, unit in GIVEN.findall(row.expected.given)
        if (float(number), unit) not in there
    ]
