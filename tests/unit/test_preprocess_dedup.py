"""Near-duplicates are proposed by bands, confirmed by shingles, and vetoed by any other number, date or name."""

from __future__ import annotations

import numpy as np
import pytest

from docmill.likeness import LIKE_NOTHING, MOST_SHINGLES, SHOWN, Likeness, differences, jaccard
from preprocess.dedup import BANDS, bands, likeness_of, signature
from preprocess.facts import facts
from preprocess.shingles import SHINGLE, shingle_hashes

WORDS = [f"clause{number % 89} of{number % 7} agreement{number}" for number in range(400)]
CONTRACT = (
    "甲方（出借人）：华东商业银行股份有限公司\n乙方（借款人）：{party}\n"
    "借款金额{amount}元，自{date}起十二个月。账户6222 0212"
    + "".join(f"第{number}条 双方应当履行本合同约定的第{number}项义务，违约方承担相应责任。" for number in range(1, 30))
    + "本合同由王建国签署。"
)
LOAN = CONTRACT.format(party="苏州启明精密制造有限公司", amount="3,000,000.00", date="2024年5月8日")
LEASE = (
    "The Lessor, Harbour Estates Ltd. and Mr. Smith, lets the premises to Goldman for USD 12,500.00 a month. "
    "Interest of 4.5% falls due within thirty days; the net result of the year was (1,200) thousand. "
    "The Lessee shall not sublet. Interest on arrears is paid in addition, and any interest is net of taxes. "
)


def alike(one: str, other: str) -> float:
    return jaccard(shingle_hashes(one), shingle_hashes(other))


def is_repeat(one: str, other: str) -> bool:
    return likeness_of(one).fingerprint == likeness_of(other).fingerprint


# ---------------------------------------------------------------- shingles


def test_the_share_of_common_shingles_is_exact() -> None:
    words = [f"word{number}" for number in range(30)]
    one, other = " ".join(words[:20]), " ".join(words[10:])
    assert alike(one, other) == 6 / (16 + 16 - 6)


def test_chinese_is_compared_by_characters() -> None:
    assert len(shingle_hashes("甲乙丙丁戊己庚")) == 4 * (7 - SHINGLE + 1)
    assert alike("甲乙丙丁戊己庚", "甲乙丙丁戊") == 1 / 3


def test_spelling_that_print_does_not_show_makes_no_difference() -> None:
    assert alike("ＡＢＣ　def ghi jkl mno pqr", "abc DEF ghi\njkl, mno pqr") == 1.0


def test_the_order_of_words_and_of_letters_makes_a_difference() -> None:
    assert alike("one two three four five", "five four three two one") == 0.0
    assert alike("one two three four five", "eno two three four five") == 0.0


@pytest.mark.parametrize("text", ["", " . ", "too few words", "甲乙丙丁"])
def test_a_text_shorter_than_a_shingle_is_like_nothing_not_even_itself(text: str) -> None:
    assert likeness_of(text) == LIKE_NOTHING
    assert alike(text, text) == 0.0
    assert signature(text) == b""


def test_long_texts_are_compared_by_a_fair_sample() -> None:
    rng = np.random.default_rng(5)
    pool = np.unique(rng.integers(0, 2**32, 4 * MOST_SHINGLES, dtype=np.uint32))
    whole, most = pool, np.sort(rng.permutation(pool)[: int(0.8 * len(pool))])
    one, other = (hashes[:MOST_SHINGLES].astype("<u4").tobytes() for hashes in (whole, most))
    assert jaccard(one, other) == pytest.approx(0.8, abs=0.01)


# ---------------------------------------------------------------- bands


def test_the_same_text_has_the_same_signature_of_512_bytes() -> None:
    assert signature(LOAN) == signature(LOAN)
    assert len(signature(LOAN)) == 512


def test_a_signature_estimates_the_share_of_common_shingles() -> None:
    whole, most = " ".join(WORDS), " ".join(WORDS[:340])
    one, other = (np.frombuffer(signature(text), dtype="<u4") for text in (whole, most))
    assert float(np.mean(one == other)) == pytest.approx(alike(whole, most), abs=0.12)


def test_alike_documents_share_a_band_and_others_do_not() -> None:
    other = LOAN.replace("第5条", "第五条")
    assert set(bands(signature(LOAN))) & set(bands(signature(other)))
    assert not set(bands(signature(LOAN))) & set(bands(signature(" ".join(WORDS))))


def test_bands_fit_a_signed_64_bit_column_and_carry_their_index() -> None:
    same_rows = bands(b"\x07" * 512)
    assert len(set(same_rows)) == BANDS
    assert all(-(2**63) <= value < 2**63 for value in same_rows)


# ---------------------------------------------------------------- facts


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("3,000,000.00", "30,000,000.00"),
        ("2024年5月8日", "2024年5月9日"),
        ("苏州启明精密制造", "无锡远航供应链管理"),
        ("华东商业", "华东农商"),
        ("十二个月", "十八个月"),
        ("00元", "00万元"),
        ("6222 0212", "6222 0213"),
        ("王建国", "李明"),
        ("应当履行", "不应当履行"),
    ],
)
def test_a_chinese_template_with_another_fact_is_another_document(was: str, becomes: str) -> None:
    assert was in LOAN
    assert alike(LOAN, LOAN.replace(was, becomes)) > 0.3
    assert not is_repeat(LOAN, LOAN.replace(was, becomes))


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("Mr. Smith", "Mr. Brown"),
        ("Goldman", "Lehman"),
        ("Harbour", "Garden"),
        ("USD", "EUR"),
        ("4.5%", "5.4%"),
        ("thirty", "sixty"),
        ("(1,200)", "1,200"),
        ("thousand", "million"),
        ("shall not", "shall"),
    ],
)
def test_an_english_template_with_another_fact_is_another_document(was: str, becomes: str) -> None:
    assert was in LEASE
    assert not is_repeat(LEASE, LEASE.replace(was, becomes))


def test_two_parties_that_change_places_make_another_document() -> None:
    swapped = LEASE.replace("Goldman", "#").replace("Smith", "Goldman").replace("#", "Smith")
    assert not is_repeat(LEASE, swapped)


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("premises", "prernises"),
        (" ", "\n"),
        ("Interest on", "interest on"),
        ("sublet. ", "sublet.\n\n"),
        ("; ", " ; "),
    ],
)
def test_errors_of_print_in_ordinary_words_and_other_line_breaks_change_no_fact(was: str, becomes: str) -> None:
    assert was in LEASE
    assert is_repeat(LEASE, LEASE.replace(was, becomes))


def test_a_line_break_inside_a_chinese_name_changes_no_fact() -> None:
    assert is_repeat(LOAN, LOAN.replace("王建国签署", "王建\n国\n签署").replace("启明精密", "启明\n精密"))


def test_another_spelling_of_the_same_figures_is_the_same_fact() -> None:
    assert facts("金额１，２３４．５０元，2024-5-8") == facts("金额 1234.50 元，2024年05月08日")


def test_an_organisation_is_named_without_the_words_before_it() -> None:
    assert "苏州启明精密制造有限公司" in facts("贷款人应当按照约定将款项付给苏州启明精密制造有限公司")["names"]


# ---------------------------------------------------------------- what changed


def test_a_diff_names_what_changed_by_kind() -> None:
    other = LOAN.replace("3,000,000.00", "30,000,000.00").replace("2024年5月8日", "2025年5月8日")
    assert differences(facts(LOAN), facts(other)) == {
        "dates": {"gone": ["2024-05-08"], "new": ["2025-05-08"], "gone_count": 1, "new_count": 1},
        "numbers": {"gone": ["3000000.00"], "new": ["30000000.00"], "gone_count": 1, "new_count": 1},
    }


def test_a_diff_of_the_same_facts_is_empty_and_of_another_order_says_so() -> None:
    assert differences({"numbers": ["1", "2"]}, {"numbers": ["1", "2"]}) == {}
    assert differences({"numbers": ["1", "2"]}, {"numbers": ["2", "1"]}) == {"numbers": {"moved": True}}


def test_a_diff_is_bounded_and_counts_what_it_does_not_show() -> None:
    many = differences({"names": []}, {"names": [str(number) * 100 for number in range(1000)]})["names"]
    assert (len(many["new"]), many["new_count"], len(many["new"][0])) == (SHOWN, 1000, 60)


def test_a_fingerprint_fits_a_signed_64_bit_column() -> None:
    assert all(-(2**63) <= Likeness((), b"", {"n": [str(n)]}).fingerprint < 2**63 for n in range(99))
