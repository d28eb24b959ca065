"""Lengths in the model's own tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from tokenizers import Tokenizer

#: Lengths of texts, in their order.
Count = Callable[[Sequence[str]], list[int]]


def counter(path: Path) -> Count:
    """A counter for the tokenizer in a model's folder, or in a tokenizer.json."""
    tokenizer = _load(path / "tokenizer.json" if path.is_dir() else path)

    def count(texts: Sequence[str]) -> list[int]:
        return [len(encoding) for encoding in tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    return count


@lru_cache(maxsize=4)
def _load(file: Path) -> Tokenizer:
    if not file.is_file():
        raise FileNotFoundError(f"no tokenizer at {file}; give the model's folder or its tokenizer.json")
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
