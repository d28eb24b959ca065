"""Numbers as printed, to Decimal and back, in every style that reports use."""

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from validation.chinese import chinese_number
from validation.numbers import Number, in_table, parse_number, readings, scan_numbers
from validation.ranges import parse_range

#: Many draws of one style show no more than a few do.
few = settings(max_examples=10, database=None)
amounts = st.decimals(min_value=0, max_value=Decimal("99999999999.99"), places=2)
signed = st.decimals(min_value=Decimal("-99999999.99"), max_value=Decimal("99999999.99"), places=2)
FULL_WIDTH = str.maketrans("0123456789,.-()%", "０１２３４５６７８９，．－（）％")


def value(text: str) -> Decimal | None:
    number = parse_number(text)
    return number.value if number else None


def grouped(number: Decimal, separator: str, mark: str = ".") -> str:
    return f"{number:,.2f}".replace(".", "\0").replace(",", separator).replace("\0", mark)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,234,567.89", "1234567.89"),
        ("１，２３４，５６７．８９", "1234567.89"),
        ("1'234'567.5", "1234567.5"),
        ("1 234 567,89", "1234567.89"),
        ("1\u202f234\u202f567", "1234567"),
        ("1.234,56", "1234.56"),
        ("27,80", "27.80"),
        ("5,4900", "5.4900"),
        ("33 000", "33000"),
        ("12,34,567", "1234567"),
        ("(1,234)", "-1234"),
        ("（1,234.5）", "-1234.5"),
        ("($1,234)", "-1234"),
        ("US$(1,234)", "-1234"),
        ("1,234-", "-1234"),
        ("−5.2", "-5.2"),
        ("负1,234", "-1234"),
        ("△1,234", "-1234"),
        ("¥-5", "-5"),
        (".5", "0.5"),
        ("5.28亿", "528000000"),
        ("528万元", "5280000"),
        ("$5.2 million", "5200000"),
        ("HK$ 3.5bn", "3500000000"),
        ("五百二十八万", "5280000"),
        ("壹佰万元整", "1000000"),
        ("壹佰零伍万叁仟元整", "1053000"),
        ("贰亿元整", "200000000"),
        ("壹佰贰拾叁万肆仟伍佰陆拾柒元捌角玖分", "1234567.89"),
        ("五点二八亿", "528000000"),
        ("一百二", "120"),
        ("1亿2000万", "120000000"),
        ("3亿5,000万元", "350000000"),
        ("1万5千", "15000"),
        ("一亿二千万", "120000000"),
        ("1,234.5百万元", "1234500000"),
        ("人民币（大写）壹佰万元整", "1000000"),
        ("壹拾万零伍佰元正", "100500"),
        ("负壹佰万元", "-1000000"),
        ("伍角整", "0.5"),
        ("壹元零伍分", "1.05"),
        ("CHF 1'000.-", "1000"),
        ("1`234", None),
        ("1´234", "1234"),
        ("约5亿元人民币", "500000000"),
        ("approximately US$1.2 billion", "1200000000"),
        ("minus 5 million", "-5000000"),
        ("five million", "5000000"),
        ("twenty-five thousand dollars", "25000"),
        ("one hundred and five", "105"),
        ("half a billion", "500000000"),
        ("( 1,234", "-1234"),
        ("5‰", "5"),
        ("万分之五", "5"),
        ("二〇二四", "2024"),
    ],
)
def test_a_number_is_read_as_it_is_meant(text: str, expected: str | None) -> None:
    assert value(text) == (None if expected is None else Decimal(expected))


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        ("4.35%", "4.35", "%"),
        ("(5.2)%", "-5.2", "%"),
        ("百分之五点二", "5.2", "%"),
        ("5‰", "5", "‰"),
        ("25 basis points", "25", "bp"),
        ("RMB5,280,000.00", "5280000", "CNY"),
        ("人民币5,280,000元", "5280000", "CNY"),
        ("1,234USD", "1234", "USD"),
        ("1,234 股", "1234", "股"),
    ],
)
def test_a_number_keeps_its_unit(text: str, number: str, unit: str) -> None:
    assert parse_number(text) == Number(Decimal(number), unit)


@pytest.mark.parametrize(
    "text", ["", "abc", "Q3", "12th", "1.2.3", "2023,2024", "10-20", "0017", "万", "5,280,000 and 3", "1,23,4"]
)
def test_what_is_not_one_number_is_none(text: str) -> None:
    assert parse_number(text) is None


def test_brackets_of_a_whole_text_mean_a_negative_first_and_an_aside_second() -> None:
    assert [number.value for number in readings("(1,000)")] == [-1000, 1000]


def test_all_numbers_of_a_sentence_are_found_where_they_stand() -> None:
    text = "净利润-5.2%，收入１，２００万元；range 10-20, list 2023,2024 and HT-2024-0017, COVID-19"
    found = {text[number.start : number.stop]: number.number.value for number in scan_numbers(text)}
    assert found["-5.2%"] == Decimal("-5.2")
    assert found["１，２００万元"] == 12_000_000
    assert found["10"] == 10 and found["20"] == 20
    assert found["2023"] == 2023 and found["2024"] == 2024
    assert not any(key.endswith(("0017", "19")) for key in found)


def test_a_piece_of_a_number_with_spaces_is_no_number() -> None:
    assert [found.number.value for found in scan_numbers("33 350")] == [33_350]
    assert [found.number.value for found in scan_numbers("cost 33 000 in all")] == [33_000]
    assert {found.number.value for found in scan_numbers("rooms 120 350 have")} == {120_350, 120, 350}


STYLES = {
    "plain": str,
    "comma": lambda number: f"{number:,.2f}",
    "apostrophe": lambda number: grouped(number, "'"),
    "thin space": lambda number: grouped(number, "\u2009"),
    "point and comma": lambda number: grouped(number, ".", ","),
    "full width": lambda number: f"{number:,.2f}".translate(FULL_WIDTH),
    "yuan": lambda number: f"人民币{number:,.2f}元",
    "dollars": lambda number: f"US${number:,.2f}",
    "percent": lambda number: f"{number}%",
}
NEGATIVES = {
    "minus": "-{}",
    "true minus": "−{}",
    "brackets": "({})",
    "full-width brackets": "（{}）",
    "trailing minus": "{}-",
    "负": "负{}",
}


@pytest.mark.parametrize("style", STYLES)
@few
@given(number=amounts)
def test_a_formatted_number_is_read_back(style: str, number: Decimal) -> None:
    assert value(STYLES[style](number)) == number


@pytest.mark.parametrize("negative", NEGATIVES)
@few
@given(number=amounts.filter(bool))
def test_a_formatted_negative_is_read_back(negative: str, number: Decimal) -> None:
    assert value(NEGATIVES[negative].format(f"{number:,.2f}")) == -number


SCALES = {"万": 10**4, "亿": 10**8, " million": 10**6, " billion": 10**9, "万元": 10**4}


@pytest.mark.parametrize("word", SCALES)
@few
@given(number=amounts)
def test_a_scale_word_multiplies_once(word: str, number: Decimal) -> None:
    assert value(f"{number:,.2f}{word}") == number * SCALES[word]


def written(number: int, digits: str, units: str) -> str:
    """A number below 10^12 in Chinese, section by section, as banks write it."""
    sections = [(number // 10**8, "亿"), (number // 10**4 % 10**4, "万"), (number % 10**4, "")]
    text = ""
    for section, scale in sections:
        if section and text and section < 1000:
            text += digits[0]
        text += _section(section, digits, units) + (scale if section else "")
    return text or digits[0]


def _section(section: int, digits: str, units: str) -> str:
    text, gap = "", False
    for unit, power in zip((*units[::-1], ""), (1000, 100, 10, 1), strict=True):
        digit = section // power % 10
        if digit:
            text += (digits[0] if gap and text else "") + digits[digit] + unit
        gap = not digit
    return text


@few
@given(st.integers(min_value=0, max_value=10**12 - 1))
def test_an_ordinary_chinese_numeral_is_read_back(number: int) -> None:
    assert chinese_number(written(number, "零一二三四五六七八九", "十百千")) == number


@few
@given(st.integers(min_value=1, max_value=10**12 - 1))
def test_a_capital_amount_is_read_back(number: int) -> None:
    assert value(written(number, "零壹贰叁肆伍陆柒捌玖", "拾佰仟") + "元整") == number


def test_a_table_gives_its_scale_and_unit_to_a_bare_number() -> None:
    assert in_table(Number(Decimal("5.2")), Decimal(10_000), "CNY") == Number(Decimal(52_000), "CNY", Decimal(10_000))


def test_a_percentage_takes_no_scale_from_its_table() -> None:
    percent = Number(Decimal("4.35"), "%")
    assert in_table(percent, Decimal(10_000), "CNY") == percent


def test_a_number_with_a_scale_of_its_own_keeps_it() -> None:
    number = parse_number("5.2亿")
    assert number is not None
    assert in_table(number, Decimal(10_000), None).value == 520_000_000


@few
@given(signed, st.sampled_from([None, 1000, 10**4, 10**6, 10**8]), st.sampled_from(["{}", "{}万", "{} million", "{}%"]))
def test_a_scale_is_never_applied_twice(number: Decimal, scale: int | None, style: str) -> None:
    read = parse_number(style.format(number))
    assert read is not None
    table_scale = None if scale is None else Decimal(scale)
    once = in_table(read, table_scale, "CNY")
    assert in_table(once, table_scale, "CNY") == once
    if read.scale is not None or read.relative:
        assert once.value == read.value


ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()


def in_english(number: int) -> str:
    """A number below 10^12 in words, as a cheque has it."""
    for size, word in ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= size:
            rest = in_english(number % size) if number % size else ""
            return (
                f"{in_english(number // size)} {word}{' and ' if size == 100 and rest else ' ' if rest else ''}{rest}"
            )
    if number < 20:
        return ONES[number]
    return TENS[number // 10] + (f"-{ONES[number % 10]}" if number % 10 else "")


@few
@given(st.integers(min_value=21, max_value=10**12 - 1))
def test_a_number_in_english_words_is_read_back(number: int) -> None:
    words = in_english(number)
    assert len(words.replace("-", " ").split()) < 2 or value(words) == number


@few
@given(st.integers(min_value=1, max_value=9999), st.integers(min_value=1, max_value=9999))
def test_a_number_of_pieces_with_scales_of_their_own_is_read_back(large: int, small: int) -> None:
    assert value(f"{large}亿{small}万") == large * 10**8 + small * 10**4
    assert value(f"{large:,}亿{small:,}万元") == large * 10**8 + small * 10**4


@few
@given(number=amounts.filter(lambda number: number >= 1000))
def test_where_decimals_stand_after_a_comma_a_number_is_read_so(number: Decimal) -> None:
    (read,) = readings(grouped(number, ".", ","), comma=True)
    assert read.value == number


@pytest.mark.parametrize(
    ("text", "low", "high", "unit"),
    [
        ("5%-8%", "5", "8", "%"),
        ("5至8%", "5", "8", "%"),
        ("3-5亿元", "300000000", "500000000", "CNY"),
        ("1,000–2,000", "1000", "2000", None),
        ("between 5 and 8", "5", "8", None),
        ("US$5 million to US$8 million", "5000000", "8000000", "USD"),
    ],
)
def test_a_range_has_two_ends_of_one_unit(text: str, low: str, high: str, unit: str | None) -> None:
    ends = parse_range(text)
    assert ends is not None
    assert [(end.value, end.unit) for end in ends] == [(Decimal(low), unit), (Decimal(high), unit)]


@pytest.mark.parametrize("text", ["2024-05-06", "a-b", "5", ""])
def test_what_has_no_two_numbers_is_no_range(text: str) -> None:
    assert parse_range(text) is None


def test_a_single_character_before_a_numeral_does_not_hide_it() -> None:
    values = [found.number.value for found in scan_numbers("一个五百万元的项目，其一，百分之五。")]
    assert values == [Decimal(5_000_000), Decimal(5)]


def test_number_words_are_found_after_words_of_digits_and_across_hard_blanks() -> None:
    values = [found.number.value for found in scan_numbers("5.2 million for security and twenty\u00a0million “more”")]
    assert values == [Decimal(5_200_000), Decimal(20_000_000)]
