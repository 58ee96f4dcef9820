"""A service over HTTP: `POST /rescore`, `GET /health`, `GET /metrics`.

One loop reads and writes requests of HTTP/1.1, as far as JSON needs them: with Content-Length,
nothing in pieces. One thread scores meanwhile (`Batcher`).
"""

import asyncio
import contextlib
import contextvars
import errno
import ipaddress
import re
import signal
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from itertools import accumulate
from typing import NamedTuple

from lmtools.base.errors import UserError, one_line
from lmtools.base.files import in_units
from lmtools.base.log import say
from lmtools.base.options import check_options, option
from lmtools.serve.chooser import Answer, Chooser, spell_error

HEAD = 1 << 16  # bytes of a request's line and headers
REQUEST = re.compile(r"([A-Z]{1,16}) (\S+) HTTP/1\.([01])")
HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\0\r\n]*)")
IDLE = 600.0  # seconds that a connection may be silent between requests
LINGER = 2.0  # seconds for a client that still sends to read why it is refused
HELD = 4  # bodies of the greatest size that may be in memory
METHODS = {"/rescore": "POST", "/health": "GET", "/metrics": "GET"}
JSON, TEXT = "application/json", "text/plain; version=0.0.4"
# names of this machine, which no site of the web can have
OWN = re.compile(r"([\w-]*|[\d.]+|\[[\da-f:.]+\])(:\d*)?", re.IGNORECASE)
TELL = 60.0  # seconds from line to line about one fault
# of a client, of a connection closed here, or of one that takes no answer
GONE = (OSError, EOFError, asyncio.CancelledError, asyncio.TimeoutError)
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


CONNECTIONS = 256  # at once; one more closes that longest idle


@dataclass(frozen=True)
class Serving:
    """Options of a service over HTTP."""

    port: str = option(
        "8000", "port to listen on (0: any free one); ADDRESS:PORT lets other machines connect"
    )
    waiting: int = option(64, "number of requests that may wait; one more gets status 503", least=1)
    seconds: float = option(
        10.0, "most seconds for a request to arrive, and for its answer to be sent", least=0.01
    )

    def __post_init__(self):
        check_options(self)
        number = self.address[1]
        if not re.fullmatch("[0-9]{1,5}", number) or int(number) > 65535:
            raise UserError(f"port: {self.port} is not a port; give a number from 0 to 65535")

    @property
    def address(self) -> tuple[str, str]:
        """The address and the port."""
        host, _, number = self.port.rpartition(":")
        return host.strip("[]") or "127.0.0.1", number


class Refusal(UserError):
    """A request that is not answered: its status, the cause and remedy, and more headers."""

    def __init__(self, status: int, message: str, **headers: str):
        super().__init__(message)
        self.status, self.headers = status, headers


def busy(cause: str) -> Refusal:
    return Refusal(503, f"busy: {cause}; send it again later", **{"Retry-After": "1"})


class ServiceMetrics:
    """Counts since the start; as text it is the page that Prometheus fetches."""

    def __init__(self):
        self.requests: Counter[tuple[str, int]] = Counter()  # by path and status
        self.sums = Counter(lists=0, hypotheses=0, batches=0)
        self.durations = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0
        self.queue = 0  # requests that wait now

    def observe(self, seconds: float, answer: Answer) -> None:
        self.durations[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds
        self.sums.update(lists=answer.lists, hypotheses=answer.hypotheses)

    def __str__(self) -> str:
        lines = ["# TYPE lmtools_requests_total counter"]
        for (path, status), count in sorted(self.requests.items()):
            lines.append(f'lmtools_requests_total{{path="{path}",status="{status}"}} {count}')
        for name, count in self.sums.items():
            lines += [f"# TYPE lmtools_{name}_total counter", f"lmtools_{name}_total {count}"]
        lines += ["# TYPE lmtools_queue_requests gauge", f"lmtools_queue_requests {self.queue}"]
        name = "lmtools_request_seconds"
        lines.append(f"# TYPE {name} histogram")
        counts = [*accumulate(self.durations)]
        for bound, count in zip((*BOUNDS, "+Inf"), counts, strict=True):
            lines.append(f'{name}_bucket{{le="{bound}"}} {count}')
        lines += [f"{name}_sum {self.seconds:.6f}", f"{name}_count {counts[-1]}"]
        return "\n".join(lines) + "\n"


class Batcher:
    """Queue of requests; all that wait are scored together by one thread."""

    def __init__(self, chooser: Chooser, serving: Serving, metrics: ServiceMetrics):
        self.chooser, self.serving, self.metrics = chooser, serving, metrics
        self.waiting: deque[tuple[bytes, asyncio.Future]] = deque()
        self.changed, self.closed = asyncio.Event(), False

    async def ask(self, body: bytes) -> Answer:
        """Return the answer to a request; UserError of a wrong one, Refusal of one too many and of
        one that takes too long.
        """
        if len(self.waiting) >= self.serving.waiting:
            raise busy(f"{len(self.waiting)} requests wait")
        future = asyncio.get_running_loop().create_future()
        self.waiting.append((body, future))
        self.changed.set()
        try:
            return await asyncio.wait_for(future, self.serving.seconds)
        except asyncio.TimeoutError:
            cause = f"no answer in {self.serving.seconds:g} s"
            raise Refusal(504, f"{cause}; send fewer lists at once, or later") from None

    def close(self) -> None:
        self.closed = True
        self.changed.set()

    async def run(self) -> None:
        """Answer what waits, until closed."""
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        with ThreadPoolExecutor(1) as pool:
            while self.waiting or not self.closed:
                await self.changed.wait()
                # those that took too long are done
                batch = [(body, future) for body, future in self.waiting if not future.done()]
                self.waiting.clear()
                if not self.closed:
                    self.changed.clear()
                if not batch:
                    continue
                bodies = [body for body, _ in batch]
                try:
                    results = await loop.run_in_executor(
                        pool, context.run, self.chooser.answer, bodies
                    )
                except Exception as error:
                    results = [error] * len(batch)
                self.metrics.sums["batches"] += 1
                for (_, future), result in zip(batch, results, strict=True):
                    if not future.done():
                        failed = isinstance(result, Exception)
                        (future.set_exception if failed else future.set_result)(result)


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


class Server:
    """A service of a Chooser; bodies of requests have at most `most` bytes."""

    def __init__(self, chooser: Chooser, serving: Serving, most: int):
        self.serving, self.most = serving, most
        self.metrics, self.ending = ServiceMetrics(), False
        self.batcher = Batcher(chooser, serving, self.metrics)
        self.tasks: set[asyncio.Task] = set()  # one a connection
        self.idle: dict[asyncio.Task, None] = {}  # those without a request, longest first
        self.held: dict[asyncio.StreamReader, int] = {}  # bytes of the bodies of connections
        self.told, self.local = -TELL, False

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT; then answer what has come. UserError where the address
        cannot be listened on.
        """
        host, port = self.serving.address
        try:
            server = await asyncio.start_server(self.converse, host, port, limit=HEAD)
        except OSError as error:
            raise UserError(
                f"{host}:{port}: cannot listen there ({error.strerror or error}); give another"
                " --set port=ADDRESS:PORT"
            ) from None
        host, port = server.sockets[0].getsockname()[:2]
        self.local = ipaddress.ip_address(host).is_loopback
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        loop.set_exception_handler(lambda _, fault: self.tell(fault))
        working = asyncio.create_task(self.batcher.run())
        for kind in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(kind, ended.set)
        say(f"listening on http://{f'[{host}]' if ':' in host else host}:{port}")
        await ended.wait()
        for kind in (signal.SIGTERM, signal.SIGINT):  # another one ends at once
            loop.remove_signal_handler(kind)
        self.ending = True
        server.close()
        for task in [*self.idle]:
            self.close_idle(task)
        if self.tasks:
            await asyncio.wait(self.tasks)
        self.batcher.close()
        await working

    def tell(self, fault: dict) -> None:
        """Say in one line, once in TELL, what asyncio would log with a traceback each time: a
        hundred times a second that there is no descriptor for a connection.
        """
        if self.told + TELL <= time.monotonic():
            self.told, error = time.monotonic(), fault.get("exception")
            short = getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE)
            remedy = "; raise ulimit -n" if short else ""
            cause = one_line(error or UserError(fault["message"]))
            say(f"lmtools serve: {cause}{remedy}")

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self.tasks.add(task)
        writer.transport.set_write_buffer_limits(0)  # so that drain waits for the last byte
        if len(self.tasks) > CONNECTIONS and self.idle:
            self.close_idle(next(iter(self.idle)))
        try:
            while True:
                self.idle[task] = None
                with at_most(IDLE):
                    first = await reader.read(1)
                self.idle.pop(task, None)
                if not first or not await self.exchange(reader, writer, first):
                    break
        except GONE:
            writer.transport.abort()
        finally:
            self.idle.pop(task, None)
            self.tasks.discard(task)
            writer.close()

    def close_idle(self, task: asyncio.Task) -> None:
        del self.idle[task]
        task.cancel()

    async def exchange(self, reader, writer, first: bytes) -> bool:
        """Answer a request, whose `first` byte is known; return whether another may follow."""
        path, keep, more, seconds = "other", False, {}, self.serving.seconds
        try:
            try:
                with at_most(seconds):
                    head, body = await self.read_request(reader, writer, first)
            except asyncio.TimeoutError:
                late = f"the request did not come in {seconds:g} s; send it at once"
                raise Refusal(408, late) from None
            path = head.path if head.path in METHODS else path
            keep = head.keep
            status, (content, kind) = 200, await self.respond(head, body)
        except UserError as error:
            status, more = getattr(error, "status", 400), getattr(error, "headers", {})
            content, kind = spell_error(error), JSON
        finally:
            self.held.pop(reader, None)
        self.metrics.requests[path, status] += 1
        keep = keep and not self.ending
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"Content-Type: {kind}"]
        lines.append(f"Content-Length: {len(content)}")
        lines.append(f"Connection: {'keep-alive' if keep else 'close'}")
        lines += [f"{name}: {value}" for name, value in more.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + content)
        with at_most(seconds):
            await writer.drain()
        if status >= 400 and not keep:  # a closed connection would be reset before it is read
            with at_most(LINGER):
                writer.write_eof()
                while await reader.read(HEAD):
                    pass
        return keep

    async def read_request(self, reader, writer, first: bytes) -> tuple[Head, bytes]:
        """Return a request and its body; Refusal of one too large, or too many at once."""
        head = await read_head(reader, first)
        if len(self.tasks) > CONNECTIONS:
            raise busy(f"{len(self.tasks)} connections")
        length = head.length
        if length > self.most:
            remedy = "send fewer lists, or have the server started with a larger --max-line"
            raise Refusal(413, f"a body of more than {in_units(self.most)}; {remedy}")
        if sum(self.held.values()) + length > HELD * self.most:
            raise busy("much is being read")
        self.held[reader] = length
        if head.headers.get("expect", "").lower() == "100-continue":
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return head, await reader.readexactly(length)

    async def respond(self, head: Head, body: bytes) -> tuple[bytes, str]:
        """Return the content of an answer and its type; UserError, or Refusal with its status."""
        method = METHODS.get(head.path)
        if method is None:
            raise Refusal(404, f"nothing is there; use {', '.join(METHODS)}")
        if head.method != method:
            raise Refusal(405, f"{head.path} takes {method}; use it", Allow=method)
        if "origin" in head.headers:  # a page of the web asks through the user's browser
            raise Refusal(403, "not for pages in browsers; ask without the header Origin")
        if method == "GET":
            if self.local and not OWN.fullmatch(head.headers.get("host", "")):
                raise Refusal(403, "Host is another machine; ask by the address, or localhost")
            self.metrics.queue = len(self.batcher.waiting)
            if head.path == "/metrics":
                return str(self.metrics).encode(), TEXT
            return b'{"status": "ok"}', JSON
        begin = time.perf_counter()
        try:
            answer = await self.batcher.ask(body)
        except UserError:
            raise
        except Exception as error:
            say(f"lmtools serve: {one_line(error)} ({type(error).__name__})")
            raise Refusal(500, "failed here, see the log; send it again, or alone") from None
        self.metrics.observe(time.perf_counter() - begin, answer)
        return answer.content, JSON


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in a block that takes longer: asyncio.timeout, which Python 3.10 lacks."""
    task, late = asyncio.current_task(), asyncio.Event()
    timer = asyncio.get_running_loop().call_later(seconds, lambda: (late.set(), task.cancel()))
    try:
        yield
    except asyncio.CancelledError:
        if late.is_set():
            raise asyncio.TimeoutError from None
        raise
    finally:
        timer.cancel()
