"""Profiles, lanes, prices and prompts: what is read from files, and what is refused."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from docmill.errors import UnknownProfile
from docmill.types import LengthClass
from inference.cost import Prices, cost, price_per_million
from inference.lanes import BrokenLanes, load_lanes
from inference.profile import BUILT_IN, BrokenProfile, get, load_profiles
from inference.prompt import build, outline, overhead, system
from tests.reading import CHINESE, ENGLISH, part_of

PROFILES = load_profiles()


def test_the_built_in_profiles_are_the_three_of_compliance() -> None:
    assert {name: (profile.window_seconds, profile.temperature) for name, profile in PROFILES.items()} == {
        "customer-screening": (240, 0.3),
        "risk-report": (86400, 0.0),
        "transaction-monitoring": (0, 0.0),
    }


@pytest.mark.parametrize("profile", PROFILES.values(), ids=str)
def test_the_schema_of_a_profile_is_a_json_schema_closed_to_other_keys(profile: Any) -> None:
    Draft202012Validator.check_schema(profile.json_schema())
    assert not Draft202012Validator(profile.schema).is_valid({"unknown": 1})


def test_an_unknown_profile_is_answered_with_those_that_exist() -> None:
    with pytest.raises(UnknownProfile, match="'invoice'; available: customer-screening, risk-report, transaction-mon"):
        get(PROFILES, "invoice")


def a_profile(**changes: Any) -> dict[str, Any]:
    fields = yaml.safe_load((BUILT_IN / "risk-report.yaml").read_text(encoding="utf-8"))
    return fields | changes


GROUNDED_BUT_REQUIRED = {"type": "object", "properties": {"date": {"type": "string", "x-source": "date"}}}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"window_seconds": -1}, "window_seconds"),
        ({"colour": "red"}, "colour"),
        ({"lanes": []}, "lanes"),
        ({"instructions": {"en": "Read."}}, "zh"),
        ({"schema": GROUNDED_BUT_REQUIRED}, "date"),
        ({"schema": {"type": "array"}}, "schema"),
    ],
)
def test_a_broken_profile_is_refused_with_its_file_and_the_place(tmp_path: Path, changes: Any, reason: str) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(yaml.safe_dump(a_profile(**changes)), encoding="utf-8")
    with pytest.raises(BrokenProfile, match=rf"broken\.yaml.*{reason}"):
        load_profiles(tmp_path)


def test_a_file_that_is_not_yaml_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("a: [", encoding="utf-8")
    with pytest.raises(BrokenProfile, match=r"bad\.yaml: not YAML"):
        load_profiles(tmp_path)


def test_two_profiles_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(yaml.safe_dump(a_profile()), encoding="utf-8")
    with pytest.raises(BrokenProfile, match="taken"):
        load_profiles(tmp_path)


# ---------------------------------------------------------------- prompts


def test_what_documents_share_comes_first_and_the_document_last() -> None:
    first, second = build(PROFILES["risk-report"], part_of("One.")), build(PROFILES["risk-report"], part_of("Two."))
    assert first.system == second.system
    assert first.user == "Document:\nOne."


def test_a_chinese_document_is_asked_for_in_chinese() -> None:
    profile = PROFILES["risk-report"]
    assert build(profile, part_of(*CHINESE)).system.startswith("你负责阅读")
    assert build(profile, part_of(*ENGLISH)).system.startswith("You read")


def test_a_part_says_which_of_how_many_it_is() -> None:
    assert "part 2 of 5" in build(PROFILES["risk-report"], part_of("x", number=2, of=5)).user


def test_the_overhead_is_enough_for_either_language() -> None:
    profile = PROFILES["risk-report"]
    assert overhead(profile, len) > max(len(system(profile, "en")), len(system(profile, "zh")))


def test_what_was_wrong_with_an_earlier_answer_comes_after_the_document() -> None:
    profile, said = PROFILES["risk-report"], {"en": ("/company: is not there",), "zh": ("/company: 文件中没有",)}
    english, chinese = (build(profile, part_of(*lines), said) for lines in (ENGLISH, CHINESE))
    assert english.user.startswith(build(profile, part_of(*ENGLISH)).user)
    assert "- /company: is not there\n" in english.user
    assert "- /company: 文件中没有\n" in chinese.user
    assert english.system == build(profile, part_of("Other.")).system


def test_the_overhead_grows_with_what_is_said_of_an_earlier_answer() -> None:
    profile = PROFILES["risk-report"]
    assert overhead(profile, len, {"en": ("x" * 100,)}) > overhead(profile, len) + 100


def test_the_schema_is_shown_as_a_form() -> None:
    schema = {"properties": {"a": {"type": ["string", "null"], "description": "name"}, "b": {"enum": ["x", None]}}}
    assert outline(schema) == '{"a":"name"|null,"b":"x"|null}'


# ---------------------------------------------------------------- lanes and prices


def test_the_built_in_lanes_are_read_with_exact_prices() -> None:
    lanes = load_lanes()
    assert list(lanes) == ["fp16", "awq", "fp8", "cpu"]
    assert lanes["awq"].prices.input == Decimal("0.035")
    assert lanes["awq"].lengths == (LengthClass.SHORT, LengthClass.MEDIUM)


LANE = {"name": "a", "model": "m", "engine": "stub", "precision": "none", "context_tokens": 1024}


@pytest.mark.parametrize(
    ("lanes", "reason"),
    [
        ([LANE | {"max_num_seqs": 21}], "1 to 20"),
        ([LANE | {"engine": "other"}], "other"),
        ([LANE | {"heats": []}], "no queue"),
        ([LANE, LANE], "each with its own name"),
        ([], "at least one"),
        ("a: [", "not YAML"),
    ],
)
def test_broken_lanes_are_refused_with_their_file(tmp_path: Path, lanes: Any, reason: str) -> None:
    file = tmp_path / "lanes.yaml"
    file.write_text(lanes if isinstance(lanes, str) else yaml.safe_dump(lanes), encoding="utf-8")
    with pytest.raises(BrokenLanes, match=rf"lanes\.yaml.*{reason}"):
        load_lanes(file)


def test_a_cached_token_has_its_own_price() -> None:
    prices = Prices(input=Decimal(10), cached=Decimal(1), output=Decimal(20))
    assert cost(1000, 400, 100, prices) == Decimal("0.0084")


def test_a_price_follows_from_the_hour_and_the_speed() -> None:
    assert price_per_million(Decimal("3.60"), Decimal(1000)) == Decimal(1)
    with pytest.raises(ValueError, match="throughput"):
        price_per_million(Decimal(1), Decimal(0))
    with pytest.raises(ValueError, match="negative"):
        Prices(input=Decimal(-1))
