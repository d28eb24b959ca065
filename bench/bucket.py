"""The bucket door: a thousand objects while events go wrong, and listings of a million keys in bounded memory.

    python -m bench.bucket [--objects 1000] [--keys 1000000]

The objects are on a real S3 server (SeaweedFS). The keys are those of a small server that speaks ListObjectsV2 and
makes up its pages: the lister cannot tell, and a real server would take longer to be filled than to be listed.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import text

from bench.report import Figure, finish, show
from ingest.bucket import Bucket
from ingest.bucket_events import Told
from storage.migrate import upgrade
from tests.s3 import s3_server
from workers import bucket_objects
from workers.local import EmbeddedPostgres
from workers.services import Services
from workers.settings import Settings, child_environment

#: The lister's memory must not follow the number of keys: at the full number it may be so much more than at few.
GROWTH_MIB = 64
FEW = 10_000


def main() -> None:
    """Measure, print, end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=1000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    given = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="docmill-bench-"))
    postgres = EmbeddedPostgres(home)
    try:
        upgrade(postgres.url)
        figures = [*events_gone_wrong(given.objects, home, postgres.url), *listings(given.keys, postgres.url)]
    finally:
        postgres.stop()
        shutil.rmtree(home)
    raise SystemExit(finish("bucket", figures))


# ---------------------------------------------------------------- events that go wrong


def events_gone_wrong(objects: int, home: Path, database_url: str) -> list[Figure]:
    """Put objects, tell of them badly, and count what was taken."""
    folder = home / "s3"
    folder.mkdir()
    with s3_server(folder) as server:
        bucket = Bucket("s3://docmill/", server.client())
        use = Services(
            Settings(
                database_url=database_url,
                broker_url="redis://127.0.0.1:1/0",
                blob_url=(home / "blobs").as_uri(),
                home=home,
                inbox=bucket.url,
                bucket_list_every_s=5.0,
            )
        )
        use.bucket = bucket
        etags = _put(objects, bucket, server.client())
        begun = time.perf_counter()
        told = _go_wrong(etags, bucket)
        bucket_objects.told(told[len(told) // 3 :], bucket, use)
        _until_quiet(use)
        bucket_objects.told(told[: len(told) // 3], bucket, use)
        _until_quiet(use)
        seconds = time.perf_counter() - begun
        taken, twice = _counts(use)
        use.database.dispose()
    rows = [(objects, len(told), len(etags) - len({one.key for one in told}), taken, twice, f"{seconds:.1f}")]
    show("Objects on SeaweedFS", ["put", "events", "never told of", "taken", "taken twice", "seconds"], rows)
    return [Figure("taken_share", taken / objects, "== 1"), Figure("taken_twice", twice, "== 0")]


def _put(objects: int, bucket: Bucket, client: Any) -> dict[str, str]:
    def put(number: int) -> tuple[str, str]:
        key = f"tenant-{number % 3}/risk-report/{number}.pdf"
        answer = client.put_object(Bucket=bucket.name, Key=key, Body=f"%PDF-1.7\n% {number}\n".encode())
        return key, answer["ETag"].strip('"')

    with ThreadPoolExecutor(8) as threads:
        return dict(threads.map(put, range(objects)))


def _go_wrong(etags: Mapping[str, str], bucket: Bucket) -> list[Told]:
    """Half of the events are lost, a quarter comes twice, in any order."""
    chance = random.Random(7)
    told = [Told(bucket.name, key, etag) for key, etag in etags.items() for _ in range(chance.choice((0, 0, 1, 2)))]
    chance.shuffle(told)
    return told


def _until_quiet(use: Services) -> None:
    waiting = text("SELECT count(*) FROM bucket_objects WHERE waiting")
    listed = text("SELECT count(*) FROM bucket_listings WHERE finished_at IS NOT NULL")
    while True:
        bucket_objects.tick(use)
        with use.database.begin() as connection:
            if connection.execute(listed).scalar_one() and not connection.execute(waiting).scalar_one():
                return


def _counts(use: Services) -> tuple[int, int]:
    """Objects that were submitted, and submissions that were one too many."""
    with use.database.begin() as connection:
        rows = connection.execute(
            text("SELECT count(*), count(DISTINCT name) FROM submissions WHERE outcome = 'accepted'")
        )
        every, names = rows.one()
    return names, every - names


# ---------------------------------------------------------------- listings


def listings(keys: int, database_url: str) -> list[Figure]:
    """List few keys and many, by docmill and by its peers, each in a process of its own."""
    measured = {}
    for count in (FEW, keys):
        with _made_up(count) as endpoint:
            for name, way in (("docmill, all new", "docmill"), ("docmill, again", "docmill"), *PEERS):
                measured[name, count] = _list(way, count, endpoint, database_url)
    rows = [
        (name, one["keys"], f"{one['seconds']:.1f}", f"{one['peak_mib']:.0f}") for (name, _), one in measured.items()
    ]
    show("Listings (a server that makes up ListObjectsV2 pages)", ["lister", "keys", "seconds", "peak RSS MiB"], rows)
    first, again = (measured[name, keys] for name in ("docmill, all new", "docmill, again"))
    growth = {name: measured[name, keys]["peak_mib"] - measured[name, FEW]["peak_mib"] for name, _ in measured}
    return [
        Figure("listed", first["keys"], f"== {keys}"),
        Figure("growth_mib_all_new", growth["docmill, all new"], f"<= {GROWTH_MIB}"),
        Figure("growth_mib_again", growth["docmill, again"], f"<= {GROWTH_MIB}"),
        Figure("growth_mib_obstore", growth["obstore, streamed"]),
        Figure("growth_mib_held", growth["boto3, held"]),
        Figure("keys_a_second_again", keys / again["seconds"]),
    ]


PEERS = (("obstore, streamed", "obstore"), ("boto3, held", "held"))


@contextmanager
def _made_up(keys: int) -> Iterator[str]:
    command = [sys.executable, "-m", "bench.bucket_server", str(keys)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.kill()


def _list(way: str, count: int, endpoint: str, database_url: str) -> dict[str, Any]:
    url = f"s3://keys-{count}/"
    environment = child_environment(
        AWS_ENDPOINT_URL=endpoint,
        AWS_ACCESS_KEY_ID="nobody",
        AWS_SECRET_ACCESS_KEY="nothing",
        AWS_DEFAULT_REGION="us-east-1",
        AWS_REGION="us-east-1",
        DOCMILL_INBOX=url,
        DOCMILL_DATABASE_URL=database_url,
        DOCMILL_BUCKET_LIST_EVERY_S="0",
        DOCMILL_LOG_LEVEL="ERROR",
    )
    command = [sys.executable, "-m", "bench.bucket_lister", way, url]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
