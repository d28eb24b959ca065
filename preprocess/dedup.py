"""Near-duplicates: a MinHash signature proposes, the estimated likeness confirms, the fingerprint of facts vetoes.

Documents of one template that differ in a number, a date or a name are different documents; `fingerprint` tells them
apart where the signature cannot.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from docmill.spelling import search_copy
from docmill.types import BlockKind, Page

PERMUTATIONS: Final = 128
#: Never to be mixed with another: a signature stored with one scheme means nothing in another.
SCHEME: Final = "affine32"
#: 20 bands of 6 rows find 99.8 % of pairs with a likeness of 0.8 (9 of 13, the default, find 40 %).
BANDS: Final = 20
ROWS: Final = 6
#: Words, or Chinese characters, to a shingle.
SHINGLE: Final = 5
#: From this share of Chinese on, shingles are characters: it has no spaces.
_CJK_SHARE: Final = 0.2

_APART: Final = frozenset({BlockKind.HEADER, BlockKind.FOOTER, BlockKind.ANNOTATION})
_NOT_WORD: Final = re.compile(r"[\W_]+")
_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_TOKEN_WITH_DIGIT: Final = re.compile(r"[-+]?[A-Za-z0-9][A-Za-z0-9.,/:\-]*[A-Za-z0-9%]|[0-9]%?")
_DATE: Final = re.compile(r"(\d{4})\s*[年./-]\s*(\d{1,2})\s*[月./-]\s*(\d{1,2})\s*日?")
_ORGANISATION: Final = re.compile(
    r"[\u4e00-\u9fff（）()·]{2,30}?(?:公司|银行|集团|事务所|合伙企业|基金|中心|大学|医院|委员会)"
)
_LABELLED: Final = re.compile(
    r"(?:甲方|乙方|丙方|丁方|姓名|户名|借款人|出借人|贷款人|担保人|受托人|委托人|法定代表人|客户|供应商|买方|卖方)"
    r"(?:[（(][^）)]{1,10}[)）])?\s*[:：]\s*([^\s，,。；;（(]{2,30})"
)
_CAPITALISED: Final = re.compile(r"(?<![.!?]\s)(?<![\n“\"(])\b[A-Z][a-zA-Z&'’-]+(?:\s+[A-Z][a-zA-Z&'’.-]+)*")


def comparable_text(pages: Sequence[Page]) -> str:
    """What of a document is compared: its text and its cells, without headers, footers and notes."""
    texts: list[str] = []
    for page in pages:
        for block in page.blocks:
            if block.table is not None:
                texts.extend(cell.text for cell in block.table.cells if cell.text)
            elif block.kind not in _APART:
                texts.append(block.printed.text)
    return "\n".join(texts)


def signature(text: str) -> bytes:
    """128 packed little-endian uint32; empty for a text with less than one shingle, which is like no other."""
    shingles = list(set(_shingles(_normal(text))))
    if not shingles:
        return b""
    from datasketch import MinHash  # loads scipy and redis: not for those who only compare signatures

    sketch = MinHash(num_perm=PERMUTATIONS, scheme=SCHEME, hashfunc=_hash)
    sketch.update_batch(shingles)
    return np.asarray(sketch.hashvalues, dtype="<u4").tobytes()


def bands(signature: bytes) -> tuple[int, ...]:
    """One signed 64-bit hash for each band: documents that share one are worth comparing. The band's index is in it."""
    width = 4 * ROWS
    if not signature:
        return ()
    return tuple(_band(index, signature[index * width : (index + 1) * width]) for index in range(BANDS))


def _band(index: int, rows: bytes) -> int:
    digest = hashlib.blake2b(index.to_bytes(2, "little") + rows, digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def fingerprint(text: str) -> frozenset[str]:
    """Numbers, dates, identifiers and names in one spelling: documents may share work only if these are equal."""
    plain = search_copy(text)
    dates = {f"{int(year):04}-{int(month):02}-{int(day):02}" for year, month, day in _DATE.findall(plain)}
    undated = _DATE.sub(" ", plain)
    tokens = {_spelling(token) for token in _TOKEN_WITH_DIGIT.findall(undated) if any(map(str.isdigit, token))}
    names = {match[0].casefold() for match in _CAPITALISED.finditer(plain)}
    parties = {*_ORGANISATION.findall(plain), *_LABELLED.findall(plain)}
    return frozenset(dates | tokens | names | parties)


def _spelling(token: str) -> str:
    return re.sub(r"(?<=\d),(?=\d{3})", "", token).casefold()


def _normal(text: str) -> str:
    return _NOT_WORD.sub(" ", search_copy(text).casefold()).strip()


def _shingles(text: str) -> Iterator[bytes]:
    """Runs of words, or of characters where the text is Chinese."""
    solid = text.replace(" ", "")
    if len(_CJK.findall(solid)) > _CJK_SHARE * len(solid):
        for start in range(len(solid) - SHINGLE + 1):
            yield solid[start : start + SHINGLE].encode()
        return
    words = text.split()
    for start in range(len(words) - SHINGLE + 1):
        yield " ".join(words[start : start + SHINGLE]).encode()


def _hash(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=4).digest(), "little")
