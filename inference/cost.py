"""What an attempt costs, in Decimal dollars.

On one's own GPU there is no price list, so prices are derived: a GPU that costs H dollars an hour and reads T tokens
a second reads a million tokens for H / 3600 / T * 1,000,000 dollars. Input, cached input and output have different
T: measure each on the lane, at the load it runs at.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

MILLION = Decimal(1_000_000)
_SECONDS_PER_HOUR = Decimal(3600)
#: The ledger keeps this many places: a single cached token on a cheap lane is still more than zero.
_PLACES = Decimal("1e-12")


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per million tokens; cached tokens are prompt tokens that the prefix cache held."""

    input: Decimal = Decimal(0)
    cached: Decimal = Decimal(0)
    output: Decimal = Decimal(0)

    def __post_init__(self) -> None:
        if min(self.input, self.cached, self.output) < 0:
            raise ValueError(f"a price is negative: {self}; prices are dollars per million tokens")


def cost(prompt_tokens: int, cached_tokens: int, output_tokens: int, prices: Prices) -> Decimal:
    """The price of one request; `prompt_tokens` includes the cached ones."""
    fresh = prompt_tokens - cached_tokens
    total = fresh * prices.input + cached_tokens * prices.cached + output_tokens * prices.output
    return (total / MILLION).quantize(_PLACES)


def price_per_million(gpu_hour_usd: Decimal, tokens_per_second: Decimal) -> Decimal:
    """The price of a million tokens on a GPU of this hourly price, at this measured speed."""
    if tokens_per_second <= 0:
        raise ValueError(
            f"{tokens_per_second} tokens a second gives no price; measure the lane's throughput under load"
        )
    return (gpu_hour_usd / _SECONDS_PER_HOUR / tokens_per_second * MILLION).quantize(_PLACES)
