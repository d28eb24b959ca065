"""A server that speaks ListObjectsV2 and nothing else: a bucket of any number of keys, made up page by page.

To put a million objects into a real server takes it longer than to be measured; what is measured is the lister.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, urlsplit

PREFIX = "acme/risk-report/"
PAGE = 1000


def key_of(number: int) -> str:
    """The key of an object."""
    return f"{PREFIX}{number:08d}.pdf"


def behind(key: str) -> int:
    """The number of the first object behind a key."""
    return int(key.removeprefix(PREFIX).removesuffix(".pdf")) + 1 if key else 0


def page(first: int, last: int, total: int, *, odd: bool = False) -> str:
    """The answer with the objects from `first` to before `last` of `total`; `odd`: and a key with an empty part."""
    more = last < total
    token = f"<NextContinuationToken>{key_of(last - 1)}</NextContinuationToken>" if more else ""
    extra = _entry("acme//x.pdf", 0) if odd and not more else ""
    return (
        '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>million</Name><Prefix></Prefix><MaxKeys>{PAGE}</MaxKeys><KeyCount>{last - first}</KeyCount>"
        f"<IsTruncated>{str(more).lower()}</IsTruncated><EncodingType>url</EncodingType>{token}"
        + "".join(_entry(key_of(number), number) for number in range(first, last))
        + f"{extra}</ListBucketResult>"
    )


def _entry(key: str, number: int) -> str:
    return (
        f"<Contents><Key>{quote(key)}</Key><LastModified>2024-03-01T00:00:00.000Z</LastModified>"
        f'<ETag>"{number:032x}"</ETag><Size>1000</Size><StorageClass>STANDARD</StorageClass></Contents>'
    )


class Handler(BaseHTTPRequestHandler):
    """Answers GET /bucket?list-type=2…; reading an object is an error, which the benchmark counts."""

    protocol_version = "HTTP/1.1"
    total = 0
    odd = False

    def do_GET(self) -> None:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        if asked.get("list-type") != "2":
            self.send_error(500, "an object was read")
            return
        first = behind(asked.get("continuation-token") or asked.get("start-after") or "")
        last = min(first + int(asked.get("max-keys", PAGE)), self.total)
        body = page(first, last, self.total, odd=self.odd).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a thousand lines say nothing."""


def serve(total: int, *, odd: bool = False) -> Iterator[str]:
    """Print the port and serve until the process is ended."""
    handler = type("Bound", (Handler,), {"total": total, "odd": odd})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        yield f"http://127.0.0.1:{server.server_port}"
        server.serve_forever()


if __name__ == "__main__":
    for url in serve(int(sys.argv[1]), odd="odd" in sys.argv):
        print(url, flush=True)
