"""Several readings become one."""

from typing import Any

from inference.evidence import strength
from inference.merge import Merged, Origin, Standing, merge

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


# ---------------------------------------------------------------- evidence and conflicts

NUMBER = {"type": ["string", "null"], "x-source": "number", "x-labels": ["total assets"]}
PAGES = (
    "Total assets 5,280",
    "The subsidiary has 1,250 of these.",
    "Total assets: 5280",
    "its total assets\n(in thousands)\n7,000",
)


def weighed(*readings: tuple[str, str | None]) -> Merged:
    """Texts of parts, each with the number that was read from it."""

    def weigh(origin: Origin, name: str, schema: Any, value: Any) -> Standing:
        return Standing(strength(readings[origin.reading][0], value, schema["x-labels"]), origin.reading)

    return merge({"properties": {"x": NUMBER}}, [{"x": value} for _, value in readings], weigh)


def test_a_value_beside_its_label_wins_over_one_that_came_first() -> None:
    result = weighed((PAGES[1], "1,250"), (PAGES[3], "7,000"), (PAGES[0], "5,280"))
    assert result.value == {"x": "5,280"}
    (conflict,) = result.conflicts
    assert (conflict.path, conflict.values, conflict.tied) == ("/x", ("5,280", "7,000", "1,250"), False)


def test_of_values_that_stand_equally_well_the_one_in_more_places_wins() -> None:
    other = ("Total assets 9,999", "9,999")
    assert weighed(other, (PAGES[0], "5,280"), (PAGES[2], "5280")).value == {"x": "5,280"}


def test_a_tie_goes_to_the_first_and_is_marked_as_one() -> None:
    result = weighed((PAGES[0], "5,280"), ("Total assets 9,999", "9,999"))
    assert result.value == {"x": "5,280"}
    assert result.conflicts[0].tied


def test_the_same_number_spelled_otherwise_is_no_conflict() -> None:
    result = weighed((PAGES[0], "5,280"), (PAGES[2], "5280"), ("Total assets ５，２８０．00", "５，２８０．00"))
    assert (result.value, result.conflicts) == ({"x": "5,280"}, ())


def test_items_of_a_list_that_are_spelled_otherwise_are_one() -> None:
    schema = {"type": "array", "items": TEXT, "maxItems": 9}
    assert merged(schema, ["Harbour Ltd"], ["HARBOUR  LTD", "５，２８０", "5280.00"]) == ["Harbour Ltd", "５，２８０"]


def test_what_a_list_has_no_room_for_is_counted() -> None:
    schema = {"properties": {"x": {"type": "array", "items": TEXT, "maxItems": 2}}}
    result = merge(schema, [{"x": ["a", "b"]}, {"x": ["b", "c", "d"]}])
    assert [(one.path, one.items) for one in result.dropped] == [("/x", 2)]


def test_free_text_and_how_severe_things_look_may_differ_between_parts() -> None:
    schema = {
        "properties": {
            "why": {"type": "string", "maxLength": 40},
            "level": {"enum": ["low", "high"], "x-severity": True},
        }
    }
    assert merge(schema, [{"why": "a", "level": "low"}, {"why": "b", "level": "high"}]).conflicts == ()


def test_words_from_a_list_that_differ_are_a_conflict() -> None:
    result = merge({"properties": {"x": {"enum": ["CNY", "USD"]}}}, [{"x": "USD"}, {"x": "CNY"}, {"x": "CNY"}])
    assert (result.value, result.conflicts[0].tied) == ({"x": "CNY"}, False)
