"""Files that a caller uploads or a batch writes, and uploads in parts. The bytes are in the blob store, the facts here.

A file of another tenant does not exist. A deleted one is gone for its owner at once; its bytes go when no batch that is
being read and no document needs them (`unneeded`).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    RowMapping,
    Select,
    Table,
    and_,
    exists,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from docmill.errors import NotFound, RequestError
from storage.batch_schema import batch_runs, files, upload_parts, uploads
from storage.database import transactional
from storage.schema import documents

#: An upload in parts must be completed within this time.
UPLOAD_S = 3600


@dataclass(frozen=True, slots=True)
class NewFile:
    """What is known of a file once its bytes are kept. `keep_s`: it expires so long after its creation."""

    file_id: str
    tenant: str
    filename: str
    purpose: str
    kind: str
    bytes: int
    sha256: str
    blob_key: str
    keep_s: int | None = None


def new_id(prefix: str) -> str:
    """An id that nobody guesses."""
    return f"{prefix}{secrets.token_hex(12)}"


def file_key(tenant: str, file_id: str) -> str:
    """Where a file's bytes are kept."""
    return f"files/{tenant}/{file_id}"


def no_such_file(file_id: str) -> NotFound:
    """Also for another tenant's, a deleted and an expired one."""
    return NotFound(f"there is no file {file_id}; GET /v1/files lists those that exist")


def is_there() -> ColumnElement[bool]:
    """Not deleted and not over its time."""
    return and_(files.c.deleted_at.is_(None), or_(files.c.expires_at.is_(None), files.c.expires_at > func.now()))


def add(connection: Connection, new: NewFile) -> RowMapping:
    """Record a file whose bytes are kept; one that was recorded before stays as it is."""
    values: dict[str, Any] = {name: getattr(new, name) for name in NewFile.__slots__ if name != "keep_s"}
    if new.keep_s is not None:
        values["expires_at"] = func.now() + timedelta(seconds=new.keep_s)
    connection.execute(upsert(files).values(values).on_conflict_do_nothing())
    return connection.execute(select(files).where(files.c.file_id == new.file_id)).mappings().one()


def get(connection: Connection, file_id: str, *, tenant: str) -> RowMapping:
    """One file. Raises NotFound."""
    found = select(files).where(files.c.file_id == file_id, files.c.tenant == tenant, is_there())
    row = connection.execute(found).mappings().one_or_none()
    if row is None:
        raise no_such_file(file_id)
    return row


@dataclass(frozen=True, slots=True)
class FileStore:
    """Files and uploads on PostgreSQL. Safe to use from many threads."""

    engine: Engine

    @transactional
    def add(self, connection: Connection, new: NewFile) -> RowMapping:
        return add(connection, new)

    @transactional
    def get(self, connection: Connection, file_id: str, *, tenant: str) -> RowMapping:
        return get(connection, file_id, tenant=tenant)

    @transactional
    def of_batch(self, connection: Connection, file_id: str, *, tenant: str) -> RowMapping:
        """A file that a batch was made of: it may have been deleted since, its bytes are kept. Raises NotFound."""
        kept = select(files).where(files.c.file_id == file_id, files.c.tenant == tenant, files.c.purged_at.is_(None))
        row = connection.execute(kept).mappings().one_or_none()
        if row is None:
            raise no_such_file(file_id)
        return row

    @transactional
    def page(
        self,
        connection: Connection,
        *,
        tenant: str,
        purpose: str | None,
        after: str | None,
        limit: int,
        ascending: bool = False,
    ) -> tuple[list[RowMapping], bool]:
        """A page of a tenant's files, and whether there are more."""
        wanted = select(files).where(files.c.tenant == tenant, is_there())
        if purpose is not None:
            wanted = wanted.where(files.c.purpose == purpose)
        start = place_of(connection, files, files.c.file_id, after, tenant=tenant) if after else None
        if after and start is None:
            raise no_such_file(after)
        return page_of(connection, wanted, files, files.c.file_id, start, limit=limit, ascending=ascending)

    @transactional
    def delete(self, connection: Connection, file_id: str, *, tenant: str) -> None:
        """Gone for its owner; batches that were made of it go on. Raises NotFound."""
        get(connection, file_id, tenant=tenant)
        connection.execute(update(files).where(files.c.file_id == file_id).values(deleted_at=func.now()))

    @transactional
    def unneeded(self, connection: Connection, *, limit: int) -> Sequence[RowMapping]:
        """Files whose bytes nobody needs any more: deleted or over their time, not being read, no document's own."""
        being_read = exists().where(batch_runs.c.input_file_id == files.c.file_id, batch_runs.c.status == "validating")
        listed = exists().where(
            batch_runs.c.status == "validating", batch_runs.c.options["file_ids"].has_key(files.c.file_id)
        )
        documents_own = exists().where(
            documents.c.tenant == files.c.tenant,
            documents.c.sha256 == files.c.sha256,
            documents.c.blob_key == files.c.blob_key,
        )
        gone = select(files.c.file_id, files.c.blob_key).where(
            files.c.purged_at.is_(None), ~is_there(), ~being_read, ~listed, ~documents_own
        )
        return connection.execute(gone.limit(limit)).mappings().all()

    @transactional
    def mark_purged(self, connection: Connection, file_ids: Sequence[str]) -> None:
        connection.execute(update(files).where(files.c.file_id.in_(file_ids)).values(purged_at=func.now()))

    # ------------------------------------------------------------ uploads in parts

    @transactional
    def new_upload(self, connection: Connection, values: Mapping[str, Any]) -> RowMapping:
        own = {"upload_id": new_id("upload_"), "expires_at": func.now() + timedelta(seconds=UPLOAD_S)}
        made = insert(uploads).values({**values, **own}).returning(uploads)
        return connection.execute(made).mappings().one()

    @transactional
    def upload(self, connection: Connection, upload_id: str, *, tenant: str) -> RowMapping:
        """An upload, expired if its hour is over. Raises NotFound."""
        mine = uploads.c.upload_id == upload_id, uploads.c.tenant == tenant
        connection.execute(
            update(uploads)
            .where(*mine, uploads.c.status == "pending", uploads.c.expires_at <= func.now())
            .values(status="expired")
        )
        row = connection.execute(select(uploads).where(*mine)).mappings().one_or_none()
        if row is None:
            raise NotFound(f"there is no upload {upload_id}; POST /v1/uploads makes one")
        return row

    @transactional
    def add_part(
        self, connection: Connection, upload: RowMapping, *, part_id: str, size: int, blob_key: str
    ) -> RowMapping:
        values = {"part_id": part_id, "upload_id": upload["upload_id"], "bytes": size, "blob_key": blob_key}
        return connection.execute(insert(upload_parts).values(values).returning(upload_parts)).mappings().one()

    @transactional
    def parts(self, connection: Connection, upload_id: str) -> dict[str, RowMapping]:
        """The parts of an upload by id."""
        rows = connection.execute(select(upload_parts).where(upload_parts.c.upload_id == upload_id)).mappings()
        return {row["part_id"]: row for row in rows}

    @transactional
    def end_upload(
        self, connection: Connection, upload_id: str, status: str, *, new: NewFile | None = None
    ) -> RowMapping:
        """Complete it with its file, or cancel it; only one that is pending. Raises RequestError."""
        if new is not None:
            add(connection, new)
        ended = connection.execute(
            update(uploads)
            .where(uploads.c.upload_id == upload_id, uploads.c.status == "pending")
            .values(status=status, file_id=new.file_id if new else None)
            .returning(uploads)
        ).mappings()
        row = ended.one_or_none()
        if row is None:
            raise RequestError(f"upload {upload_id} is no longer pending: make a new one")
        return row

    @transactional
    def loose_parts(self, connection: Connection, *, limit: int) -> Sequence[RowMapping]:
        """Parts of uploads that are over, or over their time: their bytes are in the file, or wanted by nobody."""
        over = or_(uploads.c.status != "pending", uploads.c.expires_at <= func.now())
        parts = select(upload_parts.c.part_id, upload_parts.c.blob_key).join(uploads).where(over)
        return connection.execute(parts.limit(limit)).mappings().all()

    @transactional
    def forget_parts(self, connection: Connection, part_ids: Sequence[str]) -> None:
        connection.execute(upload_parts.delete().where(upload_parts.c.part_id.in_(part_ids)))


def page_of(
    connection: Connection,
    wanted: Select[Any],
    table: Table,
    key: ColumnElement[Any],
    start: tuple[Any, ...] | None,
    *,
    limit: int,
    ascending: bool,
) -> tuple[list[RowMapping], bool]:
    """The rows after `start` in order of creation, and whether there are more."""
    place = tuple_(table.c.created_at, key)
    if start is not None:
        wanted = wanted.where(place > start if ascending else place < start)
    order = [table.c.created_at.asc(), key.asc()] if ascending else [table.c.created_at.desc(), key.desc()]
    rows = connection.execute(wanted.order_by(*order).limit(limit + 1)).mappings().all()
    return list(rows[:limit]), len(rows) > limit


def place_of(
    connection: Connection, table: Table, key: ColumnElement[Any], value: str, *, tenant: str
) -> tuple[Any, ...] | None:
    """Where a row stands in the order of its list, None if the tenant has none such. It may be deleted meanwhile."""
    found = select(table.c.created_at, key).where(key == value, table.c.tenant == tenant)
    row = connection.execute(found).one_or_none()
    return None if row is None else tuple(row)
