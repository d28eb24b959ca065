"""Connections: one engine a process, one transaction a method, tried again while the server is away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

#: A restart of PostgreSQL takes seconds; what a worker has in hand is worth waiting for it.
PATIENCE_S = 60.0

#: SQLSTATE classes of errors that pass: connection, rollback by the server, resources, an operator's intervention.
PASSING = frozenset({"08", "40", "53", "57"})

P = ParamSpec("P")
R = TypeVar("R")


class HasEngine(Protocol):
    """Whatever holds an engine may use `transactional`."""

    @property
    def engine(self) -> Engine: ...


S = TypeVar("S", bound=HasEngine)


def connect(url: str, *, pool_size: int = 5) -> Engine:
    """An engine whose connections are tested before use, in UTC."""
    engine = create_engine(url, pool_pre_ping=True, pool_size=pool_size, max_overflow=20, pool_timeout=30)

    @event.listens_for(engine, "connect")
    def _utc(connection: Any, _: ConnectionPoolEntry) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET TIME ZONE 'UTC'")
        connection.commit()

    return engine


def _server_is_away(error: BaseException) -> bool:
    """A lost or refused connection, a server that stops or is overloaded, a deadlock: the next try may succeed."""
    if not isinstance(error, DBAPIError):
        return False
    state = getattr(error.orig, "sqlstate", None)
    no_answer = state is None and isinstance(error, OperationalError)
    return error.connection_invalidated or no_answer or (state or "")[:2] in PASSING


def transactional(
    method: Callable[Concatenate[S, Connection, P], R],
) -> Callable[Concatenate[S, P], R]:
    """Run a method that takes a connection in a transaction of its own, again while the server is away.

    A commit whose answer was lost may be repeated; every writer here is a compare-and-set or an upsert, so the
    repetition either does nothing or is refused as a stale attempt.
    """

    @wraps(method)
    def run(self: S, *args: P.args, **kwargs: P.kwargs) -> R:
        attempts = Retrying(
            retry=retry_if_exception(_server_is_away),
            wait=wait_random_exponential(multiplier=0.1, max=2.0),
            stop=stop_after_delay(PATIENCE_S),
            reraise=True,
        )
        result: R = attempts(_in_transaction, self, method, *args, **kwargs)
        return result

    # functools.wraps types the wrapper as keeping the wrapped method's own arguments; the connection is gone from them.
    return cast(Callable[Concatenate[S, P], R], run)


def _in_transaction(holder: Any, method: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    with holder.engine.begin() as connection:
        return method(holder, connection, *args, **kwargs)


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection for reads outside the state machine."""
    with engine.connect() as connection:
        yield connection
