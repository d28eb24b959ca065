"""The facts of a text that make it another document than its template's other uses: numbers, dates, names.

A fact that is none (a capitalised heading) does no harm while it stands in both documents; one that is missed lets
two documents pass for one. So the patterns are generous, and bounded so that an error of print in ordinary words
changes none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from docmill.likeness import Facts
from docmill.spelling import search_copy

_MINUS: Final = re.compile("[−–—△▲]")
_SPACED_PERCENT: Final = re.compile(r"(?<=\d)\s+%")
#: In Chinese a line may break anywhere; an empty line ends a paragraph.
_BREAK: Final = re.compile(r"(?<=[\u3400-\u9fff])(?: *\n *| +)(?=[\u3400-\u9fff])")
_BRACKETED: Final = re.compile(r"\(\s*([\d,.]+%?)\s*\)")
_DATE: Final = re.compile(r"(\d{4})\s*[年./-]\s*(\d{1,2})\s*[月./-]\s*(\d{1,2})\s*日?")
#: With a digit it is a number or an identifier.
_TOKEN: Final = re.compile(r"[-+]?[A-Za-z0-9][A-Za-z0-9.,/:\-]*[A-Za-z0-9%]|[0-9]%?")
_DIGIT: Final = re.compile(r"[0-9]")
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3})")
_SYMBOL: Final = re.compile("[$€£¥]")

#: A single one only where it counts something: 一致 is no number.
_NUMERAL: Final = re.compile(
    r"[〇零一二三四五六七八九十百千万亿壹贰叁肆伍陆柒捌玖拾佰仟两]{2,}|(?<=第)[一二三四五六七八九]"
    r"|[一二三四五六七八九十两](?=[元年月日天个份期倍成条次名股章款人笔套])"
)
_UNIT: Final = re.compile(r"人民币|[美欧港日]元|英镑|[百千万亿]*元")
#: With one of these less a clause says the opposite.
_NEGATION: Final = re.compile(r"[不未无非没]|禁止")

#: What ends a company's name, and how much before it can belong to it; it begins after a word that links.
_ORGANISATION_END: Final = re.compile(
    r"(?:股份)?(?:有限)?(?:责任)?公司|银行|集团|事务所|合伙企业|基金|中心|大学|医院|委员会"
)
_ORGANISATION_START: Final = re.compile(r"[^\u4e00-\u9fff]|[与及向由在的是从给被把或即该将](?=.{2})", re.DOTALL)
_LONGEST_START: Final = 14
_LABELLED: Final = re.compile(
    r"(?:甲方|乙方|丙方|丁方|姓名|户名|借款人|出借人|贷款人|担保人|保证人|受托人|委托人|法定代表人|授权代表|经办人|联系人"
    r"|客户|供应商|买方|卖方|出租人|承租人)(?:\([^)]{1,10}\))?\s*:\s*([\u3400-\u9fff·]{2,4})"
)
_SURNAMES: Final = (
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪"
    "田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文"
)
_PERSON: Final = re.compile(
    rf"[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}(?=先生|女士|小姐|同志|签[署字订]|担任|律师|博士|教授|[(,]?(?:身份证|男|女))"
    rf"|(?<=[由系])[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}(?=负责|代表|出具|审核|经办|保证|担保|承担|提供|复核)"
)
_CJK: Final = re.compile(r"[\u3400-\u9fff]")

_WORD: Final = re.compile(r"[A-Za-z][A-Za-z&'’-]*")
_NUMBER_WORDS: Final = frozenset(
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety half third fourth fifth quarter "
    "dozen".split()
)
_UNIT_WORDS: Final = frozenset(
    "hundred thousand million billion trillion hundreds thousands millions billions trillions".split()
)
_NEGATION_WORDS: Final = frozenset("not no never without except unless neither nor none cannot".split())
#: They begin sentences and name nothing.
_ORDINARY: Final = frozenset(
    "a after all an and any as at before by each either every for from if in it its neither no of on or other our "
    "such that the their there these this those to under unless until upon we when where which while with".split()
)
#: A sentence ends before it; not after an abbreviation.
_SENTENCE_BEFORE: Final = re.compile(r"(?<!Mr)(?<!Mrs)(?<!Ms)(?<!Dr)(?<!Co)(?<!Ltd)(?<!Inc)(?<!Corp)(?<!No)[.!?]\s+$")
#: An abbreviation, a full stop and a line break.
_LOOK_BACK: Final = 8


def facts(text: str) -> Facts:
    """Numbers, dates, identifiers and names in one spelling, by kind, in reading order."""
    plain = _SPACED_PERCENT.sub("%", _MINUS.sub("-", search_copy(text)))
    undated = _BRACKETED.sub(r" -\1 ", _DATE.sub(" ", plain))
    words = [(match[0], match.start()) for match in _WORD.finditer(plain)]
    lower = [word.casefold() for word, _ in words]
    chinese = _BREAK.sub("", plain) if _CJK.search(plain) else ""
    return {
        "dates": [f"{int(year):04}-{int(month):02}-{int(day):02}" for year, month, day in _DATE.findall(plain)],
        "numbers": [_spelling(token) for token in _TOKEN.findall(undated) if _DIGIT.search(token)],
        "numerals": [*_NUMERAL.findall(chinese), *(word for word in lower if word in _NUMBER_WORDS)],
        "units": [*_UNIT.findall(chinese), *_SYMBOL.findall(plain), *(word for word in lower if word in _UNIT_WORDS)],
        "names": [*_capitalised(plain, words), *_chinese_names(chinese)],
        "negations": [*_NEGATION.findall(chinese), *(word for word in lower if word in _NEGATION_WORDS)],
    }


def _spelling(token: str) -> str:
    return _THOUSANDS.sub("", token).casefold()


def _capitalised(text: str, words: Sequence[tuple[str, int]]) -> Iterator[str]:
    """Words with a capital, without those that have it only because they begin a sentence."""
    lower = {word for word, _ in words if word.islower()}
    for word, at in words:
        if word[0].islower():
            continue
        name = word.casefold()
        if name not in _ORDINARY and not (name in lower and _begins(text, at)):
            yield name


def _begins(text: str, at: int) -> bool:
    return at == 0 or _SENTENCE_BEFORE.search(text[max(0, at - _LOOK_BACK) : at]) is not None


def _chinese_names(text: str) -> list[str]:
    return [*_organisations(text), *_LABELLED.findall(text), *_PERSON.findall(text)]


def _organisations(text: str) -> Iterator[str]:
    """Names that end as companies' do; where the name begins is judged by what stands before."""
    last = 0
    for match in _ORGANISATION_END.finditer(text):
        before = text[max(last, match.start() - _LONGEST_START) : match.start()]
        last = match.end()
        start = max((cut.end() for cut in _ORGANISATION_START.finditer(before)), default=0)
        if start < len(before):
            yield before[start:] + match[0]
