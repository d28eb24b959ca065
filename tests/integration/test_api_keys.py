"""Keys of the API: shown once, kept as a hash, ended at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection, Engine, select

from storage import api_keys
from storage.api_keys import Scope
from storage.schema import api_keys as kept
from storage.schema import tenants


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    with engine.begin() as open_connection:
        yield open_connection


def tenant_of(connection: Connection, token: str) -> str | None:
    key = api_keys.find(connection, token)
    return None if key is None else key.tenant


def test_a_key_acts_for_its_tenant(connection: Connection) -> None:
    mine, theirs = (api_keys.create(connection, tenant, "laptop") for tenant in ("mine", "theirs"))
    assert [tenant_of(connection, token) for token in (mine, theirs)] == ["mine", "theirs"]


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
    assert tenant_of(connection, token) is None


def test_a_revoked_key_acts_for_nobody_and_the_others_go_on(connection: Connection) -> None:
    lost, other = api_keys.create(connection, "mine", "lost"), api_keys.create(connection, "mine", "laptop")
    theirs = api_keys.create(connection, "theirs", "lost")
    assert api_keys.revoke(connection, "mine", "lost") == 1
    assert [tenant_of(connection, token) for token in (lost, other, theirs)] == [None, "mine", "theirs"]


def test_revoking_says_how_many_keys_it_ended(connection: Connection) -> None:
    for _ in range(2):
        api_keys.create(connection, "mine", "laptop")
    assert [api_keys.revoke(connection, "mine", label) for label in ("laptop", "laptop", "unknown")] == [2, 0, 0]


def test_a_key_ends_when_its_time_is_over(connection: Connection) -> None:
    now = datetime.now(UTC)
    past, future = (
        api_keys.create(connection, "mine", "short", expires_at=now + timedelta(hours=hours)) for hours in (-1, 1)
    )
    assert [tenant_of(connection, token) for token in (past, future)] == [None, "mine"]


def test_one_key_can_be_revoked_by_its_name(connection: Connection) -> None:
    lost, other = (api_keys.create(connection, "mine", "laptop") for _ in range(2))
    assert api_keys.revoke_key(connection, api_keys.key_id_of(lost)) == "mine"
    assert [tenant_of(connection, token) for token in (lost, other)] == [None, "mine"]
    assert api_keys.revoke_key(connection, api_keys.key_id_of(lost)) is None


def test_a_key_is_for_what_it_was_made_for(connection: Connection) -> None:
    reader = api_keys.find(connection, api_keys.create(connection, "mine", "r", scopes=[Scope.READ]))
    admin = api_keys.find(connection, api_keys.create(connection, "mine", "a", scopes=[Scope.ADMIN]))
    usual = api_keys.find(connection, api_keys.create(connection, "mine", "u"))
    assert reader and admin and usual
    assert [key.allows(scope) for key in (reader, admin, usual) for scope in Scope] == [
        *(True, False, False, False),
        *(True, True, True, True),
        *(True, True, True, False),
    ]


def test_the_list_of_keys_shows_no_token(connection: Connection) -> None:
    tokens = [api_keys.create(connection, tenant, "laptop") for tenant in ("mine", "theirs")]
    (shown,) = api_keys.listed(connection, "mine")
    assert (shown.key_id, shown.label) == (api_keys.key_id_of(tokens[0]), "laptop")
    assert tokens[0].removeprefix(api_keys.PREFIX) not in str(shown)
    assert len(api_keys.listed(connection)) == 2
