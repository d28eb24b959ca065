"""What an attempt costs, in Decimal dollars.

On one's own GPU there is no price list: what is paid for is the hour. `charge` takes an attempt's share of the GPU's
time (`meter.py`) at the lane's price for an hour. Before a run only tokens are known, so `estimate` needs prices per
million of them: a GPU that costs H dollars an hour and reads T tokens a second reads a million for H / 3600 / T *
1,000,000 dollars. Input, cached input and output have different T: measure each on the lane, at the load it runs at.
A lane without a price for an hour (somebody else's server) is charged by its tokens.
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
    """US dollars per million tokens, and for an hour of one GPU; cached tokens are those that the prefix cache held."""

    input: Decimal = Decimal(0)
    cached: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    gpu_hour: Decimal = Decimal(0)

    def __post_init__(self) -> None:
        if min(self.input, self.cached, self.output, self.gpu_hour) < 0:
            raise ValueError(f"a price is negative: {self}; prices are dollars per million tokens, or for a GPU's hour")
        if self.gpu_hour and not (self.input and self.output):
            raise ValueError(
                f"a GPU's hour costs {self.gpu_hour} and a token nothing: give input and output prices too, from the"
                " lane's measured speed; estimates and caps are made with them"
            )


def cost(prompt_tokens: int, cached_tokens: int, output_tokens: int, prices: Prices) -> Decimal:
    """The price of one request by its tokens; `prompt_tokens` includes the cached ones."""
    fresh = prompt_tokens - cached_tokens
    total = fresh * prices.input + cached_tokens * prices.cached + output_tokens * prices.output
    return (total / MILLION).quantize(_PLACES)


def estimate(prompt_tokens: int, output_tokens: int, prices: Prices) -> Decimal:
    """What one request will cost at most, before it is run: nothing is in the cache, all of the output is written."""
    return cost(prompt_tokens, 0, output_tokens, prices)


def affordable_prompt(limit_usd: Decimal, output_tokens: int, prices: Prices) -> int | None:
    """The longest prompt whose estimate is within a limit; None: any, below zero: not even the output."""
    if not prices.input or limit_usd.is_infinite():
        return None if output_tokens * prices.output <= limit_usd * MILLION else -1
    return int((limit_usd * MILLION - output_tokens * prices.output) // prices.input)


def gpu_time(gpu_seconds: Decimal, gpus: int, prices: Prices) -> Decimal:
    """The price of a share of an engine's time; the engine has so many GPUs."""
    return (gpu_seconds * gpus * prices.gpu_hour / _SECONDS_PER_HOUR).quantize(_PLACES)


def price_per_million(gpu_hour_usd: Decimal, tokens_per_second: Decimal) -> Decimal:
    """The price of a million tokens on a GPU of this hourly price, at this measured speed."""
    if tokens_per_second <= 0:
        raise ValueError(
            f"{tokens_per_second} tokens a second gives no price; measure the lane's throughput under load"
        )
    return (gpu_hour_usd / _SECONDS_PER_HOUR / tokens_per_second * MILLION).quantize(_PLACES)
