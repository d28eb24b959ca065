"""Identifiers carry a check digit: a copied one that fails it was misprinted, misread or made up.

The arithmetic is that of python-stdnum. A number is asked for its check digit only where form and label leave no doubt
about what it is, and not where it calls itself a specimen by a code that nobody was given (region 99, issuer 9999).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stdnum import iban, lei, luhn
from stdnum.cn import ric, uscc
from stdnum.exceptions import InvalidChecksum, InvalidComponent, InvalidFormat, ValidationError

from validation.case import Case, Hit, hit_at
from validation.grounding import Ground, Grounding
from validation.labels import labels_of, stands_beside
from validation.text import fold


@dataclass(frozen=True, slots=True)
class Kind:
    """`labels`: it is of this kind only beside one of them, if there are any."""

    name: str
    form: re.Pattern[str]
    validate: Callable[[str], object]
    labels: tuple[str, ...] = ()
    specimen: re.Pattern[str] | None = None


_KINDS = (
    Kind("IBAN", re.compile("[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}"), iban.validate, ("iban", "国际银行账号")),
    Kind("居民身份证 / ID card", re.compile("[1-9][0-9]{16}[0-9X]"), ric.validate,
         ("身份证", "身份证号", "身份证号码", "公民身份号码", "证件号码", "id number", "identity number", "id card")),
    Kind("统一社会信用代码 / USCC", re.compile("[1-9A-Y][1-9][0-9]{6}[0-9A-Y]{10}"), uscc.validate,
         ("统一社会信用代码", "社会信用代码", "credit code", "uscc"), re.compile("..99")),
    Kind("LEI", re.compile("[A-Z0-9]{18}[0-9]{2}"), lei.validate,
         ("lei", "legal entity identifier", "法人机构识别编码"), re.compile("9999|0000")),
    Kind("Luhn", re.compile("[0-9]{14,19}"), luhn.validate, ("卡号", "银行卡号", "信用卡号", "card no", "card number")),
)  # fmt: skip


def check_digits(case: Case) -> Iterator[Hit]:
    """An identifier that is printed so, and whose check digit is wrong."""
    for grounding in case.standing("id"):
        compact = re.sub(r"[\s-]", "", fold(grounding.leaf.text)).upper()
        kind = next((kind for kind in _KINDS if _is(kind, compact, grounding, case)), None)
        if kind is not None and _fails(kind, compact):
            yield hit_at(grounding, kind.name)


def _is(kind: Kind, compact: str, grounding: Grounding, case: Case) -> bool:
    if not kind.form.fullmatch(compact) or (kind.specimen and kind.specimen.match(compact)):
        return False
    labels = labels_of(kind.labels)
    return grounding.ground == Ground.FOUND and any(
        stands_beside(place, labels, case.facts) for place in grounding.places
    )


def _fails(kind: Kind, compact: str) -> bool:
    """A wrong form or an unknown region is not a wrong digit."""
    try:
        kind.validate(compact)
    except InvalidChecksum:
        return True
    except (InvalidComponent, InvalidFormat, ValidationError):
        return False
    return False
