"""The application: routes, errors, and the services behind them."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline

from docmill import __version__
from workers.api.audit import router as audit
from workers.api.bucket_events import router as bucket_events
from workers.api.gate import Gate
from workers.api.openai_batches import router as batches
from workers.api.openai_files import router as files
from workers.api.openai_uploads import router as uploads
from workers.api.problems import answer_errors, describe_problems
from workers.api.reviews import router as reviews
from workers.api.routes import router
from workers.api.webhook_endpoints import router as webhooks
from workers.services import Services


def make_api(use: Services) -> FastAPI:
    """The application over these services."""
    # Its pages come from the package: the usual ones load scripts from a CDN, which a bank's network does not reach.
    api = FastAPIOffline(
        title="docmill",
        version=__version__,
        summary="PDFs to checked, cited rows.",
        license_info={"name": "AGPL-3.0-or-later", "identifier": "AGPL-3.0-or-later"},
    )
    api.state.services = use
    api.add_middleware(Gate, use=use)
    answer_errors(api)
    api.include_router(router)
    api.include_router(reviews)
    api.include_router(audit)
    api.include_router(bucket_events)
    for routes in (files, uploads, batches, webhooks):
        api.include_router(routes)
    describe_problems(api)
    return api
