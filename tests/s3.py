"""A real S3 server from a wheel (SeaweedFS), for tests and benchmarks."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WEED = Path(sys.executable).with_name("weed")
STARTS_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Bucket:
    """An S3 bucket: the URL and the options to open it with."""

    url: str
    options: dict[str, Any]

    def client(self) -> Any:
        """A boto3 client of its server."""
        import boto3  # large, and most sessions need none
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.options["endpoint"],
            aws_access_key_id=self.options["access_key_id"],
            aws_secret_access_key=self.options["secret_access_key"],
            region_name=self.options["region"],
            config=Config(max_pool_connections=16, request_checksum_calculation="when_required"),
        )


@contextmanager
def s3_server(folder: Path) -> Iterator[Bucket]:
    """A server of its own, its data in the folder."""
    port, *others = free_ports(8)
    names = ("s3.port.grpc", "master.port", "master.port.grpc", "volume.port", "volume.port.grpc")
    ports = dict(zip((*names, "filer.port", "filer.port.grpc"), others, strict=True))
    command = [
        *(str(WEED), "mini", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-s3.port={port}"),
        *(f"-{name}={number}" for name, number in ports.items()),
        *("-bucket=docmill", "-s3.port.iceberg=0", "-s3.port.lance=0", "-webdav=false", "-admin.ui=false"),
        "-master.telemetry=false",
    ]
    key, secret = "docmill-tests", secrets.token_hex(16)
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        wait_until_answered(f"http://127.0.0.1:{port}/", server, folder / "log")
        options = {
            "endpoint": f"http://127.0.0.1:{port}",
            "access_key_id": key,
            "secret_access_key": secret,
            "region": "us-east-1",
            "client_options": {"allow_http": True},
        }
        yield Bucket("s3://docmill/below/a/prefix", options)
    finally:
        # Asked to end, it takes its time for nothing: its data is thrown away.
        server.kill()
        server.wait()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def wait_until_answered(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server answers, if only to say that it wants a signature."""
    end = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except urllib.error.HTTPError as refusal:
            refusal.close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"the S3 server did not answer within {STARTS_WITHIN_S} s:\n{log.read_text()}")
