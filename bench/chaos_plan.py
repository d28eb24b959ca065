"""What `bench.chaos` will do, drawn from one seed before anything runs: which files come, which blows fall."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from tests.pdfs import encrypted_pdf, no_pages_pdf, page_loop_pdf, text_pdf
from tests.stack import notice

#: A document with this word kills the worker that reads it, each time.
DEADLY: Final = "BLASTOMYCOSIS"

READ: Final = frozenset({"done", "needs_review"})
FAILED: Final = frozenset({"failed"})
REFUSED: Final = frozenset({"refused"})

#: Tenants that call with a key of their own; the last one is a VIP.
TENANTS: Final = ("acme", "beta", "vip")
VIP: Final = "vip"

_LINES: Final = 40


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file: how to make one, how it must end, of a hundred files how many are of it."""

    name: str
    make: Callable[[int], bytes]
    ends: frozenset[str]
    share: float
    profile: str = "transaction-monitoring"
    door: str = "api"
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """One file: its kind and number, its door and tenant, and when it comes (share of the whole time)."""

    number: int
    kind: Kind
    tenant: str
    door: str
    at: float
    #: The number of the file whose bytes it repeats; its own, if it repeats none.
    content: int
    cancel_after_s: float | None = None

    @property
    def name(self) -> str:
        return f"{self.kind.name}-{self.number}.pdf"

    def data(self) -> bytes:
        return self.kind.make(self.content)


@dataclass(frozen=True, slots=True)
class Blow:
    """One thing that is done to the system. `dice` draws what it hits when it falls."""

    at: float
    kind: str
    program: str = ""
    dice: int = 0


def prose(number: int, lines: int) -> str:
    """Lines about one customer, no two documents alike."""
    return "\n".join(
        f"{line}. On day {line} customer {number} of Harbour Trading paid USD {number * 100 + line}.25 to its account."
        for line in range(1, lines + 1)
    )


def short(number: int) -> bytes:
    return notice(10_000 + number)


def medium(number: int) -> bytes:
    return text_pdf(prose(number, _LINES // 2))


def long(number: int) -> bytes:
    return text_pdf(*(prose(number * 10 + page, _LINES) for page in range(4)))


def deadly(number: int) -> bytes:
    return text_pdf(f"Notice {number}\nAccount: ACC-{number}\nCounterparty: {DEADLY} Ltd\nAmount: USD {number}.00")


KINDS: Final = (
    Kind("hot-short", short, READ, 34),
    Kind("hot-medium", medium, READ, 10),
    Kind("hot-long", long, READ, 3),
    Kind("warm", short, READ, 10, profile="customer-screening"),
    Kind("cold-short", short, READ, 8, profile="risk-report", door="inbox"),
    Kind("cold-long", long, READ, 4, profile="risk-report", door="inbox"),
    Kind("ordered", short, READ, 3, profile="risk-report", door="key"),
    Kind("bucket", short, READ, 8, door="inbox"),
    Kind("cancelled", short, READ | {"cancelled"}, 6, cancelled=True),
    Kind("encrypted", lambda number: encrypted_pdf("secret", f"Number {number}."), FAILED, 2),
    Kind("no-pages", lambda number: no_pages_pdf() + b"%" * number, FAILED, 2),
    Kind("page-loop", lambda number: page_loop_pdf() + b"%" * number, FAILED, 2),
    Kind("not-a-pdf", lambda number: b"<html>log in %d</html>" % number, REFUSED, 2),
    Kind("poison", deadly, FAILED, 0.7),
)
#: Of every so many files one is sent again, as a client does that did not get the answer.
REPEAT_EVERY: Final = 20


def works(count: int, seed: int) -> list[Work]:
    """So many files, each kind at least once, in the order in which they come."""
    dice = Random(seed)
    kinds = list(KINDS) + dice.choices(KINDS, weights=[kind.share for kind in KINDS], k=max(0, count - len(KINDS)))
    kinds = [*kinds[: len(KINDS)], *_bounded(kinds[len(KINDS) :], count)]
    dice.shuffle(kinds)
    made = [_work(number, kind, number / len(kinds), dice) for number, kind in enumerate(kinds, start=1)]
    repeats = [_again(made[index], len(made) + turn) for turn, index in enumerate(range(3, len(made), REPEAT_EVERY), 1)]
    return sorted([*made, *repeats], key=lambda work: work.at)


def _bounded(kinds: list[Kind], count: int) -> Iterator[Kind]:
    """Little poison: each takes three workers with it."""
    left = count // 250
    for kind in kinds:
        if kind.name == "poison":
            left -= 1
        yield kind if kind.name != "poison" or left >= 0 else KINDS[0]


def _work(number: int, kind: Kind, at: float, dice: Random) -> Work:
    after = dice.uniform(0.0, 3.0) if kind.cancelled else None
    return Work(number, kind, dice.choice(TENANTS), kind.door, at, number, after)


def _again(work: Work, number: int) -> Work:
    return replace(work, number=number, door="api", at=min(1.0, work.at + 0.02), cancel_after_s=None)


#: Blows for each kill, by kind; the kills themselves come on top. Each falls at least once.
BESIDES: Final[Mapping[str, float]] = {
    "engine killed": 0.1,
    "worker frozen": 0.06,
    "redis flushed": 0.1,
    "redis killed": 0.06,
    "redis restarted": 0.04,
    "postgres restarted": 0.06,
    "postgres killed": 0.04,
    "messages sent twice": 0.3,
    "messages dropped": 0.2,
}
#: A child is killed rather than its leader with this chance, where there is one.
CHILDREN: Final = 0.4


def blows(kills: int, programs: tuple[str, ...], seconds: float, seed: int) -> list[Blow]:
    """The kills, each program in turn, and the rest, in drawn order and evenly spread over the time."""
    dice = Random(seed + 1)
    drawn = [
        ("child killed" if dice.random() < CHILDREN else "worker killed", programs[number % len(programs)])
        for number in range(kills)
    ]
    for kind, share in BESIDES.items():
        drawn += [(kind, "")] * max(1, round(kills * share))
    dice.shuffle(drawn)
    gap = 0.9 * seconds / len(drawn)
    return [
        Blow(0.05 * seconds + gap * (place + dice.random()), kind, program, dice.randrange(1 << 30))
        for place, (kind, program) in enumerate(drawn)
    ]
