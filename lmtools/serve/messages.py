"""Messages of HTTP/1.1, as far as a service of JSON needs them: requests with Content-Length,
nothing in pieces.
"""

import asyncio
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple

from lmtools.base.errors import UserError

HEAD = 1 << 16  # bytes of a request's line and headers
REQUEST = re.compile(r"([A-Z]{1,16}) (\S+) HTTP/1\.([01])")
HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\0\r\n]*)")


class Refusal(UserError):
    """A request that is not answered: its status, the cause and remedy, and more headers."""

    def __init__(self, status: int, message: str, **headers: str):
        super().__init__(message)
        self.status, self.headers = status, headers

    @classmethod
    def later(cls, cause: str) -> "Refusal":
        """Return the refusal of a request that comes at a busy moment."""
        return cls(503, f"busy: {cause}; send it again later", **{"Retry-After": "1"})


class Head(NamedTuple):
    """A request without its body; names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    keep: bool  # whether more requests may follow

    @property
    def length(self) -> int:
        """The bytes of its body; Refusal where it does not say."""
        if "transfer-encoding" in self.headers:
            raise Refusal(411, "a body in pieces; send it with Content-Length")
        text = self.headers.get("content-length", "0" if self.method == "GET" else "")
        if not re.fullmatch(r"[0-9]{1,18}", text):
            raise Refusal(411, f"Content-Length is {text[:20]!a}; send the bytes of the body")
        return int(text)


async def read_head(reader: asyncio.StreamReader, first: bytes) -> Head:
    """Read a request, of which the `first` bytes are known, up to its body."""
    try:
        head = first + await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise Refusal(431, f"headers of more than {HEAD} bytes; send fewer") from None
    start, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    match = REQUEST.fullmatch(start)
    if not match:
        raise Refusal(400, "not a request of HTTP/1.1; send POST /rescore HTTP/1.1")
    headers = {}
    for line in lines:
        field = HEADER.fullmatch(line)
        if not field or (field[1].lower() in headers and field[1].lower() == "content-length"):
            raise Refusal(400, f"header {line[:40]!a}: malformed or given twice; mend it")
        headers[field[1].lower()] = field[2].strip()
    connection = headers.get("connection", "").lower()
    keep = "close" not in connection if match[3] == "1" else "keep-alive" in connection
    return Head(match[1], match[2].partition("?")[0], headers, keep)


def spell_answer(
    status: int, content: bytes, kind: str, keep: bool, headers: Mapping[str, str]
) -> bytes:
    """Return the bytes of an answer."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"Content-Type: {kind}"]
    lines += [f"Content-Length: {len(content)}", f"Connection: {'keep-alive' if keep else 'close'}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content
