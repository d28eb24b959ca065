"""The near-duplicate index on PostgreSQL under real concurrency: who is the original is decided once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from sqlalchemy import Engine, func, insert, select

from docmill.likeness import Likeness
from preprocess.dedup import likeness_of
from storage.likeness_schema import likenesses, minhash_bands
from storage.near_duplicates import LOOKED_AT, Link, link_near_duplicate
from storage.schema import documents

WORKERS = 12
CONTRACT = "The borrower, {}, repays USD {} at the end of the term. " + " ".join(
    f"Clause of kind {number} binds both parties in the manner that is usual for it." for number in range(12)
)


def accepted(engine: Engine, *names: str, tenant: str = "acme") -> None:
    fixed = {"size_bytes": 1, "name": "a.pdf", "source": "cli", "blob_key": "b", "tenant": tenant}
    with engine.begin() as connection:
        connection.execute(insert(documents), [{"document_id": name, "sha256": name, **fixed} for name in names])


def linked(engine: Engine, name: str, like: Likeness, *, tenant: str = "acme") -> Link | None:
    with engine.begin() as connection:
        return link_near_duplicate(connection, tenant, name, like)


def all_at_once(engine: Engine, likes: dict[str, Likeness]) -> dict[str, Link | None]:
    """Each in a transaction of its own connection, begun together."""
    accepted(engine, *likes)
    barrier = threading.Barrier(len(likes))

    def one(name: str) -> Link | None:
        with engine.connect() as connection, connection.begin():
            barrier.wait()
            return link_near_duplicate(connection, "acme", name, likes[name])

    with ThreadPoolExecutor(len(likes)) as threads:
        return dict(zip(likes, threads.map(one, likes), strict=True))


def test_of_repeats_checked_at_once_one_is_the_original_and_all_others_are_linked_to_it(engine: Engine) -> None:
    like = likeness_of(CONTRACT.format("Acme Ltd", "1,200.00"))
    found = all_at_once(engine, {f"d{number}": like for number in range(WORKERS)})
    originals = [name for name, link in found.items() if link is None]
    assert len(originals) == 1
    assert {(link.document_id, link.repeats) for link in found.values() if link} == {(originals[0], True)}


def test_edited_repeats_checked_at_once_miss_none_and_wait_for_each_other_in_one_order(engine: Engine) -> None:
    whole = CONTRACT.format("Acme Ltd", "1,200.00")
    texts = [whole.replace(f"kind {number} binds", f"kind {number} ties") for number in range(WORKERS)]
    found = all_at_once(engine, {f"d{number}": likeness_of(edited) for number, edited in enumerate(texts)})
    assert [link for link in found.values()].count(None) == 1
    assert all(link.repeats for link in found.values() if link)


def test_uses_of_a_template_checked_at_once_are_no_repeats(engine: Engine) -> None:
    found = all_at_once(
        engine, {f"d{number}": likeness_of(CONTRACT.format("Acme Ltd", f"{number},200.00")) for number in range(1, 9)}
    )
    assert not [link for link in found.values() if link and link.repeats]
    assert len([link for link in found.values() if link is None]) == 1


def test_a_link_says_what_changed(engine: Engine) -> None:
    accepted(engine, "first", "second")
    linked(engine, "first", likeness_of(CONTRACT.format("Acme Ltd", "1,200.00")))
    linked(engine, "second", likeness_of(CONTRACT.format("Apex Ltd", "1,300.00")))
    columns = select(documents.c.same_template_as, documents.c.near_duplicate_of, documents.c.differences)
    with engine.connect() as connection:
        template, repeated, changed = connection.execute(columns.where(documents.c.document_id == "second")).one()
    assert (template, repeated) == ("first", None)
    assert changed == {
        "numbers": {"gone": ["1200.00"], "new": ["1300.00"], "gone_count": 1, "new_count": 1},
        "names": {"gone": ["acme"], "new": ["apex"], "gone_count": 1, "new_count": 1},
    }


def test_a_check_that_is_rolled_back_leaves_nothing(engine: Engine) -> None:
    accepted(engine, "lost", "kept")
    like = likeness_of(CONTRACT.format("Acme Ltd", "1,200.00"))
    with engine.connect() as connection:
        link_near_duplicate(connection, "acme", "lost", like)
        connection.rollback()
    assert linked(engine, "kept", like) is None


def test_what_repeats_another_to_the_last_shingle_takes_no_room_in_the_index(engine: Engine) -> None:
    names = [f"d{number}" for number in range(5)]
    accepted(engine, *names)
    like = likeness_of(CONTRACT.format("Acme Ltd", "1,200.00"))
    for name in names:
        linked(engine, name, like)
    with engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(likenesses)).scalar_one() == 1
        assert connection.execute(select(func.count()).select_from(minhash_bands)).scalar_one() == len(like.bands)


def test_a_repeat_is_found_in_a_crowded_band(engine: Engine) -> None:
    names = [f"d{number}" for number in range(8 * LOOKED_AT)]
    accepted(engine, *names, "last")
    hashes = np.arange(100, dtype="<u4").tobytes()
    for number, name in enumerate(names):
        linked(engine, name, Likeness((1, 2), hashes, {"numbers": [str(number)]}))
    with engine.begin() as connection:
        link = link_near_duplicate(connection, "acme", "last", Likeness((1, 2), hashes, {"numbers": ["77"]}))
    assert link == Link("d77", 1.0, repeats=True)
