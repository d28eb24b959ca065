"""The text of a piece as one line, and its language.

A value may run over a line break; a JSON string may not. So line breaks and control characters are taken out of the
text that a model may copy, and every character left remembers where it stands in the printed text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Language = Literal["en", "zh"]

#: Ideographs with their radicals and extensions.
HAN = r"\u2e80-\u2fdf\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
#: Everything that is set without spaces: ideographs, kana, hangul, CJK punctuation, full-width forms.
CJK = HAN + r"\u3000-\u30ff\u31f0-\u31ff\uac00-\ud7af\uff00-\uffef"
_HAN_CHARACTER = re.compile(f"[{HAN}]")
_CJK_CHARACTER = re.compile(f"[{CJK}]")
_LETTER = re.compile(r"[^\W\d_]")
#: A Chinese report is full of Latin names and codes; an English one has hardly a Chinese character.
_CHINESE_FROM = 0.2
#: A number that was wrapped in a narrow cell: the break stands between digits, or beside their separator.
_WRAPPED_NUMBER = re.compile(r"[\d.,，．][\n\r]+[\d.,，．]")

#: How far around a break its neighbours are looked for.
_NEAR = 8


@dataclass(frozen=True, slots=True)
class Plain:
    """One line of text; `source[i]` is the index of its i-th character in the printed text.

    `marked` is the same text with "\\n" where a space stands for a line break.
    """

    text: str
    source: Sequence[int]
    marked: str

    def printed_range(self, start: int, stop: int) -> tuple[int, int]:
        """The range of the printed text that shows `text[start:stop]`."""
        return self.source[start], self.source[stop - 1] + 1


def language_of(text: str) -> Language:
    """ "zh" if a fifth of the letters or more are Chinese, else "en"."""
    letters = len(_LETTER.findall(text))
    return "zh" if letters and len(_HAN_CHARACTER.findall(text)) >= _CHINESE_FROM * letters else "en"


def is_cjk(character: str) -> bool:
    """Whether the character belongs to a script (or its punctuation) that puts no spaces between words."""
    return _CJK_CHARACTER.match(character) is not None


def one_line(printed: str, *, cell: bool = False) -> Plain:
    """The printed text without line breaks and control characters.

    A break becomes a space, or nothing where no space is written: between Chinese characters, and inside a number
    that a table cell was too narrow for.
    """
    if printed.isprintable():
        return Plain(printed, range(len(printed)), printed)
    characters: list[str] = []
    source: list[int] = []
    for index in range(len(printed)):
        shown = _shown(printed, index, cell=cell)
        if shown and not (shown.isspace() and (not characters or characters[-1].isspace())):
            characters.append(shown)
            source.append(index)
    marked = "".join(characters)
    return Plain(marked.replace("\n", " "), source, marked)


def _shown(printed: str, index: int, *, cell: bool) -> str:
    character = printed[index]
    if character == "\t":
        return " "
    if character in "\n\r\v\f\u2028\u2029":
        return "" if _joins(printed, index, cell=cell) else "\n"
    return "" if unicodedata.category(character) in {"Cc", "Cf", "Cs"} else character


def _joins(printed: str, index: int, *, cell: bool) -> bool:
    before, after = printed[max(0, index - _NEAR) : index].rstrip()[-1:], printed[index : index + _NEAR].lstrip()[:1]
    if cell and before and after and _WRAPPED_NUMBER.match(f"{before}\n{after}"):
        return True
    return bool(before and after and is_cjk(before) and is_cjk(after))
