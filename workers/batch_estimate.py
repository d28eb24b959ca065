"""What a batch would take, told before it runs: documents, tokens, money."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from sqlalchemy import RowMapping

from inference.cost import cost
from workers.services import Services


def estimate(batch: RowMapping, use: Services) -> dict[str, Any]:
    """By profile: measured where documents were read before, else by what the tenant's documents are like."""
    rows = [_of_profile(row, use) for row in use.estimates.of_batch(batch)]
    return {
        "requests": sum(row["requests"] for row in rows),
        "prompt_tokens": sum(row["prompt_tokens"] for row in rows),
        "output_tokens": sum(row["output_tokens"] for row in rows),
        "cost_usd": f"{sum((Decimal(row['cost_usd']) for row in rows), Decimal(0)):f}",
        "profiles": rows,
    }


def _of_profile(row: RowMapping, use: Services) -> dict[str, Any]:
    """A document that was not read yet counts like the mean of those that were."""
    profile = use.profiles[row["profile"]]
    lane = next((use.lanes[name] for name in profile.lanes if name in use.lanes), None) or use.lane("")
    fresh = row["requests"] - row["done"]
    prompt = int(fresh * (row["mean_prompt"] or row["mean_document"] or 0))
    output = int(fresh * (row["mean_output"] or profile.max_output_tokens))
    return {
        "profile": profile.name,
        "lane": lane.name,
        "requests": row["requests"],
        "already_read": row["done"],
        "prompt_tokens": prompt,
        "output_tokens": output,
        "cost_usd": f"{cost(prompt, 0, output, lane.prices):f}",
        "basis": "readings with this profile" if row["mean_prompt"] else "lengths of documents and the profile's limit",
    }
