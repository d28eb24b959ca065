"""What the constraint costs: to write it, to compile it, and in tokens a second, by the number of candidates."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from statistics import median
from typing import Any, Final

import llguidance
import llguidance.hf
from transformers import AutoTokenizer

from docmill.types import Part, Piece, Printed
from inference.engine import Request
from inference.engines.vllm_local import LocalEngine
from inference.grounding import ground
from inference.profile import without_extensions

#: Candidates of a request, and whether its fields have labels, by which too many are narrowed.
SIZES: Final = ((10, True), (1_000, True), (10_000, True), (10_000, False))
COLUMNS: Final = (
    *("constraint", "candidates", "grammar KB", "write ms", "compile ms", "mask ms"),
    *("tokens", "tokens/s", "of schema only"),
)
AT_ONCE: Final = 16
_TOKENS: Final = 40
#: Only the first lines are shown to the model, so that the prompts are of one length.
_SHOWN: Final = 10
_DEADLINE_S: Final = 600.0


def schema(*, labels: bool) -> dict[str, Any]:
    """A name and four amounts."""
    words: dict[str, Any] = {"x-labels": ["net fee"]} if labels else {}
    amount = {"type": "string", "x-source": "amount", "maxLength": 16}
    amounts = {"type": "array", "minItems": 4, "maxItems": 4, "items": amount, **words}
    name = {"type": ["string", "null"], "x-source": "verbatim", "maxLength": 24, **words}
    return {"type": "object", "properties": {"name": name, "amounts": amounts}}


async def speed(engine: LocalEngine, model: str) -> list[list[Any]]:
    """A row without grounding, then one for each size, each with its ratio to the first."""
    tokenizer = llguidance.hf.from_tokenizer(AutoTokenizer.from_pretrained(model))
    few = _parts(SIZES[0][0])
    await _run(engine, _requests(few, None))  # the first of a process compiles
    rows: list[list[Any]] = [["schema only", *("-",) * 5, *await _run(engine, _requests(few, None))]]
    for size, labels in SIZES:
        parts = _parts(size)
        grammars, written_ms = _written(parts, labels=labels)
        compiled_ms, mask_ms = _compiled(grammars, tokenizer)
        ran = await _run(engine, _requests(parts, grammars))
        how = "grounded" if labels else "grounded, no labels"
        rows.append([how, f"{size:,}", len(grammars[0]) / 1000, written_ms, compiled_ms, mask_ms, *ran])
    return [[*row, row[-1] / rows[0][-1]] for row in rows]


def _parts(size: int) -> list[Part]:
    return [_part(size, seed) for seed in range(AT_ONCE)]


def _part(size: int, seed: int) -> Part:
    """Lines with an amount each; all candidates are the grammar's, the first few the model's."""
    rng = random.Random(seed)
    kinds = ("Net fee", *["Fee"] * 9)
    lines = [
        f"{kinds[i % 10]} of branch {_letters(i)}: USD {rng.randrange(10**6, 10**9) / 100:,.2f}" for i in range(size)
    ]
    return Part("\n".join(lines[:_SHOWN]), 0, tuple(Piece(Printed(line), 1) for line in lines))


def _letters(number: int) -> str:
    """A name without a digit: the amounts alone are candidates."""
    return "".join(chr(65 + int(digit)) for digit in str(number))


def _written(parts: Sequence[Part], *, labels: bool) -> tuple[list[str], float]:
    times, grammars = [], []
    for part in parts:
        before = time.perf_counter()
        grammars.append(ground(schema(labels=labels), part).grammar)
        times.append(time.perf_counter() - before)
    return grammars, 1000 * median(times)


def _compiled(grammars: Sequence[str], tokenizer: Any) -> tuple[float, float]:
    """Milliseconds to compile a grammar, and to make the mask of a token, as the engine does for each."""
    compiled, masks = [], []
    for grammar in grammars[:4]:
        before = time.perf_counter()
        matcher = llguidance.LLMatcher(tokenizer, grammar)
        compiled.append(time.perf_counter() - before)
        answer = grammar.partition("\n")[0].removeprefix("// example: ")
        masks += _masks(matcher, tokenizer.tokenize_str(answer))
    return 1000 * median(compiled), 1000 * median(masks)


def _masks(matcher: Any, tokens: Sequence[int]) -> list[float]:
    times = []
    for token in tokens:
        before = time.perf_counter()
        matcher.compute_bitmask()
        times.append(time.perf_counter() - before)
        matcher.consume_token(token)
    return times


def _requests(parts: Sequence[Part], grammars: Sequence[str] | None) -> list[Request]:
    return [_request(part, grammars[n] if grammars else None, n) for n, part in enumerate(parts)]


def _request(part: Part, grammar: str | None, number: int) -> Request:
    plain = None if grammar else without_extensions(schema(labels=False))
    asked = f"Copy the name of the fee and four amounts as JSON.\n{part.text}"
    return Request(
        f"speed.{number}", "You read lists.", asked, _TOKENS, 2, _DEADLINE_S, grammar=grammar, json_schema=plain
    )


async def _run(engine: LocalEngine, requests: Sequence[Request]) -> list[float]:
    """Output tokens, and how many of them a second, from the first request in to the last answer."""
    before = time.perf_counter()
    completions = await asyncio.gather(*map(engine.submit, requests))
    seconds = time.perf_counter() - before
    tokens = sum(one.output_tokens for one in completions)
    return [tokens, tokens / seconds]
