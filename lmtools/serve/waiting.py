"""Requests that wait to be answered, what is counted of them, and the options of a service."""

import asyncio
import contextlib
import contextvars
import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate

from lmtools.base.errors import UserError
from lmtools.base.options import check_options, option
from lmtools.serve.chooser import Answer

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


@dataclass(frozen=True)
class Serving:
    """Options of a service over HTTP."""

    port: str = option(
        "8000", "port to listen on (0: any free one); ADDRESS:PORT lets other machines connect"
    )
    wyoming: str = option(
        "",
        "port, or ADDRESS:PORT, on which recordings come by the Wyoming protocol (default: none)",
    )
    waiting: int = option(64, "number of requests that may wait; one more gets status 503", least=1)
    seconds: float = option(
        10.0,
        "most seconds for a request to arrive (and one more for each 100 KB), for lists to be"
        " answered, and for the answer to be sent",
        least=0.01,
    )

    def __post_init__(self):
        check_options(self)
        parse_port(self.port, "port")
        if self.wyoming:
            parse_port(self.wyoming, "wyoming")


def parse_port(text: str, name: str) -> tuple[str, int]:
    """Return the address and the number of PORT or ADDRESS:PORT; UserError for anything else."""
    host, _, number = text.rpartition(":")
    if not re.fullmatch("[0-9]{1,5}", number) or int(number) > 65535:
        raise UserError(f"{name}: {text} is not a port; give a number from 0 to 65535")
    return host.strip("[]") or "127.0.0.1", int(number)


class Refusal(UserError):
    """A request that is not answered: its status, the cause and remedy, more headers, and for
    clients of OpenAI the wrong field and a code.
    """

    def __init__(self, status: int, message: str, headers=None, param=None, code=None):
        super().__init__(message)
        self.status, self.headers, self.param, self.code = status, headers or {}, param, code


def busy(cause: str) -> Refusal:
    return Refusal(503, f"busy: {cause}; send it again later", {"Retry-After": "1"})


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
    """Queue of requests, which one thread hands to `answer`, a function from requests to answers
    or errors: all that wait together, or one by one and for as long as it takes if `alone`.
    """

    def __init__(self, answer: Callable[[list], list], serving: Serving, alone: bool = False):
        self.answer, self.serving, self.alone = answer, serving, alone
        self.waiting: deque[tuple[object, asyncio.Future]] = deque()
        self.changed, self.closed, self.batches = asyncio.Event(), False, 0

    async def ask(self, request):
        """Return the answer to a request; UserError of a wrong one, Refusal of one too many and of
        one that takes too long.
        """
        if self.closed:
            raise busy("the server ends")
        self.drop_done()
        if len(self.waiting) >= self.serving.waiting:
            raise busy(f"{len(self.waiting)} requests wait")
        future = asyncio.get_running_loop().create_future()
        self.waiting.append((request, future))
        self.changed.set()
        seconds = None if self.alone else self.serving.seconds
        try:
            return await asyncio.wait_for(future, seconds)
        except asyncio.TimeoutError:
            cause = f"no answer in {seconds:g} s"
            raise Refusal(504, f"{cause}; send fewer lists at once, or later") from None

    def drop_done(self) -> None:
        """Forget requests that took too long, or whose client went away."""
        self.waiting = deque(pair for pair in self.waiting if not pair[1].done())

    def close(self) -> None:
        """Answer what waits, but refuse all that would be answered alone, and end."""
        self.closed = True
        for _, future in self.waiting if self.alone else ():
            if not future.done():
                future.set_exception(busy("the server ends"))
        self.changed.set()

    async def run(self) -> None:
        """Answer what waits, until closed."""
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        with ThreadPoolExecutor(1) as pool:
            while self.waiting or not self.closed:
                await self.changed.wait()
                self.drop_done()
                most = 1 if self.alone else len(self.waiting)
                batch = [self.waiting.popleft() for _ in range(min(most, len(self.waiting)))]
                if not self.waiting and not self.closed:
                    self.changed.clear()
                if not batch:
                    continue
                requests = [request for request, _ in batch]
                try:
                    results = await loop.run_in_executor(pool, context.run, self.answer, requests)
                except Exception as error:
                    results = [error] * len(batch)
                self.batches += 1
                for (_, future), result in zip(batch, results, strict=True):
                    if not future.done():
                        failed = isinstance(result, Exception)
                        (future.set_exception if failed else future.set_result)(result)


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
