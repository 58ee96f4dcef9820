"""What the attacks share: verbs started and watched from outside, what is wrong with how they
ended, cases that can be run again.
"""

import contextlib
import importlib
import io
import itertools
import os
import pkgutil
import random
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
OUTCOMES = (
    "hang", "traceback", "crash", "wrong status", "multi-line", "long message",
    "no cause or remedy", "silent change", "accepted", "executed", "written outside", "survivors",
    "left behind", "memory", "lost",
)  # fmt: skip
MARKER = "LMTOOLS_TRUST"  # environment variable by which the processes of one start are found again
LONGEST_MESSAGE = 2000  # characters
PATIENCE = 60.0  # seconds after which a verb on tiny input hangs, on a machine that is free
SLOWER = "LMTOOLS_TRUST_PATIENCE"  # environment variable: so many times that
OVERHEAD = 1.5 * 2**30  # bytes of memory that a verb may take, whatever its input
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": str(REPOSITORY),
    "TMPDIR": "/tmp",
}


def patience(seconds: float = PATIENCE) -> float:
    """What may take so many seconds on a machine that is free, may take here, in seconds."""
    return seconds * float(os.environ.get(SLOWER, 1))


class Wrong(Exception):
    """An attack that came through: one of OUTCOMES and what was seen."""

    def __init__(self, outcome: str, detail: str = ""):
        super().__init__(outcome, detail)
        self.outcome, self.detail = outcome, detail
        assert outcome in OUTCOMES, outcome


class Skipped(Exception):
    """An attack that this machine does not allow, with the reason."""


@dataclass(frozen=True)
class Case:
    """An attack: `check(home)` in an empty directory raises Wrong or returns its trials."""

    name: str
    check: Callable[[Path], int | None]

    @classmethod
    def of(cls, name: str, check: Callable, *args) -> "Case":
        """The case that calls `check(home, *args)`."""
        return cls(name, lambda home: check(home, *args))

    @classmethod
    def all(cls, kinds: Mapping[str, tuple], size: str, short: Container[str]) -> Iterator["Case"]:
        """A case KIND-WORD-.. of each combination of a kind's words, some of them `short`."""
        for kind, (check, *words) in kinds.items():
            for args in itertools.product(*words):
                name = "-".join([kind, *args])
                if size != "short" or name in short:
                    yield cls.of(name, check, *args)


@dataclass
class Done:
    """How a command ended."""

    args: Sequence[str]
    status: int | None  # None: it did not end; negative: the signal that ended it
    out: str
    err: str
    seconds: float
    memory: int = 0  # bytes, the peak

    @property
    def command(self) -> str:
        return "lmtools " + shlex.join(map(str, self.args))

    @property
    def said(self) -> list[str]:
        """The message on standard error: what the verb says as such, without warnings."""
        lines = [
            line
            for line in self.err.splitlines()
            if line.strip() and not re.search(r"\bwarning\b", line, re.IGNORECASE)
        ]
        own = (number for number, line in enumerate(lines) if re.match(r"lmtools [a-z]+: ", line))
        return lines[next(own, 0) :]

    def wrong(self, outcome: str, detail: str = "") -> Wrong:
        """What is wrong, with the command and the end of what it said."""
        ended = f"{self.command}: status {self.status} in {self.seconds:.1f} s"
        return Wrong(outcome, f"{ended}: {detail or self.err.strip()[-600:]}")


def environment(home: Path, **more: str) -> dict[str, str]:
    """Variables for a verb that runs in `home`, with a cache of its own."""
    own = {"LMTOOLS_CACHE": str(home / ".cache")}
    return {**os.environ, **SETTINGS, **own, **more}


def warm() -> None:
    """Import all that verbs import, so that forked ones start at once."""
    if str(REPOSITORY) not in sys.path:
        sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests")]
    os.environ.update(SETTINGS)
    import torch

    torch.set_num_threads(1)
    for name in ("verbs", "formats", "models"):
        package = importlib.import_module(f"lmtools.{name}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)


class Forked:
    """A verb in a fork, in `home`, with limits; `out` stands for its standard output."""

    def __init__(
        self,
        args: Sequence,
        home: Path,
        file_size: int | None = None,
        memory: int | None = None,
        out: str | None = None,
        log: Path | None = None,
        **env: str,
    ):
        self.args = tuple(map(str, args))
        self.log = log or home.parent / f"{home.name}.run"
        self.pipe = None
        sys.stdout.flush()
        if file_size is not None:  # a limit on files is one on the logs, too
            self.pipe, out = os.pipe(), "/dev/null"
            os.set_blocking(self.pipe[0], False)
        self.begin = time.monotonic()
        self.child = os.fork()
        if not self.child:
            become(self.args, home, self.log, file_size, memory, out, env, self.pipe)

    def done(self, seconds: float | None = None) -> Done:
        """Wait for its end; all that it started is killed `seconds` after its start."""
        status, used = waited(self.child, self.begin + (seconds or patience()))
        took = time.monotonic() - self.begin
        said = read_logs(self.log)
        if self.pipe:
            os.close(self.pipe[1])
            with open(self.pipe[0], "rb") as stream:
                said[1] = (stream.read() or b"").decode(errors="replace")
        return Done(self.args, status, *said, took, used)


def read_logs(log: Path) -> list[str]:
    """Standard output and error in files, which are removed; they lack where a kill came first."""
    logs = [Path(f"{log}.{name}") for name in ("out", "err")]
    said = [path.read_bytes().decode(errors="replace") if path.exists() else "" for path in logs]
    for path in logs:
        path.unlink(missing_ok=True)
    return said


def run(*args, home: Path, seconds: float | None = None, **how) -> Done:
    """Run one verb to its end; `how` is what Forked takes."""
    return Forked(args, home, **how).done(seconds)


def become(args, home: Path, log: Path, file_size, memory, out, env, pipe) -> None:
    """Turn this forked process into `lmtools ARGS`; does not return."""
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.environ.clear()
        os.environ.update(environment(home, **env))
        for number, path in ((1, out or f"{log}.out"), (2, f"{log}.err")):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), number)
        if out:
            Path(f"{log}.out").touch()
        if pipe:
            os.dup2(pipe[1], 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(open(number, mode, closefd=False), line_buffering=number == 2)  # noqa: SIM115
            for number, mode in ((0, "rb"), (1, "wb"), (2, "wb"))
        )
        os.chdir(home)
        os.fsync = lambda handle: None  # nothing here is worth a disk's while
        if file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        from lmtools.cli import main

        status = main(list(args))
        try:
            sys.stdout.flush()
        except OSError as error:  # as the interpreter ends where its standard output takes nothing
            print(f"Exception ignored on flushing sys.stdout: {error}", file=sys.stderr)
            status = 120
    except SystemExit as leave:
        status = leave.code if isinstance(leave.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(status or 0)


def waited(child: int, end: float) -> tuple[int | None, int]:
    """(exit status, peak memory) of a child, killed with its session at the time `end`."""
    pause = 0.002
    while True:
        pid, status, usage = os.wait4(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024
        if time.monotonic() > end:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.wait4(child, 0)
            return None, 0
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


def sound(done: Done, *, memory: float | None = None) -> Done:
    """`done`, if it ended in time with 0, or 1 and one line of cause and remedy."""
    if done.status is None:
        raise done.wrong("hang")
    if "Traceback (most recent call last)" in done.err:
        raise done.wrong("traceback")
    if done.status < 0:
        raise done.wrong("crash", signal.Signals(-done.status).name)
    if done.status not in (0, 1):
        raise done.wrong("wrong status")
    if memory is not None and done.memory > memory:
        raise done.wrong("memory", f"{done.memory / 2**20:.0f} MB, {done.err.strip()[:200]}")
    if done.status == 1:
        if len(done.said) != 1:
            raise done.wrong("multi-line")
        if len(done.said[0]) > LONGEST_MESSAGE:
            raise done.wrong("long message", f"{len(done.said[0])}: {done.said[0][:200]}")
        if ": " not in done.said[0] or "; " not in done.said[0]:
            raise done.wrong("no cause or remedy")
    return done


def refused(done: Done, *words, memory: float | None = None) -> Done:
    """`done`, if it is sound, has status 1, and its line holds all `words`."""
    sound(done, memory=memory)
    if done.status == 0:
        raise done.wrong("accepted", f"status 0; {(done.err.strip() or done.out.strip())[-300:]}")
    for word in words:
        if str(word) not in done.said[0]:
            raise done.wrong("no cause or remedy", f"{word!s} is not in: {done.said[0][:600]}")
    return done


def succeeded(done: Done) -> Done:
    """`done`, if it ended well."""
    sound(done)
    if done.status:
        raise done.wrong("lost", f"what should work did not: {done.err.strip()[-400:]}")
    return done


# Processes that must be killed for real


class Started:
    """A command in its own session; its processes have a mark in their environment."""

    def __init__(self, command: Sequence, home: Path, **env):
        self.mark, self.home = uuid.uuid4().hex, home
        self.command = list(map(str, command))
        self.log = home.parent / f"{home.name}.{self.mark[:8]}"
        variables = environment(home, **{**env, MARKER: self.mark})
        with open(f"{self.log}.out", "wb") as out, open(f"{self.log}.err", "wb") as err:
            self.begin = time.monotonic()
            streams = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
            self.process = subprocess.Popen(
                self.command, cwd=home, env=variables, start_new_session=True, **streams
            )

    def alive(self) -> dict[int, str]:
        """The command lines of its processes that live, by their ids."""
        return marked(self.mark)

    def until(self, ready: Callable[[], object]) -> bool:
        """Wait until `ready()`; False if the command ended before."""
        end = time.monotonic() + patience()
        while not ready():
            if self.process.poll() is not None:
                return False
            if time.monotonic() > end:
                self.end()
                raise Wrong("hang", f"{shlex.join(self.command)} comes to no point of attack")
            time.sleep(0.01)
        return True

    def done(self, seconds: float | None = None) -> Done:
        """Wait for its end; what does not end is killed and has status None."""
        try:
            status = self.process.wait(seconds or patience())
        except subprocess.TimeoutExpired:
            status = None
        took = time.monotonic() - self.begin
        if status is None:
            self.end()
        words = self.command
        words = words[words.index("lmtools") + 1 :] if "lmtools" in words else words
        return Done(words, status, *read_logs(self.log), took)

    def survivors(self, seconds: float = 10.0) -> dict[int, str]:
        """What still lives of it when that time is over; it is killed."""
        end = time.monotonic() + patience(seconds)
        while (alive := self.alive()) and time.monotonic() < end:
            time.sleep(0.05)
        self.end()
        return alive

    def end(self) -> None:
        for pid in self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)


def marked(mark: str) -> dict[int, str]:
    """The command lines of living processes with that mark in their environment, by their ids."""
    found = {}
    wanted = f"{MARKER}={mark}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            if (entry / "stat").read_text().rpartition(") ")[2][0] != "Z":
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(entry.name)] = words.decode(errors="replace")
    return found


def lmtools(*args) -> list[str]:
    """The command line of a verb as a process of its own."""
    return [sys.executable, "-m", "lmtools", *map(str, args)]


# What lies in directories


def snapshot(home: Path, ignored: Sequence[str] = ()) -> dict[str, bytes]:
    """Content by path of all below `home`, but for paths that begin with `ignored`."""
    found = {}
    for path in sorted(home.rglob("*")):
        name = str(path.relative_to(home))
        if any(name.startswith(start) for start in ignored):
            continue
        if path.is_symlink():
            found[name] = b"-> " + os.readlink(path).encode()
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


def changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[str]:
    """Names of files that came, went or changed, marked + - and !."""
    names = sorted({*before, *after})
    return [
        f"{'+' if n not in before else '-' if n not in after else '!'}{n}"
        for n in names
        if before.get(n) != after.get(n)
    ]


def temporaries(home: Path) -> list[str]:
    """Names below `home` that only a write in progress has."""
    return sorted(
        str(p.relative_to(home))
        for p in home.rglob("*")
        if re.search(r"\.tmp|\.part$|\.old$|-journal$", p.name)
    )


def drawn(*parts) -> random.Random:
    """A generator that depends on `parts` alone."""
    return random.Random(" ".join(map(str, parts)))
