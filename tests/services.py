"""The services of a process for tests, on a database of theirs and without a broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from workers.services import Services
from workers.settings import Settings

#: Nobody listens there: what the broker does not take waits in the database.
NO_BROKER = "redis://127.0.0.1:1/0"


@contextmanager
def services_on(database: Engine | str, home: Path, **settings: Any) -> Iterator[Services]:
    """Services that keep blobs and whatever else below `home`; `settings` as in `workers.settings`."""
    url = database if isinstance(database, str) else database.url.render_as_string(hide_password=False)
    fixed = {"database_url": url, "broker_url": NO_BROKER, "blob_url": f"file://{home / 'blobs'}", "home": home}
    use = Services(Settings(**{**fixed, **settings}))
    try:
        yield use
    finally:
        use.database.dispose()
