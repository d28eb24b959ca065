"""The near-duplicate index in PostgreSQL: MinHash bands, checked and inserted in one transaction.

datasketch makes the signatures; its Redis index is not atomic between workers, so the bands live here. A match links
two documents and never drops one. The fingerprint of a document's facts is part of the key: repeats are found among
any number of documents of one template, and a document is compared with few of those.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, select, text, update

from docmill.codec import pack, unpack
from docmill.likeness import Facts, Likeness, differences, jaccard
from storage.likeness_schema import likenesses
from storage.rules import SAME_TEXT, SIMILAR
from storage.schema import documents

#: Documents of a band that are looked at: as many with the same facts, and as many others.
LOOKED_AT: Final = 16


@dataclass(frozen=True, slots=True)
class Link:
    """An earlier document: repeated, or only of the same template."""

    document_id: str
    similarity: float
    repeats: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """An indexed document that shares a band."""

    document_id: str
    shingles: bytes
    same_facts: bool


#: Two documents that could be linked share a band, so who holds the locks of its bands misses nobody. In order, so that
#: two workers never wait for each other.
_LOCK = text(
    "SELECT count(pg_advisory_xact_lock(hashtextextended(:tenant, band)))"
    " FROM (SELECT unnest(CAST(:bands AS bigint[])) AS band ORDER BY 1) AS sorted"
)
#: With the document itself, where it was indexed or linked before.
_CANDIDATES = text(f"""
WITH found AS (
    SELECT document_id, bool_or(same_facts) AS same_facts, count(*) AS shared
    FROM unnest(CAST(:bands AS bigint[])) AS wanted (band)
    CROSS JOIN LATERAL (
        (
            SELECT document_id, TRUE AS same_facts FROM minhash_bands
            WHERE tenant = :tenant AND band = wanted.band AND fingerprint = :fingerprint LIMIT {LOOKED_AT}
        )
        UNION ALL
        (
            SELECT document_id, FALSE FROM minhash_bands
            WHERE tenant = :tenant AND band = wanted.band AND fingerprint <> :fingerprint LIMIT {LOOKED_AT}
        )
    ) AS sharing
    GROUP BY document_id
    ORDER BY same_facts DESC, shared DESC, document_id
    LIMIT {2 * LOOKED_AT}
)
SELECT document_id, shingles, same_facts, indexed_at FROM found JOIN likenesses USING (document_id)
UNION ALL
SELECT document_id, ''::bytea, TRUE, now() FROM documents
WHERE document_id = :document_id
    AND (near_duplicate_of IS NOT NULL OR EXISTS (SELECT FROM likenesses WHERE document_id = :document_id))
ORDER BY indexed_at
""")
_INSERT = text("""
WITH kept AS (
    INSERT INTO likenesses (document_id, shingles, facts) VALUES (:document_id, :shingles, :facts)
)
INSERT INTO minhash_bands (tenant, band, fingerprint, document_id)
SELECT DISTINCT :tenant, band, CAST(:fingerprint AS bigint), :document_id
FROM unnest(CAST(:bands AS bigint[])) AS own (band)
""")


def link_near_duplicate(connection: Connection, tenant: str, document_id: str, like: Likeness) -> Link | None:
    """Link the document to the earlier one of its tenant that it repeats, or else shares most with, and index it.

    A document is linked once: another profile's job parses it again, and a link made then could close a circle. One
    that repeats another to the last shingle is not indexed: whatever is like it is like that one.
    """
    if not like.bands:
        return None
    own = {"tenant": tenant, "bands": sorted(like.bands), "fingerprint": like.fingerprint, "document_id": document_id}
    connection.execute(_LOCK, {"tenant": tenant, "bands": own["bands"]})
    candidates = [Candidate(*row[:3]) for row in connection.execute(_CANDIDATES, own)]
    if any(candidate.document_id == document_id for candidate in candidates):
        return None
    link = best_link(like, candidates)
    if link is not None:
        _save_link(connection, document_id, like.facts, link)
    if link is None or not (link.repeats and link.similarity == SAME_TEXT):
        connection.execute(_INSERT, {**own, "shingles": like.shingles, "facts": pack(like.facts)})
    return link


def best_link(like: Likeness, candidates: Iterable[Candidate]) -> Link | None:
    """Repeats before templates, then by the share of common shingles, then the earlier; None below SIMILAR."""
    links = [
        Link(candidate.document_id, jaccard(like.shingles, candidate.shingles), candidate.same_facts)
        for candidate in candidates
    ]
    alike = [link for link in links if link.similarity >= SIMILAR]
    return max(alike, key=lambda link: (link.repeats, link.similarity), default=None)


def link_columns(link: Link, before: Facts, after: Facts) -> dict[str, Any]:
    """A link as columns of `documents`: who only shares a template is no near-duplicate."""
    of = "near_duplicate_of" if link.repeats else "same_template_as"
    return {of: link.document_id, "similarity": link.similarity, "differences": differences(before, after)}


def _save_link(connection: Connection, document_id: str, own: Facts, link: Link) -> None:
    kept = select(likenesses.c.facts).where(likenesses.c.document_id == link.document_id)
    before = own if link.repeats else unpack(connection.execute(kept).scalar_one(), dict[str, Sequence[str]])
    columns = link_columns(link, before, own)
    connection.execute(update(documents).where(documents.c.document_id == document_id).values(columns))
