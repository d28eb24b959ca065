"""The sample files are what their manifest says, and their maker makes them again byte for byte."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pymupdf
import pytest
import yaml

from docmill import errors

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples"
INBOX = SAMPLES / "inbox"
MANIFEST: dict[str, Any] = yaml.safe_load((SAMPLES / "manifest.yaml").read_text(encoding="utf-8"))
ENTRIES: list[dict[str, Any]] = MANIFEST["samples"]
BY_FILE = {entry["file"]: entry for entry in ENTRIES}
READABLE = [entry["file"] for entry in ENTRIES if entry["ends"] in ("done_or_review", "duplicate")]
MAX_TOTAL_BYTES = 2_000_000


def digest(name: str) -> str:
    return hashlib.sha256((INBOX / name).read_bytes()).hexdigest()


def text_of(name: str) -> str:
    with pymupdf.open(INBOX / name) as document:
        return "".join(page.get_text() for page in document)


def only(ends: str) -> str:
    """The one file that must end this way."""
    (name,) = [entry["file"] for entry in ENTRIES if entry["ends"] == ends]
    return name


def test_the_manifest_lists_every_file_and_no_other() -> None:
    on_disk = {path.relative_to(INBOX).as_posix() for path in INBOX.rglob("*") if path.is_file()}
    assert on_disk == set(BY_FILE)


def test_a_path_is_tenant_then_profile() -> None:
    assert all(entry["file"].split("/")[:2] == [entry["tenant"], entry["profile"]] for entry in ENTRIES)


def test_every_tenant_language_and_profile_is_shown() -> None:
    shown = {(entry["tenant"], entry["profile"]) for entry in ENTRIES}
    profiles = {"risk-report", "transaction-monitoring", "customer-screening"}
    assert shown == {(tenant, profile) for tenant in ("acme-bank", "huaxin-securities") for profile in profiles}
    assert {entry["language"] for entry in ENTRIES} == {"en", "zh"}


def test_the_samples_stay_small() -> None:
    total = sum(path.stat().st_size for path in INBOX.rglob("*") if path.is_file())
    assert total <= MAX_TOTAL_BYTES, f"samples/inbox has {total:,} bytes, the limit is {MAX_TOTAL_BYTES:,}"


def test_every_file_states_its_licence_and_a_real_one_its_source_and_hash() -> None:
    assert all(entry["licence"] for entry in ENTRIES)
    real = [entry for entry in ENTRIES if not entry["made"]]
    assert len(real) >= 2
    assert all(entry["source"] and entry["sha256"] == digest(entry["file"]) for entry in real)


def test_an_expected_failure_is_a_code_of_the_error_tree() -> None:
    codes = {value.code for value in vars(errors).values() if isinstance(value, type)}
    expected = {entry["ends"].removeprefix("failed: ") for entry in ENTRIES if entry["ends"].startswith("failed: ")}
    assert expected
    assert expected <= codes


@pytest.mark.parametrize("name", READABLE)
def test_a_readable_file_opens_with_the_pages_that_the_manifest_gives(name: str) -> None:
    with pymupdf.open(INBOX / name) as document:
        assert not document.needs_pass
        assert document.page_count == BY_FILE[name]["pages"]


def test_the_locked_file_needs_its_password() -> None:
    with pymupdf.open(INBOX / only("failed: encrypted")) as document:
        assert document.needs_pass
        assert not document.authenticate("wrong")
        assert document.authenticate(MANIFEST["password"])
        assert "212.5 million" in document[0].get_text()


def test_the_cut_off_file_begins_as_a_pdf_and_has_no_page() -> None:
    path = INBOX / only("failed: corrupt_pdf")
    assert path.read_bytes().startswith(b"%PDF-")
    with pymupdf.open(path) as document:
        assert document.page_count == 0


def test_the_empty_file_has_no_byte() -> None:
    assert (INBOX / only("failed: empty_file")).stat().st_size == 0


def test_the_duplicate_has_the_same_bytes_under_another_name() -> None:
    name = only("duplicate")
    twin = BY_FILE[name]["same_bytes_as"]
    assert name != twin
    assert digest(name) == digest(twin)


def test_no_two_other_files_have_the_same_bytes() -> None:
    others = [digest(name) for name in BY_FILE if BY_FILE[name]["ends"] != "duplicate"]
    assert len(set(others)) == len(others)


def test_the_template_twin_differs_in_numbers_and_dates_and_in_nothing_else() -> None:
    (entry,) = [entry for entry in ENTRIES if "same_template_as" in entry]
    one, other = text_of(entry["file"]), text_of(entry["same_template_as"])
    assert one != other
    numerals = r"[\d,.\s]|[壹贰叁肆伍陆柒捌玖拾佰仟万]"
    assert re.sub(numerals, "", one) == re.sub(numerals, "", other)
    assert "30,000,000.00" in one
    assert "3,000,000.00" in other


@pytest.mark.parametrize("name", [name for name in BY_FILE if name.endswith("-scan.pdf")])
def test_a_scan_has_a_picture_and_no_text(name: str) -> None:
    assert text_of(name).strip() == ""
    with pymupdf.open(INBOX / name) as document:
        assert all(page.get_images() for page in document)


def test_the_turned_page_is_stored_upright_and_seen_as_landscape() -> None:
    with pymupdf.open(INBOX / "acme-bank/risk-report/country-exposure-2025-09.pdf") as document:
        page = document[0]
        assert page.rotation == 90
        assert page.mediabox.width < page.mediabox.height
        assert page.rect.width > page.rect.height


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("acme-bank/transaction-monitoring/account-statement-2025-09.pdf", "Reference"),
        ("huaxin-securities/transaction-monitoring/资金流水-2025-10.pdf", "摘要"),
        ("huaxin-securities/risk-report/合并资产负债表-2024.pdf", "期末余额"),
    ],
)
def test_a_table_over_a_page_break_repeats_its_header(name: str, header: str) -> None:
    with pymupdf.open(INBOX / name) as document:
        assert [header in page.get_text() for page in document] == [True, True]


def test_the_chinese_statement_prints_its_unit_and_balances() -> None:
    text = text_of("huaxin-securities/risk-report/合并资产负债表-2024.pdf")
    assert "单位：万元" in text
    for title in ("资产总计", "负债和所有者权益总计"):
        assert re.search(title + r"\s+749,120\.29\s+724,577\.00", text), title
