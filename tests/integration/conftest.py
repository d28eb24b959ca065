"""Fixtures that several integration tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from fastapi.testclient import TestClient

from storage.migrate import upgrade
from tests.door import Door, door_of, served
from tests.services import services_on
from workers.api.app import make_api
from workers.services import Services


@pytest.fixture
def client(use: Services) -> Iterator[TestClient]:
    """The API in this process, on the `use` of the test's module."""
    with TestClient(make_api(use), raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="session")
def serving(
    new_database: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Services, str]]:
    """The API on a socket over a database of its own, once a session; small limits, so that tests can pass them."""
    url, home = new_database(), tmp_path_factory.mktemp("door")
    upgrade(url)
    small = {"batch_max_lines": 2_000, "batch_file_max_bytes": 1_000_000, "file_max_bytes": 2_000_000}
    open_to = {"require_api_key": True, "webhook_hosts": ("127.0.0.1",)}
    with services_on(url, home, **open_to, **small, tick_s=0.1) as use, served(use) as api:
        yield use, api


@pytest.fixture
def door(serving: tuple[Services, str]) -> Iterator[Door]:
    """Clients of two new tenants; no worker runs but what the test steps."""
    with door_of(*serving) as opened:
        yield opened
