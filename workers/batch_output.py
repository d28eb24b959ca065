"""What the lines of a batch came to → the rows of its output and error files, streamed into the blob store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from sqlalchemy import RowMapping

from docmill import errors
from storage.batch_results import WITHOUT_RESULT, pages
from storage.files import NewFile, file_key
from workers.batch_line import CHAT
from workers.services import Services

#: Errors whose fault is the file's or the caller's: as an HTTP answer they are 422, all others 500.
_OF_INPUT = {errors.InputError.code, *(kind.code for kind in errors.InputError.__subclasses__()), "reject"}


def write_output(batch: RowMapping, use: Services) -> NewFile | None:
    """The file of results; none if there is none."""
    shape = _chat_completion if batch["endpoint"] == CHAT else _document
    return _write(batch, "output", ("completed",), lambda row: _envelope(row, 200, shape(row)), use)


def write_errors(batch: RowMapping, use: Services) -> NewFile | None:
    """The file of what failed or was not executed; none if nothing was."""
    return _write(batch, "errors", WITHOUT_RESULT, _failure, use)


def _write(
    batch: RowMapping,
    name: str,
    states: Sequence[str],
    shape: Callable[[dict[str, Any]], dict[str, Any]],
    use: Services,
) -> NewFile | None:
    """One row a line. The id follows from the batch, so a repetition writes the same file again."""
    file_id = "file-" + hashlib.sha256(f"{batch['batch_id']}\0{name}".encode()).hexdigest()[:24]
    key, filename = file_key(batch["tenant"], file_id), f"{batch['batch_id']}_{name}.jsonl"
    measure = _Measure()
    use.blobs.put_stream(key, measure.of(_pieces(pages(use.database, batch["batch_id"], states), shape)))
    if measure.size == 0:
        use.blobs.delete(key)
        return None
    size, sha256 = measure.size, measure.sha256.hexdigest()
    return NewFile(
        file_id, batch["tenant"], filename, "batch_output", "other", size, sha256, key, batch["output_keep_s"]
    )


class _Measure:
    """Size and hash of what passes."""

    def __init__(self) -> None:
        self.size, self.sha256 = 0, hashlib.sha256()

    def of(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self.size += len(piece)
            self.sha256.update(piece)
            yield piece


def _pieces(
    found: Iterable[list[dict[str, Any]]], shape: Callable[[dict[str, Any]], dict[str, Any]]
) -> Iterator[bytes]:
    for rows in found:
        lines = [json.dumps(shape(row), ensure_ascii=False, default=str) for row in rows]
        yield ("\n".join(lines) + "\n").encode()


# ---------------------------------------------------------------- rows


def request_id(row: dict[str, Any]) -> str:
    """The id of a line's request: the same whenever it is told."""
    return "batch_req_" + hashlib.sha256(f"{row['batch_id']}\0{row['line_no']}".encode()).hexdigest()[:24]


def _envelope(row: dict[str, Any], status_code: int, body: dict[str, Any]) -> dict[str, Any]:
    """An executed request; one that failed too has `error` null and says why in its body, as OpenAI's have."""
    number = request_id(row)
    response = {"status_code": status_code, "request_id": number.removeprefix("batch_"), "body": body}
    return {"id": number, "custom_id": row["custom_id"], "response": response, "error": None}


def _failure(row: dict[str, Any]) -> dict[str, Any]:
    if row["state"] != "failed":
        error = {"code": row["code"], "message": row["message"]}
        return {"id": request_id(row), "custom_id": row["custom_id"], "response": None, "error": error}
    status_code, code = row["status_code"], row["code"]
    if status_code is None:
        code = (row["message"] or "failed").partition(":")[0]
        status_code = 409 if row["status"] == "cancelled" else 422 if code in _OF_INPUT else 500
        code = "request_cancelled" if row["status"] == "cancelled" else code
    kind = "invalid_request_error" if status_code < 500 else "server_error"
    error = {"message": row["message"], "type": kind, "param": None, "code": code}
    return _envelope(row, status_code, {"error": error, "docmill": _ours(row)})


def _chat_completion(row: dict[str, Any]) -> dict[str, Any]:
    """A ChatCompletion whose content is the result as JSON."""
    message = {"role": "assistant", "content": json.dumps(row["result"], ensure_ascii=False), "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {
        "id": f"chatcmpl-{row['job_id']}",
        "object": "chat.completion",
        "created": int(row["finished_at"].timestamp()),
        "model": row["profile"],
        "choices": [choice],
        "usage": _usage(row),
        "docmill": _ours(row),
    }


def _usage(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "prompt_tokens": row["prompt_tokens"],
        "completion_tokens": row["output_tokens"],
        "total_tokens": row["prompt_tokens"] + row["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": row["cached_tokens"]},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _document(row: dict[str, Any]) -> dict[str, Any]:
    """The job as `GET /v1/jobs/{id}` has it, in short."""
    return {**_ours(row), "result": row["result"], "usage": _usage(row)}


def _ours(row: dict[str, Any]) -> dict[str, Any]:
    """What is known of the reading beside its result. A line that shares another's reading costs nothing."""
    if row["job_id"] is None:
        return {"job_id": None, "file_id": row["file_id"], "profile": row["profile"]}
    return {
        "job_id": row["job_id"],
        "document_id": row["document_id"],
        "file_id": row["file_id"],
        "profile": row["profile"],
        "profile_version": row["profile_version"],
        "status": row["status"],
        "reason": row["reason"],
        "verdict": row["verdict"],
        "findings": row["findings"],
        "shared": not row["fresh"],
        "cost_usd": f"{row['cost_usd'] if row['fresh'] else Decimal(0):f}",
        "links": {"self": f"/v1/jobs/{row['job_id']}", "result": f"/v1/jobs/{row['job_id']}/result"},
    }
