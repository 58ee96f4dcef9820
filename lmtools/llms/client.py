"""Requests to a server that may be busy, slow, far away or wrong: asked again where that may help,
counted, and never more than were allowed.

The key comes from the environment alone and goes into the header alone.
"""

import os
import random
import threading
import time
from urllib.parse import urlsplit

import httpx
import msgspec

from lmtools.base.errors import UserError
from lmtools.llms.options import ServerOptions

KEY = "LMTOOLS_LLM_KEY"  # in the environment
TRIES, FEWER = 7, 3  # of a request, and of one that only looks whether something is there
FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0  # seconds before it is asked again, at first and at most
BUSY = {408, 425, 429, 500, 502, 503, 504, 529}
LARGEST = 1 << 27  # bytes of an answer
SHOWN = 160  # characters of a server's message
KEPT = "what was scored is in the cache"


class Client:
    """The server at a URL. `requests`, `tokens`: what it was asked so far."""

    def __init__(self, url: str, options: ServerOptions):
        self.options, self.url = options, url.rstrip("/")
        parts = urlsplit(self.url)
        if not parts.hostname or parts.username or parts.query or parts.fragment:
            raise UserError(
                f"{parts.scheme}://{parts.hostname or ''}: give http://HOST:PORT/v1, without user,"
                f" password or key; the server's key is read from ${KEY}"
            )
        self.root = self.url.removesuffix("/v1")
        self.key = os.environ.get(KEY)
        self.requests = self.tokens = self.pending = 0
        self.lock = threading.Lock()
        try:
            self.http = httpx.Client(
                headers={"Authorization": f"Bearer {self.key}"} if self.key else {},
                timeout=httpx.Timeout(options.timeout, connect=min(options.timeout, 10.0)),
                limits=httpx.Limits(max_connections=options.requests),
            )
        except (ValueError, UnicodeError):
            raise UserError(f"${KEY}: is no key: a header cannot hold it") from None

    def post(self, path: str, body: dict, size: int = 0) -> dict:
        """Return the answer to a body of about `size` tokens, at most; UserError where there is
        none, or the ceilings are reached.
        """
        return self.repeat("POST", path, body, size)

    def get(self, path: str) -> dict | None:
        """Return the answer at a path, which costs nothing; None where there is none such."""
        try:
            return self.repeat("GET", path, None, 0, missing=True)
        except NoAnswerError:
            return None

    def repeat(self, method: str, path: str, body, size: int, missing: bool = False) -> dict:
        """Ask until there is an answer, or it is of no use to go on."""
        cause, tries = "", FEWER if missing else TRIES
        for turn in range(tries):
            if turn:
                time.sleep(wait_before(turn, cause))
            self.reserve(size, body is not None)
            try:
                status, content, cause = self.send(method, path, body)
            except httpx.TransportError as error:
                status, content, cause = None, b"", f"{type(error).__name__} {error}".strip()
            finally:
                with self.lock:
                    self.pending -= size
            if status == 200:
                return self.read(content, path, missing)
            if status is not None and status not in BUSY:
                self.refuse(status, content, path, missing)
            if status is not None:
                said = f" (retry after {cause})" if cause else ""
                cause = f"status {status} {show(content)}{said}"
        raise UserError(
            f"{self.url}: {self.hide(cause)}, {tries} times; {KEPT}: see to the server and run the"
            " command again"
        )

    def send(self, method: str, path: str, body) -> tuple[int, bytes, str]:
        """Return the status, content and Retry-After of one answer."""
        latest = time.monotonic() + self.options.timeout
        with self.http.stream(method, path, json=body) as answer:
            content = bytearray()
            for part in answer.iter_bytes():
                content += part
                if time.monotonic() > latest:
                    raise httpx.ReadTimeout(f"no whole answer in {self.options.timeout:g} s")
                if len(content) > LARGEST:
                    raise UserError(f"{path}: an answer of more than {LARGEST >> 20} MiB; {KEPT}")
            return answer.status_code, bytes(content), answer.headers.get("retry-after", "")

    def reserve(self, size: int, counted: bool) -> None:
        """Count a request; UserError where it may be beyond a ceiling."""
        most, limit = self.options.max_requests, self.options.max_tokens
        with self.lock:
            if counted and most is not None and self.requests >= most:
                raise UserError(f"{self.url}: max_requests={most} is reached; {KEPT}: raise it")
            if counted and limit is not None and self.tokens + self.pending + size > limit:
                raise UserError(
                    f"{self.url}: max_tokens={limit} may not suffice for the next text"
                    f" ({self.tokens} used); {KEPT}: raise it"
                )
            self.requests += counted
            self.pending += size

    def spend(self, tokens: int) -> None:
        """Count the tokens of an answer."""
        with self.lock:
            self.tokens += tokens

    def read(self, content: bytes, path: str, missing: bool) -> dict:
        """Return the JSON object of an answer."""
        try:
            answer = msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError):
            answer = None
        if isinstance(answer, dict):
            return answer
        if missing:
            raise NoAnswerError
        raise UserError(
            f"{path}: answers {self.hide(show(content))!r}, which is no JSON object; {KEPT}: check"
            " that an LLM's server is there, and give http://HOST:PORT/v1"
        )

    def refuse(self, status: int, content: bytes, path: str, missing: bool) -> None:
        """Raise what a status means that asking again does not change."""
        if missing and status not in (401, 403):
            raise NoAnswerError
        remedy = "see to the server, or leave this text out"
        if status in (401, 403):
            remedy = f"{'another' if self.key else 'a'} key in ${KEY} may help"
        if status == 404:
            remedy = "give http://HOST:PORT/v1 and the model's name, as in ,model=NAME"
        said = self.hide(show(content))
        raise RefusedError(f"{path}: status {status}: {said}; {KEPT}: {remedy}")

    def hide(self, text: str) -> str:
        """Return a text without the key, should a server say it."""
        return text.replace(self.key, "***") if self.key else text


class NoAnswerError(Exception):
    """There is nothing at an address that not every server has."""


class RefusedError(UserError):
    """A server says that it cannot do what it was asked."""


def show(content: bytes) -> str:
    """Return the beginning of what a server says."""
    return " ".join(content.decode("utf-8", "replace").split())[:SHOWN]


def wait_before(turn: int, cause: str) -> float:
    """Return the seconds before a request is asked again: what the server says, or twice as long
    each time, within a factor of random so that several clients do not come together.
    """
    said = cause.partition("retry after ")[2].rstrip(")")
    if said.isdigit():
        return min(float(said), LONGEST_WAIT)
    return min(FIRST_WAIT * 2 ** (turn - 1), LONGEST_WAIT) * random.uniform(0.5, 1.0)
