"""Telling webhooks: signed by Standard Webhooks, tried again with longer and longer pauses, and only to hosts outside.

A caller chooses the URL, so it must not reach what only we can reach: the name is resolved here, an address inside
(private, loopback, link-local, a cloud's metadata) is refused unless the operator allows it, the connection goes to the
very address that was looked at, and redirects are not followed.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

import httpx
from sqlalchemy import RowMapping
from standardwebhooks import Webhook

from docmill.errors import RequestError
from docmill.log import logger, say
from storage.webhooks import event_body
from workers.services import Services

log = logger("webhooks")

#: Longest time that a receiver may take to answer.
ANSWER_WITHIN_S = 10.0
#: Another worker may take a delivery again after this: longer than any attempt takes.
HOLD_S = 60.0
AT_ONCE = 8
LONGEST_ERROR = 300

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class ForbiddenHost(RequestError):
    """A webhook's URL leads where webhooks may not go."""

    code = "forbidden_host"


@dataclass(frozen=True, slots=True)
class Target:
    """A URL, and the address that was looked at and found allowed."""

    url: str
    host: str
    port: int
    address: str


def target_of(url: str, allowed: Sequence[str]) -> Target:
    """Where a URL leads. Raises ForbiddenHost, also where any of its addresses is inside."""
    parts = urlsplit(url)
    try:
        host, port = parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443)
    except ValueError as error:
        raise ForbiddenHost(f"{url!r} has no valid port") from error
    if parts.scheme not in ("http", "https") or not host or parts.username or parts.password:
        raise ForbiddenHost(f"{url!r} is not a plain https URL: it needs a host and no user or password")
    addresses = _resolve(host, port)
    inside = [address for address in addresses if not _is_allowed(host, address, allowed)]
    if inside:
        raise ForbiddenHost(
            f"{host} is at {inside[0]}, which is not a public address: webhooks go outside, unless the operator lists "
            "the host or network in DOCMILL_WEBHOOK_HOSTS"
        )
    if parts.scheme == "http" and not all(_is_listed(host, address, allowed) for address in addresses):
        raise ForbiddenHost(f"{url!r} is not encrypted: use https")
    return Target(url, host, port, str(addresses[0]))


def _resolve(host: str, port: int) -> list[Address]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ForbiddenHost(f"{host!r} cannot be resolved: {error}") from error
    return [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]


def _is_allowed(host: str, address: Address, allowed: Sequence[str]) -> bool:
    mapped = getattr(address, "ipv4_mapped", None) or address
    return _is_listed(host, address, allowed) or (mapped.is_global and not mapped.is_multicast)


def _is_listed(host: str, address: Address, allowed: Sequence[str]) -> bool:
    return any(host == entry or _is_in(address, entry) for entry in allowed)


def _is_in(address: Address, network: str) -> bool:
    try:
        return address in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def headers_of(delivery: RowMapping, at: datetime) -> dict[str, str]:
    """The signature: of the secret, and for a day of the one that it replaced."""
    secrets = [delivery["secret"]]
    if delivery["old_secret"] and delivery["old_secret_until"] and delivery["old_secret_until"] > at:
        secrets.append(delivery["old_secret"])
    signed = [Webhook(secret).sign(delivery["event_id"], at, delivery["body"]) for secret in secrets]
    return {
        "content-type": "application/json",
        "user-agent": "docmill-webhooks",
        "webhook-id": delivery["event_id"],
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(signed),
    }


def post(target: Target, body: str, headers: dict[str, str]) -> int:
    """Send to the address that was looked at, by the name that was given; the status of the answer."""
    literal = f"[{target.address}]" if ":" in target.address else target.address
    url = httpx.URL(target.url).copy_with(host=literal)
    name = f"[{target.host}]" if ":" in target.host else target.host
    default = 443 if url.scheme == "https" else 80
    host = name if target.port == default else f"{name}:{target.port}"
    # No proxy of the environment, no redirect: the check above would say nothing of where they lead.
    with httpx.Client(timeout=ANSWER_WITHIN_S, trust_env=False, follow_redirects=False) as client:
        request = client.build_request("POST", url, content=body.encode(), headers={**headers, "host": host})
        request.extensions["sni_hostname"] = target.host
        answer = client.send(request, stream=True)
        answer.close()
        return answer.status_code


def call_now(webhook: RowMapping, kind: str, use: Services) -> int:
    """A sample event, sent now and once. Raises RequestError where nobody answers."""
    now = datetime.now(UTC)
    body = event_body("evt_test", kind, now, {"id": "batch_test"})
    sample = {**webhook, "event_id": "evt_test", "body": body}
    try:
        return post(target_of(webhook["url"], use.settings.webhook_hosts), body, headers_of(sample, now))  # type: ignore[arg-type]  # a mapping with a row's keys
    except httpx.HTTPError as error:
        raise RequestError(f"{webhook['url']} does not answer: {error!r}") from error


class Teller:
    """Sends what is due, a few at once."""

    def __init__(self, use: Services, *, scale: float = 1.0) -> None:
        self._use = use
        self._scale = scale

    def run(self, stop: threading.Event) -> None:
        """Again and again until told to stop."""
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="webhook") as pool:
            while not stop.is_set():
                if not self.tick(pool):
                    stop.wait(self._use.settings.tick_s)

    def tick(self, pool: ThreadPoolExecutor) -> bool:
        """Send what is due now. True if there was something."""
        try:
            due = self._use.webhooks.take_due(limit=AT_ONCE, hold_s=HOLD_S)
            list(pool.map(self._tell, due))
        except Exception as error:
            say(log, "tick_failed", level=logging.ERROR, error=True, why=error)
            return False
        return bool(due)

    def _tell(self, delivery: RowMapping) -> None:
        """One attempt; whatever comes of it is written down."""
        about = {"webhook_id": delivery["webhook_id"], "event_id": delivery["event_id"], "kind": delivery["event_type"]}
        try:
            target = target_of(delivery["url"], self._use.settings.webhook_hosts)
            status_code = post(target, delivery["body"], headers_of(delivery, datetime.now(UTC)))
        except Exception as error:
            say(log, "not_told", level=logging.WARNING, **about, why=repr(error))
            self._again(delivery, None, f"{type(error).__name__}: {error}"[:LONGEST_ERROR])
            return
        say(log, "told", **about, status=status_code)
        if 200 <= status_code < 300:
            self._use.webhooks.delivered(delivery["delivery_id"], status_code=status_code)
        else:
            self._again(delivery, status_code, f"answered {status_code}")

    def _again(self, delivery: RowMapping, status_code: int | None, error: str) -> None:
        self._use.webhooks.not_delivered(delivery, status_code=status_code, error=error, scale=self._scale)
