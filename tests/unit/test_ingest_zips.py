"""Archives: what is taken, what is left out and why, and what is refused before it can do harm."""

from __future__ import annotations

import io
import stat
import struct
import tracemalloc
import warnings
import zipfile
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.errors import CorruptZip, ZipBomb
from ingest.zips import LeftOut, Unpacked, ZipLimits, unpack

PDF = b"%PDF-1.7 and so on"
MIB = 1024 * 1024


def archive(files: Mapping[str, bytes], *, packed: int = zipfile.ZIP_DEFLATED) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packed) as made:
        for name, data in files.items():
            made.writestr(name, data)
    return file


def codes(file: io.BytesIO, limits: ZipLimits | None = None) -> dict[str, str]:
    """What becomes of each entry: its code, or `taken`."""
    return {one.name: one.code if isinstance(one, LeftOut) else "taken" for one in unpack(file, limits)}


def test_files_come_out_as_they_went_in() -> None:
    found = list(unpack(archive({"a.pdf": PDF, "folder/报告.pdf": b"", "folder/": b""})))
    assert found == [Unpacked("a.pdf", PDF), Unpacked("folder/报告.pdf", b"")]


def test_an_archive_is_gone_on_with_where_it_was_left_and_no_two_files_have_one_name() -> None:
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w") as packed:
        warnings.simplefilter("ignore")  # zipfile says that the name comes twice
        for data in (b"first", b"second"):
            packed.writestr("a.pdf", data)
        packed.writestr("b.pdf", b"third")
    assert list(unpack(file, start=1)) == [Unpacked("a.pdf#2", b"second"), Unpacked("b.pdf", b"third")]
    with pytest.raises(ZipBomb):
        list(unpack(file, ZipLimits(max_total_bytes=15), start=1))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("../../etc/passwd", "bad_name"),
        ("/etc/passwd", "bad_name"),
        ("..\\..\\windows\\system.ini", "bad_name"),
        ("C:/windows/system.ini", "bad_name"),
        ("a/../../b.pdf", "bad_name"),
        ("__MACOSX/._a.pdf", "system_file"),
        ("b/.DS_Store", "system_file"),
        (".", "bad_name"),
        ("a..b.pdf", "taken"),
    ],
)
def test_a_name_that_leads_out_of_the_archive_is_left_out(name: str, code: str) -> None:
    assert list(codes(archive({name: PDF})).values()) == [code]


def test_a_name_cannot_deceive_a_screen() -> None:
    (found,) = unpack(archive({"a\u202efdp.exe": PDF}))
    assert found.name == "a\\u{202e}fdp.exe"


def test_a_name_of_chinese_windows_is_read_as_it_was_meant() -> None:
    file = archive({"x" * len("报告.pdf".encode("gbk")): PDF})
    raw = file.getvalue().replace(b"x" * len("报告.pdf".encode("gbk")), "报告.pdf".encode("gbk"))
    assert codes(io.BytesIO(raw)) == {"报告.pdf": "taken"}


def test_an_archive_in_an_archive_is_left_out_whatever_its_name() -> None:
    inner = archive({"a.pdf": PDF}).getvalue()
    assert codes(archive({"inner.pdf": inner, "b.pdf": PDF})) == {"inner.pdf": "nested", "b.pdf": "taken"}


def test_a_link_is_left_out() -> None:
    file = io.BytesIO()
    link = zipfile.ZipInfo("link.pdf")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(file, "w") as made:
        made.writestr(link, "/etc/passwd")
    assert codes(file) == {"link.pdf": "link"}


def test_an_entry_with_a_password_is_left_out() -> None:
    raw = bytearray(archive({"a.pdf": PDF}).getvalue())
    raw[raw.index(b"PK\x01\x02") + 8] |= 1
    assert codes(io.BytesIO(bytes(raw))) == {"a.pdf": "encrypted"}


def test_a_file_over_the_limit_is_left_out_and_the_others_are_taken() -> None:
    file = archive({"large.pdf": PDF * 100, "a.pdf": PDF}, packed=zipfile.ZIP_STORED)
    assert codes(file, ZipLimits(max_file_bytes=100)) == {"large.pdf": "too_large", "a.pdf": "taken"}


def test_an_entry_that_is_damaged_is_left_out_and_the_others_are_taken() -> None:
    file = archive({"a.pdf": PDF, "b.pdf": PDF[::-1]}, packed=zipfile.ZIP_STORED)
    raw = file.getvalue().replace(PDF, PDF.replace(b"so", b"os"))
    assert codes(io.BytesIO(raw)) == {"a.pdf": "corrupt_zip", "b.pdf": "taken"}


def test_a_bomb_is_refused_in_bounded_memory() -> None:
    file = archive({"bomb.pdf": bytes(64 * MIB)})
    tracemalloc.start()
    with pytest.raises(ZipBomb, match="200 times"):
        codes(file)
    assert tracemalloc.get_traced_memory()[1] < 32 * MIB
    tracemalloc.stop()


def test_files_that_are_too_many_bytes_together_are_refused() -> None:
    file = archive({f"{number}.pdf": PDF for number in range(10)})
    with pytest.raises(ZipBomb, match="unpacks to more"):
        codes(file, ZipLimits(max_total_bytes=5 * len(PDF)))


def test_an_entry_that_lies_about_its_size_is_cut_off() -> None:
    raw = bytearray(archive({"a.pdf": bytes(8 * MIB)}).getvalue())
    struct.pack_into("<L", raw, raw.index(b"PK\x01\x02") + 24, 10)
    assert codes(io.BytesIO(bytes(raw))) == {"a.pdf": "corrupt_zip"}


def test_too_many_entries_are_refused_before_their_directory_is_read() -> None:
    file = archive({f"{number}": b"" for number in range(50)})
    with pytest.raises(ZipBomb, match="50 entries"):
        codes(file, ZipLimits(max_files=49))


def test_a_directory_that_is_larger_than_it_says_is_refused() -> None:
    raw = bytearray(archive({f"{number:0900}": b"" for number in range(50)}).getvalue())
    struct.pack_into("<2H", raw, raw.index(b"PK\x05\x06") + 8, 1, 1)
    with pytest.raises(ZipBomb):
        codes(io.BytesIO(bytes(raw)), ZipLimits(max_files=40))


@pytest.mark.parametrize("data", [b"", b"PK", PDF, b"PK\x05\x06", b"PK\x03\x04" * 50])
def test_what_is_no_archive_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(CorruptZip):
        codes(io.BytesIO(data))


@given(st.integers(0, 400), st.binary(min_size=1, max_size=8))
def test_an_archive_damaged_anywhere_raises_nothing_else(at: int, damage: bytes) -> None:
    raw = bytearray(archive({"a.pdf": PDF, "b/报告.pdf": PDF * 3}).getvalue())
    raw[at : at + len(damage)] = damage
    try:
        codes(io.BytesIO(bytes(raw)))
    except (CorruptZip, ZipBomb):
        pass
