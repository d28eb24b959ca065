"""Near-duplicates: MinHash bands propose, the exact share of common shingles confirms, other facts veto.

Documents of one template that differ in a number, a date or a name are different documents. Who compares is the
store: it alone can check and insert in one step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from docmill.likeness import LIKE_NOTHING, Likeness
from docmill.types import BlockKind, Page
from preprocess.facts import facts
from preprocess.shingles import shingle_hashes

Column = np.ndarray[Any, np.dtype[np.uint32]]

PERMUTATIONS: Final = 128
#: Never to be mixed with another: a signature stored with one scheme means nothing in another.
SCHEME: Final = "affine32"
#: 20 bands of 6 rows find 99.8 % of pairs with a likeness of 0.8 (9 of 13, the default, find 40 %).
BANDS: Final = 20
ROWS: Final = 6
#: Shingles that are permuted at once: their 128 permutations stay in the processor's cache.
_AT_ONCE: Final = 256

_APART: Final = frozenset({BlockKind.HEADER, BlockKind.FOOTER, BlockKind.ANNOTATION})


def likeness(pages: Sequence[Page], signature: bytes) -> Likeness:
    """What is compared of a document that was read; `signature` is the one that its parser made."""
    return likeness_of(comparable_text(pages), signature)


def likeness_of(text: str, sketch: bytes | None = None) -> Likeness:
    """What is compared of a text. One with less than a shingle is like no other."""
    shingles = shingle_hashes(text)
    if not shingles:
        return LIKE_NOTHING
    return Likeness(bands(_minima(shingles) if sketch is None else sketch), shingles, facts(text))


def comparable_text(pages: Sequence[Page]) -> str:
    """What of a document is compared: its text and its cells, without headers, footers and notes."""
    texts: list[str] = []
    for page in pages:
        for block in page.blocks:
            if block.table is not None:
                texts.extend(cell.text for cell in block.table.cells if cell.text)
            elif block.kind not in _APART:
                texts.append(block.printed.text)
    return "\n\n".join(texts)


def signature(text: str) -> bytes:
    """128 packed little-endian uint32; empty for a text with less than one shingle."""
    return _minima(shingle_hashes(text))


def bands(signature: bytes) -> tuple[int, ...]:
    """One signed 64-bit hash for each band: documents that share one are worth comparing. The band's index is in it."""
    width = 4 * ROWS
    if not signature:
        return ()
    return tuple(_band(index, signature[index * width : (index + 1) * width]) for index in range(BANDS))


def _minima(shingles: bytes) -> bytes:
    if not shingles:
        return b""
    hashes, (factors, terms) = np.frombuffer(shingles, dtype="<u4"), _permutations()
    minima = np.full(PERMUTATIONS, np.iinfo(np.uint32).max, dtype="<u4")
    for start in range(0, len(hashes), _AT_ONCE):
        permuted = factors * hashes[start : start + _AT_ONCE] + terms
        np.minimum(minima, permuted.min(axis=1), out=minima)
    return minima.tobytes()


@cache
def _permutations() -> tuple[Column, Column]:
    """datasketch's; its own update takes hashes one by one, and costs more than all of the rest."""
    from datasketch import MinHash  # loads scipy and redis: not for those who only compare

    factors, terms = MinHash(num_perm=PERMUTATIONS, scheme=SCHEME).permutations
    return factors.reshape(-1, 1), terms.reshape(-1, 1)


def _band(index: int, rows: bytes) -> int:
    digest = hashlib.blake2b(index.to_bytes(2, "little") + rows, digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
