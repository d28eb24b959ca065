"""An S3 bucket as an inbox: listed a page at a time, read by key, and told what became of each object.

boto3, not obstore (which keeps our blobs): obstore refuses a whole listing for one key with an empty part (`a//b`), and
has neither tags nor copies under a condition. Endpoint, region and credentials are those of the AWS_… variables.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlparse

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from docmill.errors import BucketUnavailable, NotFound
from ingest.places import RECEIPT, Listed

#: What S3 gives at most in one answer.
PAGE_KEYS: Final = 1000
_CONNECT_S: Final = 5
_READ_S: Final = 60
_PIECE: Final = 1024 * 1024

_GONE: Final = ("NoSuchKey", "NotFound", "404")
_UNCHANGED: Final = ("304", "NotModified")
_CHANGED: Final = ("PreconditionFailed", "412", *_GONE)


@dataclass(frozen=True, slots=True)
class Page:
    """Objects in the bucket's order. `after`: where the next page begins; None where there is none."""

    objects: tuple[Listed, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class Got:
    """An object's bytes with the version that they are of: `max_bytes` + 1 of them at most."""

    data: bytes
    etag: str
    version: str | None
    size: int


class Bucket:
    """The objects of `s3://bucket/prefix`. Every method raises BucketUnavailable where the server fails us."""

    def __init__(self, url: str, client: Any = None) -> None:
        parts = urlparse(url)
        prefix = parts.path.strip("/")
        self.name = parts.netloc
        self.prefix = f"{prefix}/" if prefix else ""
        self.url = f"s3://{self.name}/{self.prefix}"
        self._client = client or _connect()

    def page(self, after: str = "") -> Page:
        """The next thousand objects behind a key; a listing that was broken off goes on with the last one it saw."""
        asked = {"StartAfter": self.prefix + after} if after else {}
        answer = self._call("list_objects_v2", Prefix=self.prefix, MaxKeys=PAGE_KEYS, **asked)
        found = tuple(self._listed(one) for one in answer.get("Contents", []))
        return Page(found, found[-1].key if answer["IsTruncated"] and found else None)

    def _listed(self, one: Mapping[str, Any]) -> Listed:
        return Listed(one["Key"].removeprefix(self.prefix), one["ETag"].strip('"'), one["Size"])

    def get(self, key: str, *, max_bytes: int, unless: str | None = None) -> Got | None:
        """The object as it is now; None if it still has the etag `unless`. Raises NotFound."""
        condition = {"IfNoneMatch": f'"{unless}"'} if unless else {}
        try:
            answer = self._call("get_object", Key=self.prefix + key, **condition)
        except ClientError as error:
            if _code(error) in _UNCHANGED:
                return None
            raise NotFound(f"{self.url}{key} is not there: it was removed or moved since it was seen") from error
        etag = answer["ETag"].strip('"')
        with answer["Body"] as body:
            if etag == unless:  # a server that knows no conditions
                return None
            return Got(_read(body, max_bytes + 1), etag, answer.get("VersionId"), answer["ContentLength"])

    def put_receipt(self, key: str, receipt: Mapping[str, Any]) -> None:
        """Write what became of an object beside it."""
        body = json.dumps(receipt, ensure_ascii=False, indent=2, default=str).encode()
        self._call("put_object", Key=self.prefix + key + RECEIPT, Body=body, ContentType="application/json")

    def tag(self, key: str, etag: str, tags: Mapping[str, str]) -> bool:
        """Set the object's tags, if it still is the one of this etag."""
        if not self._is(key, etag):
            return False
        pairs = [{"Key": name, "Value": value} for name, value in tags.items()]
        self._call("put_object_tagging", Key=self.prefix + key, Tagging={"TagSet": pairs})
        return True

    def move(self, key: str, etag: str, to: str) -> bool:
        """Move an object below the prefix `to`; one that is no longer the one of this etag stays.

        The condition holds for the copy. Between the last look and the deletion a new version may arrive on a bucket
        without versions; the window is that of one request.
        """
        source = {"Bucket": self.name, "Key": self.prefix + key}
        target = self.prefix + to + key
        try:
            self._call("copy_object", Key=target, CopySource=source, CopySourceIfMatch=f'"{etag}"')
        except ClientError:
            return False
        if not self._is(key, etag):
            return False
        self._call("delete_object", Key=self.prefix + key)
        return True

    def _is(self, key: str, etag: str) -> bool:
        try:
            return bool(self._call("head_object", Key=self.prefix + key)["ETag"].strip('"') == etag)
        except ClientError:
            return False

    def _call(self, operation: str, **arguments: Any) -> Any:
        """One request. A ClientError that says gone, unchanged or changed is the caller's; others are the bucket's."""
        try:
            return getattr(self._client, operation)(Bucket=self.name, **arguments)
        except ClientError as error:
            if _code(error) in (*_UNCHANGED, *_CHANGED):
                raise
            raise BucketUnavailable(f"{self.url} refuses {operation}: {error}") from error
        except BotoCoreError as error:
            raise BucketUnavailable(f"{self.url} does not answer {operation}: {error}") from error


def _connect() -> Any:
    config = Config(
        connect_timeout=_CONNECT_S,
        read_timeout=_READ_S,
        retries={"mode": "standard", "max_attempts": 4},
        # Servers other than Amazon's know no buckets as host names, nor its newer checksums.
        s3={"addressing_style": "auto"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    return boto3.session.Session().client("s3", config=config)


def _read(body: Any, most: int) -> bytes:
    pieces: list[bytes] = []
    while most > 0 and (piece := body.read(min(_PIECE, most))):
        pieces.append(piece)
        most -= len(piece)
    return b"".join(pieces)


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
