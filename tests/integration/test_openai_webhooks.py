"""Webhooks to a real receiver, checked by the `openai` client: signed, tried again, replayed, and not sent inside."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI

from tests.door import Door
from workers.webhooks import ForbiddenHost, Teller, target_of

ALL = ["batch.completed", "batch.failed", "batch.expired", "batch.cancelled"]


@dataclass
class Receiver:
    """A server that keeps what it is told and answers as it is bid."""

    url: str
    answers: list[int] = field(default_factory=list)
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    def event(self, client: OpenAI, secret: str, number: int = -1) -> Any:
        headers, body = self.got[number]
        return client.webhooks.unwrap(body, headers, secret=secret)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            kept.got.append((dict(self.headers), self.rfile.read(length)))
            status = kept.answers.pop(0) if kept.answers else 200
            self.send_response(status)
            if status == 302:
                self.send_header("Location", f"{kept.url}/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("0.0.0.0", 0), Handler) as server:
        kept = Receiver(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield kept
        server.shutdown()
        thread.join()


def tell(door: Door) -> None:
    """Send what is due."""
    with ThreadPoolExecutor(2) as pool:
        while Teller(door.use).tick(pool):
            pass


def hook(door: Door, receiver: Receiver, kinds: list[str] = ALL) -> Any:
    return door.client.webhooks.create(event_types=kinds, name="ours", url=receiver.url)


def deliveries(door: Door, webhook_id: str) -> list[dict[str, Any]]:
    answer: Any = door.client.get(f"/webhook_endpoints/{webhook_id}/deliveries", cast_to=httpx.Response)
    found: list[dict[str, Any]] = answer.json()["data"]
    return found


def test_openai_client_unwraps_the_event_of_each_end_of_a_batch(door: Door, receiver: Receiver) -> None:
    made = hook(door, receiver)
    batch = door.running(1)
    door.read(batch.id)
    ends = {"batch.completed": door.finish(batch.id).id, "batch.failed": door.finish(door.batch([]).id).id}
    for kind, act in (("batch.cancelled", "cancel"), ("batch.expired", "expire")):
        running = door.running(1)
        if act == "cancel":
            door.client.batches.cancel(running.id)
        else:
            door.execute("UPDATE batch_runs SET expires_at = now() WHERE batch_id = :id", id=running.id)
        ends[kind] = door.finish(running.id).id
    tell(door)
    events = [receiver.event(door.client, made.signing_secret, number) for number in range(len(receiver.got))]
    assert {event.type: event.data.id for event in events} == ends
    assert all(event.object == "event" and event.id.startswith("evt_") for event in events)
    with pytest.raises(openai.InvalidWebhookSignatureError):
        receiver.event(door.client, "whsec_" + "A" * 43 + "=")


def test_openai_webhook_that_does_not_answer_is_tried_again_with_longer_pauses(door: Door, receiver: Receiver) -> None:
    made = hook(door, receiver)
    receiver.answers = [500, 302]
    door.finish(door.batch([]).id)
    tell(door)
    (first,) = deliveries(door, made.id)
    assert (first["attempts"], first["status_code"], first["delivered_at"]) == (1, 500, None)
    pause = first["next_attempt_at"] - first["created_at"]
    tell(door)
    assert len(receiver.got) == 1, "not before its time"
    door.execute("UPDATE webhook_deliveries SET next_at = now() WHERE webhook_id = :id", id=made.id)
    tell(door)
    (second,) = deliveries(door, made.id)
    assert (second["attempts"], second["status_code"]) == (2, 302)
    assert second["next_attempt_at"] - second["created_at"] > pause
    door.execute("UPDATE webhook_deliveries SET next_at = now() WHERE webhook_id = :id", id=made.id)
    tell(door)
    (third,) = deliveries(door, made.id)
    assert (third["attempts"], third["next_attempt_at"]) == (3, None)
    assert third["delivered_at"] is not None
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1, "one event, however often it is told"


def test_openai_webhook_that_was_given_up_can_be_replayed(door: Door, receiver: Receiver) -> None:
    made = hook(door, receiver)
    door.finish(door.batch([]).id)
    door.execute("UPDATE webhook_deliveries SET attempts = 9 WHERE webhook_id = :id", id=made.id)
    receiver.answers = [500]
    tell(door)
    assert deliveries(door, made.id)[0]["next_attempt_at"] is None
    path = f"/webhook_endpoints/{made.id}/replay"
    again: Any = door.client.post(path, body={}, cast_to=httpx.Response)
    assert again.json()["deliveries"] == 1
    tell(door)
    assert receiver.event(door.client, made.signing_secret).type == "batch.failed"
    event_id = deliveries(door, made.id)[0]["id"]
    door.client.post(path, body={"event_ids": [event_id]}, cast_to=httpx.Response)
    tell(door)
    assert len(receiver.got) == 3
    with pytest.raises(openai.BadRequestError):
        door.client.post(path, body={"event_ids": ["evt_none"]}, cast_to=httpx.Response)
    with pytest.raises(openai.NotFoundError):
        door.other.post(path, body={}, cast_to=httpx.Response)


def test_openai_webhook_endpoints_are_made_changed_listed_tested_and_deleted(door: Door, receiver: Receiver) -> None:
    made = hook(door, receiver, ["batch.completed"])
    assert made.signing_secret.startswith("whsec_")
    assert not hasattr(door.client.webhooks.retrieve(made.id), "signing_secret")
    door.client.webhooks.update(made.id, event_types=["batch.failed"])
    assert [one.event_types for one in door.client.webhooks.list()] == [["batch.failed"]]
    assert door.client.webhooks.test(made.id, event_type="batch.failed").status_code == 200
    assert receiver.event(door.client, made.signing_secret).type == "batch.failed"
    with pytest.raises(openai.NotFoundError):
        door.other.webhooks.retrieve(made.id)
    assert door.client.webhooks.delete(made.id).deleted is True
    door.finish(door.batch([]).id)
    tell(door)
    assert len(receiver.got) == 1


def test_openai_webhook_secret_is_replaced_and_the_old_one_may_sign_for_a_day(door: Door, receiver: Receiver) -> None:
    made = hook(door, receiver)
    fresh = door.client.webhooks.rotate_secret(made.id, keep_old_secret_active_for_24_hours=True)
    door.client.webhooks.test(made.id, event_type="batch.failed")
    for secret in (made.signing_secret, fresh.signing_secret):
        assert receiver.event(door.client, secret).type == "batch.failed"
    door.client.webhooks.rotate_secret(made.id)
    door.client.webhooks.test(made.id, event_type="batch.failed")
    with pytest.raises(openai.InvalidWebhookSignatureError):
        receiver.event(door.client, fresh.signing_secret)


@pytest.mark.parametrize(
    "url",
    [
        *("http://127.0.0.2/", "https://127.0.0.2/", "https://10.0.0.1/", "https://192.168.1.1/"),
        *("https://169.254.169.254/latest/meta-data", "https://[::1]/", "https://[fd00::1]/", "https://0.0.0.0/"),
        *("https://[::ffff:10.0.0.1]/", "https://2130706434/", "https://0x7f.0.0.2/", "https://224.0.0.1/"),
        *("http://93.184.215.14/", "ftp://93.184.215.14/", "https://user:word@93.184.215.14/", "https:///x", "x"),
        *("https://93.184.215.14:99999/", "https://no-such-host.invalid/"),
    ],
)
def test_openai_webhooks_go_to_no_address_inside_and_not_unencrypted(door: Door, url: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        door.client.webhooks.create(event_types=["batch.failed"], name="inside", url=url)
    assert refused.value.code == "forbidden_host"


def test_openai_webhook_whose_host_moves_inside_is_not_called(door: Door, receiver: Receiver) -> None:
    """A name that is outside when the webhook is made and inside when it is called."""
    made = hook(door, receiver)
    inside = receiver.url.replace("127.0.0.1", "127.0.0.2")
    door.execute("UPDATE webhooks SET url = :url WHERE webhook_id = :id", url=inside, id=made.id)
    door.finish(door.batch([]).id)
    tell(door)
    assert receiver.got == []
    assert "ForbiddenHost" in deliveries(door, made.id)[0]["error"]


def test_openai_webhooks_reach_hosts_and_networks_that_the_operator_lists() -> None:
    assert target_of("http://127.0.0.9:81/x", ["127.0.0.0/8"]).address == "127.0.0.9"
    assert target_of("http://localhost/", ["localhost"]).port == 80
    assert target_of("https://93.184.215.14/", []).port == 443
    with pytest.raises(ForbiddenHost):
        target_of("http://localhost/", ["10.0.0.0/8"])
