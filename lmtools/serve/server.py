"""A service over HTTP: `POST /rescore`, `GET /health`, `GET /metrics`.

One loop reads and writes, and one thread scores meanwhile (`batcher`).
"""

import asyncio
import contextlib
import errno
import ipaddress
import re
import signal
import time
from collections.abc import Callable, Iterator

from lmtools.base.errors import UserError, one_line
from lmtools.base.files import in_units
from lmtools.base.log import say
from lmtools.serve.batcher import Batcher, Serving
from lmtools.serve.chooser import Chooser
from lmtools.serve.lines import spell_error
from lmtools.serve.messages import HEAD, Head, Refusal, read_head, spell_answer
from lmtools.serve.metrics import ServiceMetrics

IDLE = 600.0  # seconds that a connection may be silent between requests
LINGER = 2.0  # seconds for a client that still sends to read why it is refused
HELD = 4  # bodies of the greatest size that may be in memory
METHODS = {"/rescore": "POST", "/health": "GET", "/metrics": "GET"}
JSON, TEXT = "application/json", "text/plain; version=0.0.4"
# names of this machine, which no site of the web can have
OWN = re.compile(r"([\w-]*|[\d.]+|\[[\da-f:.]+\])(:\d*)?", re.IGNORECASE)
TELL = 60.0  # seconds from line to line about one fault
GONE = (OSError, EOFError, asyncio.CancelledError)  # of a client, or of a connection closed here


class Server:
    """A service of a Chooser; bodies of requests have at most `most` bytes."""

    def __init__(self, chooser: Chooser, serving: Serving, most: int):
        self.serving, self.most, self.held = serving, most, 0
        self.metrics, self.ending = ServiceMetrics(), False
        self.batcher = Batcher(chooser, serving, self.metrics)
        self.tasks: set[asyncio.Task] = set()  # one a connection
        self.idle: dict[asyncio.Task, None] = {}  # those without a request, longest first
        self.told, self.local = -TELL, False

    async def run(self) -> None:
        """Serve until SIGTERM or SIGINT; then answer what has come. UserError where the address
        cannot be listened on.
        """
        host, port = self.serving.host, self.serving.port
        try:
            server = await asyncio.start_server(self.converse, host, port, limit=HEAD)
        except OSError as error:
            raise UserError(
                f"{host}:{port}: cannot listen there ({error.strerror or error}); give another"
                " --set host=ADDRESS port=N"
            ) from None
        host, port = server.sockets[0].getsockname()[:2]
        self.local = ipaddress.ip_address(host).is_loopback
        asyncio.get_running_loop().set_exception_handler(lambda _, fault: self.tell(fault))
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        working = asyncio.create_task(self.batcher.run())
        await wait_for_signal(f"listening on http://{place}")
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
            remedy = "; raise ulimit -n, or give fewer --set connections=N" if short else ""
            cause = one_line(error or UserError(fault["message"]))
            say(f"lmtools serve: {cause}{remedy}", "error")

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        task = asyncio.current_task()
        self.tasks.add(task)
        writer.transport.set_write_buffer_limits(0)  # so that drain waits for the last byte
        if len(self.tasks) > self.serving.connections and self.idle:
            self.close_idle(next(iter(self.idle)))
        try:
            while await self.exchange(reader, writer):
                pass
        except GONE:
            writer.transport.abort()
        finally:
            self.tasks.discard(task)
            writer.close()

    async def exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether another may follow."""
        if not (first := await self.read_first(reader, writer)):
            return False
        length, path, keep, more, seconds = 0, "other", False, {}, self.serving.seconds
        slow = Refusal(408, f"the request did not come in {seconds:g} s; send it at once")
        try:
            with until(seconds, slow):
                head = await read_head(reader, first)
                length = self.admit(head)
                self.held += length
                if head.headers.get("expect", "").lower() == "100-continue":
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                body = await reader.readexactly(length)
            path = head.path if head.path in METHODS else path
            keep = head.keep and not self.ending
            status, content, kind = await self.respond(head, body)
        except UserError as error:
            status, more = getattr(error, "status", 400), getattr(error, "headers", {})
            content, kind = spell_error(error), JSON
        finally:
            self.held -= length
        self.metrics.requests[path, status] += 1
        with within(seconds, writer.transport.abort):
            writer.write(spell_answer(status, content, kind, keep, more))
            await writer.drain()
        if status >= 400 and not keep:
            await linger(reader, writer)
        return keep

    async def read_first(self, reader, writer) -> bytes:
        """Return the first byte of the next request; nothing at the end of the connection."""
        task = asyncio.current_task()
        self.idle[task] = None
        try:
            with within(IDLE, writer.transport.abort):
                return await reader.read(1)
        finally:
            self.idle.pop(task, None)

    def close_idle(self, task: asyncio.Task) -> None:
        """Close a connection without a request."""
        del self.idle[task]
        task.cancel()

    def admit(self, head: Head) -> int:
        """Return the bytes of the body that is to be read; Refusal of one too large, or too many
        at once.
        """
        if len(self.tasks) > self.serving.connections:
            raise Refusal.later(f"{len(self.tasks)} connections")
        length = head.length
        if length > self.most:
            size = in_units(self.most)
            remedy = "send fewer lists, or give --max-line a larger size"
            raise Refusal(413, f"a body of more than {size}; {remedy}")
        if self.held + length > HELD * self.most:
            raise Refusal.later("much is being read")
        return length

    async def respond(self, head: Head, body: bytes) -> tuple[int, bytes, str]:
        """Return status, content and its type; UserError, Refusal with its status, for a request
        that has none.
        """
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
                return 200, str(self.metrics).encode(), TEXT
            return 200, b'{"status": "ok"}', JSON
        begin = time.perf_counter()
        try:
            answer = await self.batcher.ask(body)
        except UserError:
            raise
        except Exception as error:
            say(f"lmtools serve: {one_line(error)} ({type(error).__name__})")
            raise Refusal(500, "failed here, see the log; send it again, or alone") from None
        self.metrics.observe(time.perf_counter() - begin)
        self.metrics.sums.update(lists=answer.lists, hypotheses=answer.hypotheses)
        return 200, answer.content, JSON


async def wait_for_signal(ready: str) -> None:
    """Print that all is `ready`, and wait for SIGTERM or SIGINT; another one ends at once."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for kind in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(kind, ended.set)
    say(ready)
    await ended.wait()
    for kind in (signal.SIGTERM, signal.SIGINT):
        loop.remove_signal_handler(kind)


@contextlib.contextmanager
def within(seconds: float, act: Callable, *arguments) -> Iterator[None]:
    """Call a function if the block takes longer."""
    timer = asyncio.get_running_loop().call_later(seconds, act, *arguments)
    try:
        yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def until(seconds: float, late: Exception) -> Iterator[None]:
    """Raise the exception `late` in the block if it takes longer."""
    task, over = asyncio.current_task(), asyncio.Event()
    with within(seconds, lambda: (over.set(), task.cancel())):
        try:
            yield
        except asyncio.CancelledError:
            if over.is_set():
                raise late from None
            raise


async def linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Let a client that still sends read why it is refused: a closed connection would be reset."""
    with within(LINGER, writer.transport.abort):
        writer.write_eof()
        while await reader.read(HEAD):
            pass
