"""The shingles of a text: runs of words, or of characters where it is Chinese, as 32-bit hashes, without a loop.

The hashes are stored and compared with those of later documents: another way to make them means another index.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from docmill.likeness import MOST_SHINGLES
from docmill.spelling import search_copy

#: Words, or Chinese characters, to a shingle.
SHINGLE: Final = 5
#: From this share of Chinese on, shingles are characters: it has no spaces.
_CJK_SHARE: Final = 0.2

_NOT_WORD: Final = re.compile(r"[\W_]+")
#: Kana, Han, and compatibility ideographs.
_CJK: Final = ((0x3040, 0x30FF), (0x3400, 0x9FFF), (0xF900, 0xFAFF))
_SPACE: Final = np.uint32(32)

Hashes = np.ndarray[Any, np.dtype[np.uint64]]
Codes = np.ndarray[Any, np.dtype[np.uint32]]

#: splitmix64 (Steele, Lea, Flood 2014): its odd constants and shifts.
_STEP, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def shingle_hashes(text: str) -> bytes:
    """The text's set of shingles as sorted little-endian uint32; empty for one shorter than a shingle.

    Case, spaces, punctuation and spellings that print does not show make no difference.
    """
    codes = np.frombuffer(
        _NOT_WORD.sub(" ", search_copy(text).casefold()).strip().encode("utf-32-le", "replace"), "<u4"
    )
    solid = codes[codes != _SPACE]
    units = _mixed(solid.astype(np.uint64)) if _is_cjk(solid) else _words(codes)
    if len(units) < SHINGLE:
        return b""
    runs = len(units) - SHINGLE + 1
    hashes = np.zeros(runs, dtype=np.uint64)
    for place in range(SHINGLE):
        hashes = hashes * _STEP + units[place : place + runs]
    found = np.sort((_mixed(hashes) >> np.uint64(32)).astype("<u4"))
    return bytes(found[np.append(True, found[1:] != found[:-1])][:MOST_SHINGLES].data)


def _is_cjk(codes: Codes) -> bool:
    count = sum(int(np.count_nonzero((codes >= first) & (codes <= last))) for first, last in _CJK)
    return count > _CJK_SHARE * len(codes)


def _words(codes: Codes) -> Hashes:
    """A hash for each word: its characters, each mixed with its place, summed."""
    if not len(codes):
        return np.zeros(0, dtype=np.uint64)
    begins = np.concatenate(([0], np.flatnonzero(codes == _SPACE) + 1))
    lengths = np.diff(np.append(begins, len(codes)))
    places = np.arange(len(codes)) - np.repeat(begins, lengths)
    mixed = _mixed(codes.astype(np.uint64) | (places.astype(np.uint64) << np.uint64(32)))
    # The space behind a word is no part of it: the last word has none.
    return _mixed(np.add.reduceat(np.where(codes == _SPACE, np.uint64(0), mixed), begins))


def _mixed(values: Hashes) -> Hashes:
    """Every bit of a value in every bit of its hash; arithmetic is modulo 2^64."""
    values = values + _STEP
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))
