"""The near-duplicate index: MinHash bands in PostgreSQL, checked and inserted in one transaction.

datasketch makes the signatures; its Redis index is not atomic between workers, so the bands live here. A match links
two documents and never drops one.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, func, select, update
from sqlalchemy.dialects.postgresql import insert

from docmill.likeness import similarity
from storage.rules import SIMILAR
from storage.schema import documents, minhash_bands


def link_near_duplicate(
    connection: Connection, tenant: str, document_id: str, signature: bytes, bands: Sequence[int]
) -> None:
    """Link the document to the most similar one of its tenant that was indexed before, and index it.

    A document is linked once: another profile's job parses it again, and a link made then could close a circle.
    """
    if not bands:
        return
    # One writer a tenant at a time: without it two workers would each miss the other's document.
    connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"near:{tenant}", 0))))
    if _indexed(connection, document_id):
        return
    best = _most_similar(connection, tenant, signature, bands)
    if best is not None:
        connection.execute(
            update(documents)
            .where(documents.c.document_id == document_id)
            .values(near_duplicate_of=best[0], similarity=best[1])
        )
    rows = [{"tenant": tenant, "band": band, "document_id": document_id} for band in bands]
    connection.execute(insert(minhash_bands).on_conflict_do_nothing(), rows)


def _indexed(connection: Connection, document_id: str) -> bool:
    known = select(minhash_bands.c.document_id).where(minhash_bands.c.document_id == document_id)
    return bool(connection.execute(select(known.exists())).scalar_one())


def _most_similar(
    connection: Connection, tenant: str, signature: bytes, bands: Sequence[int]
) -> tuple[str, float] | None:
    rows = connection.execute(
        select(documents.c.document_id, documents.c.signature)
        .where(
            documents.c.document_id.in_(
                select(minhash_bands.c.document_id).where(
                    minhash_bands.c.tenant == tenant,
                    minhash_bands.c.band.in_(bands),
                )
            )
        )
        .order_by(documents.c.created_at)
    ).all()
    scored = [(row.document_id, similarity(signature, row.signature)) for row in rows]
    best = max(scored, key=lambda pair: pair[1], default=None)
    return best if best is not None and best[1] >= SIMILAR else None
