"""Lines that wait → the documents and jobs that are made for them. Pure, but for the clock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import RowMapping

from docmill.types import Source
from ingest.accept import document_id_of, job_id_of
from ingest.folder import key_of
from storage.batch_lines import Opened, Refused
from storage.rules import IMMEDIATE_DEADLINE_S
from workers.services import Services


def plan(batch: RowMapping, lines: Sequence[RowMapping], use: Services) -> tuple[list[Opened], list[Refused]]:
    """What becomes of each line: a job, or a refusal."""
    opened, refused = [], []
    for line in lines:
        refusal = _refusal(line, use)
        if refusal is None:
            opened.append(_opened(batch, line, use))
        else:
            refused.append(refusal)
    return opened, refused


def _refusal(line: RowMapping, use: Services) -> Refused | None:
    most, name, size = use.settings.max_bytes, line["filename"], line["bytes"] or 0
    for is_so, status, code, message in (
        (line["sha256"] is None, 404, "file_not_found", f"there is no file {line['file_id']}"),
        (line["bytes"] == 0, 422, "empty_file", f"{name!r} is empty (0 bytes)"),
        (line["kind"] != "pdf", 422, "not_a_pdf", f"{name!r} is not a PDF: save or print it as PDF and send that"),
        (size > most, 413, "too_large", f"{name!r} has {size:,} bytes, the limit is {most:,}"),
        (line["profile"] not in use.profiles, 404, "model_not_found", f"there is no profile {line['profile']!r} now"),
    ):
        if is_so:
            return Refused(line["line_no"], status, code, message)
    return None


def _opened(batch: RowMapping, line: RowMapping, use: Services) -> Opened:
    tenant, profile = batch["tenant"], use.profiles[line["profile"]]
    document_id = document_id_of(tenant, line["sha256"])
    window_s, deadline = _need(batch, line)
    return Opened(
        line_no=line["line_no"],
        job_id=job_id_of(document_id, profile.name, profile.version),
        document={
            "document_id": document_id,
            "tenant": tenant,
            "sha256": line["sha256"],
            "size_bytes": line["bytes"],
            "name": key_of(line["filename"]),
            "source": Source.BATCH,
            "blob_key": line["blob_key"],
        },
        profile=profile.name,
        profile_version=profile.version,
        window_s=window_s,
        deadline=deadline,
        vip=use.vip(tenant),
        ordering_key=line["ordering_key"],
    )


def _need(batch: RowMapping, line: RowMapping) -> tuple[int, datetime]:
    """By when, and how urgent that is: the batch's window is a promise for all its lines, a line may need it sooner."""
    now = datetime.now(UTC)
    deadline = min(batch["expires_at"], line["deadline"] or batch["expires_at"])
    if line["priority"] == "high":
        return 0, min(deadline, now + timedelta(seconds=IMMEDIATE_DEADLINE_S))
    return max(1, int((deadline - now).total_seconds())), deadline
