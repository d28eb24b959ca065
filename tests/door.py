"""The API behind a real socket with the real `openai` client before it, and batches stepped by hand.

PostgreSQL and HTTP are real. Jobs are carried through by the test, so that a batch is caught in the state it wants.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from openai import OpenAI
from sqlalchemy import text

from docmill.types import Outcome, Status
from storage import api_keys
from storage.api_keys import Scope
from tests.conftest import free_ports
from tests.jobs import through_all
from tests.pdfs import text_pdf
from workers.api.app import make_api
from workers.batches import Runner
from workers.services import Services

PROFILE = "transaction-monitoring"
CHAT, DOCUMENTS = "/v1/chat/completions", "/v1/documents"
OVER = ("completed", "failed", "expired", "cancelled")


@dataclass
class Door:
    """A served API, a client with the key of one tenant, another's, and what steps batches."""

    use: Services
    url: str
    client: OpenAI
    other: OpenAI
    tenant: str
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(1_000_000)))

    def __post_init__(self) -> None:
        self.runner = Runner(self.use, looking=1.0)

    # ------------------------------------------------------------ input

    def pdf(self, client: OpenAI | None = None) -> str:
        """The id of a new document."""
        name = f"{next(self.numbers)}.pdf"
        return (client or self.client).files.create(file=(name, text_pdf(name)), purpose="user_data").id

    def line(self, custom_id: str, file_id: str, *, url: str = CHAT, **more: Any) -> dict[str, Any]:
        if url == DOCUMENTS:
            body: dict[str, Any] = {"file_id": file_id, "profile": PROFILE}
        else:
            content = [{"type": "text", "text": "Read this."}, {"type": "file", "file": {"file_id": file_id}}]
            body = {"model": PROFILE, "messages": [{"role": "user", "content": content}]}
        return {"custom_id": custom_id, "method": "POST", "url": url, "body": body, **more}

    def requests(self, count: int, **more: Any) -> list[dict[str, Any]]:
        return [self.line(f"request-{number}", self.pdf(), **more) for number in range(count)]

    def upload(self, lines: Sequence[Any] | bytes, name: str = "requests.jsonl") -> str:
        data = lines if isinstance(lines, bytes) else "\n".join(map(json.dumps, lines)).encode()
        return self.client.files.create(file=(name, data), purpose="batch").id

    def batch(self, lines: Sequence[Any] | bytes, *, endpoint: str = CHAT, window: str = "24h", **more: Any) -> Any:
        """A new batch of these lines."""
        return self.client.batches.create(
            input_file_id=self.upload(lines), endpoint=endpoint, completion_window=window, **more
        )

    def running(self, count: int, **more: Any) -> Any:
        """A batch whose lines have jobs."""
        made = self.batch(self.requests(count), **more)
        return self.step_until(made.id, lambda: len(self.open_jobs(made.id)) == count)

    # ------------------------------------------------------------ steps

    def step_until(self, batch_id: str, holds: Callable[[], bool], *, within_s: float = 60) -> Any:
        """Step all batches until it holds; the batch."""
        end = time.monotonic() + within_s
        while not holds():
            assert time.monotonic() < end, f"not in {within_s} s: {self.get(batch_id)}"
            if not self.runner.tick():
                time.sleep(0.02)
        return self.get(batch_id)

    def finish(self, batch_id: str) -> Any:
        """Step until it is over."""
        return self.step_until(batch_id, lambda: self.get(batch_id).status in OVER)

    def until(self, batch_id: str, status: str) -> Any:
        return self.step_until(batch_id, lambda: self.get(batch_id).status == status)

    def get(self, batch_id: str) -> Any:
        return self.client.batches.retrieve(batch_id)

    # ------------------------------------------------------------ jobs

    def open_jobs(self, batch_id: str) -> list[str]:
        """Jobs of lines that are not over, in the order of the lines."""
        return self.column(
            "SELECT job_id FROM batch_lines WHERE batch_id = :batch_id AND state = 'open' ORDER BY line_no",
            batch_id=batch_id,
        )

    def read(self, batch_id: str, count: int | None = None, outcome: Outcome = Outcome.PASS) -> None:
        """Carry this many jobs through."""
        for job_id in self.open_jobs(batch_id)[:count]:
            if not self.use.store.record(job_id).status.terminal:
                through_all(self.use.store, job_id, outcome)

    def fail(self, batch_id: str, count: int | None = None, reason: str = "no_text: nothing to read") -> None:
        """Let this many jobs fail."""
        with self.use.database.begin() as connection:
            connection.execute(
                text("UPDATE jobs SET status = :failed, reason = :why, finished_at = now() WHERE job_id = ANY(:ids)"),
                {"failed": Status.FAILED, "why": reason, "ids": self.open_jobs(batch_id)[:count]},
            )

    def column(self, sql: str, **values: Any) -> list[Any]:
        with self.use.database.connect() as connection:
            return list(connection.execute(text(sql), values).scalars())

    def execute(self, sql: str, **values: Any) -> None:
        with self.use.database.begin() as connection:
            connection.execute(text(sql), values)

    def kept(self, folder: str) -> set[str]:
        """Names of this tenant's blobs."""
        found = (self.use.settings.home / "blobs" / folder / self.tenant).rglob("*")
        return {path.name for path in found if path.is_file()}

    # ------------------------------------------------------------ results

    def rows(self, file_id: str | None) -> list[dict[str, Any]]:
        """The rows of an output or error file; none where there is no file."""
        if file_id is None:
            return []
        return [json.loads(line) for line in self.client.files.content(file_id).text.splitlines()]

    def outcomes(self, batch: Any) -> tuple[list[str], list[str]]:
        """The custom ids with a result, and those without."""
        with_result, without = (
            sorted(row["custom_id"] for row in self.rows(file)) for file in (batch.output_file_id, batch.error_file_id)
        )
        return with_result, without


def balanced(batch: Any) -> bool:
    """What holds in every end but that of a failed validation."""
    counts = batch.request_counts
    return bool(counts.completed + counts.failed == counts.total)


@contextmanager
def served(use: Services) -> Iterator[str]:
    """The API on a socket; its URL."""
    port = free_ports(1)[0]
    server = uvicorn.Server(uvicorn.Config(make_api(use), host="127.0.0.1", port=port, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the API did not start"
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(timeout=20)


@contextmanager
def door_of(use: Services, url: str) -> Iterator[Door]:
    """A door for one test: tenants of its own, so that tests need no empty database."""
    tenants = [f"{name}-{secrets.token_hex(4)}" for name in ("acme", "other")]
    with use.database.begin() as connection:
        keys = [api_keys.create(connection, tenant, "test", scopes=tuple(Scope)) for tenant in tenants]
    mine, other = (OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) for key in keys)
    door = Door(use, url, mine, other, tenants[0])
    try:
        yield door
    finally:
        mine.close()
        other.close()
        door.execute("UPDATE batch_runs SET status = 'failed' WHERE tenant = ANY(:tenants)", tenants=tenants)
