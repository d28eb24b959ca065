"""The reading of a document as that of another with the same text: its values are found anew, or it is not used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from docmill.types import Extraction, Part, Usage
from inference.cite import leaves, locate
from inference.grounding import ground
from inference.profile import Profile

#: The finish reason of an extraction that no model was asked for.
SHARED: Final = "shared"


def reuse(earlier: Extraction, parts: Sequence[Part], profile: Profile) -> Extraction | None:
    """The earlier result with this document's pages and boxes, at no cost; None unless all grounded values stand here.

    A document in several parts is read anew: which of two places a value was taken from is known to its part alone.
    """
    if len(parts) != 1 or earlier.parts != 1:
        return None
    citations = locate(ground(profile.schema, parts[0]), profile.schema, earlier.result)
    wanted = [leaf.path for leaf in leaves(profile.schema, earlier.result)]
    if [citation.path for citation in citations] != wanted:
        return None
    shared = replace(earlier, citations=citations, usage=Usage(), finish_reason=SHARED)
    return replace(shared, findings=(), omitted=(), longest_output=0)
