"""Work by several processes: results in order, errors as they were raised, and nobody left behind
or waited for, whoever is killed.

Each worker has a pipe of its own, whose end tells of the worker's, at any moment: with a queue that
all share, as pools have it, a worker that is killed while it reads or writes stops the others for
ever. A thread a worker in the parent sends items and takes results.

Processes are new ones, which import what they need, or, for work that allows it, forks of this one,
which have all that it has loaded and begin in milliseconds.
"""

import contextlib
import ctypes
import itertools
import multiprocessing
import os
import pickle
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import resource_tracker
from typing import Any, TypeVar

from lmtools.base.context import SETTINGS, Context, current
from lmtools.base.errors import UserError

AHEAD = 3  # items a process that are under way: what bounds the memory
PATIENCE = 5  # seconds that a process which was killed has to be gone
REMEDY = "give fewer processes (a lower --nj)"
SAFE = "PYTHONSAFEPATH"  # Python's variable
DIE_WITH_PARENT = 1  # Linux's PR_SET_PDEATHSIG
CONTEXT = multiprocessing.get_context("spawn")

Item, Result = TypeVar("Item"), TypeVar("Result")


@dataclass(frozen=True)
class Work:
    """Function `act` of an item, behind what `load()` returns once a process, if there is one;
    `context`: settings of the call; `forks`: whether processes may be forks.
    """

    act: Callable
    load: Callable | None = None
    context: Context = field(default_factory=current)
    forks: bool = False

    def bind(self) -> Callable:
        return partial(self.act, self.load()) if self.load else self.act

    def begin(self) -> Callable:
        """Return `bind` under the settings, for another process."""
        here = copy_context()
        here.run(SETTINGS.set, self.context)
        return partial(here.run, here.run(self.bind))


def map_ordered(
    act: Callable, items: Iterable[Item], nj: int = 1, load: Callable | None = None
) -> Iterator[Result]:
    """Yield `act` of each item, in order, by `nj` processes; here where nj is 1 or one item. `act`
    is pickled once; what `load()` returns, called once a process, is its first argument. Items are
    taken when needed, AHEAD * nj before their results. An exception of `act` is raised in the place
    of its result, and UserError when a worker is killed.
    """
    return (result for _, result in run_numbered(Work(act, load), items, nj, REMEDY))


def as_completed(
    act: Callable,
    items: Iterable[Item],
    nj: int,
    load: Callable | None = None,
    *,
    remedy: str = REMEDY,
    forks: bool = False,
) -> Iterator[tuple[int, Result]]:
    """Yield pairs (number of the item, `act` of it) as `nj` processes finish, also where nj is 1;
    else as `map_ordered`. Results that are there when a worker dies come before the error. `forks`:
    where `can_fork`, processes are forks, in which `load` has all that it refers to here.
    """
    return run_numbered(Work(act, load, current(), forks), items, nj, remedy, ordered=False)


def run_numbered(
    work: Work, items: Iterable, nj: int, remedy: str, *, ordered: bool = True
) -> Iterator[tuple[int, Any]]:
    """Yield (number of the item, result) by `nj` processes, or here if that is as good."""
    items = iter(items)
    if ordered:
        head = list(itertools.islice(items, 2 if nj > 1 else 0))
        items = itertools.chain(head, items)
        if len(head) < 2:
            yield from enumerate(map(work.bind(), items))
            return
    waiting: dict[Future, int] = {}
    with WorkerPool(work, nj, remedy) as pool:
        for number, item in enumerate(items):
            waiting[pool.submit(item)] = number
            yield from take_finished(waiting, AHEAD * nj, ordered)
        yield from take_finished(waiting, 0, ordered)


def take_finished(
    waiting: dict[Future, int], most: int, ordered: bool
) -> Iterator[tuple[int, Any]]:
    """Yield results of finished `waiting` work (`ordered`: from its beginning) till `most` wait."""
    while waiting:
        awaited = list(itertools.islice(waiting, 1)) if ordered else list(waiting)
        if len(waiting) > most:
            wait(awaited, return_when=FIRST_COMPLETED)
        done = [future for future in awaited if future.done()]
        if not done:
            return
        for future in sorted(done, key=lambda future: future.exception() is not None):
            yield waiting.pop(future), future.result()


class WorkerPool:
    """At most `nj` processes, started with the first items. When one dies, all end, and all work
    that is not done fails with the same UserError.
    """

    def __init__(self, work: Work, nj: int, remedy: str = REMEDY):
        self.nj, self.remedy = nj, remedy
        self.forked = work if work.forks and can_fork() else None
        self.content = b"" if self.forked else pickle.dumps(work, pickle.HIGHEST_PROTOCOL)
        self.todo: queue.SimpleQueue = queue.SimpleQueue()
        self.workers: list[Worker] = []
        self.lock, self.death = threading.Lock(), None

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(self, *error) -> None:
        for worker in self.workers:
            worker.process.kill()
            self.todo.put(None)
        for worker in self.workers:
            worker.thread.join(PATIENCE)
            worker.process.join(PATIENCE)
            worker.connection.close()

    def submit(self, item) -> Future:
        if len(self.workers) < self.nj:
            try:
                self.workers.append(Worker(self))
            except OSError as error:
                raise UserError(
                    f"cannot start a worker process: {error.strerror}; {self.remedy}"
                ) from None
        future = Future()
        self.todo.put((future, item))
        return future

    def lost(self, worker: "Worker") -> UserError:
        """Return the error on the first worker that died; the others are ended: nobody waits."""
        with self.lock:
            if self.death is None:
                worker.process.join(PATIENCE)
                how = f"{worker.process.pid} {describe_end(worker.process.exitcode)}"
                self.death = UserError(f"worker process {how}; {self.remedy}")
                for other in self.workers:
                    other.process.kill()
        return self.death


def can_fork() -> bool:
    """Return whether this process may be forked: on Linux, by its only thread."""
    return sys.platform == "linux" and threading.active_count() == 1


def describe_end(status: int | None) -> str:
    """Describe the end of a process in words; a negative status is that of a signal."""
    if status is None or status >= 0:
        return "ended by itself" + (f" with status {status}" if status else "")
    known = {number.value: number.name for number in signal.Signals}
    name = f"{known[-status]} ({-status})" if -status in known else f"signal {-status}"
    memory = ", perhaps for want of memory" if -status == signal.SIGKILL else ""
    return f"was killed by {name}{memory}"


class Worker:
    """A process, and the thread here that feeds it from the pool's queue and takes results."""

    def __init__(self, pool: WorkerPool):
        self.pool, self.started = pool, bool(pool.forked)
        # the user's number of threads, or an even share of the processors
        share = max(1, (os.cpu_count() or 1) // pool.nj)
        threads = None if "OMP_NUM_THREADS" in os.environ else share
        # a parent's end is told to the children of its main thread only
        parent = os.getpid() if threading.current_thread() is threading.main_thread() else None
        self.connection, theirs = CONTEXT.Pipe()
        context = multiprocessing.get_context("fork") if pool.forked else CONTEXT
        self.process = context.Process(
            target=serve, args=(theirs, parent, threads, pool.forked), daemon=True
        )
        with without_interrupts(), without_local_modules():
            self.process.start()
        theirs.close()  # or its end would not be the end of the pipe
        self.thread = threading.Thread(target=self.relay, daemon=True)
        self.thread.start()

    def relay(self) -> None:
        """Have the process do one piece of work after the other until there is none."""
        while task := self.pool.todo.get():
            future, item = task
            try:
                future.set_result(self.result(item))
            except BaseException as error:
                future.set_exception(error)

    def result(self, item):
        if self.pool.death:
            raise self.pool.death
        message = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
        try:
            if not self.started:
                self.connection.send_bytes(self.pool.content)
                self.started = True
            self.connection.send_bytes(message)
            answer = self.connection.recv_bytes()
        except (EOFError, OSError):
            raise self.pool.lost(self) from None
        good, value = pickle.loads(answer)
        if good:
            return value
        error, trace = value
        raise error from RuntimeError(f"in worker process {self.process.pid}:\n{trace}")


@contextlib.contextmanager
def without_local_modules() -> Iterator[None]:
    """Let Python processes that start in the block import nothing from the working directory, which
    holds data (from Python 3.11 on). multiprocessing gives a child no environment but this one's.
    """
    before = os.environ.get(SAFE)
    os.environ[SAFE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SAFE]
        else:
            os.environ[SAFE] = before


@contextlib.contextmanager
def without_interrupts() -> Iterator[None]:
    """Delay Ctrl-C until the block ends; processes started in it never hear of it."""
    # starting it, which the first process would do, lets interrupts through
    with without_local_modules():
        resource_tracker.ensure_running()
    waiting: list[int] = []
    # a mask is one thread's: what another thread takes is raised in the main one all the same
    main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, lambda n, _: waiting.append(n)) if main else None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
        if waiting:
            signal.raise_signal(signal.SIGINT)


def serve(connection, parent: int | None, threads: int | None, work: Work | None) -> None:
    """Run a worker: read its work, which a fork has, then answer items until the pipe ends."""
    end_with_parent(parent)
    with contextlib.suppress(EOFError, OSError):
        content = b"" if work else connection.recv_bytes()
        try:
            work = work or pickle.loads(content)
            if threads and "torch" in sys.modules:
                sys.modules["torch"].set_num_threads(threads)
            act = work.begin()
        # a model that cannot be loaded: said in the place of the first result
        except Exception as error:
            act = partial(fail, error)
        while True:
            connection.send_bytes(answer_item(act, connection.recv_bytes()))


def fail(error: Exception, item) -> None:
    """Raise what kept the work from being done."""
    raise error


def end_with_parent(parent: int | None) -> None:
    """Have this process end when its parent does: at once on Linux, else when a thread may run."""
    if parent is not None and sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the call
            os._exit(1)

    def wait_for_parent():
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=wait_for_parent, daemon=True).start()


def answer_item(act: Callable, message: bytes) -> bytes:
    """Return the pickled answer: (True, result), or (False, (exception, its traceback as text))."""
    try:
        return pickle.dumps((True, act(pickle.loads(message))), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        trace = traceback.format_exc()
        try:
            answer = pickle.dumps((False, (error, trace)))
            pickle.loads(answer)  # not every exception survives it
            return answer
        except Exception:
            return pickle.dumps((False, (RuntimeError(f"{type(error).__name__}: {error}"), trace)))
