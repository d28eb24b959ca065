"""One way to list a bucket, in a process of its own so that its memory is its own: `python -m bench.bucket_lister WAY`.

`docmill` notes every key in PostgreSQL; `obstore` streams keys past; `held` is what a program does that sorts the whole
listing out afterwards (boto3's paginator into a dictionary, as fsspec keeps it).
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time

import psutil

MIB = 1024 * 1024


def docmill(url: str) -> int:
    """A whole listing with all that docmill keeps of it."""
    from workers import bucket_objects
    from workers.services import services

    use = services()
    while bucket_objects.list_on(use.bucket, use):
        pass
    return _kept(url)


def _kept(url: str) -> int:
    from sqlalchemy import text

    from workers.services import services

    with services().database.begin() as connection:
        count = connection.execute(text("SELECT listed FROM bucket_listings WHERE bucket = :url"), {"url": url})
        return int(count.scalar_one())


def obstore(url: str) -> int:
    """Every key once, none kept."""
    from obstore import list as listing
    from obstore.store import from_url

    store = from_url(url, client_options={"allow_http": True})
    return sum(len(keys) for keys in listing(store, chunk_size=1000))


def held(url: str) -> int:
    """Every key kept until the end."""
    import boto3

    pages = boto3.client("s3").get_paginator("list_objects_v2").paginate(Bucket=url.split("/")[2])
    return len({one["Key"]: (one["ETag"], one["Size"]) for page in pages for one in page["Contents"]})


WAYS = {"docmill": docmill, "obstore": obstore, "held": held}


def main(way: str, url: str) -> None:
    """List, and print what it took."""
    begun = time.perf_counter()
    count = WAYS[way](url)
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    now = psutil.Process(os.getpid()).memory_info().rss / MIB
    print(json.dumps({"keys": count, "seconds": seconds, "peak_mib": peak, "rss_mib": now}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
