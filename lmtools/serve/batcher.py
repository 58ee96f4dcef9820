"""Requests that wait for the one thread that scores."""

import asyncio
import contextvars
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lmtools.base.errors import UserError
from lmtools.base.options import check_options, option
from lmtools.serve.chooser import Answer, Chooser
from lmtools.serve.messages import Refusal
from lmtools.serve.metrics import ServiceMetrics


@dataclass(frozen=True)
class Serving:
    """Options of a service over HTTP."""

    host: str = option("127.0.0.1", "address to listen on; any but this lets other machines ask")
    port: int = option(8000, "of the address; 0: any that is free", least=0)
    waiting: int = option(64, "requests that may wait; one more is answered with 503", least=1)
    seconds: float = option(
        10.0, "that a request may take to come, to be answered, and the answer to go", least=0.01
    )
    connections: int = option(256, "at once; one more closes that longest idle", least=1)

    def __post_init__(self):
        check_options(self)
        if self.port > 65535:
            raise UserError(f"port: {self.port} is not a port; give a number from 0 to 65535")


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
            raise Refusal.later(f"{len(self.waiting)} requests wait")
        future = asyncio.get_running_loop().create_future()
        self.waiting.append((body, future))
        self.changed.set()
        try:
            return await asyncio.wait_for(future, self.serving.seconds)
        except asyncio.TimeoutError:
            cause = f"no answer in {self.serving.seconds:g} s"
            raise Refusal(504, f"{cause}; send fewer lists at once, or later") from None

    def close(self) -> None:
        """Have `run` end when nothing waits."""
        self.closed = True
        self.changed.set()

    async def run(self) -> None:
        """Answer what waits, until closed."""
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        with ThreadPoolExecutor(1) as pool:
            while True:
                # those that took too long are done
                batch = [(body, future) for body, future in self.waiting if not future.done()]
                self.waiting.clear()
                self.changed.clear()
                if batch:
                    bodies = [body for body, _ in batch]
                    work = loop.run_in_executor(pool, context.run, self.chooser.answer, bodies)
                    try:
                        results = await work
                    except Exception as error:
                        results = [error] * len(batch)
                    self.hand_out([future for _, future in batch], results)
                elif self.closed:
                    return
                else:
                    await self.changed.wait()

    def hand_out(self, futures: list[asyncio.Future], results: list[Answer | Exception]) -> None:
        """Give each request that still waits its answer or error."""
        self.metrics.sums["batches"] += 1
        for future, result in zip(futures, results, strict=True):
            if not future.done():
                failed = isinstance(result, Exception)
                (future.set_exception if failed else future.set_result)(result)
