"""Units and scales as they are printed with tables, in Chinese and English."""

from __future__ import annotations

from decimal import Decimal

import pytest

from preprocess.units import UnitFact, unit_of


@pytest.mark.parametrize(
    ("printed", "unit", "scale"),
    [
        ("单位：万元", "CNY", 10**4),
        ("单位:元 币种:人民币", "CNY", 1),
        ("金额单位：人民币百万元", "CNY", 10**6),
        ("（单位：亿元）", "CNY", 10**8),
        ("单位：千港元", "HKD", 10**3),
        ("（人民币千元）", "CNY", 10**3),
        ("单位：万美元", "USD", 10**4),
        ("单位：万吨", "吨", 10**4),
        ("单位：%", "%", None),
        ("编制单位：华信实业股份有限公司　　2024年12月31日 单位：万元　币种：人民币", "CNY", 10**4),
        ("(in thousands)", None, 10**3),
        ("(In millions, except per share data)", None, 10**6),
        ("(US$ in millions)", "USD", 10**6),
        ("RMB'000", "CNY", 10**3),
        ("HK$’000", "HKD", 10**3),
        ("€ million", "EUR", 10**6),
        ("(in millions of euros)", "EUR", 10**6),
        ("Amounts in USD", "USD", 1),
    ],
)
def test_a_printed_unit_is_understood(printed: str, unit: str | None, scale: int | None) -> None:
    assert unit_of(printed) == UnitFact(unit, None if scale is None else Decimal(scale))


@pytest.mark.parametrize("text", ["合并资产负债表", "The unit is closed.", "2024年12月31日", "Table 3: 2,000", ""])
def test_what_states_no_unit_gives_none(text: str) -> None:
    assert unit_of(text) is None
