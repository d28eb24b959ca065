"""What prompts share stands first, down to the token: a prefix cache works on whole blocks of tokens."""

from __future__ import annotations

from itertools import takewhile

import pytest
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as Bytes
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer

from docmill.types import Part
from inference.profile import load_profiles
from inference.prompt import Objections, build
from tests.reading import CHINESE, ENGLISH, part_of

PROFILES = load_profiles()


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """A byte-level BPE like those of the models, made of the prompts themselves: its tokens cross every seam."""
    made = Tokenizer(BPE())
    made.pre_tokenizer, made.decoder = ByteLevel(add_prefix_space=False), Bytes()
    texts = [
        "\n".join(build(profile, part_of(*lines))) for profile in PROFILES.values() for lines in (ENGLISH, CHINESE)
    ]
    made.train_from_iterator(texts, BpeTrainer(vocab_size=2000, show_progress=False))
    return made


def tokens(tokenizer: Tokenizer, profile: str, part: Part, said: Objections | None = None) -> list[int]:
    prompt = build(PROFILES[profile], part, said or {})
    turns = f"<|system|>\n{prompt.system}\n<|user|>\n{prompt.user}\n<|assistant|>\n"
    return list(tokenizer.encode(turns).ids)


def shared(one: list[int], other: list[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def page(text: str, number: int = 1, of: int = 1) -> Part:
    return part_of(f"[p{number}]", text, number=number, of=of)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("one", "other"), [("Alpha Ltd owes 5.", "Gamma Inc has paid."), ("甲公司欠款五元。", "乙公司已付清款项。")]
)
def test_two_documents_share_every_token_before_their_first_word(
    tokenizer: Tokenizer, profile: str, one: str, other: str
) -> None:
    first, second = (tokens(tokenizer, profile, page(text)) for text in (one, other))
    document = build(PROFILES[profile], page(one))
    before = f"<|system|>\n{document.system}\n<|user|>\n{document.user.partition(one)[0]}"
    assert shared(first, second) >= len(tokenizer.encode(before).ids) - 1
    assert shared(first, second) > 0.8 * len(first)


def test_a_part_shares_as_much_as_a_whole_document(tokenizer: Tokenizer) -> None:
    whole, part = page("Alpha Ltd owes 5."), page("Gamma Inc has paid.", of=9)
    other = page("Delta Inc has paid.")
    first, second, third = (tokens(tokenizer, "risk-report", one) for one in (whole, part, other))
    assert shared(first, second) == shared(first, third)


def test_a_second_reading_shares_the_whole_document(tokenizer: Tokenizer) -> None:
    part, said = part_of(*ENGLISH), {"en": ("/amount: is not there",)}
    first, again = tokens(tokenizer, "risk-report", part), tokens(tokenizer, "risk-report", part, said)
    assert shared(first, again) > len(tokenizer.encode(f"{build(PROFILES['risk-report'], part).user}").ids)


def test_nothing_of_job_or_tenant_is_in_a_prompt() -> None:
    assert build(PROFILES["risk-report"], part_of(*ENGLISH)) == build(PROFILES["risk-report"], part_of(*ENGLISH))
