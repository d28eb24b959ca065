"""The one way in for all doors: limit, sniff, hash, keep the bytes, record, wake a parser."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from docmill.errors import BadTenant, InputError
from docmill.log import logger, say
from docmill.types import Source
from inference.profile import Profile, get
from ingest.accept import accept, job_id_of
from ingest.folder import key_of
from storage.blobs import original_key
from storage.ports import Order, Receipt, Stage, Submission
from workers.services import Services

log = logger("intake")


def submit(
    data: bytes,
    *,
    name: str,
    tenant: str,
    profile_name: str,
    source: Source,
    use: Services,
    etag: str | None = None,
    somebody_waits: bool = False,
    batch_id: str | None = None,
    ordering_key: str | None = None,
    window_s: int | None = None,
) -> Receipt:
    """Accept or refuse one file; either way there is a record. Raises RequestError before anything is kept.

    That is for a profile or tenant that cannot be, and QuotaExceeded, which passes: the file may come again.
    """
    _check_tenant(tenant)
    profile = get(use.profiles, profile_name)
    if source != Source.API:  # the gate has counted the call
        use.quotas.count_request(tenant)
    use.quotas.check_spending(tenant)
    # A name from outside may hold what no database stores and no screen should show; the bucket's are clean already.
    name = name if source == Source.BUCKET else key_of(name)
    sha256 = hashlib.sha256(data).hexdigest()
    submission = Submission(tenant, source, name, etag or sha256, profile_name, len(data), profile.version)
    try:
        document = accept(data, name=name, tenant=tenant, source=source, config=use.ingest)
    except InputError as error:
        say(log, "refused", name=name, tenant=tenant, code=error.code)
        return use.store.refuse(submission, code=error.code, reason=str(error), sha256=sha256)
    key = original_key(tenant, document.sha256)
    use.blobs.put(key, data)
    order = _order(document.document_id, tenant, profile, use, somebody_waits=somebody_waits, batch_id=batch_id)
    window_s = order.window_s if window_s is None else window_s
    order = replace(order, ordering_key=ordering_key, window_s=window_s)
    receipt = use.store.accept(document, blob_key=key, submission=submission, order=order)
    say(log, receipt.outcome, job_id=receipt.job_id, name=name, tenant=tenant, source=source)
    if receipt.outcome == "accepted" and order.window_s == 0:
        use.send(order.job_id, Stage.PARSE, None, hot=True)
    return receipt


def _check_tenant(tenant: str) -> None:
    """A tenant's name is part of the keys of blobs: no path may hide in it."""
    if not tenant.isprintable() or tenant in ("", ".", "..") or set(tenant) & {"/", "\\"} or len(tenant) > 200:
        raise BadTenant(f"{tenant[:50]!r} cannot be a tenant: give a name of 1 to 200 characters without slashes")


def _order(
    document_id: str, tenant: str, profile: Profile, use: Services, *, somebody_waits: bool, batch_id: str | None
) -> Order:
    return Order(
        job_id=job_id_of(document_id, profile.name, profile.version),
        profile=profile.name,
        profile_version=profile.version,
        window_s=0 if somebody_waits else profile.window_seconds,
        vip=use.vip(tenant),
        batch_id=batch_id,
    )
