"""Faults to plant in correct results: each kind changes one thing, and says which field is wrong then."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any, Final

from bench.truths import Paper, Truth, value_of

Result = dict[str, Any]


@dataclass(frozen=True)
class Planted:
    """A result with one fault. `paths`: the fields that are wrong; empty where the whole result is, then `rule` is
    the finding that must name it. `extraction` is what else the engine said."""

    result: Result
    paths: tuple[str, ...]
    rule: str = ""
    extraction: dict[str, Any] = field(default_factory=dict)


Plant = Callable[[Paper, Result, Sequence[Truth], Random], Planted | None]
KINDS: Final[dict[str, Plant]] = {}

#: What the model of the benchmark was told besides the document.
PROMPT: Final = (
    "Copy the name of the company, the date of the document and the amounts that matter most, each with its label.",
    'Example: {"company": "Sample Widgets Holdings Ltd", "items": [{"label": "Turnover", "amount": "98,765.43"}]}',
    "请照抄公司名称、文件日期以及最重要的金额。示例：{公司：示例精密科技有限公司，金额：98,765.43}",
)


def kind(name: str) -> Callable[[Plant], Plant]:
    def register(plant: Plant) -> Plant:
        KINDS[name] = plant
        return plant

    return register


# ---------------------------------------------------------------- amounts


def _amount(change: Callable[[Paper, Truth, Random], Any]) -> Plant:
    """A fault in one amount; one whose value the document prints in the same row is none."""

    def plant(paper: Paper, result: Result, truths: Sequence[Truth], random: Random) -> Planted | None:
        if not truths:
            return None
        index = random.randrange(len(truths))
        wrong = change(paper, truths[index], random)
        if wrong is None or wrong == truths[index].text or wrong in truths[index].right:
            return None
        changed = deepcopy(result)
        changed["items"][index]["amount"] = wrong
        return Planted(changed, (f"/items/{index}/amount",))

    return plant


def _digits(text: str) -> list[int]:
    return [index for index, character in enumerate(text) if character.isascii() and character.isdigit()]


def _digit_changed(paper: Paper, truth: Truth, random: Random) -> str:
    at = random.choice(_digits(truth.text))
    others = [digit for digit in "123456789" if digit != truth.text[at]]
    return truth.text[:at] + random.choice(others) + truth.text[at + 1 :]


def _digits_swapped(paper: Paper, truth: Truth, random: Random) -> str | None:
    places = _digits(truth.text)
    text = truth.text
    pairs = [(a, b) for a, b in pairwise(places) if text[a] != text[b]]
    pairs = [(a, b) for a, b in pairs if not (a == places[0] and text[b] == "0")]
    if not pairs:
        return None
    a, b = random.choice(pairs)
    return f"{text[:a]}{text[b]}{text[a + 1 : b]}{text[a]}{text[b + 1 :]}"


def _digit_dropped(paper: Paper, truth: Truth, random: Random) -> str | None:
    plain = f"{abs(value_of(truth.text)):f}"
    places = [at for at in _digits(plain) if plain[at] != "0"][1:]
    if not places or truth.text.endswith("%") or value_of(truth.text) < 0:
        return None
    at = random.choice(places)
    return (plain[:at] + plain[at + 1 :]).rstrip(".")


def _digit_added(paper: Paper, truth: Truth, random: Random) -> str | None:
    plain = f"{abs(value_of(truth.text)):f}"
    if truth.text.endswith("%") or value_of(truth.text) < 0:
        return None
    at = random.choice(_digits(plain)[1:])
    return plain[:at] + random.choice("123456789") + plain[at:]


def _times(power: int) -> Callable[[Paper, Truth, Random], str | None]:
    def change(paper: Paper, truth: Truth, random: Random) -> str | None:
        if truth.text.endswith("%") or truth.table.scale == 10**power:
            return None
        return f"{value_of(truth.text).scaleb(power):,f}"

    return change


def _wan(paper: Paper, truth: Truth, random: Random) -> str | None:
    unfit = truth.text.endswith("%") or value_of(truth.text) < 0 or truth.table.scale == 10**4
    return None if unfit else f"{truth.text}万元"


def _million(paper: Paper, truth: Truth, random: Random) -> str | None:
    unfit = truth.text.endswith("%") or value_of(truth.text) < 0 or truth.table.scale == 10**6
    return None if unfit else f"{truth.text} million"


def _sign(paper: Paper, truth: Truth, random: Random) -> str:
    value = value_of(truth.text)
    share = "%" if truth.text.endswith("%") else ""
    return f"{-value:,f}{share}" if random.random() < 0.5 or value < 0 else f"({value:,f}){share}"


def _percent(paper: Paper, truth: Truth, random: Random) -> str | None:
    head = " ".join(cell.text for cell in truth.table.cells if cell.col in (0, truth.cell.col))
    shares = re.search(
        "[%％率比]|percent|rate|ratio|margin", head + (truth.table.caption or "") + str(truth.table.unit)
    )
    return None if truth.text.endswith("%") or shares else f"{truth.text}%"


def _per_mille(paper: Paper, truth: Truth, random: Random) -> str | None:
    return truth.text[:-1] + "‰" if truth.text.endswith("%") else None


def _half_fraction(paper: Paper, truth: Truth, random: Random) -> str | None:
    """A percentage divided by ten in place of a hundred."""
    return f"{value_of(truth.text.rstrip('%')) / 10:f}" if truth.text.endswith("%") else None


def _text(paper: Paper, truth: Truth, random: Random) -> str:
    return random.choice(["a large amount", "较大金额", "N/A"])


def _invented(paper: Paper, truth: Truth, random: Random) -> str | None:
    number = f"{random.randint(1000, 9999999):,}.{random.randint(0, 99):02}"
    return None if number in paper.text else number


def _neighbour(cells: str) -> Callable[[Paper, Truth, Random], str | None]:
    def change(paper: Paper, truth: Truth, random: Random) -> str | None:
        others = [text for text in getattr(truth, cells) if value_of(text) != value_of(truth.text)]
        if cells == "right" and truth.period is None:
            return None  # nothing says then which column is meant
        others = [text for text in others if text not in truth.right] if cells == "below" else others
        return random.choice(others) if others else None

    return change


def _amount_from_elsewhere(change: Callable[[Paper, Truth, Random], Any]) -> Plant:
    """As `_amount`, for values that stand in the row or column: there the place is wrong, not the value."""

    def plant(paper: Paper, result: Result, truths: Sequence[Truth], random: Random) -> Planted | None:
        if not truths:
            return None
        index = random.randrange(len(truths))
        wrong = change(paper, truths[index], random)
        if wrong is None:
            return None
        changed = deepcopy(result)
        changed["items"][index]["amount"] = wrong
        return Planted(changed, (f"/items/{index}/amount",))

    return plant


for _name, _change in {
    "digit changed": _digit_changed, "digits swapped": _digits_swapped, "digit dropped": _digit_dropped,
    "digit added": _digit_added, "ten times": _times(1), "a tenth": _times(-1), "thousand times": _times(3),
    "ten thousand times": _times(4), "万元 put on": _wan, "million put on": _million, "sign": _sign,
    "percent put on": _percent, "percent to per mille": _per_mille, "percent over ten": _half_fraction,
    "no number": _text, "invented number": _invented,
}.items():  # fmt: skip
    KINDS[_name] = _amount(_change)
KINDS["neighbouring column"] = _amount_from_elsewhere(_neighbour("right"))
KINDS["neighbouring row"] = _amount_from_elsewhere(_neighbour("below"))


@kind("label of another row")
def _label(paper: Paper, result: Result, truths: Sequence[Truth], random: Random) -> Planted | None:
    """The pair is wrong: either of its two fields may be named."""
    index = random.randrange(len(truths)) if truths else 0
    if not truths or not truths[index].others:
        return None
    other = random.choice(truths[index].others)
    cells = {(cell.row, cell.col): cell.text.strip() for cell in truths[index].table.cells}
    row = next((row for (row, col), text in cells.items() if col == 0 and text == other), None)
    same = any(text == truths[index].text for (at, _), text in cells.items() if at == row)
    head = row is None or row < max(truths[index].table.header_rows, 1)
    if same or head or other in truths[index].label:
        return None
    changed = deepcopy(result)
    changed["items"][index]["label"] = other
    return Planted(changed, (f"/items/{index}/label", f"/items/{index}/amount"))


@kind("period of another column")
def _period(paper: Paper, result: Result, truths: Sequence[Truth], random: Random) -> Planted | None:
    if not truths or truths[0].period is None:
        return None
    heads = " ".join(cell.text for cell in truths[0].table.cells if cell.row < truths[0].table.header_rows)
    others = [year for year in re.findall("(?:19|20)[0-9]{2}", heads) if year != truths[0].period]
    if not others or truths[0].text in truths[0].right:
        return None
    changed = deepcopy(result)
    changed["items"][0]["period"] = random.choice(others)
    return Planted(changed, ("/items/0/amount", "/items/0/period"))


# ---------------------------------------------------------------- dates, names, identifiers, quotations


def _change(name: str, change: Callable[[Paper, str, Random], str | None]) -> Plant:
    """A fault in a text field; what the document prints all the same is none."""

    def plant(paper: Paper, result: Result, truths: Sequence[Truth], random: Random) -> Planted | None:
        if not result.get(name):
            return None
        wrong = change(paper, result[name], random)
        squeezed = "".join(paper.text.split())
        if not wrong or "".join(wrong.split()) in squeezed:
            return None
        return Planted({**result, name: wrong}, (f"/{name}",))

    return plant


def _wrong_year(paper: Paper, text: str, random: Random) -> str | None:
    year = re.search("(?:19|20)[0-9]{2}", text)
    other = str(int(year[0]) + random.choice([-7, -6, 6, 7])) if year else None
    return text.replace(year[0], other) if year and other and other not in paper.text else None


def _wrong_day(paper: Paper, text: str, random: Random) -> str | None:
    """Another day of a year that the document has no date of."""
    parts = re.search("((?:19|20)[0-9]{2})", text)
    days = [f"{parts[1]}-02-{day:02}" for day in (3, 11, 19, 23)] if parts else []
    free = [day for day in days if not re.search(rf"{day[:4]}年2月|February [0-9]+, {day[:4]}|{day[:7]}", paper.text)]
    return random.choice(free) if free else None


def _no_day(paper: Paper, text: str, random: Random) -> str:
    return random.choice(["2024-02-30", "31 June 2023", "2023年13月5日"])


def _letter(paper: Paper, text: str, random: Random) -> str:
    at = random.choice([index for index, character in enumerate(text) if character.isalpha()])
    return text[:at] + ("某" if ord(text[at]) > 0x2FFF else "q" if text[at] != "q" else "z") + text[at + 1 :]


def _other_name(paper: Paper, text: str, random: Random) -> str:
    return random.choice(["Meridian Arc Holdings Ltd", "恒岳远景投资有限公司", "Calder & Finch Corporation"])


def _code_digit(paper: Paper, text: str, random: Random) -> str:
    at = random.choice(_digits(text))
    return text[:at] + str((int(text[at]) + random.randint(1, 9)) % 10) + text[at + 1 :]


def _code_cut(paper: Paper, text: str, random: Random) -> Any:
    cut = text[:-1]
    return cut if not re.search(rf"(?<![A-Za-z0-9]){re.escape(cut)}(?![A-Za-z0-9])", paper.text) else None


def _word(paper: Paper, text: str, random: Random) -> str:
    if re.search("[\u4e00-\u9fff]", text):
        at = random.randrange(5, len(text) - 3)
        return text[:at] + "并非" + text[at + 2 :]
    words = text.split()
    at = random.randrange(2, len(words) - 1)
    return " ".join([*words[:at], "never", *words[at + 1 :]])


def _stitched(paper: Paper, text: str, random: Random) -> str | None:
    others = [quote for quote in paper.quotes if quote != text]
    if not others:
        return None
    other = random.choice(others)
    return text[: len(text) // 2] + other[len(other) // 2 :]


KINDS |= {
    "wrong year": _change("date", _wrong_year),
    "wrong day": _change("date", _wrong_day),
    "no day of the calendar": _change("date", _no_day),
    "letter of a name": _change("company", _letter),
    "invented name": _change("company", _other_name),
    "digit of an identifier": _change("reference", _code_digit),
    "word of a quotation": _change("evidence", _word),
    "two quotations in one": _change("evidence", _stitched),
}


@kind("identifier cut short")
def _cut(paper: Paper, result: Result, truths: Sequence[Truth], random: Random) -> Planted | None:
    cut = _code_cut(paper, result["reference"], random) if result["reference"] else None
    return Planted({**result, "reference": cut}, ("/reference",)) if cut else None


@kind("value of the prompt's example")
def _leak(paper: Paper, result: Result, truths: Sequence[Truth], random: Random) -> Planted | None:
    name = "示例精密科技有限公司" if paper.chinese else "Sample Widgets Holdings Ltd"
    return Planted({**result, "company": name}, ("/company",))


# ---------------------------------------------------------------- the model's own words


def _prose(english: Sequence[str], chinese: Sequence[str]) -> Plant:
    def plant(paper: Paper, result: Result, truths: Sequence[Truth], random: Random) -> Planted | None:
        return Planted({**result, "summary": random.choice(chinese if paper.chinese else english)}, ("/summary",))

    return plant


KINDS |= {
    "invented statute": _prose(
        ["This breaches 83 CFR 1020.320.", "It falls under 31 CFR 1987.44.", "See 61 U.S.C. 5318.",
         "Article 733 of Regulation (EU) No 575/2013 applies."],
        ["违反《中华人民共和国反洗钱法》第一百二十条。", "依据《跨境支付诚信管理条例》第七条。",
         "见《公司法》第三百零一条。", "不符合《数据安全法》第八十八条的规定。"],
    ),
    "invented figure in prose": _prose(
        ["Losses came to 73,918,264.55 in all.", "The ratio stands at 83.917%.", "It owes 9,182,736.45 million."],
        ["累计损失73,918,264.55元。", "该比率为83.917%。", "尚欠9182万7364元。"],
    ),
    "invented date in prose": _prose(
        ["Payment fell due on 17 August 1973.", "It was signed on 1971-02-11."],
        ["应于1973年8月17日偿还。", "合同签订于一九七一年二月十一日。"],
    ),
    "repeated sentences": _prose(
        ["The debtor has paid late again. Costs have risen sharply this year. The debtor has paid late again. Nothing "
         "else was seen. The debtor has paid late again, as before."],
        ["公司负债率持续上升值得关注。本期无其他事项。公司负债率持续上升值得关注。此外，公司负债率持续上升值得关注。"],
    ),
    "loop at the end": _prose(
        ["The risk is high and rising and rising and rising and rising and rising"],
        ["风险较高，需要持续关注需要持续关注需要持续关注需要持续关注"],
    ),
    "one alternative twice": _prose(["The risk is moderate or moderate."], ["风险等级为较高或较高。"]),
    "prompt copied": _prose(
        ["What the document says, in one sentence of your own.",
         "Copy the name of the company, the date of the document and the amounts that matter most."],
        ["请照抄公司名称、文件日期以及最重要的金额。", "What the document says, in one sentence of your own"],
    ),
    "model speaks of itself": _prose(
        ["As an AI language model, I cannot judge this."], ["作为人工智能语言模型，我无法判断。"]
    ),
}  # fmt: skip


# ---------------------------------------------------------------- the whole result


@kind("same entry three times")
def _thrice(paper: Paper, result: Result, truths: Sequence[Truth], random: Random) -> Planted | None:
    if not result["items"]:
        return None
    return Planted({**result, "items": [result["items"][0]] * 3}, ("/items",))


@kind("field left out")
def _left_out(paper: Paper, result: Result, truths: Sequence[Truth], random: Random) -> Planted | None:
    name = random.choice(["company", "date", "items", "summary"])
    return Planted({key: value for key, value in result.items() if key != name}, (f"/{name}",))


@kind("value out of the list")
def _choice(paper: Paper, result: Result, truths: Sequence[Truth], random: Random) -> Planted | None:
    return Planted({**result, "level": random.choice(["extreme", "中", "", "High"])}, ("/level",))


@kind("wrong type")
def _type(paper: Paper, result: Result, truths: Sequence[Truth], random: Random) -> Planted | None:
    name, value = random.choice([("company", ["x"]), ("summary", 5), ("date", {"year": 2024}), ("level", None)])
    return Planted({**result, name: value}, (f"/{name}",))


@kind("property that nobody asked for")
def _extra(paper: Paper, result: Result, truths: Sequence[Truth], random: Random) -> Planted | None:
    return Planted({**result, "confidence": "0.98"}, (), "schema-violated")


@kind("answer cut off")
def _truncated(paper: Paper, result: Result, truths: Sequence[Truth], random: Random) -> Planted | None:
    raw = json.dumps(result, ensure_ascii=False)
    cut = raw[: random.randrange(len(raw) // 2, len(raw) - 2)]
    return Planted(result, (), "result-cut-off", {"finish_reason": random.choice(["length", "stop"]), "raw": cut})


@kind("citation of another place")
def _citation(paper: Paper, result: Result, truths: Sequence[Truth], random: Random) -> Planted | None:
    """The page is wrong, so that the box holds something else."""
    if not result["company"] or len(paper.document.pages) < 2:
        return None
    return Planted(result, ("/company",), "", {"moved": "/company"})
