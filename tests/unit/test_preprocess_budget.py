"""A document cut to a budget keeps its tables whole, its order, and an account of what is missing."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.errors import PromptTooLong
from docmill.types import Block, BlockKind, Page, PreparedDocument, Printed, Shown, Why
from preprocess.budget import Budget, fit
from preprocess.conversation import is_conversation
from preprocess.numerals import number_of
from preprocess.references import index_of, mark, references
from preprocess.shorten import FIRST_TOKENS, GAP
from tests.pages import BOX, count, documents, paragraph, prepared, quick, table

ALL = 10_000


def heading(text: str, page: int = 1) -> Block:
    return Block(BlockKind.HEADING, page, BOX, Printed(text))


def words(text: str) -> list[str]:
    """The words of a text without the marks that are put in: pages, gaps, what was pulled in, rulers of tables."""
    return re.findall(r"\w+", re.sub(r"\[p\d+\]\n|\[\.\.\.\]\n|\[referred: p\d+\]\n|\|---\|---\|\n", "", text))


def whole_text(document: PreparedDocument) -> str:
    return "".join(chunk.text for chunk in document.chunks)


def text_of(shown: Shown) -> str:
    return "".join(part.text for part in shown.parts)


def shortened(document: PreparedDocument, limit: int, **marks: tuple[str, ...]) -> Shown | None:
    """In one part, or None where what must be kept does not fit."""
    try:
        return fit(document, Budget(ALL, limit, **marks))
    except PromptTooLong:
        return None


# ---------------------------------------------------------------- whatever the document


@quick
@given(documents(), st.integers(5, 600))
def test_it_is_never_over_budget(document: PreparedDocument, limit: int) -> None:
    shown = shortened(document, limit)
    if shown is not None:
        assert sum(part.tokens for part in shown.parts) <= limit
        assert sum(count([part.text])[0] for part in shown.parts) <= limit


@quick
@given(documents(), st.integers(5, 600))
def test_what_is_kept_and_what_is_left_out_are_all_there_was(document: PreparedDocument, limit: int) -> None:
    shown = shortened(document, limit)
    if shown is not None:
        left_out = " ".join(omission.text for omission in shown.omitted)
        assert Counter(words(text_of(shown))) + Counter(words(left_out)) == Counter(words(whole_text(document)))


@quick
@given(documents(), st.integers(5, 600))
def test_the_order_is_kept(document: PreparedDocument, limit: int) -> None:
    shown = shortened(document, limit)
    if shown is not None:
        rest = iter(words(whole_text(document)))
        assert all(word in rest for word in words(text_of(shown)))


@quick
@given(documents(), st.integers(5, 600))
def test_a_table_is_never_cut(document: PreparedDocument, limit: int) -> None:
    shown = shortened(document, limit)
    tables = [chunk for chunk in document.chunks if chunk.head]
    for chunk in tables if shown is not None else []:
        rows = "".join(row.text for row in chunk.rows)
        assert shown is not None and rows in text_of(shown)
        assert all(piece in shown.parts[0].pieces for piece in chunk.pieces)


@quick
@given(documents(), st.integers(5, 600))
def test_every_page_that_is_shown_is_named_and_every_piece_is_on_its_page(doc: PreparedDocument, limit: int) -> None:
    shown = shortened(doc, limit)
    for part in shown.parts if shown is not None else ():
        texts = dict(zip(*[iter(re.split(r"\[p(\d+)\]\n", part.text)[1:])] * 2, strict=True))
        assert all(piece.printed.text in texts[str(piece.page)] for piece in part.pieces)


@quick
@given(documents(), st.integers(120, 400), st.integers(200, 900))
def test_a_shortened_document_is_cut_into_parts_that_fit(document: PreparedDocument, limit: int, budget: int) -> None:
    try:
        shown = fit(document, Budget(limit, budget))
    except PromptTooLong:
        return
    assert all(part.tokens <= limit for part in shown.parts)
    assert [part.number for part in shown.parts] == list(range(1, len(shown.parts) + 1))


@quick
@given(documents())
def test_without_a_budget_nothing_is_left_out(document: PreparedDocument) -> None:
    shown = fit(document, Budget(ALL))
    assert shown.omitted == ()
    assert text_of(shown) == whole_text(document)


# ---------------------------------------------------------------- what goes first


def long_report() -> PreparedDocument:
    """Two thousand words of which some are critical, a table, headings, and a last section."""
    filler = [paragraph(f"F{n} " + "filler " * 48 + "end.", 1 + n // 10) for n in range(40)]
    return prepared(
        [
            [heading("1. Business"), *filler[:10], table(1, 5, 1)],
            [*filler[10:20], paragraph("The impairment of loans is 5.", 2)],
            [heading("2. Guarantees", 3), *filler[20:30]],
            [heading("3. Outlook", 4), *filler[30:]],
        ]
    )


def test_text_that_is_not_critical_goes_from_its_end_down_to_its_first_512_tokens() -> None:
    shown = shortened(long_report(), 700)
    assert shown is not None
    text = text_of(shown)
    assert {omission.why for omission in shown.omitted} == {Why.TAIL}
    assert "F0 " in text and "F9 " in text and "F39 " not in text
    assert all(kept in text for kept in ("## 1. Business", "## 2. Guarantees", "## 3. Outlook", "|t1r4|4.5|"))


def test_below_512_tokens_it_goes_on_to_the_last_sentence() -> None:
    shown = shortened(long_report(), 250)
    assert shown is not None
    assert Why.TEXT in {omission.why for omission in shown.omitted}
    assert sum(part.tokens for part in shown.parts) > 250 - 70  # no more than a block too much is left out


def test_what_a_profile_marks_critical_stays_when_all_else_goes() -> None:
    shown = shortened(long_report(), 180, critical_terms=("IMPAIRMENT",))
    assert shown is not None
    assert "The impairment of loans is 5." in text_of(shown)
    assert "F1 " not in text_of(shown)


def test_a_critical_section_is_kept_to_the_next_heading() -> None:
    shown = shortened(long_report(), 1100, critical_sections=("guarantees",))
    assert shown is not None
    kept = {int(number) for number in re.findall(r"F(\d+) ", text_of(shown))}
    assert kept >= set(range(20, 30))
    assert not kept & set(range(30, 40))


def test_what_must_be_kept_and_does_not_fit_is_refused_with_both_numbers() -> None:
    with pytest.raises(PromptTooLong, match=r"critical are \d+ tokens, over the budget of 20"):
        fit(long_report(), Budget(ALL, 20))


def test_a_gap_is_marked_and_the_page_after_it_named() -> None:
    shown = shortened(long_report(), 700)
    assert shown is not None
    assert f"[p3]\n{GAP}" in text_of(shown) or f"{GAP}## 2. Guarantees" in text_of(shown)
    assert [omission.page for omission in shown.omitted] == sorted(omission.page for omission in shown.omitted)


def chat() -> PreparedDocument:
    who = ("Agent", "Ms Li")
    turns = [paragraph(f"[10:{n % 60:02}] {who[n % 2]}: T{n} " + "words " * 18 + "done.", 1) for n in range(80)]
    return prepared([[heading("Transcript"), *turns]])


def test_of_a_conversation_the_end_is_kept() -> None:
    shown = shortened(chat(), 700)
    assert shown is not None
    kept = [int(number) for number in re.findall(r"T(\d+) ", text_of(shown))]
    assert kept == list(range(min(kept), 80)) and min(kept) > 30
    assert {omission.why for omission in shown.omitted} == {Why.OLDER_TURNS}


def test_a_form_is_no_conversation() -> None:
    fields = [f"Field {name}: " + "value " * 30 + "end." for name in "ABCDEFGHIJKLMNOPQRST"]
    shown = shortened(prepared([[paragraph(text, 1) for text in fields]]), 300)
    assert shown is not None
    assert "Field A" in text_of(shown) and "Field T" not in text_of(shown)


@pytest.mark.parametrize(
    ("text", "talk"),
    [
        ("客户：我要转账。\n客服：请问金额？\n客户：五百万。\n客服：好的。\n客户：谢谢。", True),
        ("Ann: hello\nBob: hi\nAnn: how much?\nBob: five million\nwhich is a lot\nAnn: fine", True),
        ("[10:02] Ann: hello\n[10:03] Bob: hi\n[10:04] Ann: so?\n[10:05] Bob: done", True),
        ("姓名：张伟\n证件号码：E123\n出生日期：1980年5月1日\n国籍：中国\n地址：北京", False),
        ("Note: one.\nThe company lends.\nIt has done so.\nNote: two.\nIt will go on.", False),
    ],
)
def test_a_conversation_is_known_by_speakers_who_come_again(text: str, talk: bool) -> None:
    assert is_conversation(text.splitlines()) is talk


def test_the_first_512_tokens_are_the_last_to_go() -> None:
    shown = shortened(long_report(), 800)
    assert shown is not None
    fillers = re.findall(r"F(\d+) ", text_of(shown))
    assert len(fillers) * 51 > FIRST_TOKENS


# ---------------------------------------------------------------- references over pages


def report_with_notes() -> PreparedDocument:
    body = [paragraph("Loans are explained, see Note 12 for details.", 1)]
    body += [paragraph("Alpha beta gamma delta epsilon zeta eta theta. " * 3, 1) for _ in range(9)]
    more = [paragraph("Iota kappa lambda mu nu xi omicron pi. " * 3, 2) for _ in range(6)]
    note = [
        heading("Note 12 Loans", 3),
        paragraph("The largest borrower owes 18,734,002.55 in all.", 3),
        table(9, 2, 3),
        heading("Note 13 Leases", 3),
        paragraph("Leases are small.", 3),
    ]
    return prepared([body, more, note])


def test_a_part_gets_the_note_that_it_refers_to_with_the_page_of_the_note() -> None:
    shown = fit(report_with_notes(), Budget(320))
    first = shown.parts[0]
    assert len(shown.parts) > 1
    assert first.referred == (3,)
    pulled = first.text.partition(mark(3))[2]
    assert "The largest borrower owes 18,734,002.55" in pulled and "|t9r1|1.5|" in pulled
    assert "Leases are small" not in first.text
    (piece,) = [piece for piece in first.pieces if "largest borrower" in piece.printed.text]
    assert piece.page == 3


def test_what_is_referred_to_keeps_within_the_limit_and_the_rest_is_unchanged() -> None:
    shown = fit(report_with_notes(), Budget(320))
    assert all(part.tokens <= 320 and count([part.text])[0] <= part.tokens for part in shown.parts)
    own = "".join(re.split(r"\[referred: p\d+\]\n", part.text)[0] for part in shown.parts)
    assert words(own) == words(whole_text(report_with_notes()))


def test_a_table_that_does_not_fit_is_not_pulled_in_half() -> None:
    body = [paragraph("As shown, see Table 3 below. " + "Alpha beta gamma delta. " * 30, 1)]
    caption = Block(BlockKind.CAPTION, 2, BOX, Printed("Table 3 Loans by sector"))
    shown = fit(prepared([body, [caption, table(3, 30, 2)]]), Budget(200))
    assert all("t3r" not in part.text for part in shown.parts if "see Table 3" in part.text)


def test_a_page_is_known_by_the_number_that_is_printed_on_it() -> None:
    footers = [Block(BlockKind.FOOTER, page, BOX, Printed(f"Page {page + 4}")) for page in (1, 2)]
    pages = [Page(number, 100, 100, (footer,)) for number, footer in enumerate(footers, start=1)]
    assert index_of((), pages).pages == {5: 1, 6: 2}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("详见第5页的说明", [("page", "5")]),
        ("参见本报告第十二页", [("page", "12")]),
        ("as described on page 7.", [("page", "7")]),
        ("Please refer to page 12 and see Note 3", [("page", "12"), ("note", "3")]),
        ("附注十二列示", [("note", "12")]),
        ("附注五、12 应收账款", [("below", "5.12")]),
        ("附注七（二十一）", [("below", "7.21")]),
        ("见附表3", [("table", "3")]),
        ("see Appendix B", [("annex", "B")]),
        ("第3页 共10页", []),
        ("Page 3 of 10", []),
        ("on page 3 of 10", []),
        ("In 2024 the company noted 12 cases.", []),
    ],
)
def test_references_are_found_in_both_languages_and_page_numbers_are_none(text: str, found: list[object]) -> None:
    assert references(text) == found


def test_a_note_below_a_numbered_section_is_found_by_both_numbers() -> None:
    filler = [paragraph("本公司经营情况正常，各项业务按计划推进。" * 4, 1) for _ in range(16)]
    first = [paragraph("应收账款余额见附注五、2。", 1), *filler]
    second = [heading("五、合并财务报表项目注释", 2), heading("1、货币资金", 2), paragraph("库存现金一万元。", 2)]
    third = [heading("2、应收账款", 3), paragraph("期末余额为5,280,000.00元。", 3)]
    shown = fit(prepared([first, second, third]), Budget(160))
    assert shown.parts[0].referred == (3,)
    assert "5,280,000.00" in shown.parts[0].text and "库存现金" not in shown.parts[0].text


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12),
        ("１２", 12),
        ("十二", 12),
        ("二十", 20),
        ("二十三", 23),
        ("一百零五", 105),
        ("〇", 0),
        ("B", None),
        ("", None),
    ],
)
def test_small_numbers_are_read_in_all_their_spellings(text: str, number: int | None) -> None:
    assert number_of(text) == number


def test_of_two_sections_with_one_number_the_one_with_more_notes_is_meant() -> None:
    auditor = [heading("五、审计责任"), paragraph("（1）识别风险。", 1), paragraph("1、了解内部控制。", 1)]
    notes = [heading("五、项目注释", 2), *(paragraph(f"{n}、第{n}项附注。", 2) for n in (1, 2, 3))]
    chunks = prepared([auditor, notes]).chunks
    places = index_of(chunks, ()).places
    assert "第1项附注" in chunks[places["below", "5.1"]].text
    assert "项目注释" in chunks[places["note", "5"]].text


def test_what_a_part_refers_to_takes_a_quarter_of_it_at_most_and_each_target_its_share() -> None:
    asking = [paragraph("See Note 1 and see Note 2.", 1), *(paragraph("Alpha beta gamma. " * 20, 1) for _ in range(6))]
    notes = [
        [heading(f"Note {n} Loans", n + 1), *(paragraph(f"N{n} owes. " * 9, n + 1) for _ in range(9))] for n in (1, 2)
    ]
    shown = fit(prepared([asking, *notes]), Budget(400))
    pulled = shown.parts[0].text.partition("[referred")[2]
    assert shown.parts[0].referred == (2, 3)
    assert "N1 owes" in pulled and "N2 owes" in pulled
    assert count([pulled])[0] <= 100
