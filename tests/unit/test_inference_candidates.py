"""Numbers, dates and identifiers are found whole, in English and Chinese, and nothing else is."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.candidates import KINDS, find
from inference.text import language_of, one_line


def found(kind: str, text: str, *, cell: bool = False) -> list[str]:
    return [candidate.text for candidate in find([one_line(text, cell=cell)])[kind]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("注册资本5,280,000.00元", ["5,280,000.00"]),
        ("净亏损(1,234)", ["(1,234)"]),
        ("亏损（1,234.50）元", ["（1,234.50）"]),
        ("同比-3.5%", ["-3.5%"]),
        ("比率３.５％", ["３.５％"]),
        ("合计５，２８０，０００．００元", ["５，２８０，０００．００"]),
        ("约人民币5.2万元", ["5.2万元"]),
        ("总资产1.25亿", ["1.25亿"]),
        ("USD5,000 and 5,000USD", ["5,000", "5,000"]),
        ("a loss of (US$1,250.40)", ["(US$1,250.40)"]),
        ("about $3.5 million", ["3.5 million"]),
        ("in 2023,2024", ["2023", "2024"]),
        ("1.234.567,89 EUR", ["1.234.567,89"]),
        ("1 234 567,89", ["1 234 567,89"]),
        ("12,34,567", ["12,34,567"]),
    ],
)
def test_a_number_is_found_with_its_sign_and_scale(text: str, expected: list[str]) -> None:
    assert found("number", text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("人民币伍佰贰拾捌万元整（5,280,000.00元）", ["伍佰贰拾捌万元整", "5,280,000.00"]),
        ("下降百分之五点三", ["百分之五点三"]),
        ("贰元伍角零叁分", ["贰元伍角零叁分"]),
        ("一般公司万一违约", []),
        ("单位：万元", []),
        ("收入 亿元", []),
        ("约5.2万元", ["5.2万元"]),
    ],
)
def test_numbers_in_chinese_numerals_are_found_where_a_unit_makes_them_numbers(text: str, expected: list[str]) -> None:
    assert found("number", text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5,280,000.00元，占12.3%，共35户，期限36个月，2024年", ["5,280,000.00"]),
        ("USD 2024 in 2024 for 12 months, see Note 12", ["2024"]),
        ("发行5,280万股，募集5,280万元", ["5,280万元"]),
        ("人民币伍佰万元整，下降百分之五", ["伍佰万元整"]),
        ("第12条 金额（1,234.50）", ["（1,234.50）"]),
        ("up 3.5% at 120 bps, a gain of 77", ["77"]),
    ],
)
def test_an_amount_is_a_number_that_may_be_money(text: str, expected: list[str]) -> None:
    assert found("amount", text) == expected


@pytest.mark.parametrize(
    "text", ["Q3", "version 1.2.3", "HT-2024-0012", "2024年12月31日", "12th", "ABC123", "no digits"]
)
def test_a_word_a_date_and_an_identifier_are_no_numbers(text: str) -> None:
    assert found("number", text) == []


@pytest.mark.parametrize(
    "date",
    [
        "2024年12月31日", "2024 年 1 月 5 日", "２０２４年１２月３１日", "二〇二四年十二月三十一日", "2024-12-31",
        "2024/1/5", "31.12.2024", "31 December 2024", "31st December 2024", "Dec 31, 2024", "December 2024",
        "31-Dec-2024", "20241231",
    ],
)  # fmt: skip
def test_a_date_is_found_whole(date: str) -> None:
    assert found("date", f"截至 {date} 。") == [date]


@pytest.mark.parametrize(
    "identifier",
    [
        "6222021234567890", "6222 0212 3456 7890", "6222****7890", "11010119900307123X", "HT-2024-0012",
        "5493001KJTIIGC8Y1R12", "E12345678", "６２２２０２１２３４５６７８９０", "ＨＴ－２０２４－００１２",
        "京银贷字第2024-88号", "（2024）沪01民初123号", "银发〔2021〕12号",
    ],
)  # fmt: skip
def test_an_identifier_is_found_whole(identifier: str) -> None:
    assert found("id", f"no. {identifier} .") == [identifier]


def test_an_amount_is_no_identifier() -> None:
    assert found("id", "5,280,000.00 and 1234 and 31 December 2024") == []


@given(st.decimals(min_value=0, max_value=Decimal("999999999999.99"), places=2))
def test_any_grouped_amount_is_one_candidate(amount: Decimal) -> None:
    assert found("number", f"金额{amount:,}元，total {amount:,}.") == [f"{amount:,}"] * 2


_SNIPPETS = st.sampled_from(
    [
        "5,280",
        ".00",
        "(",
        ")",
        " ",
        "\n",
        "2024",
        "年",
        "12",
        "月",
        "-",
        "USD",
        "万元",
        "%",
        "%)",
        "1 234 567",
        "No.",
        "Q",
        "号",
    ]
)


@given(st.lists(st.lists(_SNIPPETS, max_size=5).map("".join), max_size=5))
def test_no_candidate_runs_from_one_piece_into_the_next_and_none_hides_another(texts: list[str]) -> None:
    plains = [one_line(text) for text in texts]
    together = find(plains)
    for kind in KINDS:
        alone = [one._replace(piece=at) for at, plain in enumerate(plains) for one in find([plain])[kind]]
        assert list(together[kind]) == alone


@given(st.text(max_size=60))
def test_candidates_are_the_text_at_their_place(text: str) -> None:
    plain = one_line(text)
    for candidates in find([plain]).values():
        assert all(plain.text[one.start : one.stop] == one.text for one in candidates)


def test_a_number_wrapped_in_a_narrow_cell_is_one_number() -> None:
    assert found("number", "229,753,\n412.24", cell=True) == ["229,753,412.24"]


def test_numbers_on_two_lines_of_a_paragraph_stay_two() -> None:
    assert found("number", "229\n753\n120") == ["229", "753", "120"]
    assert found("number", "229 753") == ["229 753"]


def test_a_line_break_is_nothing_between_chinese_characters_and_a_space_between_words() -> None:
    plain = one_line("中国\n银行 Bank\nof China\x00")
    assert plain.text == "中国银行 Bank of China"
    assert plain.printed_range(0, 4) == (0, 5)


@pytest.mark.parametrize(
    ("text", "language"),
    [("年度风险报告 Harbour Trading", "zh"), ("The company 平安 paid five thousand", "en"), ("123", "en")],
)
def test_the_language_is_that_of_a_fifth_of_the_letters(text: str, language: str) -> None:
    assert language_of(text) == language
