"""What every store of blobs does: in memory, in a folder, on a real S3 server."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from docmill.errors import NotFound
from storage.blobs import Blobs, original_key, prepared_key
from tests.conftest import Bucket

MIB = 1024 * 1024


@pytest.fixture(params=["memory", "folder", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    match request.param:
        case "memory":
            return Blobs.at("memory:///")
        case "folder":
            return Blobs.at((tmp_path / "not made yet" / "blobs").as_uri())
        case _:
            bucket: Bucket = request.getfixturevalue("s3_bucket")
            return Blobs.at(bucket.url, **bucket.options)


@pytest.fixture
def key() -> str:
    """A key of this test's own: the S3 server serves the whole session."""
    return f"originals/test/{secrets.token_hex(8)}.pdf"


def test_what_is_put_is_got_back_to_the_byte(blobs: Blobs, key: str) -> None:
    every_byte = bytes(range(256)) * 7
    blobs.put(key, every_byte)
    assert blobs.get(key) == every_byte


def test_an_empty_blob_is_a_blob(blobs: Blobs, key: str) -> None:
    blobs.put(key, b"")
    assert blobs.exists(key)
    assert blobs.get(key) == b""


def test_a_blob_of_many_parts_is_got_back_whole(blobs: Blobs, key: str) -> None:
    data = os.urandom(MIB) * 21 + b"tail"
    blobs.put(key, data)
    assert blobs.get(key) == data


def test_our_longest_keys_are_taken(blobs: Blobs) -> None:
    keys = [original_key("t" * 200, secrets.token_hex(32)), prepared_key("doc_" + secrets.token_hex(100))]
    for long in keys:
        blobs.put(long, long.encode())
    assert [blobs.get(long) for long in keys] == [long.encode() for long in keys]


@pytest.mark.parametrize("tenant", ["银行", "a b", "50%", "a+b&c=d", "a#b?c"])
def test_a_tenant_may_have_any_ordinary_name(blobs: Blobs, tenant: str) -> None:
    mine, other = original_key(tenant, secrets.token_hex(32)), original_key("other", secrets.token_hex(32))
    blobs.put(mine, b"mine")
    assert blobs.get(mine) == b"mine"
    assert not blobs.exists(other)


def test_a_missing_key_is_not_found_and_the_message_names_it(blobs: Blobs, key: str) -> None:
    assert not blobs.exists(key)
    with pytest.raises(NotFound, match=key):
        blobs.get(key)


def test_a_second_put_replaces_the_first(blobs: Blobs, key: str) -> None:
    blobs.put(key, b"long old bytes")
    blobs.put(key, b"new")
    assert blobs.get(key) == b"new"


def test_writers_of_one_key_leave_one_of_their_blobs_whole(blobs: Blobs, key: str) -> None:
    versions = [bytes([number]) * MIB for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda data: blobs.put(key, data), versions))
    assert blobs.get(key) in versions


def test_many_threads_read_and_write_at_once(blobs: Blobs, key: str) -> None:
    def put_and_get(number: int) -> bool:
        blobs.put(f"{key}.{number}", str(number).encode())
        return blobs.get(f"{key}.{number}") == str(number).encode()

    with ThreadPoolExecutor(16) as threads:
        assert all(threads.map(put_and_get, range(100)))


def test_two_stores_at_one_url_see_the_same(tmp_path: Path, s3_bucket: Bucket, key: str) -> None:
    for url, options in [(tmp_path.as_uri(), {}), (s3_bucket.url, s3_bucket.options)]:
        Blobs.at(url, **options).put(key, b"shared")
        assert Blobs.at(url, **options).get(key) == b"shared"


def test_a_blob_is_written_and_read_in_pieces_and_from_others(blobs: Blobs, key: str) -> None:
    pieces = [bytes([number]) * 3_000_000 for number in range(4)]
    blobs.put_stream(key, iter(pieces))
    blobs.put_stream(f"{key}-copy", blobs.stream(key))
    assert b"".join(blobs.stream(f"{key}-copy")) == b"".join(pieces)
    assert blobs.range(key, 2_999_999, 2) == b"\x00\x01"


def test_a_blob_whose_pieces_end_in_an_error_is_none(blobs: Blobs, key: str) -> None:
    def broken() -> Iterator[bytes]:
        yield b"x" * 9_000_000
        raise ValueError("the other side is gone")

    with pytest.raises(ValueError, match="gone"):
        blobs.put_stream(key, broken())
    assert not blobs.exists(key)


def test_a_blob_can_be_read_like_a_file(blobs: Blobs, key: str) -> None:
    blobs.put(key, b"0123456789" * 1000)
    with blobs.open(key) as file:
        file.seek(-10, 2)
        assert (file.read(), file.seek(5), file.read(3)) == (b"0123456789", 5, b"567")


def test_a_deleted_blob_is_gone_and_may_be_deleted_again(blobs: Blobs, key: str) -> None:
    blobs.put(key, b"x")
    for _ in range(2):
        blobs.delete(key)
    assert not blobs.exists(key)
    for call in (blobs.stream, blobs.open, lambda missing: blobs.range(missing, 0, 1)):
        with pytest.raises(NotFound):
            call(key)
