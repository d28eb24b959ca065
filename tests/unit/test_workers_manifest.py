"""A manifest holds while nothing of it is changed: not a byte, not a row, not their order, not the key."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from docmill.codec import canonical
from docmill.errors import BrokenCertificate
from workers.manifest import Tree, seal, verify

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))
ROWS = [
    {"kind": "batch", "batch_id": "b"},
    {"kind": "job", "job_id": "j1", "status": "done", "reason": "全部通过"},
    {"kind": "job", "job_id": "j2", "status": "failed"},
]


def manifest(rows: list[dict[str, str]] = ROWS, key: Ed25519PrivateKey = KEY) -> list[str]:
    return list(seal(rows, key, batch_id="b", complete=True))


def test_an_unchanged_manifest_holds_and_is_counted() -> None:
    sealed = verify(manifest(), KEY.public_key())
    assert sealed.counts == {"batch": 1, "job": 2}
    assert (sealed.seal["batch_id"], sealed.seal["complete"]) == ("b", True)


def test_a_batch_without_a_row_has_a_certificate_too() -> None:
    assert verify(manifest([])).counts == {}


@given(st.data())
def test_a_changed_character_anywhere_is_noticed(data: st.DataObject) -> None:
    text = "\n".join(manifest())
    place = data.draw(st.integers(0, len(text) - 1))
    new = data.draw(st.characters(codec="utf-8").filter(lambda one: one not in (text[place], "\r")))
    changed = text[:place] + new + text[place + 1 :]
    with pytest.raises(BrokenCertificate):
        verify(changed.split("\n"), KEY.public_key())


CHANGES: dict[str, Callable[[list[str]], list[str]]] = {
    "a row is left out": lambda lines: lines[1:],
    "a row is there twice": lambda lines: [lines[0], *lines],
    "rows are swapped": lambda lines: [lines[1], lines[0], *lines[2:]],
    "a row is added at the end": lambda lines: [*lines, canonical(ROWS[0])],
    "the seal is cut off": lambda lines: lines[:-1],
    "nothing is left": lambda lines: [],
    "the seal is of another manifest": lambda lines: [*lines[:-1], manifest(ROWS[:2])[-1]],
    "it is no JSON": lambda lines: ["{", *lines[1:]],
    "it is JSON of another kind": lambda lines: [*lines[:-1], "[]"],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_manifest_is_refused(change: Callable[[list[str]], list[str]]) -> None:
    with pytest.raises(BrokenCertificate):
        verify(change(manifest()), KEY.public_key())


def test_a_manifest_that_somebody_else_signed_is_refused_where_a_key_is_trusted() -> None:
    forged = manifest(ROWS[:2], OTHER)
    assert verify(forged).counts == {"batch": 1, "job": 1}
    with pytest.raises(BrokenCertificate, match="was signed with the key"):
        verify(forged, KEY.public_key())


def root(lines: list[str]) -> str:
    tree = Tree()
    for line in lines:
        tree.add(line)
    return tree.root()


@given(st.lists(st.text(max_size=4), max_size=40), st.lists(st.text(max_size=4), max_size=40))
def test_different_rows_have_different_roots(first: list[str], second: list[str]) -> None:
    assert (root(first) == root(second)) == (first == second)


def test_the_root_is_that_of_rfc_6962() -> None:
    """The tree of one empty leaf and of the eight leaves of certificate-transparency's reference test."""
    assert root([]) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert root([""]) == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert root(["", "\0"]) == "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"
    assert root(["", "\0", "\x10"]) == "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"
