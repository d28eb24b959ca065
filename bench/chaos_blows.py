"""The blows of `bench.chaos`, each carried out on a running stack from outside, as an accident would."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Final

import psutil
from redis import Redis
from redis.exceptions import RedisError

from bench.chaos_plan import Blow
from tests.stack import Stack, restart_postgres, until
from workers.celery_app import app
from workers.processes import marked

#: A program that was killed a moment ago is waited for, so that every kill hits something.
_BACK_WITHIN_S: Final = 60.0
_STAGES: Final = (("parse", "parse.hot"), ("infer", "infer.hot.short"), ("validate", "validate"))
FREEZABLE: Final = ("parse", "parse-hot", "gpu", "validate")
QUEUES: Final = tuple(queue.name for queue in app.conf.task_queues)


@dataclass(frozen=True, slots=True)
class Fallen:
    """A blow as it fell: what it hit, when, and how many processes or messages that were."""

    kind: str
    program: str
    at: datetime
    hits: int


@dataclass
class Blows:
    """Carries out blows one after the other; `jobs` gives the ids that are known so far."""

    stack: Stack
    jobs: Callable[[], Sequence[str]]
    frozen_s: float
    fallen: list[Fallen] = field(default_factory=list)

    def carry_out(self, planned: Sequence[Blow]) -> None:
        """Each at its time, or as soon after as the one before has been dealt."""
        start = time.monotonic()
        for blow in planned:
            time.sleep(max(0.0, start + blow.at - time.monotonic()))
            at = datetime.now(UTC)
            hits = self._deal(blow)
            self.fallen.append(Fallen(blow.kind, blow.program, at, hits))

    @property
    def kills(self) -> int:
        return sum(one.hits for one in self.fallen if one.kind in ("worker killed", "child killed", "engine killed"))

    def _deal(self, blow: Blow) -> int:
        dice = Random(blow.dice)
        match blow.kind:
            case "worker killed":
                return self._kill(self._leader(blow.program))
            case "child killed":
                return self._kill(self._child(blow.program, dice))
            case "engine killed":
                return self._kill(self._child("gpu", dice))
            case "worker frozen":
                return self._freeze(dice.choice(FREEZABLE))
            case "postgres restarted":
                return int(restart_postgres(self.stack.data / "postgres"))
            case "postgres killed":
                return self._kill_postgres()
            case _:
                return self._to_redis(blow.kind, dice)

    def _to_redis(self, kind: str, dice: Random) -> int:
        with self.stack.redis() as redis, contextlib.suppress(RedisError):
            match kind:
                case "redis flushed":
                    return int(bool(redis.flushall()))
                case "redis killed":
                    return self._kill(psutil.Process(redis.info("server")["process_id"]))
                case "redis restarted":
                    redis.shutdown(nosave=True)
                    return 1
                case "messages sent twice":
                    return send_twice(redis, dice) + self._send_anything(dice)
                case "messages dropped":
                    return drop(redis, dice)
        return 0

    # ------------------------------------------------------------ processes

    def _leader(self, program: str) -> psutil.Process:
        found: list[int] = []

        def is_there() -> bool:
            with contextlib.suppress(AssertionError, psutil.NoSuchProcess):
                found.append(self.stack.pid(program))
            return bool(found)

        until(is_there, _BACK_WITHIN_S, f"{program} to run")
        return psutil.Process(found[0])

    def _child(self, program: str, dice: Random) -> psutil.Process:
        """A child of the program, or of its children; the leader where there is none."""
        leader = self._leader(program)
        with contextlib.suppress(psutil.NoSuchProcess):
            children = leader.children(recursive=True)
            if children:
                return dice.choice(children)
        return leader

    def _kill(self, process: psutil.Process) -> int:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
            return 1
        return 0

    def _kill_postgres(self) -> int:
        """Its first process; 0 where it was down already."""
        with contextlib.suppress(FileNotFoundError, IndexError, psutil.NoSuchProcess):
            return self._kill(psutil.Process(postmaster(self.stack.data / "postgres")))
        return 0

    def _freeze(self, program: str) -> int:
        """Stop all processes of a program for longer than their lease, then let them go on."""
        members = [process.pid for process in marked(str(self.stack.data.resolve()), program)]
        _signal(members, signal.SIGSTOP)
        threading.Timer(self.frozen_s, _signal, (members, signal.SIGCONT)).start()
        return len(members)

    # ------------------------------------------------------------ messages

    def _send_anything(self, dice: Random) -> int:
        """Messages of any stage for jobs that may be in any other, or over."""
        known = self.jobs()
        chosen = dice.sample(known, min(5, len(known)))
        for job_id in chosen:
            stage, queue = dice.choice(_STAGES)
            self.stack.send_again(stage, job_id, queue)
        return len(chosen)


def _signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def send_twice(redis: Redis, dice: Random) -> int:
    """Up to three messages of each queue once more, to the byte."""
    sent = 0
    for queue in QUEUES:
        lying = redis.lrange(queue, 0, -1)
        for message in dice.sample(lying, min(3, len(lying))):
            redis.lpush(queue, message)
            sent += 1
    return sent


def drop(redis: Redis, dice: Random) -> int:
    """Half of the messages of each queue, and half of those that a worker has and has not acknowledged."""
    dropped = 0
    for queue in QUEUES:
        lying = redis.lrange(queue, 0, -1)
        dropped += sum(redis.lrem(queue, 1, message) for message in dice.sample(lying, -(-len(lying) // 2)))
    held = redis.hkeys("unacked")
    gone = dice.sample(held, -(-len(held) // 2))
    return dropped + (redis.hdel("unacked", *gone) if gone else 0)


def postmaster(data: Path) -> int:
    """The first line of PostgreSQL's pid file."""
    return int((data / "postmaster.pid").read_text().split()[0])
