"""A cell's text as Markdown and as HTML: nothing in it may be taken for markup, and little is escaped for nothing."""

from __future__ import annotations

import html
import re
from typing import Final

_SPECIAL: Final = re.compile(r"[\\`*_~<\[&|\n]")
_BACKSLASH: Final = re.compile(r"\\(?=[!-/:-@\[-`{-~]|$)")
_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
#: Signs that mean something in pairs: emphasis, strike-through, code.
_PAIRED: Final = "`*_~"


def markdown_cell(text: str) -> str:
    """The text for a cell of a pipe table."""
    if not _SPECIAL.search(text):
        return text
    out = _BACKSLASH.sub(r"\\\\", text.replace("\n", " ")).replace("|", "\\|")
    for sign in _PAIRED:
        out = out.replace(sign, f"\\{sign}") if out.count(sign) > 1 else out
    if "](" in out:
        out = out.replace("[", "\\[")
    out = _TAG.sub(r"\<", out)
    if html.unescape(text) != text:
        out = out.replace("&", "&amp;")
    return f"{out} " if out.endswith("\\") else out


def html_cell(text: str) -> str:
    """The text for a cell of an HTML table."""
    if not _SPECIAL.search(text):
        return text
    out = text.replace("\n", " ")
    if html.unescape(out) != out:
        out = out.replace("&", "&amp;")
    return _TAG.sub("&lt;", out)
