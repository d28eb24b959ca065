"""How alike two documents are by their MinHash signatures (`PreparedDocument.signature`)."""

from __future__ import annotations

import numpy as np


def similarity(one: bytes, other: bytes) -> float:
    """Estimated Jaccard index: the share of equal minima (Broder 1997). 0 where a signature is empty."""
    if not one or len(one) != len(other):
        return 0.0
    return float(np.mean(np.frombuffer(one, dtype="<u4") == np.frombuffer(other, dtype="<u4")))
