"""Tables without rules are read by the layout model, whose loading takes seconds."""

from __future__ import annotations

from pathlib import Path

from tests import pdfs
from tests.parsing import parsed, rows

STATEMENT = [
    ["Item", "2024", "2023"],
    ["Cash and deposits", "13,253,329.50", "-1,250.40"],
    ["Receivables", "(548,290.00)", "3.30"],
    ["Total", "12,705,039.50", "0.00"],
]


def test_a_borderless_table_is_read_by_the_layout_model(tmp_path: Path) -> None:
    prepared = parsed(pdfs.table_pdf(STATEMENT, ruled=False), tmp_path)
    assert rows(prepared) == STATEMENT
    assert prepared.tables[0].reader == "layout"
