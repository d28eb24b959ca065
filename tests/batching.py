"""A batch through a running stack with the `openai` client; for stacks with and without a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from openai import OpenAI

from tests.stack import Stack, notice, until

PROFILE = "transaction-monitoring"
CHAT = "/v1/chat/completions"
OVER = ("completed", "failed", "expired", "cancelled")


def client_of(stack: Stack, tenant: str = "default") -> OpenAI:
    """A client with a new key; it goes on while the API is being started again."""
    key = stack.command("keys", "create", tenant).split()[0]
    return OpenAI(base_url=f"{stack.url}/v1", api_key=key, max_retries=8, timeout=60)


def post_batch(client: OpenAI, numbers: Sequence[int], **line: Any) -> str:
    """A batch of one notice a number; its id."""
    requests = []
    for number in numbers:
        file = client.files.create(file=(f"{number}.pdf", notice(number)), purpose="user_data")
        content = [{"type": "file", "file": {"file_id": file.id}}]
        body = {"model": PROFILE, "messages": [{"role": "user", "content": content}]}
        requests.append({"custom_id": str(number), "method": "POST", "url": CHAT, "body": body, **line})
    data = "\n".join(map(json.dumps, requests)).encode()
    source = client.files.create(file=("requests.jsonl", data), purpose="batch")
    return client.batches.create(input_file_id=source.id, endpoint=CHAT, completion_window="1h").id


def wait_for(client: OpenAI, batch_id: str, holds: Callable[[Any], bool], within_s: float = 300) -> Any:
    until(lambda: holds(client.batches.retrieve(batch_id)), within_s, f"{batch_id}")
    return client.batches.retrieve(batch_id)


def rows_of(client: OpenAI, file_id: str | None) -> list[dict[str, Any]]:
    return [] if file_id is None else [json.loads(row) for row in client.files.content(file_id).text.splitlines()]
