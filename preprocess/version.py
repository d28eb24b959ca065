"""Which parser read a document: what is stored under another name is read again."""

from __future__ import annotations

from importlib.metadata import version

#: Raise the first number when the same bytes would be read differently.
PARSER = f"docmill-2/pymupdf-{version('pymupdf')}"
