"""What tests of a work share: its study, run once, short, and the rows by key. A module names its work as `WORK`."""

from __future__ import annotations

import pytest

from tcpsbed.reproduce.study import Row, Study
from tcpsbed.reproduce.works import find


@pytest.fixture(scope="module")
def study(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """All experiments of the work, short."""
    return find(request.module.WORK).reproduce(tmp_path_factory.mktemp("figures"), full=False)


@pytest.fixture(scope="module")
def rows(study: Study) -> dict[str, Row]:
    """The rows by key."""
    return {row.key: row for row in study.rows}
