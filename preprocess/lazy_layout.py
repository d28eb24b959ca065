"""PyMuPDF without its layout models, until a page needs them (`grids.layout_grids`)."""

from __future__ import annotations

import importlib
import sys


def leave_layout_for_later() -> None:
    """To be called before PyMuPDF is first imported, which loads the models: a second and 300 MB."""
    sys.modules["pymupdf.layout"] = None  # type: ignore[assignment]  # an import of it then fails, which PyMuPDF allows
    importlib.import_module("pymupdf")
    del sys.modules["pymupdf.layout"]
