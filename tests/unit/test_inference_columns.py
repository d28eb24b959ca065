"""A field that takes a cell of a table's column may take what stands below the column's head."""

from typing import Any

from docmill.types import Part
from inference.cite import locate
from inference.grounding import ground
from tests.reading import part_of, table_part

COLUMN: dict[str, Any] = {
    "type": ["string", "null"],
    "x-source": "enum-of-table-column",
    "x-column": ["Item", "项目"],
}
SCHEMA = {"type": "object", "properties": {"item": COLUMN}}
ROWS = (("Item", "2024"), ("Revenue", "5,280.00"), ("Cost of items", "1,000.00"), ("", "2.00"))


def offered(part: Part, column: dict[str, Any] = COLUMN) -> list[str]:
    grounding = ground({"type": "object", "properties": {"item": column}}, part)
    return [one.text for key, found in grounding.candidates.items() if key.startswith("enum") for one in found]


def test_the_cells_below_the_head_are_offered_and_no_others() -> None:
    assert offered(table_part(ROWS)) == ["Revenue", "Cost of items"]


def test_the_head_is_known_in_each_language() -> None:
    assert offered(table_part([["项目", "金额"], ["营业收入", "1.00"], ["营业成本", "2.00"]])) == [
        "营业收入",
        "营业成本",
    ]


def test_a_head_with_more_words_will_do_where_none_is_the_word_alone() -> None:
    assert offered(table_part([["Table 1", ""], ["Line item", "2024"], ["Revenue", "1.00"]])) == ["Revenue"]


def test_a_column_of_figures_can_be_offered_too() -> None:
    assert offered(table_part(ROWS), {**COLUMN, "x-column": ["2024"]}) == ["5,280.00", "1,000.00", "2.00"]


def test_without_the_column_the_field_can_only_be_null() -> None:
    for part in (table_part([["Name", "2024"], ["Revenue", "1"]]), part_of("Item: Revenue")):
        assert offered(part) == []
        assert '{"item":null}' in ground(SCHEMA, part).grammar


def test_the_citation_of_a_cell_is_the_cell() -> None:
    grounding = ground(SCHEMA, table_part(ROWS, page=4))
    (citation,) = locate(grounding, SCHEMA, {"item": "Cost of items"})
    assert (citation.page, citation.table_id, citation.row, citation.col) == (4, "t1", 2, 0)


def test_a_word_of_the_column_that_stands_elsewhere_is_not_cited() -> None:
    grounding = ground(SCHEMA, table_part([*ROWS, ("Revenue 2025", "Revenue")]))
    (citation,) = locate(grounding, SCHEMA, {"item": "Revenue"})
    assert (citation.row, citation.col) == (1, 0)
