"""A signed manifest: rows of JSON, one a line, under a Merkle root that an Ed25519 key has signed.

The last line is the seal: how many rows there are of each kind, the root over all lines before it, the public key and
the signature over the rest of the seal. Leaves and nodes are hashed as RFC 6962 does, so that no row passes for a node;
a row that is changed, left out, added or moved changes the root. Pure: keys and rows are given, nothing is kept.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from docmill.codec import canonical
from docmill.errors import BrokenCertificate

FORMAT: Final = "docmill-certificate-1"
#: What a row says of itself.
KIND: Final = "kind"
SEAL: Final = "seal"


@dataclass(frozen=True, slots=True)
class Sealed:
    """A manifest that holds: its rows by kind and the seal."""

    counts: Mapping[str, int]
    seal: Mapping[str, Any]


@dataclass
class Tree:
    """The Merkle root of lines that come one by one, with the memory of one node for each doubling of their number."""

    _full: list[tuple[int, bytes]] = field(default_factory=list)

    def add(self, line: str) -> None:
        node = (1, hashlib.sha256(b"\0" + line.encode()).digest())
        while self._full and self._full[-1][0] == node[0]:
            size, left = self._full.pop()
            node = (2 * size, _node(left, node[1]))
        self._full.append(node)

    def root(self) -> str:
        digest = b""
        for _, left in reversed(self._full):
            digest = _node(left, digest) if digest else left
        return (digest or hashlib.sha256(b"").digest()).hex()


def seal(rows: Iterable[Mapping[str, Any]], key: Ed25519PrivateKey, **about: Any) -> Iterator[str]:
    """The lines of a manifest: each row, then the seal, which says `about` too."""
    tree, counts = Tree(), Counter[str]()
    for row in rows:
        line = canonical(row)
        tree.add(line)
        counts[row[KIND]] += 1
        yield line
    said = {KIND: SEAL, "format": FORMAT, **about, "counts": dict(counts), "root": tree.root()}
    said["public_key"] = fingerprint_of(key.public_key())
    yield canonical({**said, "signature": key.sign(canonical(said).encode()).hex()})


def verify(lines: Iterable[str], trusted: Ed25519PublicKey | None = None) -> Sealed:
    """What a manifest says, if not a byte of it is changed. Raises BrokenCertificate.

    With a `trusted` key only what that key has signed holds; without one, all that is proven is that it is whole.
    """
    tree, counts, last = Tree(), Counter[str](), None
    for number, line in enumerate(lines, start=1):
        if last is not None:
            tree.add(last)
            counts[_read(last, number - 1).get(KIND, "")] += 1
        last = line.rstrip("\n")
    if last is None:
        raise BrokenCertificate("the manifest is empty: make it anew with `docmill certificate BATCH`")
    said = _read(last, sum(counts.values()) + 1)
    _insist_on_signature(said, trusted)
    if said.get("root") != tree.root() or said.get("counts") != dict(counts):
        raise BrokenCertificate(
            f"these {sum(counts.values())} rows have the root {tree.root()}, and {said.get('root')} was signed: a row"
            " was changed, left out, added or moved"
        )
    return Sealed(dict(counts), said)


def fingerprint_of(key: Ed25519PublicKey) -> str:
    """A public key as text; it is short enough to be its own fingerprint."""
    return key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw).hex()


def _insist_on_signature(said: dict[str, Any], trusted: Ed25519PublicKey | None) -> None:
    signature = said.pop("signature", "")
    if said.get(KIND) != SEAL or said.get("format") != FORMAT:
        raise BrokenCertificate(f"the last line is no seal of {FORMAT}: the manifest was cut off, or is something else")
    if trusted is not None and said.get("public_key") != fingerprint_of(trusted):
        raise BrokenCertificate(
            f"it was signed with the key {said.get('public_key')}, not with {fingerprint_of(trusted)}"
        )
    try:
        key = trusted or Ed25519PublicKey.from_public_bytes(bytes.fromhex(said["public_key"]))
        key.verify(bytes.fromhex(signature), canonical(said).encode())
    except (InvalidSignature, ValueError, KeyError) as error:
        raise BrokenCertificate("the signature is not of this seal: a byte of it was changed") from error


def _read(line: str, number: int) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise BrokenCertificate(f"line {number} is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise BrokenCertificate(f"line {number} is no row")
    return value


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()
