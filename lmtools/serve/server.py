"""The service over HTTP: routes of starlette, carried by uvicorn, with limits to every wait.

`Service` is the application, `Body` what arrives of a request, `Connection` uvicorn's connection.
"""

import asyncio
import contextlib
import errno
import hmac
import ipaddress
import logging
import os
import re
import signal
import socket
import sys
import time

import h11
import uvicorn
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router
from uvicorn.protocols.http.h11_impl import H11Protocol

from lmtools.base.errors import UserError, one_line
from lmtools.base.files import WHOLE, in_units
from lmtools.base.log import say
from lmtools.serve.chooser import Chooser, spell_error
from lmtools.serve.speech import PATH, ClientLeftError, Speech, spell_for_openai
from lmtools.serve.waiting import (
    Batcher,
    Refusal,
    ServiceMetrics,
    Serving,
    at_most,
    busy,
    parse_port,
)

HEAD = 1 << 16  # bytes of a request's line and headers
IDLE = 600  # seconds that a connection may be silent between requests
LINGER = 2.0  # seconds for a client that still sends to read why it is refused
RATE = 100_000  # bytes of a body for which it may take one second more
HELD = 4  # bodies of the greatest size that may be held
CONNECTIONS = 256  # at once; one more closes that longest idle
# names of this machine, which no site of the web can have
OWN = re.compile(r"([\w-]*|[\d.]+|\[[\da-f:.]+\])(:\d*)?", re.IGNORECASE)
TELL = 60.0  # seconds from line to line about one fault
KEY = "LMTOOLS_API_KEY"  # the environment variable of what requests must show
JSON, PAGE = "application/json", "text/plain; version=0.0.4"


class Body:
    """The body of a request as it arrives: of at most `most` bytes, in `seconds` and what RATE adds
    to them; `held`: the bytes of all bodies of its kind.
    """

    def __init__(self, receive, headers: Headers, most: int, seconds: float):
        self.raw, self.most, self.seconds, self.held = receive, most, seconds, {}
        self.declared = int(headers.get("content-length", 0))
        self.complete = not self.declared and "transfer-encoding" not in headers
        self.size, self.begun = 0, time.monotonic()

    def hold(self, size: int) -> None:
        """Count these bytes as held; Refusal where they are too many."""
        if size > self.most:
            remedy = "send less, or have the server started with a larger --max-line"
            raise Refusal(413, f"a body of more than {in_units(self.most)}; {remedy}")
        self.held[self] = size
        if sum(self.held.values()) > HELD * self.most:
            raise busy("much is being read")

    async def receive(self) -> dict:
        """Return ASGI's next message: Refusal of a body that is too large or too slow."""
        if self.complete:  # the next is that the client left
            return await self.raw()
        try:
            with at_most(self.begun + self.seconds + self.size / RATE - time.monotonic()):
                message = await self.raw()
        except asyncio.TimeoutError:
            late = f"the request did not come in {self.seconds:g} s; send it at once"
            raise Refusal(408, late) from None
        self.size += len(message.get("body", b""))
        self.hold(max(self.size, self.declared))
        self.complete = not message.get("more_body", False)
        return message

    async def drop(self) -> None:
        """Read on for LINGER: a connection that is closed at once is reset before its client has
        read why.
        """
        with contextlib.suppress(asyncio.TimeoutError), at_most(LINGER):
            while (await self.raw()).get("more_body"):
                pass


class Service:
    """The application: `POST /rescore` by a Chooser, recordings by a Transcriber of the recogniser
    `asr`, `GET /health`, `GET /metrics`; lists of a request have at most `most` bytes.
    """

    def __init__(
        self, chooser: Chooser | None, serving: Serving, most: int, transcriber=None, asr: str = ""
    ):
        self.serving, self.key = serving, os.environ.get(KEY, "")
        self.metrics = ServiceMetrics()
        self.lists = Batcher(chooser.answer, serving) if chooser else None
        self.speech = Speech(transcriber, asr, serving, self.metrics) if transcriber else None
        self.batchers = [one for one in (self.lists, self.speech and self.speech.waiting) if one]
        self.connections: set[Connection] = set()
        self.idle: dict[Connection, None] = {}  # those without a request, longest first
        self.local, self.told = False, -TELL
        routes = [Route("/rescore", self.rescore, methods=["POST"])] if chooser else []
        routes += self.speech.routes if self.speech else []
        routes.append(Route("/health", self.tell_health, methods=["GET"]))
        routes.append(Route("/metrics", self.tell_metrics, methods=["GET"]))
        self.router = Router(routes, redirect_slashes=False)
        self.sizes = {one.path: most * (WHOLE if one.path == PATH else 1) for one in routes}
        self.held: dict[int, dict[Body, int]] = {}  # bytes of bodies, by the most of their kind

    async def __call__(self, scope, receive, send) -> None:
        headers, path, status = Headers(scope=scope), scope["path"], 0
        most = self.sizes.get(path, 0)
        body = Body(receive, headers, most, self.serving.seconds)

        async def carry(message: dict) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                if not body.complete:
                    message["headers"].append((b"connection", b"close"))
            await send(message)

        try:
            self.check(scope["method"], path, headers)
            if path in self.sizes:
                body.held = self.held.setdefault(most, {})
                body.hold(body.declared)
            await self.router({**scope, "app": self}, body.receive, carry)
        except (ClientDisconnect, ClientLeftError):
            pass
        except Exception as error:
            if not status:
                await self.refuse(path, error, body, carry)
        finally:
            body.held.pop(body, None)
        if status:
            self.metrics.requests[path if path in self.sizes else "other", status] += 1

    def check(self, method: str, path: str, headers: Headers) -> None:
        """Raise Refusal of a request whose headers tell that it may not be answered."""
        if "origin" in headers:  # a page of the web asks through the user's browser
            raise Refusal(403, "not for pages in browsers; ask without the header Origin")
        if self.local and not OWN.fullmatch(headers.get("host", "")):
            raise Refusal(403, "Host is another machine; ask by the address, or localhost")
        shown = headers.get("authorization", "").encode("latin-1")
        wanted = f"Bearer {self.key}".encode()
        if self.key and path != "/health" and not hmac.compare_digest(shown, wanted):
            cause = f"not the server's key ({KEY}); send the header Authorization: Bearer KEY"
            raise Refusal(401, cause, {"WWW-Authenticate": "Bearer"}, code="invalid_api_key")
        if len(self.connections) > CONNECTIONS:
            raise busy(f"{len(self.connections)} connections")

    async def refuse(self, path: str, error: Exception, body: Body, send) -> None:
        """Answer that a request is not answered."""
        if isinstance(error, HTTPException):  # of the router
            allowed = (error.headers or {}).get("Allow")
            texts = {
                404: f"nothing is there; use {', '.join(p for p in self.sizes if '{' not in p)}",
                405: f"{path} takes {allowed}; use it",
            }
            text = texts.get(error.status_code, f"{error.detail}; mend the request")
            error = Refusal(error.status_code, text, error.headers)
        elif not isinstance(error, UserError):
            say(f"lmtools serve: {one_line(error)} ({type(error).__name__})")
            error = Refusal(500, "failed here, see the log; send it again, or alone")
        status = getattr(error, "status", 400)
        openai = path.startswith("/v1/")
        content = spell_for_openai(error, status) if openai else spell_error(error)
        answer = Response(content, status, getattr(error, "headers", None), JSON)
        await send({"type": "http.response.start", "status": status, "headers": answer.raw_headers})
        more = not body.complete
        await send({"type": "http.response.body", "body": answer.body, "more_body": more})
        if more:
            await body.drop()
            await send({"type": "http.response.body"})

    async def rescore(self, request: Request) -> Response:
        content, begin = await request.body(), time.perf_counter()
        answer = await self.lists.ask(content)
        self.metrics.observe(time.perf_counter() - begin, answer)
        return Response(answer.content, media_type=JSON)

    async def tell_health(self, request: Request) -> Response:
        return Response(b'{"status": "ok"}', media_type=JSON)

    async def tell_metrics(self, request: Request) -> Response:
        self.metrics.queue = sum(len(one.waiting) for one in self.batchers)
        self.metrics.sums["batches"] = self.lists.batches if self.lists else 0
        return Response(str(self.metrics), headers={"Content-Type": PAGE})

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


class Connection(H11Protocol):
    """A connection of uvicorn's, with limits to how long it is silent, sends a head, and takes an
    answer; what is no HTTP is refused as JSON.
    """

    clock = stuck = None  # timers: of the head or the silence; of an answer that is not taken
    refused = False

    def connection_made(self, transport) -> None:
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # so that pause_writing tells of the last byte
        self.app.connections, idle = self.connections, self.app.idle
        if len(self.connections) > CONNECTIONS and idle:
            other = next(iter(idle))
            del idle[other]
            other.transport.abort()
        idle[self] = None
        self.clock = self.loop.call_later(IDLE, transport.abort)

    def connection_lost(self, exc) -> None:
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        self.app.idle.pop(self, None)
        self.wait_for(None)
        self.resume_writing()

    def wait_for(self, seconds: float | None) -> None:
        """Give the client these seconds to send a head."""
        if self.clock:
            self.clock.cancel()
        self.clock = seconds and self.loop.call_later(seconds, self.be_late)

    def be_late(self) -> None:
        self.refuse(408, "the request did not come in time; send it at once")

    @property
    def busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        if self.refused:
            return
        if self.app.idle.pop(self, self) is None:  # the first bytes of a request
            self.wait_for(self.app.serving.seconds)
        super().data_received(data)
        if self.busy:
            self.wait_for(None)

    def on_response_complete(self) -> None:
        self.app.idle[self] = None
        super().on_response_complete()
        if self.busy or self.transport.is_closing():  # with the next request
            self.app.idle.pop(self, None)

    def send_400_response(self, msg: str) -> None:
        error = sys.exc_info()[1]  # which uvicorn handles
        status = getattr(error, "error_status_hint", 400)
        if status == 431:
            msg = f"headers of more than {HEAD} bytes; send fewer"
        else:
            msg = f"not a request of HTTP/1.1 ({one_line(error)}); mend it"
        self.refuse(status, msg)

    def refuse(self, status: int, message: str) -> None:
        """Answer a request that the application never sees, or that breaks off, and close."""
        self.refused = True
        if self.busy:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        headers = [("content-type", JSON), ("connection", "close")]
        content = spell_error(UserError(message))
        headers.append(("content-length", str(len(content))))
        try:
            parts = h11.Response(status_code=status, headers=headers), h11.Data(data=content)
            for part in (*parts, h11.EndOfMessage()):
                self.transport.write(self.conn.send(part))
            self.transport.write_eof()
        except h11.LocalProtocolError:  # an answer has begun
            self.transport.abort()
        self.app.metrics.requests["other", status] += 1
        self.loop.call_later(LINGER, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.stuck = self.stuck or self.loop.call_later(
            self.app.serving.seconds, self.transport.abort
        )

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.stuck:
            self.stuck.cancel()
            self.stuck = None


class Daemon(uvicorn.Server):
    """uvicorn's server, which ends with status 0 at the first SIGTERM or SIGINT, and at once at the
    second.
    """

    def __init__(self, config: uvicorn.Config, service: Service):
        super().__init__(config)
        self.service = service

    @contextlib.contextmanager
    def capture_signals(self):
        """Have signals end it; the second has the system's effect again."""
        loop = asyncio.get_running_loop()
        kinds = (signal.SIGTERM, signal.SIGINT)

        def end():
            self.should_exit = True
            if self.service.speech:  # what has not begun would take minutes
                self.service.speech.waiting.close()
            for kind in kinds:
                loop.remove_signal_handler(kind)

        for kind in kinds:
            loop.add_signal_handler(kind, end)
        yield


async def serve(service: Service) -> None:
    """Serve until SIGTERM or SIGINT; then answer what has come. UserError where the address cannot
    be listened on.
    """
    host, port = parse_port(service.serving.port, "port")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family, backlog=100)
    except OSError as error:
        raise UserError(
            f"{host}:{port}: cannot listen there ({error.strerror or error}); give another"
            " --set port=ADDRESS:PORT"
        ) from None
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # head and body are two parts
    host, port = listening.getsockname()[:2]
    service.local = ipaddress.ip_address(host).is_loopback
    config = uvicorn.Config(
        service,
        http=Connection,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level=logging.CRITICAL + 1,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=IDLE,
        h11_max_incomplete_event_size=HEAD,
    )
    asyncio.get_running_loop().set_exception_handler(lambda _, fault: service.tell(fault))
    working = [asyncio.create_task(one.run()) for one in service.batchers]
    say(f"listening on http://{f'[{host}]' if ':' in host else host}:{port}")
    talks = None
    if service.serving.wyoming and service.speech:
        from lmtools.serve.wyoming import Talks

        talks = Talks(service.speech, service.serving, service.sizes[PATH])
        door = await talks.listen()
    await Daemon(config, service).serve([listening])
    for one in service.batchers:
        one.close()
    await asyncio.gather(*working)
    if talks:
        await talks.end(door)
