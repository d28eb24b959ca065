"""A corpus with planted repeats and template twins, Chinese and English, the same for the same seed.

A text is a list of spans; a span that is a key fact (an amount, a date, a name, an account) is never touched by the
edits that make a repeat, and is the only thing that is changed to make a twin.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final


@dataclass(frozen=True, slots=True)
class Span:
    """A run of text; `fact` names the kind of key fact that it is."""

    text: str
    fact: str = ""


@dataclass(frozen=True, slots=True)
class Planted:
    """A document: `group` holds a document and its true repeats; `header` is furniture that a parser has recognised."""

    spans: tuple[Span, ...]
    group: int
    how: str
    chinese: bool
    header: str = ""

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


# ---------------------------------------------------------------- what documents say

_ZH: Final = (
    "甲方（出借人）：{company}，乙方（借款人）：{company}。\n",
    "乙方因{purpose}向甲方申请借款，借款金额为人民币{amount}元，用途不得变更。\n",
    "借款期限自{date}起至{date}止，共{months}个月，年利率为{rate}%。\n",
    "甲方应于{date}前将款项划入乙方在{company}开立的账户，账号为{account}。\n",
    "本合同由{person}签署，并经双方授权代表盖章后生效。\n",
    "公司本期实现营业收入{amount}万元，较上年同期增长{rate}%，主要由于{purpose}。\n",
    "截至{date}，货币资金余额为{amount}万元，应收账款余额为{amount}万元，存货余额为{amount}万元。\n",
    "报告期内，{company}作为主要客户贡献收入{amount}万元，占比{rate}%。\n",
    "乙方应当按照约定的期限和方式归还借款本金并支付利息，逾期的应当承担违约责任。\n",
    "任何一方违反本合同约定给对方造成损失的，应当赔偿对方因此遭受的全部实际损失。\n",
    "双方在履行过程中发生争议的，应当协商解决；协商不成的，提交仲裁委员会按照现行规则仲裁。\n",
    "借款人承诺其提供的全部资料真实完整有效，并接受贷款人对资金使用情况的监督检查。\n",
    "公司董事会及全体董事保证本报告所载资料的真实性准确性和完整性，并承担相应的法律责任。\n",
    "管理层认为现有会计政策符合企业会计准则的要求，能够公允反映财务状况和经营成果。\n",
    "公司已建立较为完善的风险管理体系，对信用风险市场风险和操作风险进行持续监测和评估。\n",
    "审计工作包括评价管理层选用会计政策的恰当性，以及评价财务报表的总体列报。\n",
    "抵押物在抵押期间由抵押人妥善保管，贷款人有权随时检查抵押物的使用和保管状况。\n",
    "保证人自愿为上述债务提供连带责任保证，保证范围包括本金利息罚息及实现债权的费用。\n",
    "受托人应当恪尽职守，履行诚实信用谨慎勤勉的义务，为受益人的最大利益处理信托事务。\n",
    "交易各方应当配合办理工商变更登记手续，并及时提供登记机关要求的各项文件资料。\n",
    "客户应当妥善保管账户密码和数字证书，因保管不善造成的后果由客户自行承担。\n",
    "基金管理人应当依照法律法规的规定编制定期报告，并在规定时间内予以披露。\n",
    "经核查，该笔交易的资金来源清晰，交易背景真实，符合反洗钱相关监管要求。\n",
    "租赁期间房屋及附属设施的日常维修由承租人负责，主体结构的维修由出租人负责。\n",
)
_EN: Final = (
    "This agreement is made between {company}, as lender, and {company}, as borrower, on {date}.\n",
    "The borrower applies for a loan of USD {amount} in order to finance {purpose}, and for no other end.\n",
    "The loan is repaid within {months} months at an annual rate of {rate}%, counted from {date}.\n",
    "The lender transfers the sum to account {account} held by the borrower at {company} before {date}.\n",
    "Signed for the lender by {person}, who is authorised to bind it by this deed.\n",
    "Revenue of the year was {amount} thousand, an increase of {rate}%, driven mainly by {purpose}.\n",
    "On {date} cash stood at {amount} thousand, receivables at {amount} thousand and stock at {amount} thousand.\n",
    "The largest customer, {company}, contributed {amount} thousand, a share of {rate}% of the total.\n",
    "The borrower repays principal and interest in the manner agreed, and bears the cost of any delay in payment.\n",
    "A party in breach of this agreement makes good every actual loss that the other party suffers in consequence.\n",
    "Disputes are first discussed in good faith between the parties and are then referred to binding arbitration.\n",
    "The borrower warrants that all documents handed over are complete and true, and accepts regular inspection.\n",
    "The directors are responsible for the preparation of financial statements that give a true and fair view.\n",
    "Management considers that the accounting policies applied are appropriate to the nature of the business.\n",
    "Credit risk, market risk and operational risk are monitored continuously and reported to the committee.\n",
    "The audit includes an evaluation of the overall presentation and structure of the financial statements.\n",
    "Collateral is kept in good order by the pledgor, and the lender may inspect its condition at any time.\n",
    "The guarantor is jointly liable for the debt, including principal, interest, penalties and costs of recovery.\n",
    "The trustee acts with due care and loyalty, and manages the assets solely in the interest of beneficiaries.\n",
    "Each party assists in the registration of the transfer and supplies the papers that the registry requires.\n",
    "The customer keeps passwords and certificates safe, and bears the consequences of any careless handling.\n",
    "The manager of the fund prepares periodic reports as the law requires and publishes them in due time.\n",
    "The origin of the money is clear, the purpose of the transaction is plausible, and no suspicion remains.\n",
    "Ordinary repairs during the lease are carried out by the tenant, structural repairs by the landlord.\n",
)
_PLACES: Final = "苏州 无锡 宁波 华东 长沙 佛山 青岛 武汉 昆明 厦门 合肥 成都".split()
_BRANDS: Final = "启明 远航 恒信 瑞丰 中联 金桥 博雅 新和 永泰 嘉实 宏图 天合".split()
_TRADES: Final = "精密制造有限公司 供应链管理有限公司 商业银行股份有限公司 科技集团有限公司 医药股份有限公司".split()
_SURNAMES: Final = "王李张刘陈杨赵黄周吴徐孙"
_GIVEN: Final = "建国 明 芳 伟 丽华 志强 晓东 静 海涛 文博".split()
_PURPOSES_ZH: Final = "采购生产设备 补充流动资金 市场需求回升 偿还到期债务 新产品投产 扩建厂房".split()
_FIRST: Final = "Harbour Meridian Northgate Silverline Crescent Oakfield Stanmore Pinecrest Redwood Kestrel".split()
_SECOND: Final = "Bank Holdings Logistics Pharma Capital Textiles Foods Energy".split()
_FORMS: Final = ("plc", "Ltd", "Inc", "GmbH")
_PEOPLE: Final = ("Smith", "Brown", "Okafor", "Tanaka", "Larsen", "Dubois", "Novak", "Silva", "Hughes", "Kaya")
_CHRISTIAN: Final = ("John", "Mary", "Peter", "Anna", "David", "Laura", "Simon", "Clara")
_PURPOSES_EN: Final = (
    "new machinery",
    "working capital",
    "stronger demand",
    "the repayment of older debt",
    "a new product line",
    "an extension of the plant",
)
_MONTHS_ZH: Final = "六 九 十二 十五 十八 二十四 三十六 四十八".split()
_MONTHS_EN: Final = "six nine twelve fifteen eighteen thirty forty fifty".split()
#: A unit is part of its amount.
_SLOT: Final = re.compile(r"\{(\w+)\}|(thousand|USD|人民币|万元|元)")


def _value(kind: str, rng: random.Random, *, chinese: bool) -> str:
    makers: dict[str, Callable[[], str]] = {
        "amount": lambda: f"{rng.randrange(10_000, 99_999_999) / 100:,.2f}",
        "rate": lambda: f"{rng.randrange(100, 3000) / 100:.2f}",
        "account": lambda: "".join(str(rng.randrange(10)) for _ in range(16)),
        "date": lambda: _date(rng, chinese=chinese),
        "months": lambda: rng.choice(_MONTHS_ZH if chinese else _MONTHS_EN),
        "company": lambda: _company(rng, chinese=chinese),
        "person": lambda: _person(rng, chinese=chinese),
        "purpose": lambda: rng.choice(_PURPOSES_ZH if chinese else _PURPOSES_EN),
    }
    return makers[kind]()


def _date(rng: random.Random, *, chinese: bool) -> str:
    year, month, day = rng.randrange(2015, 2026), rng.randrange(1, 13), rng.randrange(1, 29)
    names = "January February March April May June July August September October November December".split()
    return f"{year}年{month}月{day}日" if chinese else f"{day} {names[month - 1]} {year}"


def _company(rng: random.Random, *, chinese: bool) -> str:
    if chinese:
        return rng.choice(_PLACES) + rng.choice(_BRANDS) + rng.choice(_TRADES)
    return f"{rng.choice(_FIRST)} {rng.choice(_SECOND)} {rng.choice(_FORMS)}"


def _person(rng: random.Random, *, chinese: bool) -> str:
    if chinese:
        return rng.choice(_SURNAMES) + rng.choice(_GIVEN)
    return f"{rng.choice(_CHRISTIAN)} {rng.choice(_PEOPLE)}"


#: A purpose is no number, date, name or identifier: not a fact that makes another document.
_KEY: Final = ("amount", "rate", "account", "date", "months", "company", "person")


def _filled(sentence: str, rng: random.Random, *, chinese: bool) -> Iterator[Span]:
    at = 0
    for slot in _SLOT.finditer(sentence):
        kind = slot[1]
        yield Span(sentence[at : slot.start()])
        if slot[2]:
            yield Span(slot[2], "unit")
        else:
            yield Span(_value(kind, rng, chinese=chinese), kind if kind in _KEY else "")
        at = slot.end()
    yield Span(sentence[at:])


_ITEMS_ZH: Final = "营业收入 营业成本 销售费用 管理费用 财务费用 所得税"
_ITEMS_EN: Final = "sales cost selling overhead interest taxes"


def _table(rng: random.Random, *, chinese: bool) -> Iterator[Span]:
    """The cells of a statement, one a line, as the parser gives them."""
    items = (
        "营业收入 营业成本 销售费用 管理费用 财务费用 所得税"
        if chinese
        else "sales cost selling overhead interest taxes"
    )
    for item in items.split():
        yield Span(f"{item}\n")
        for _ in range(2):
            yield Span(_value("amount", rng, chinese=chinese), "figure")
            yield Span("\n")


def _original(group: int, rng: random.Random) -> Planted:
    chinese = group % 2 == 0
    pool = _ZH if chinese else _EN
    # Templates are few, so that documents of different origin share one too.
    template = random.Random(f"template {rng.randrange(60)} {chinese}")
    chosen = [*template.sample(pool[:8], 5), *template.sample(pool[8:], rng.randrange(9, 15))]
    spans = [span for sentence in chosen for span in _filled(sentence, rng, chinese=chinese)]
    if template.random() < 0.5:
        spans += _table(rng, chinese=chinese)
    return Planted(tuple(span for span in spans if span.text), group, "original", chinese)


# ---------------------------------------------------------------- true repeats

Edit = Callable[[Planted, random.Random], Planted]
_TYPOS_ZH: Final = dict(zip("的在账做按借期帐订象", "地再帐作安措其账定像", strict=True))
_OCR_ZH: Final = dict(zip("贷人已土持入订折户审", "货入己士特人计析尸宙", strict=True))
_OCR_EN: Final = (("m", "rn"), ("h", "b"), ("c", "e"), ("cl", "d"), ("w", "vv"), ("i", "j"), ("f", "t"), ("ri", "n"))
_WORD: Final = re.compile(r"(?<![\w])[a-z]{5,}(?![\w])")


def _exact(one: Planted, rng: random.Random) -> Planted:
    return one


def _typo(one: Planted, rng: random.Random) -> Planted:
    return _with_errors(one, rng, rng.randrange(1, 4), _TYPOS_ZH, _mistyped)


def _ocr(one: Planted, rng: random.Random) -> Planted:
    return _with_errors(one, rng, rng.randrange(2, 5), _OCR_ZH, _misread)


def _mistyped(word: str, rng: random.Random) -> str:
    at = rng.randrange(1, len(word) - 2)
    return rng.choice(
        (
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            word[:at] + word[at + 1 :],
            word[:at] + word[at] + word[at:],
        )
    )


def _misread(word: str, rng: random.Random) -> str:
    seen, read = rng.choice([pair for pair in _OCR_EN if pair[0] in word] or [("", "")])
    return word.replace(seen, read, 1) if seen else word


def _with_errors(
    one: Planted, rng: random.Random, count: int, chars: dict[str, str], wrong: Callable[[str, random.Random], str]
) -> Planted:
    """So many errors in ordinary words, those of Chinese in characters that look or sound like others."""
    spans = list(one.spans)
    pattern = re.compile(f"[{''.join(chars)}]") if one.chinese else _WORD
    places = [
        (index, match.start(), match.end())
        for index, span in enumerate(spans)
        if not span.fact
        for match in pattern.finditer(span.text)
    ]
    for index, start, end in sorted(rng.sample(places, min(count, len(places))), reverse=True):
        text = spans[index].text
        word = chars[text[start]] if one.chinese else wrong(text[start:end], rng)
        spans[index] = Span(text[:start] + word + text[end:])
    return replace(one, spans=tuple(spans))


def _reflow(one: Planted, rng: random.Random) -> Planted:
    """Other line breaks and spaces; in Chinese also half-width punctuation."""
    width, at, spans = rng.randrange(28, 90), 0, []
    for span in one.spans:
        text = span.text
        if not span.fact:
            text = text.replace("\n", " " if rng.random() < 0.5 else "\n\n")
            text = text.replace("，", ", ") if one.chinese and width % 2 else text
            broken = text.replace(" ", "\n", 1) if not one.chinese else "\n" + text
            at += len(text)
            text, at = (broken, 0) if at > width else (text, at)
        spans.append(replace(span, text=text))
    return replace(one, spans=tuple(spans))


_HEADER_ZH: Final = "华信证券 内部资料 2026年3月1日 第1页 共3页"
_HEADER_EN: Final = "Huaxin Securities, Internal, 1 March 2026, page 1 of 3"
_STAMP_ZH: Final = "仅供内部参考请勿外传\n\n"
_STAMP_EN: Final = "copy for internal use\n\n"


def _header(one: Planted, rng: random.Random) -> Planted:
    """A page header that the parser knows as one, with a page number, a date and a name in it."""
    kind = (
        "华信证券 内部资料 2026年3月1日 第1页 共3页"
        if one.chinese
        else "Huaxin Securities, Internal, 1 March 2026, page 1 of 3"
    )
    return replace(one, header=kind)


def _stamp(one: Planted, rng: random.Random) -> Planted:
    """A line at the top that the parser takes for text."""
    return replace(one, spans=(Span(_STAMP_ZH if one.chinese else _STAMP_EN), *one.spans))


REPEATS: Final[dict[str, Edit]] = {
    "exact": _exact,
    "typo": _typo,
    "reflowed": _reflow,
    "header": _header,
    "stamp": _stamp,
    "OCR": _ocr,
}

# ---------------------------------------------------------------- template twins

#: What a twin changes. `figure` is a restated statement: one cell.
TWINS: Final = (
    "amount",
    "rate",
    "account",
    "date",
    "months",
    "company",
    "person",
    "figure",
    "swapped",
    "digit",
    "sign",
)
#: Edits that no rule can tell from another fact: to be linked, and never to be taken for a repeat by guess.
DOUBTFUL: Final = ("digit in a word",)


def _twin(one: Planted, how: str, rng: random.Random) -> Planted | None:
    """The document with one fact changed, or None if it has none of that kind."""
    spans = list(one.spans)
    kind = {"digit": "amount", "sign": "figure", "swapped": "company"}.get(how, how)
    places = [index for index, span in enumerate(spans) if span.fact == kind]
    if not places:
        return None
    at = rng.choice(places)
    if how == "swapped":
        others = [index for index in places if spans[index].text != spans[at].text]
        if not others:
            return None
        spans[at], spans[others[0]] = spans[others[0]], spans[at]
        return replace(one, spans=tuple(spans), how=how)
    spans[at] = replace(spans[at], text=_other(spans[at].text, how, kind, rng, chinese=one.chinese))
    return replace(one, spans=tuple(spans), how=how)


def _other(text: str, how: str, kind: str, rng: random.Random, *, chinese: bool) -> str:
    if how == "sign":
        return f"({text})"
    if how == "digit":
        at = rng.choice([index for index, char in enumerate(text) if char.isdigit()])
        return text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]
    while (value := _value("amount" if kind == "figure" else kind, rng, chinese=chinese)) == text:
        pass
    return value


def _with_digit(one: Planted, rng: random.Random) -> Planted:
    """An O or l that was read as a digit."""
    spans = list(one.spans)
    for index, span in enumerate(spans):
        match = None if span.fact else re.search(r"(?<=[a-z])[ol](?=[a-z])", span.text)
        if match:
            digit = "0" if match[0] == "o" else "1"
            spans[index] = Span(span.text[: match.start()] + digit + span.text[match.end() :])
            break
    return replace(one, spans=tuple(spans), how=DOUBTFUL[0])


# ---------------------------------------------------------------- all


def planted(count: int, seed: int) -> list[Planted]:
    """So many documents in the order in which they arrive: 40 % originals, 30 % repeats, 30 % twins, few doubtful."""
    rng = random.Random(seed)
    originals = [_original(group, rng) for group in range(int(0.4 * count))]
    made = [*originals, *_repeats(originals, int(0.3 * count), rng), *_doubtful(originals, count // 200, rng)]
    made += _twins(originals, count - len(made), rng)
    rng.shuffle(made)
    return made


def _repeats(originals: Sequence[Planted], count: int, rng: random.Random) -> Iterator[Planted]:
    kinds = list(REPEATS)
    for number in range(count):
        how = kinds[number % len(kinds)]
        yield replace(REPEATS[how](rng.choice(originals), rng), how=how)


def _doubtful(originals: Sequence[Planted], count: int, rng: random.Random) -> Iterator[Planted]:
    english = [one for one in originals if not one.chinese]
    for one in rng.sample(english, min(count, len(english))):
        yield _with_digit(one, rng)


def _twins(originals: Sequence[Planted], count: int, rng: random.Random) -> list[Planted]:
    """Each is a group of its own, and like no other to the letter."""
    twins: list[Planted] = []
    known = {one.text for one in originals}
    while len(twins) < count:
        twin = _twin(rng.choice(originals), TWINS[len(twins) % len(TWINS)], rng)
        if twin is not None and twin.text not in known:
            known.add(twin.text)
            twins.append(replace(twin, group=len(originals) + len(twins)))
    return twins
