"""Is it a PDF at all? Decided from the content, cheap enough for the calling process."""

from __future__ import annotations

from typing import Final

from docmill.errors import EmptyFile, NotAPdf

HEADER: Final = b"%PDF-"

#: Readers accept junk before the header (an HTTP header, a mail banner) up to here; ISO 32000 annex H.
HEADER_WITHIN: Final = 1024


def check_bytes(data: bytes) -> None:
    """Raise EmptyFile or NotAPdf for what no parser needs to see."""
    if not data:
        raise EmptyFile("the file has 0 bytes; submit it again once it is written")
    if HEADER not in data[:HEADER_WITHIN]:
        raise NotAPdf(
            f"the file of {len(data)} bytes starts with {data[:8]!r}, and no %PDF- header is in its first "
            f"{HEADER_WITHIN} bytes; submit a PDF"
        )
