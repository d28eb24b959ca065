"""Parsing runs in a child process that is kept, replaced, and killed with its group when it overruns."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from docmill.errors import CorruptPdf, EmptyFile, Encrypted, NotAPdf, ParserCrashed, ParserLimit
from preprocess import process
from preprocess.prepare import PrepareConfig, prepare
from tests import pdfs
from tests.parsing import shown, tiny_tokenizer

HELLO = pdfs.text_pdf("Balance 1,234.50")


@pytest.fixture(scope="module", autouse=True)
def stop_afterwards() -> Iterator[None]:
    yield
    process.stop_child()


@pytest.fixture
def config(tmp_path: Path) -> PrepareConfig:
    return PrepareConfig(tiny_tokenizer(tmp_path), ocr=False)


def running() -> int:
    """The process id of this process's child."""
    assert process._child is not None
    return process._child.pid


def busy_pdf(pages: int = 1) -> bytes:
    """A page that keeps a parser busy for minutes in few bytes: a content stream of endless strokes, deflated."""
    document = pdfs.new_document(pages)
    for number, page in enumerate(document, start=1):
        pdfs.write_lines(page, f"Balance {number}.50" if number > 1 else "slow")
    document.update_stream(document[0].get_contents()[0], b"q 0 0 m 1 1 l S Q\n" * 3_000_000, compress=True)
    return pdfs.finish(document)


def test_a_document_comes_back_whole_and_the_child_stays_for_the_next(config: PrepareConfig) -> None:
    first = prepare(HELLO, "a", config)
    child = running()
    second = prepare(HELLO, "b", config)
    assert (first.document_id, second.document_id) == ("a", "b")
    assert shown(second) == "[p1]\nBalance 1,234.50\n"
    assert first.pages[0].blocks[0].printed.box(8, 16) is not None
    assert running() == child


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", EmptyFile),
        (b"<html>1,000.00</html>", NotAPdf),
        (pdfs.encrypted_pdf("secret"), Encrypted),
        (pdfs.half_written_pdf(), CorruptPdf),
    ],
)
def test_what_is_wrong_with_the_file_is_raised_as_the_child_found_it(
    config: PrepareConfig, data: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error):
        prepare(data, "doc", config)


def test_a_document_over_the_wall_limit_is_stopped_and_the_next_is_read(config: PrepareConfig) -> None:
    prepare(HELLO, "doc", config)
    slow, child = busy_pdf(), running()
    with pytest.raises(ParserLimit, match=r"over 0\.3 s .* raise wall_seconds"):
        prepare(slow, "doc", replace(config, wall_seconds=0.3))
    assert not psutil.pid_exists(child)
    assert shown(prepare(HELLO, "doc", config)) == "[p1]\nBalance 1,234.50\n"


def test_a_document_over_the_cpu_limit_is_stopped_by_the_kernel(config: PrepareConfig) -> None:
    with pytest.raises(ParserLimit, match=r"over 0\.2 s of CPU"):
        prepare(busy_pdf(), "doc", replace(config, cpu_seconds=0.2))


def test_a_page_over_its_cpu_limit_costs_that_page_only(config: PrepareConfig) -> None:
    begun: list[tuple[int, int]] = []
    limited = replace(config, page_cpu_seconds=1, page_content_bytes=1024**3)
    prepared = prepare(busy_pdf(2), "doc", limited, on_page=lambda page, of: begun.append((page, of)))
    assert [(one.page, one.code) for one in prepared.missing] == [(1, "parser_limit")]
    assert "raise page_cpu_seconds" in prepared.missing[0].reason
    assert shown(prepared) == "[p2]\nBalance 2.50\n"
    # Page 1 is begun twice where the kernel ended the child, once where the reader heard its bell in time.
    assert list(dict.fromkeys(begun)) == [(1, 2), (2, 2)]


def test_with_too_many_bad_pages_the_document_is_given_up(config: PrepareConfig) -> None:
    with pytest.raises(ParserLimit, match="1 s of CPU on page 1"):
        prepare(busy_pdf(2), "doc", replace(config, page_cpu_seconds=1, page_content_bytes=1024**3, bad_pages=0))


def test_a_child_that_dies_in_a_document_is_a_crash_that_may_be_tried_again(config: PrepareConfig) -> None:
    slow = busy_pdf()
    process.start_child(config)
    threading.Timer(1.0, os.kill, (running(), signal.SIGKILL)).start()
    with pytest.raises(ParserCrashed, match="SIGKILL"):
        prepare(slow, "doc", config)


def test_a_child_that_died_between_documents_is_replaced_without_a_word(config: PrepareConfig) -> None:
    process.start_child(config)
    os.kill(running(), signal.SIGKILL)
    psutil.wait_procs([psutil.Process(running())], timeout=1)
    assert prepare(HELLO, "doc", config).tokens > 0


def test_a_child_is_replaced_after_its_number_of_documents(config: PrepareConfig) -> None:
    prepare(HELLO, "doc", config)
    first = running()
    prepare(HELLO, "doc", replace(config, child_documents=1))
    assert running() != first
    assert not psutil.pid_exists(first)


def test_after_a_fork_the_parents_child_is_left_alone(config: PrepareConfig) -> None:
    prepare(HELLO, "doc", config)
    child = running()
    forked = os.fork()
    if forked == 0:
        os._exit(0 if process._child is None else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    prepare(HELLO, "doc", config)
    assert running() == child


def test_memory_beyond_the_limit_ends_the_document_and_not_the_caller(config: PrepareConfig) -> None:
    with pytest.raises(ParserLimit, match="480 MiB of memory"):
        prepare(HELLO + bytes(300 * 1024**2), "doc", replace(config, memory_bytes=480 * 1024**2))


def test_a_memory_limit_that_no_parser_fits_in_is_named(config: PrepareConfig) -> None:
    with pytest.raises(ParserCrashed, match=r"within memory_bytes=104857600"):
        prepare(HELLO, "doc", replace(config, memory_bytes=100 * 1024**2))


def test_limits_must_be_above_zero(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="max_pages is 0"):
        PrepareConfig(tmp_path, max_pages=0)
