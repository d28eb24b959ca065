"""What a bucket tells, in every envelope; and where a key belongs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from docmill.errors import RequestError
from ingest.bucket_events import Told, created
from ingest.places import Layout, Place


def record(key: str = "acme/risk-report/a+b%2Bc.pdf", kind: str = "ObjectCreated:Put", **more: Any) -> dict[str, Any]:
    """A record as S3 writes it: the key is form-encoded."""
    object_ = {"key": key, "size": 7, "eTag": "abc", "sequencer": "00", **more}
    return {"eventSource": "aws:s3", "eventName": kind, "s3": {"bucket": {"name": "inputs"}, "object": object_}}


TOLD = Told("inputs", "acme/risk-report/a b+c.pdf", "abc")
S3 = {"Records": [record()]}
MINIO = {"EventName": "s3:ObjectCreated:Put", "Key": "inputs/x", "Records": [record(kind="s3:ObjectCreated:Put")]}
SNS = {"Type": "Notification", "TopicArn": "arn", "Message": json.dumps(S3)}
EVENT_BRIDGE = {
    "detail-type": "Object Created",
    "source": "aws.s3",
    "detail": {"bucket": {"name": "inputs"}, "object": {"key": "acme/risk-report/a b+c.pdf", "etag": "abc"}},
}
ENVELOPES = {
    "s3": S3,
    "minio": MINIO,
    "sns": SNS,
    "event-bridge": EVENT_BRIDGE,
    "sqs-received": {"Messages": [{"MessageId": "1", "Body": json.dumps(S3)}]},
    "sqs-lambda": {"Records": [{"messageId": "1", "body": json.dumps(S3), "eventSource": "aws:sqs"}]},
    "sns-lambda": {"Records": [{"EventSource": "aws:sns", "Sns": SNS}]},
    "sns-in-sqs": {"Messages": [{"Body": json.dumps(SNS)}]},
    "event-bridge-in-sqs": {"Messages": [{"Body": json.dumps(EVENT_BRIDGE)}]},
    "a-list": [S3],
    "one-record": record(),
}


@pytest.mark.parametrize("message", ENVELOPES.values(), ids=ENVELOPES)
def test_an_object_is_told_of_in_every_envelope(message: Any) -> None:
    assert list(created(message)) == [TOLD]


@pytest.mark.parametrize(
    "message",
    [
        {"Records": [record(kind="ObjectRemoved:Delete")]},
        {"Records": [record(kind="ObjectTagging:Put")]},
        {"Records": []},
        {"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "inputs"},
        {"Type": "SubscriptionConfirmation", "Message": "You have chosen", "SubscribeURL": "http://169.254.169.254/"},
        {"detail-type": "Object Deleted", "detail": EVENT_BRIDGE["detail"]},
    ],
)
def test_other_news_is_passed_over(message: Any) -> None:
    assert list(created(message)) == []


@pytest.mark.parametrize(
    "message",
    [
        None,
        7,
        {},
        "no json",
        {"Records": [{"eventName": "ObjectCreated:Put", "s3": {"bucket": "b"}}]},
        {"Records": [{"s3": {"object": {"key": 1}, "bucket": {"name": "b"}}, "eventName": "ObjectCreated:Put"}]},
        {"Message": {"Message": {"Message": {"Message": {"Message": {"Message": {"Message": {"Message": {}}}}}}}}},
        {"Message": "{"},
        {"Records": [7]},
    ],
)
def test_what_is_no_message_of_a_bucket_is_refused(message: Any) -> None:
    with pytest.raises(RequestError):
        list(created(message))


def test_an_event_without_an_etag_is_told_of_all_the_same() -> None:
    (told,) = created({"Records": [record(eTag=None)]})
    assert told.etag is None


LAYOUT = Layout({"scans/": "acme/risk-report", "scans/bank/": "bank/customer-screening"}, ("done/",))


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("acme/risk-report/a.pdf", Place("acme", "risk-report")),
        ("acme/risk-report/2024/03/a.pdf", Place("acme", "risk-report")),
        ("scans/a.pdf", Place("acme", "risk-report")),
        ("scans/other/profile/a.pdf", Place("acme", "risk-report")),
        ("scans/bank/a.pdf", Place("bank", "customer-screening")),
        ("银行/risk-report/报告.pdf", Place("银行", "risk-report")),
    ],
)
def test_a_key_says_whose_it_is(key: str, place: Place) -> None:
    assert LAYOUT.place_of(key) == place


@pytest.mark.parametrize(
    "key", ["a.pdf", "acme/a.pdf", "/risk-report/a.pdf", "acme//a.pdf", "../x/a.pdf", "acme/../a.pdf"]
)
def test_a_key_that_names_no_tenant_or_profile_says_so(key: str) -> None:
    place = LAYOUT.place_of(key)
    assert (place.tenant, place.profile) == ("", "")
    assert place.reason and "<tenant>/<profile>" in place.reason


@pytest.mark.parametrize(
    ("key", "ours"),
    [
        ("acme/risk-report/a.pdf", True),
        ("acme/risk-report/", False),
        ("acme/risk-report/a.pdf.docmill.json", False),
        ("done/acme/risk-report/a.pdf", False),
    ],
)
def test_receipts_folders_and_what_was_moved_are_passed_over(key: str, ours: bool) -> None:
    assert LAYOUT.ours(key) is ours


def test_a_prefix_that_is_mapped_to_no_place_is_an_error_at_the_start() -> None:
    with pytest.raises(ValueError, match="TENANT/PROFILE"):
        Layout({"scans/": "acme"})
