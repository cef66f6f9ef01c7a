"""Fixtures of this room, from tests/fixtures.py; and the server over which its tests run again."""

from collections.abc import Iterator

import ledger_samples
import pytest

from tests.fixtures import environment, project, root
from tests.postgres import postgres

__all__ = ["environment", "postgres", "project", "root"]

OVER_BOTH = {
    "test_ledger_anchors",
    "test_ledger_append",
    "test_ledger_exchange",
    "test_ledger_merging",
    "test_ledger_parts",
    "test_ledger_rebuild",
    "test_ledger_text_parts",
}
"""Files whose tests run over SQLite and over PostgreSQL, but for those marked `of_a_file`."""
SERVER = pytest.param("postgres", marks=[pytest.mark.slow, pytest.mark.parallel])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__ not in OVER_BOTH:
        return
    alone = metafunc.definition.get_closest_marker("of_a_file")
    metafunc.parametrize("store", ["file"] if alone else ["file", SERVER], indirect=True)


@pytest.fixture(autouse=True)
def store(request: pytest.FixtureRequest) -> Iterator[str]:
    """What keeps the ledgers of `open_ledger`."""
    kind = getattr(request, "param", "file")
    if kind == "postgres":
        ledger_samples.PLACES.append(request.getfixturevalue("postgres").place)
    yield kind
    ledger_samples.PLACES.clear()
