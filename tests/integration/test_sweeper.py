"""What the sweeper reads off a real broker: kombu's own messages, in kombu's own order."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from celery import Celery
from redis import Redis

from storage.ports import Stage
from tests.conftest import valkey
from workers.celery_app import TASKS, queue
from workers.sweeper import job_of, next_jobs


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from valkey(tmp_path_factory.mktemp("broker"))


def test_the_next_message_of_a_queue_is_the_one_that_was_sent_first(url: str) -> None:
    with Celery(broker=url) as sender, Redis.from_url(url) as redis:
        sender.conf.task_queues = [queue("parse.hot"), queue("validate")]
        sender.conf.task_default_exchange = ""
        for job_id in ("first", "second", "third"):
            sender.send_task(TASKS[Stage.PARSE], args=[job_id], queue="parse.hot")
        sender.send_task(TASKS[Stage.VALIDATE], args=["checked"], queue="validate")
        assert next_jobs(redis) == {"parse.hot": "first", "validate": "checked"}
        redis.rpop("parse.hot")
        assert next_jobs(redis)["parse.hot"] == "second"


@pytest.mark.parametrize("message", [b"", b"no json", b"{}", b'{"body": "bm8="}', b'{"body": "W10="}'])
def test_a_message_that_is_not_ours_tells_nothing(message: bytes) -> None:
    assert job_of(message) == ""
