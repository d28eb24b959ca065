"""Files of a local inbox are taken when they have stopped changing; nothing is skipped in silence."""

import os
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.folder import Scan, Seen, key_of, path_of, read, scan

SETTLE = 5.0


def put(inbox: Path, relative: str, data: bytes = b"%PDF-1.7") -> Path:
    path = inbox / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def state(result: Scan) -> dict[str, Seen]:
    return {look.key: look for look in result.observed}


def settled(inbox: Path) -> Scan:
    first = scan(inbox, {}, now=0.0, settle_s=SETTLE)
    return scan(inbox, state(first), now=SETTLE, settle_s=SETTLE)


def test_a_file_is_not_ready_on_first_sight(tmp_path: Path) -> None:
    put(tmp_path, "acme/risk-report/a.pdf")
    first = scan(tmp_path, {}, now=100.0, settle_s=0.0)
    assert first.ready == ()
    assert [look.key for look in first.observed] == ["acme/risk-report/a.pdf"]


def test_a_file_that_stays_the_same_for_the_settling_time_is_ready(tmp_path: Path) -> None:
    put(tmp_path, "acme/risk-report/a.pdf", b"12345")
    (file,) = settled(tmp_path).ready
    assert (file.tenant, file.profile, file.name, file.size) == ("acme", "risk-report", "a.pdf", 5)


def test_looks_that_are_too_close_together_prove_nothing(tmp_path: Path) -> None:
    put(tmp_path, "acme/risk-report/a.pdf")
    first = scan(tmp_path, {}, now=0.0, settle_s=SETTLE)
    second = scan(tmp_path, state(first), now=SETTLE - 0.1, settle_s=SETTLE)
    assert second.ready == ()
    assert scan(tmp_path, state(second), now=SETTLE, settle_s=SETTLE).ready != ()


def test_a_file_that_grows_starts_to_settle_anew(tmp_path: Path) -> None:
    path = put(tmp_path, "acme/risk-report/a.pdf", b"half")
    first = scan(tmp_path, {}, now=0.0, settle_s=SETTLE)
    path.write_bytes(b"half and the rest")
    second = scan(tmp_path, state(first), now=SETTLE, settle_s=SETTLE)
    assert second.ready == ()
    assert scan(tmp_path, state(second), now=2 * SETTLE, settle_s=SETTLE).ready[0].size == 17


def test_a_change_of_the_same_size_is_seen_by_its_time(tmp_path: Path) -> None:
    path = put(tmp_path, "acme/risk-report/a.pdf", b"1234")
    first = scan(tmp_path, {}, now=0.0, settle_s=SETTLE)
    os.utime(path, ns=(1, 1))
    assert scan(tmp_path, state(first), now=SETTLE, settle_s=0.0).ready == ()


def test_a_file_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    path = put(tmp_path, "acme/risk-report/a.pdf")
    first = scan(tmp_path, {}, now=0.0, settle_s=SETTLE)
    path.unlink()
    assert scan(tmp_path, state(first), now=SETTLE, settle_s=SETTLE) == Scan((), (), ())


@pytest.mark.parametrize("name", [".hidden.pdf", "a.pdf.part", "a.pdf.TMP", "~$a.pdf", "a.pdf~", "a.pdf.receipt.json"])
def test_hidden_and_temporary_names_are_ignored(tmp_path: Path, name: str) -> None:
    put(tmp_path, f"acme/risk-report/{name}")
    assert scan(tmp_path, {}, now=0.0, settle_s=SETTLE) == Scan((), (), ())


def test_a_file_that_is_no_pdf_by_name_is_taken_so_that_it_is_refused_with_a_reason(tmp_path: Path) -> None:
    put(tmp_path, "acme/risk-report/notes.docx")
    assert [file.name for file in settled(tmp_path).ready] == ["notes.docx"]


@pytest.mark.parametrize(("place", "depth"), [("lost.pdf", 1), ("acme/lost.pdf", 2)])
def test_a_file_above_its_profile_folder_is_a_finding(tmp_path: Path, place: str, depth: int) -> None:
    put(tmp_path, place)
    (misplaced,) = settled(tmp_path).misplaced
    assert misplaced.key == place
    assert f"{depth} deep" in misplaced.reason and "<tenant>/<profile>/<file>" in misplaced.reason


def test_a_folder_below_a_profile_is_one_finding_whatever_it_holds(tmp_path: Path) -> None:
    put(tmp_path, "acme/risk-report/2024/a.pdf")
    put(tmp_path, "acme/risk-report/2024/b.pdf")
    result = settled(tmp_path)
    assert [item.key for item in result.misplaced] == ["acme/risk-report/2024"]
    assert result.ready == ()


def test_links_are_reported_and_never_followed(tmp_path: Path) -> None:
    outside = put(tmp_path, "outside/secret.pdf")
    inbox = tmp_path / "inbox"
    (inbox / "acme/risk-report").mkdir(parents=True)
    (inbox / "acme/risk-report/a.pdf").symlink_to(outside)
    (inbox / "acme/loop").symlink_to(inbox)
    (inbox / "acme/risk-report/dangling.pdf").symlink_to("nowhere")
    result = settled(inbox)
    assert result.ready == ()
    assert [item.key for item in result.misplaced] == [
        "acme/loop",
        "acme/risk-report/a.pdf",
        "acme/risk-report/dangling.pdf",
    ]


def test_a_pipe_is_reported_and_not_opened(tmp_path: Path) -> None:
    (tmp_path / "acme/risk-report").mkdir(parents=True)
    os.mkfifo(tmp_path / "acme/risk-report/a.pdf")
    assert "not a regular file" in settled(tmp_path).misplaced[0].reason


def test_an_inbox_that_does_not_exist_yet_is_empty(tmp_path: Path) -> None:
    assert scan(tmp_path / "none", {}, now=0.0, settle_s=SETTLE) == Scan((), (), ())


@pytest.mark.parametrize(
    "name",
    [
        "年度报告（修订）.pdf".encode(),
        unicodedata.normalize("NFD", "résumé.pdf").encode(),
        "报告.pdf".encode("gb18030"),
        b"\xff\xfe\x80.pdf",
        b"line\nbreak.pdf",
        b"back\\xffslash.pdf",
        "\u202egnp.pdf".encode(),
        b"-rf .pdf",
        b"' OR 1=1; --.pdf",
        b"n" * 250 + b".pdf",
    ],
)
def test_any_name_that_linux_allows_survives(tmp_path: Path, name: bytes) -> None:
    folder = tmp_path / "acme/risk-report"
    folder.mkdir(parents=True)
    (folder / os.fsdecode(name)).write_bytes(b"%PDF-1.4")
    (file,) = settled(tmp_path).ready
    file.key.encode("utf-8")
    assert file.key.isprintable()
    assert os.fsencode(path_of(file.key)) == b"acme/risk-report/" + name
    assert read(file, max_bytes=100) == b"%PDF-1.4"


def test_composed_and_decomposed_names_are_two_files(tmp_path: Path) -> None:
    for form in ("NFC", "NFD"):
        put(tmp_path, f"acme/risk-report/{unicodedata.normalize(form, 'é')}.pdf")
    assert len({file.key for file in settled(tmp_path).ready}) == 2


@given(st.binary(min_size=1, max_size=40))
def test_keys_are_storable_and_lossless(name: bytes) -> None:
    relative = os.fsdecode(name)
    key = key_of(relative)
    assert b"\0" not in key.encode("utf-8")
    assert path_of(key) == relative


def test_a_file_that_changes_between_scan_and_read_is_not_read(tmp_path: Path) -> None:
    path = put(tmp_path, "acme/risk-report/a.pdf", b"first")
    (file,) = settled(tmp_path).ready
    path.write_bytes(b"second, longer")
    assert read(file, max_bytes=100) is None


def test_a_file_that_is_swapped_for_a_link_is_not_read(tmp_path: Path) -> None:
    path = put(tmp_path, "acme/risk-report/a.pdf", b"first")
    (file,) = settled(tmp_path).ready
    with tempfile.NamedTemporaryFile() as secret:
        path.unlink()
        path.symlink_to(secret.name)
        assert read(file, max_bytes=100) is None


def test_no_more_is_read_of_a_huge_file_than_shows_that_it_is_too_large(tmp_path: Path) -> None:
    put(tmp_path, "acme/risk-report/a.pdf", b"x" * 1000)
    (file,) = settled(tmp_path).ready
    assert read(file, max_bytes=10) == b"x" * 11
