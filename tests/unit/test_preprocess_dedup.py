"""Near-duplicates are proposed by signature and vetoed by any other number, date or name."""

from __future__ import annotations

from docmill.likeness import similarity
from preprocess.dedup import BANDS, bands, fingerprint, signature

WORDS = [f"clause{number % 89} of{number % 7} agreement{number}" for number in range(400)]
CONTRACT = (
    "甲方（出借人）：华东商业银行股份有限公司\n乙方（借款人）：{party}\n借款金额{amount}元，自{date}起十二个月。"
    + "".join(f"第{number}条 双方应当履行本合同约定的第{number}项义务，违约方承担相应责任。" for number in range(1, 30))
)
LOAN = CONTRACT.format(party="苏州启明精密制造有限公司", amount="3,000,000.00", date="2024年5月8日")


def test_the_same_text_has_the_same_signature_of_512_bytes() -> None:
    assert signature(LOAN) == signature(LOAN)
    assert len(signature(LOAN)) == 512


def test_spelling_that_print_does_not_show_makes_no_difference() -> None:
    assert signature("ＡＢＣ　def ghi jkl mno pqr") == signature("abc DEF ghi\njkl, mno pqr")


def test_likeness_follows_the_share_of_common_text() -> None:
    whole, most = " ".join(WORDS), " ".join(WORDS[:360])
    assert 0.8 < similarity(signature(whole), signature(most)) < 0.97
    assert similarity(signature(whole), signature(" ".join(reversed(WORDS)))) < 0.1


def test_a_text_shorter_than_a_shingle_is_like_nothing_not_even_itself() -> None:
    assert signature("too few words") == b""
    assert similarity(b"", b"") == 0.0
    assert bands(b"") == ()


def test_alike_documents_share_a_band_and_others_do_not() -> None:
    alike = LOAN.replace("第5条", "第五条")
    assert set(bands(signature(LOAN))) & set(bands(signature(alike)))
    assert not set(bands(signature(LOAN))) & set(bands(signature(" ".join(WORDS))))


def test_bands_fit_a_signed_64_bit_column_and_carry_their_index() -> None:
    same_rows = bands(b"\x07" * 512)
    assert len(set(same_rows)) == BANDS
    assert all(-(2**63) <= value < 2**63 for value in same_rows)


def test_one_template_with_another_amount_date_or_party_is_another_document() -> None:
    for change in (
        ("3,000,000.00", "30,000,000.00"),
        ("2024年5月8日", "2024年5月9日"),
        ("苏州启明精密制造", "无锡远航供应链管理"),
    ):
        other = LOAN.replace(*change)
        assert similarity(signature(LOAN), signature(other)) > 0.8
        assert fingerprint(LOAN) != fingerprint(other)


def test_a_name_in_english_is_told_apart() -> None:
    assert fingerprint("paid to Mr John Smith in full") != fingerprint("paid to Mr John Brown in full")


def test_another_spelling_of_the_same_figures_is_the_same_fingerprint() -> None:
    assert fingerprint("金额１，２３４．５０元，2024-5-8") == fingerprint("金额 1234.50 元，2024年05月08日")
