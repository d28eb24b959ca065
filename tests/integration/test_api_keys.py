"""Keys of the API: shown once, kept as a hash, ended at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, select

from storage import api_keys
from storage.schema import api_keys as kept
from storage.schema import tenants


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    with engine.begin() as open_connection:
        yield open_connection


def test_a_key_acts_for_its_tenant(connection: Connection) -> None:
    mine, theirs = (api_keys.create(connection, tenant, "laptop") for tenant in ("mine", "theirs"))
    assert [api_keys.tenant_of(connection, token) for token in (mine, theirs)] == ["mine", "theirs"]


def test_a_key_of_a_new_tenant_enters_the_tenant_once(connection: Connection) -> None:
    for label in ("laptop", "server"):
        api_keys.create(connection, "new", label)
    assert connection.execute(select(tenants.c.tenant)).scalars().all() == ["new"]


def test_no_two_keys_are_the_same(connection: Connection) -> None:
    assert len({api_keys.create(connection, "mine", "laptop") for _ in range(20)}) == 20


def test_the_token_itself_is_nowhere_in_the_database(connection: Connection) -> None:
    token = api_keys.create(connection, "mine", "laptop")
    (row,) = connection.execute(select(kept)).all()
    assert token.removeprefix(api_keys.PREFIX) not in str(row)


@pytest.mark.parametrize("token", ["", "docmill_", "mine", "docmill_" + "x" * 43, "\x00", "钥匙", "\udc80"])
def test_what_is_no_key_acts_for_nobody(connection: Connection, token: str) -> None:
    api_keys.create(connection, "mine", "laptop")
    assert api_keys.tenant_of(connection, token) is None


def test_a_revoked_key_acts_for_nobody_and_the_others_go_on(connection: Connection) -> None:
    lost, other = api_keys.create(connection, "mine", "lost"), api_keys.create(connection, "mine", "laptop")
    theirs = api_keys.create(connection, "theirs", "lost")
    assert api_keys.revoke(connection, "mine", "lost") == 1
    assert [api_keys.tenant_of(connection, token) for token in (lost, other, theirs)] == [None, "mine", "theirs"]


def test_revoking_says_how_many_keys_it_ended(connection: Connection) -> None:
    for _ in range(2):
        api_keys.create(connection, "mine", "laptop")
    assert [api_keys.revoke(connection, "mine", label) for label in ("laptop", "laptop", "unknown")] == [2, 0, 0]
