"""A verdict on a result: planted faults are found by their rules, what is right passes, values come out normalised."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from docmill.types import BBox, Citation, FieldValue, Outcome, PreparedDocument, Printed, Verdict
from validation.examples import cite, extracted, typed
from validation.facts import facts_of
from validation.grid import Grid
from validation.rules import load_rulesets
from validation.validate import validate

COMMON = load_rulesets()["common"]

SCHEMA = {
    "type": "object",
    "properties": {
        "company": {"type": ["string", "null"], "x-source": "verbatim"},
        "date": {"type": ["string", "null"], "x-source": "date"},
        "account": {"type": ["string", "null"], "x-source": "id"},
        "amounts": {"type": "array", "items": {"$ref": "#/$defs/amount"}},
        "evidence": {"type": ["string", "null"], "x-source": "quote"},
        "level": {"enum": ["low", "high"]},
        "count": {"type": "integer"},
        "summary": {"type": "string"},
    },
    "$defs": {
        "amount": {
            "type": "object",
            "properties": {
                "label": {"type": "string", "x-source": "verbatim"},
                "amount": {"type": "string", "x-source": "number"},
            },
        }
    },
}

DOCUMENT = typed(
    "北方控股有限公司 2024 年年度报告\n"
    "项目 | 2024年 | 2023年\n"
    "营业收入 | 12,345.60 | 11,208.75\n"
    "净利润 | (2,468.50) | 987.30\n"
    "毛利率 | 23.4% | 25.1%",
    "Northwind Holdings Ltd owes 5,280,000 under account 6222-0202-0011 since 15 March 2024.\n"
    "依据《反洗钱法》第二十条，请于二〇二四年六月一日前回复。",
)

FACTS = facts_of(DOCUMENT)

RESULT: dict[str, Any] = {
    "company": "Northwind Holdings Ltd",
    "date": "15 March 2024",
    "account": "6222-0202-0011",
    "amounts": [
        {"label": "营业收入", "amount": "12,345.60"},
        {"label": "净利润", "amount": "(2,468.50)"},
        {"label": "毛利率", "amount": "23.4%"},
    ],
    "evidence": "owes 5,280,000 under account",
    "level": "high",
    "count": 3,
    "summary": "The debtor is late.",
}


def cited(result: dict[str, Any], document: PreparedDocument = DOCUMENT) -> tuple[Citation, ...]:
    facts = FACTS if document is DOCUMENT else facts_of(document)
    return tuple(cite(result, SCHEMA, facts, {}))


def judged(
    result: dict[str, Any], citations: tuple[Citation, ...] | None = None, document: PreparedDocument = DOCUMENT
) -> Verdict:
    given = cited(result, document) if citations is None else citations
    return validate(extracted(result, given), document, schema=SCHEMA, ruleset=COMMON)


def rules(verdict: Verdict) -> set[str]:
    return {finding.rule for finding in verdict.findings}


def field(verdict: Verdict, path: str) -> FieldValue:
    return next(value for value in verdict.fields if value.path == path)


def with_amount(text: str) -> dict[str, Any]:
    return RESULT | {"amounts": [{"label": "营业收入", "amount": text}]}


def scaled(
    document: PreparedDocument, scale: int | None, unit: str | None = "CNY", header_rows: int = 1
) -> PreparedDocument:
    """The document with a scale and a unit on its tables."""
    pages = []
    for page in document.pages:
        blocks = [
            replace(
                block,
                table=replace(block.table, scale=Decimal(scale) if scale else None, unit=unit, header_rows=header_rows),
            )
            if block.table
            else block
            for block in page.blocks
        ]
        pages.append(replace(page, blocks=tuple(blocks)))
    return replace(document, pages=tuple(pages))


# ---------------------------------------------------------------- what is right


def test_a_result_that_copies_what_is_printed_passes() -> None:
    verdict = judged(RESULT)
    assert verdict.findings == ()
    assert verdict.outcome == Outcome.PASS
    assert verdict.ruleset == "common@2"


@pytest.mark.parametrize("text", ["12345.60", "12,345.6", "１２，３４５．６０", "12.345,60", "12 345.60", "¥12,345.60"])
def test_another_style_of_the_same_number_is_the_same_number(text: str) -> None:
    assert rules(judged(with_amount(text))) <= {"citation-missing"}


@pytest.mark.parametrize("text", ["2024-03-15", "2024年3月15日", "March 15, 2024", "2024年6月1日"])
def test_another_style_of_the_same_date_is_the_same_date(text: str) -> None:
    assert rules(judged(RESULT | {"date": text})) <= {"citation-missing"}


def test_a_name_that_runs_over_a_line_is_found() -> None:
    document = typed("borrower: Northwind\nHoldings Ltd of Leeds")
    verdict = judged({"company": "Northwind Holdings Ltd"}, (), document)
    assert "text-ungrounded" not in rules(verdict)


def test_nulls_claim_nothing() -> None:
    nothing = dict.fromkeys(("company", "date", "account", "evidence")) | {
        "amounts": [], "level": "low", "count": 0, "summary": "Nothing was found."
    }  # fmt: skip
    assert judged(nothing).findings == ()


# ---------------------------------------------------------------- planted faults


def swap(text: str) -> str:
    return text.replace("12,345", "21,345")


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("12,345.61", "number-ungrounded"),
        ("12,346.60", "number-ungrounded"),
        (swap("12,345.60"), "number-ungrounded"),
        ("2,345.60", "number-ungrounded"),
        ("12,345", "number-ungrounded"),
        ("123,456.00", "number-scale"),
        ("1,234.56", "number-scale"),
        ("123,456,000", "number-scale"),
        ("1.23456", "number-scale"),
        ("12,345.60万元", "number-scale"),
        ("-12,345.60", "number-sign"),
        ("(12,345.60)", "number-sign"),
        ("2,468.50", "number-sign"),
        ("23.4", None),
        ("25.2%", "number-ungrounded"),
        ("12,345.60%", "number-unit"),
        ("a lot", "number-unreadable"),
    ],
)
def test_a_fault_in_a_number_is_found_by_its_rule(text: str, rule: str | None) -> None:
    verdict = judged(with_amount(text))
    assert rules(verdict) == ({rule} if rule else set())
    assert verdict.outcome == (Outcome.REJECT if rule else Outcome.PASS)


def test_an_ungrounded_number_names_the_printed_one_that_is_one_slip_away() -> None:
    (finding,) = judged(with_amount("21,345.60")).findings
    assert "12,345.60" in finding.message
    assert (finding.path, finding.page) == ("/amounts/0/amount", 1)


@pytest.mark.parametrize(
    ("fields", "rule", "outcome"),
    [
        ({"date": "15 March 2023"}, "date-ungrounded", Outcome.REJECT),
        ({"date": "2024-03-16"}, "date-ungrounded", Outcome.REJECT),
        ({"account": "6222-0202-0012"}, "id-ungrounded", Outcome.REJECT),
        ({"account": "6222-0202-001"}, "id-ungrounded", Outcome.REJECT),
        ({"company": "Northwind Holding"}, "text-ungrounded", Outcome.REJECT),
        ({"company": "北方控股集团"}, "text-ungrounded", Outcome.REJECT),
        ({"evidence": "owes 5,280,000 under protest"}, "quote-ungrounded", Outcome.REJECT),
        ({"level": "extreme"}, "schema-violated", Outcome.REJECT),
        ({"summary": 5}, "schema-violated", Outcome.REJECT),
        ({"summary": "It owes 5,820,000."}, "number-in-prose", Outcome.REVIEW),
        ({"summary": "It is due on 1 July 2024."}, "number-in-prose", Outcome.REVIEW),
        ({"summary": "违反《反洗钱法》第八十八条。"}, "statute-invented", Outcome.REVIEW),
        ({"summary": "违反《跨境金融诚信法》。"}, "statute-invented", Outcome.REVIEW),
        ({"summary": "Late. Late again. " + "very late and " * 6}, "repetition-loop", Outcome.REVIEW),
        ({"amounts": [RESULT["amounts"][0]] * 3}, "repetition-items", Outcome.REVIEW),
    ],
)
def test_a_fault_elsewhere_is_found_by_its_rule(fields: dict[str, Any], rule: str, outcome: Outcome) -> None:
    verdict = judged(RESULT | fields)
    assert rules(verdict) == {rule}
    assert verdict.outcome == outcome


@pytest.mark.parametrize(
    "summary",
    [
        "It owes 5,280,000 since 15 March 2024, a loss of 2,468.50.",
        "依据《反洗钱法》第二十条，参见《民法典》第五百零九条。",
        "The statement has 3 pages and 12 accounts.",
        "See 31 CFR 1020.320 and 31 U.S.C. § 5318(g).",
    ],
)
def test_a_summary_may_say_what_is_printed_and_cite_what_exists(summary: str) -> None:
    assert judged(RESULT | {"summary": summary}).findings == ()


def test_the_worst_finding_decides() -> None:
    verdict = judged(RESULT | {"summary": "It owes 5,820,000.", "account": "1234-5678"})
    assert rules(verdict) == {"number-in-prose", "id-ungrounded"}
    assert verdict.outcome == Outcome.REJECT


def test_a_finding_marks_its_own_field_and_no_other() -> None:
    verdict = judged(RESULT | {"account": "1234-5678"})
    assert field(verdict, "/account").verdict == Outcome.REJECT
    assert field(verdict, "/company").verdict == Outcome.PASS


# ---------------------------------------------------------------- citations


def changed(path: str, **values: Any) -> tuple[Citation, ...]:
    return tuple(replace(c, **values) if c.path == path else c for c in cited(RESULT))


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"page": 9}, "citation-nowhere"),
        ({"bbox": BBox(0, 0, 0, 0)}, "citation-nowhere"),
        ({"bbox": BBox(500, 10, 700, 20)}, "citation-nowhere"),
        ({"bbox": BBox(300, 700, 400, 720)}, "citation-empty"),
        ({"page": 2}, "citation-empty"),
        ({"text": "11,208.75"}, "citation-other"),
    ],
)
def test_a_citation_that_leads_astray_is_found(values: dict[str, Any], rule: str) -> None:
    verdict = judged(RESULT, changed("/amounts/0/amount", **values))
    assert rule in rules(verdict)
    assert rules(verdict) <= {rule, "citation-empty"}
    assert verdict.outcome == Outcome.REVIEW


def test_the_neighbours_cell_is_found_although_its_number_is_printed() -> None:
    right, wrong = cited(RESULT), with_amount("11,208.75")
    assert "citation-other" in rules(judged(wrong, tuple(c for c in right if c.path != "/amounts/1/amount")))


def test_a_value_without_a_citation_is_a_flag_among_cited_ones() -> None:
    verdict = judged(RESULT, tuple(c for c in cited(RESULT) if c.path != "/company"))
    assert [(finding.rule, finding.path) for finding in verdict.findings] == [("citation-missing", "/company")]
    assert verdict.outcome == Outcome.FLAG


def test_a_result_that_cites_nothing_is_located_all_the_same() -> None:
    verdict = judged(RESULT, ())
    assert verdict.findings == ()
    place = field(verdict, "/amounts/0/amount")
    assert (place.page, place.row, place.col) == (1, 1, 1)


# ---------------------------------------------------------------- fields


def test_every_leaf_becomes_a_field_under_its_json_pointer() -> None:
    verdict = judged(RESULT)
    assert [value.path for value in verdict.fields] == [
        "/company", "/date", "/account",
        "/amounts/0/label", "/amounts/0/amount", "/amounts/1/label", "/amounts/1/amount",
        "/amounts/2/label", "/amounts/2/amount",
        "/evidence", "/level", "/count", "/summary",
    ]  # fmt: skip


def test_names_with_a_slash_or_a_tilde_are_escaped_in_pointers() -> None:
    verdict = validate(extracted({"a/b~c": "x"}, ()), DOCUMENT, schema={}, ruleset=COMMON)
    assert [value.path for value in verdict.fields] == ["/a~1b~0c"]


def test_a_number_has_its_value_place_and_cell() -> None:
    loss = field(judged(RESULT), "/amounts/1/amount")
    assert (loss.text, loss.value, loss.page, loss.row, loss.col) == ("(2,468.50)", Decimal("-2468.50"), 1, 2, 1)
    assert loss.bbox is not None and loss.table_id is not None


def test_a_date_has_its_day_and_an_ambiguous_one_has_none() -> None:
    assert field(judged(RESULT), "/date").date == date(2024, 3, 15)
    ambiguous = judged(RESULT | {"date": "03/04/2024"}, (), typed("on 03/04/2024"))
    assert "date-ambiguous" in rules(ambiguous)
    assert field(ambiguous, "/date").date is None


def test_a_json_number_has_its_value_and_a_null_is_empty() -> None:
    verdict = judged(RESULT | {"company": None})
    assert field(verdict, "/count").value == 3
    assert (field(verdict, "/company").text, field(verdict, "/company").value) == ("", None)


def test_the_scale_of_a_table_is_applied_once_and_not_to_percentages() -> None:
    document = scaled(DOCUMENT, 10_000)
    verdict = judged(RESULT, cited(RESULT, document), document)
    assert verdict.outcome == Outcome.PASS
    revenue, margin = field(verdict, "/amounts/0/amount"), field(verdict, "/amounts/2/amount")
    assert (revenue.value, revenue.unit, revenue.scale) == (Decimal("123456000"), "CNY", 10_000)
    assert (margin.value, margin.unit, margin.scale) == (Decimal("23.4"), "%", None)


@pytest.mark.parametrize(
    ("label", "expected"),
    [("每股收益（元）", None), ("Earnings per share", None), ("Effective interest rate", None), ("毛利率（%）", None),
     ("Interest rate swaps", 10_000), ("营业收入", 10_000), ("利率风险敞口", 10_000)],
)  # fmt: skip
def test_rates_and_per_share_rows_are_printed_in_full(label: str, expected: int | None) -> None:
    (table,) = scaled(typed(f"Item | 2024\n{label} | 1.25"), 10_000).tables
    assert Grid(table).frame(1, 1).scale == expected


def test_a_number_that_its_cell_broke_over_two_lines_is_found() -> None:
    (page,) = typed("Item | Amount\nRevenue | 1,234,567").pages
    table = page.blocks[0].table
    assert table is not None
    broken = tuple(replace(c, printed=Printed("1,234,\n567")) if "1,2" in c.text else c for c in table.cells)
    pages = (replace(page, blocks=(replace(page.blocks[0], table=replace(table, cells=broken)),)),)
    document = replace(typed("x"), pages=pages)
    verdict = judged({"amounts": [{"label": "Revenue", "amount": "1,234,567"}]}, (), document)
    assert "number-ungrounded" not in rules(verdict) and "number-scale" not in rules(verdict)


def test_a_document_without_text_grounds_nothing() -> None:
    empty = replace(typed("x"), pages=())
    assert {"text-ungrounded", "number-ungrounded"} <= rules(judged(RESULT, (), empty))
