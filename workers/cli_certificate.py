"""`docmill certificate BATCH > MANIFEST`, `docmill verify MANIFEST`: what became of every object of a batch, signed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from docmill.errors import BrokenCertificate, NotFound
from workers.console import errors as _err
from workers.console import lines as _out
from workers.settings import settings

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from sqlalchemy import Connection


#: The signing key of this home, and what auditors get of it.
PRIVATE, PUBLIC = "certificate-key.pem", "certificate-key.pub.pem"
#: Differences that are told; the rest are counted.
MOST_TOLD: Final = 20
_OWNER_ONLY: Final = 0o600


def certificate(batch_id: Annotated[str, typer.Argument(metavar="BATCH", help="Id of the batch.")]) -> None:
    """Write the signed manifest of a batch to standard output: every input, line, job, file, page and table."""
    from storage.certificate import is_over
    from workers.manifest import seal

    key = signing_key(settings().home)
    with _snapshot() as connection:
        over = is_over(connection, batch_id)
        about = {"batch_id": batch_id, "made_at": datetime.now(UTC).isoformat(timespec="seconds"), "complete": over}
        for line in seal(stored_rows(connection, batch_id), key, **about):
            typer.echo(line)
    if not over:
        _err.print(
            f"{batch_id} is not over: the certificate says complete: false; make it anew when all jobs have ended"
        )


def verify(
    manifest: Annotated[Path, typer.Argument(help="The file that `docmill certificate` wrote.")],
    against: Annotated[
        bool, typer.Option("--against", help="Compare it with the database and the files of the settings, too.")
    ] = False,
    key: Annotated[Path | None, typer.Option("--key", help="Public key (PEM) that must have signed it.")] = None,
) -> None:
    """Check a manifest: signature, every row, and with --against what is stored now. Status 1 if anything differs."""
    from workers.manifest import verify as check

    trusted = trusted_key(settings().home, key)
    with manifest.open(encoding="utf-8", newline="\n") as lines:
        sealed = check(lines, trusted)
    if against:
        compare(manifest, str(sealed.seal["batch_id"]))
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(sealed.counts.items()))
    _out.print(f"whole and as signed at {sealed.seal['made_at']}: batch {sealed.seal['batch_id']}: {told}")
    _out.print(f"complete: {'yes' if sealed.seal['complete'] else 'NO, jobs were under way'}")
    whose = "the trusted key" if trusted is not None else "a key that nobody vouched for (give --key)"
    _out.print(f"signed by {whose}: {sealed.seal['public_key']}")
    if against:
        _out.print("the same as what the database and the store of files have now")


def compare(manifest: Path, batch_id: str) -> None:
    """Raise BrokenCertificate with the rows that the system has otherwise, or not, or in addition."""
    from docmill.codec import canonical

    with manifest.open(encoding="utf-8", newline="\n") as lines:
        *signed, _ = (line.rstrip("\n") for line in lines)
    with _snapshot() as connection:
        stored = [canonical(row) for row in stored_rows(connection, batch_id)]
    were, are = set(signed), set(stored)
    differences = [f"- {line}" for line in signed if line not in are] + [
        f"+ {line}" for line in stored if line not in were
    ]
    if differences or len(signed) != len(stored):
        for line in differences[:MOST_TOLD]:
            _err.print(line, markup=False)
        raise BrokenCertificate(
            f"{len(differences)} rows differ from what was signed (- signed, + stored now); a review, a new reading or"
            " a deletion since then is a difference too"
        )


def stored_rows(connection: Connection, batch_id: str) -> Iterator[dict[str, object]]:
    """The batch as the settings' database and store of files have it."""
    from storage.certificate import rows
    from workers.services import services

    return rows(connection, services().blobs, batch_id)


def signing_key(home: Path) -> Ed25519PrivateKey:
    """The key of this home, made at its first use; the public half lies beside it."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    file = home / PRIVATE
    if not file.exists():
        home.mkdir(parents=True, exist_ok=True)
        made = Ed25519PrivateKey.generate()
        secret = made.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY), "wb") as opened:
            opened.write(secret)
        public = made.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        (home / PUBLIC).write_bytes(public)
    loaded = serialization.load_pem_private_key(file.read_bytes(), password=None)
    if not isinstance(loaded, Ed25519PrivateKey):
        raise BrokenCertificate(f"{file} is no Ed25519 key: move it away, and a new one is made")
    return loaded


def trusted_key(home: Path, given: Path | None) -> Ed25519PublicKey | None:
    """The key that must have signed: the given one, else that of this home, else none."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    file = given or home / PUBLIC
    if not file.exists():
        if given is not None:
            raise NotFound(f"there is no key {given}; it is {PUBLIC} in the home that made the certificate")
        return None
    try:
        loaded = serialization.load_pem_public_key(file.read_bytes())
    except ValueError as error:
        raise BrokenCertificate(f"{file} is no public key in PEM") from error
    if not isinstance(loaded, Ed25519PublicKey):
        raise BrokenCertificate(f"{file} is no Ed25519 key")
    return loaded


@contextmanager
def _snapshot() -> Iterator[Connection]:
    """A connection that sees one moment."""
    from workers.cli import use_running_stack
    from workers.services import services

    use_running_stack()
    with services().database.execution_options(isolation_level="REPEATABLE READ").connect() as connection:
        yield connection


def register(main: typer.Typer) -> None:
    """Add the commands to `docmill`."""
    main.command()(certificate)
    main.command()(verify)
