"""Several readings become one."""

from typing import Any

from inference.merge import Origin, merge

TEXT = {"type": ["string", "null"], "x-source": "verbatim"}
ITEM = {"type": "object", "properties": {"label": TEXT, "evidence": {"type": ["string", "null"], "x-source": "quote"}}}


def merged(schema: dict[str, Any], *values: Any) -> Any:
    return merge({"properties": {"x": schema}}, [{"x": value} for value in values]).value["x"]


def test_the_first_part_that_has_a_value_gives_it() -> None:
    result = merge({"properties": {"x": TEXT}}, [{"x": None}, {"x": "b"}, {"x": "c"}])
    assert result.value == {"x": "b"}
    assert result.origins == {"/x": Origin(1, "/x")}


def test_a_value_that_no_part_has_is_null_and_has_no_origin() -> None:
    result = merge({"properties": {"x": TEXT}}, [{"x": None}, {"x": None}])
    assert (result.value, result.origins) == ({"x": None}, {})


def test_lists_are_joined_without_repeats_up_to_their_maximum() -> None:
    schema = {"type": "array", "items": TEXT, "maxItems": 3}
    assert merged(schema, ["a", "b"], ["b", "c", "d"]) == ["a", "b", "c"]


def test_items_that_differ_in_their_evidence_only_are_one() -> None:
    schema = {"type": "array", "items": ITEM, "maxItems": 9}
    one, again = {"label": "a", "evidence": "page one"}, {"label": "a", "evidence": "page two"}
    assert merged(schema, [one], [again]) == [one]


def test_the_paths_of_list_items_lead_to_the_part_they_came_from() -> None:
    schema = {"properties": {"x": {"type": "array", "items": ITEM, "maxItems": 9}}}
    a, b = {"label": "a", "evidence": None}, {"label": "b", "evidence": None}
    result = merge(schema, [{"x": [a]}, {"x": [a, b]}])
    assert result.origins == {"/x/0/label": Origin(0, "/x/0/label"), "/x/1/label": Origin(1, "/x/1/label")}


def test_of_words_the_most_frequent_wins_and_a_tie_goes_to_the_first() -> None:
    schema = {"enum": ["CNY", "USD", None]}
    assert merged(schema, "USD", "CNY", "CNY", None) == "CNY"
    assert merged(schema, "USD", "CNY") == "USD"


def test_one_part_that_is_alarmed_is_not_outvoted() -> None:
    assert merged({"enum": ["low", "medium", "high"], "x-severity": True}, "low", "high", "low", "low") == "high"


def test_an_object_inside_is_merged_field_by_field() -> None:
    schema = {"type": "object", "properties": {"a": TEXT, "b": TEXT}}
    assert merged(schema, {"a": "1", "b": None}, {"a": "2", "b": "3"}) == {"a": "1", "b": "3"}
