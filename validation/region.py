"""What is printed inside a box of a page."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from docmill.types import BBox, Printed

#: Points by which a box may miss the middle of a character that it is meant to hold.
_SLACK = 1.0


def text_in(pieces: Iterable[Printed], box: BBox) -> str:
    """The text of the pieces of one page inside a box, in their order; a line for each piece."""
    return "\n".join(text for printed in pieces if (text := inside(printed, box)))


def inside(printed: Printed, box: BBox) -> str:
    """The characters whose middle lies in the box; all of them where only the piece's own box is known."""
    if not printed.boxes:
        return printed.text
    boxes: NDArray[np.float32] = np.frombuffer(printed.boxes, dtype="<f4").reshape(-1, 4)
    x, y = (boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2
    held = (x >= box.x0 - _SLACK) & (x <= box.x1 + _SLACK) & (y >= box.y0 - _SLACK) & (y <= box.y1 + _SLACK)
    return "".join(printed.text[index] for index in np.flatnonzero(held & boxes.any(axis=1)))
