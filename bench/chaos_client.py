"""The clients of `bench.chaos`: they hand files in at all doors, try again where one is shut, and keep receipts."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import httpx
from sqlalchemy.exc import DBAPIError

from bench.chaos_plan import Work
from docmill.errors import SystemFault
from docmill.types import Source
from tests.stack import Stack
from workers.intake import submit
from workers.services import Services

#: As many files at once as a few impatient callers send.
_CALLERS: Final = 6
_PATIENCE_S: Final = 180.0
_PAUSE_S: Final = 0.3
ORDERING_KEY: Final = "ledger-7"


@dataclass
class Clients:
    """Sends the planned files. `receipts` has the job of each file that was accepted, None for a refused one."""

    stack: Stack
    keys: Mapping[str, str]
    use: Services
    receipts: dict[int, str | None] = field(default_factory=dict)
    tries_again: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def send_all(self, planned: Sequence[Work], seconds: float) -> None:
        """Each file at its time."""
        start = time.monotonic()
        with ThreadPoolExecutor(_CALLERS) as pool:
            sent = []
            for work in planned:
                time.sleep(max(0.0, start + work.at * seconds - time.monotonic()))
                sent.append(pool.submit(self._send, work))
            for one in sent:
                one.result()

    def job_ids(self) -> list[str]:
        """The jobs that are known so far."""
        with self._lock:
            return sorted({job for job in self.receipts.values() if job})

    def _send(self, work: Work) -> None:
        match work.door:
            case "inbox":
                self._drop(work)
            case "key":
                self._hand_in(work)
            case _:
                self._post(work)

    def _drop(self, work: Work) -> None:
        """A file in the bucket; its receipt is in the database, by its name."""
        folder = self.stack.inbox / work.tenant / work.kind.profile
        folder.mkdir(parents=True, exist_ok=True)
        (folder / work.name).write_bytes(work.data())

    def _hand_in(self, work: Work) -> None:
        """Work with an ordering key, by a program that calls docmill itself."""
        until = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return self._submit(work)
            except (SystemFault, DBAPIError):
                if time.monotonic() > until:
                    raise
            self.tries_again += 1
            time.sleep(_PAUSE_S)

    def _submit(self, work: Work) -> None:
        receipt = submit(
            work.data(),
            name=work.name,
            tenant=work.tenant,
            profile_name=work.kind.profile,
            source=Source.CLI,
            use=self.use,
            ordering_key=ORDERING_KEY,
        )
        self._keep(work, receipt.job_id)

    def _post(self, work: Work) -> None:
        data, until = work.data(), time.monotonic() + _PATIENCE_S
        while True:
            answer = self._try("/v1/documents", work, data)
            if answer is not None and answer.status_code < 500:
                break
            if time.monotonic() > until:
                raise TimeoutError(f"{work.name}: the API did not take it within {_PATIENCE_S:g} s")
            self.tries_again += 1
            time.sleep(_PAUSE_S)
        self._keep(work, answer.json()["job_id"] if answer.status_code != 422 else None)
        if work.cancel_after_s is not None:
            time.sleep(work.cancel_after_s)
            self._try(f"/v1/jobs/{answer.json()['job_id']}/cancel", work, b"")

    def _try(self, path: str, work: Work, data: bytes) -> httpx.Response | None:
        files = {"file": (work.name, data, "application/pdf")} if data else None
        form = {"profile": work.kind.profile} if data else None
        key = {"Authorization": f"Bearer {self.keys[work.tenant]}"}
        try:
            return httpx.post(f"{self.stack.url}{path}", files=files, data=form, headers=key, timeout=30)
        except httpx.TransportError:
            return None

    def _keep(self, work: Work, job_id: str | None) -> None:
        with self._lock:
            self.receipts[work.number] = job_id
