"""What the commands of the command line do."""

from __future__ import annotations

import getpass
import hashlib
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError

from docmill.errors import RateLimited
from docmill.types import PreparedDocument, Source
from ingest.accept import accept
from preprocess.prepare import prepare
from storage import reading
from storage.audit import record_act
from storage.certificate import note_input
from storage.ports import Receipt
from workers.fetching import consumers
from workers.intake import submit
from workers.local import read_address
from workers.processes import GIVEN_UP, alive, marked
from workers.services import Services, services


def submit_paths(
    paths: Sequence[Path], profile: str, tenant: str, *, ordering_key: str | None = None
) -> Iterator[tuple[Path, Receipt]]:
    """Submit each file, and each PDF below each folder, as one batch; those of a key are read in their order."""
    use = services()
    with use.database.begin() as connection:
        batch_id = reading.new_batch(connection, f"batch_{uuid.uuid4().hex[:24]}", tenant, label="cli")
        record_act(connection, "submit", tenant=tenant, actor=actor(), detail={"batch_id": batch_id})
    for path in _files(paths):
        yield path, _submit(path, use, tenant=tenant, profile=profile, batch_id=batch_id, key=ordering_key)


def _submit(path: Path, use: Services, *, tenant: str, profile: str, batch_id: str, key: str | None) -> Receipt:
    """Submit a file; one that comes too soon after the others waits, as the API would tell its caller to."""
    data = path.read_bytes()
    while True:
        try:
            receipt = submit(
                data,
                name=path.name,
                tenant=tenant,
                profile_name=profile,
                source=Source.CLI,
                use=use,
                batch_id=batch_id,
                ordering_key=key,
            )
            break
        except RateLimited as limit:
            time.sleep(limit.retry_after_s)
    sha256 = hashlib.sha256(data).hexdigest()
    with use.database.begin() as connection:
        note_input(connection, batch_id, receipt, tenant=tenant, name=path.name, sha256=sha256)
    return receipt


def actor() -> str:
    """Who gives commands, for the audit."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):  # a container may run as a user that has no name
        return "cli"


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.rglob("*.pdf")) if path.is_dir() else [path]


def status_lines() -> Iterator[str]:
    """Jobs by status and processes by program."""
    use = services()
    for status, count in sorted(use.store.counts().items()):
        yield f"{status:14}{count:>8}"
    yield from consumer_lines(use)
    address = read_address(use.settings)
    if address is not None and alive([address.pid]):
        programs = sorted({process.environ().get("DOCMILL_PROGRAM", "") for process in marked(_stack())})
        yield f"stack of {use.settings.home}: pid {address.pid}, API {address.api_url}, running: {', '.join(programs)}"


def consumer_lines(use: Services) -> Iterator[str]:
    """What each worker last fetched, and which programs are not started any more."""
    try:
        told = consumers(use.redis)
    except RedisError as error:
        yield f"the broker does not answer: {error}"
        told = []
    for one in told:
        yield f"{one.name:14}{one.busy:>4} of {one.slots} slots, last message {one.last_s:.0f} s ago ({one.worker})"
    given_up = use.settings.home / "logs" / GIVEN_UP
    if given_up.exists():
        yield from given_up.read_text().splitlines()


def _stack() -> str:
    return str(services().settings.home.resolve())


def result_rows(tenant: str, limit: int) -> list[dict[str, Any]]:
    """Rows of `v_results`, the oldest first."""
    with services().database.begin() as connection:
        return reading.view(connection, "v_results", tenant=tenant or None, limit=limit, order_by="submitted_at")


def parse_file(path: Path) -> PreparedDocument:
    """Read one PDF with the settings' limits. Raises InputError."""
    use = services()
    data = path.read_bytes()
    document = accept(data, name=path.name, tenant=use.settings.tenant, source=Source.CLI, config=use.ingest)
    return prepare(data, document.document_id, use.prepare)


def parsed_text(prepared: PreparedDocument) -> str:
    """What the model would be shown."""
    head = f"{len(prepared.pages)} pages, {len(prepared.tables)} tables, {prepared.tokens} tokens"
    return "\n\n".join([head, *prepared.warnings, *(chunk.text for chunk in prepared.chunks)])
