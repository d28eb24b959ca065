"""Fixtures that several integration tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from storage.migrate import upgrade
from tests.door import Door, door_of, served
from workers.services import Services
from workers.settings import Settings


@pytest.fixture(scope="session")
def serving(
    new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Services, str]]:
    """The API on a socket over a database of its own, once a session; small limits, so that tests can pass them."""
    url, home = new_database(), tmp_path_factory.mktemp("door")
    upgrade(url)
    settings = Settings(
        database_url=url,
        broker_url="redis://127.0.0.1:1/0",
        blob_url=f"file://{home / 'blobs'}",
        home=home,
        require_api_key=True,
        webhook_hosts=("127.0.0.1",),
        batch_max_lines=2_000,
        batch_file_max_bytes=1_000_000,
        file_max_bytes=2_000_000,
        tick_s=0.1,
    )
    use = Services(settings)
    with served(use) as api:
        yield use, api
    use.database.dispose()


@pytest.fixture
def door(serving: tuple[Services, str]) -> Iterator[Door]:
    """Clients of two new tenants; no worker runs but what the test steps."""
    with door_of(*serving) as opened:
        yield opened
