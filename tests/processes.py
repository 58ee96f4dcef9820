"""What tests that start and kill processes share: a program in a pipe, who is there, and who is
gone.
"""

import contextlib
import http.client
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

PATIENCE = 20  # seconds until what should end in a few is taken for hanging

SILENCE = 120  # seconds until a silent program is given up


class Running:
    """A running `lmtools` with our streams; it ends with the block, and after `seconds`."""

    def __init__(self, *words, program=("-m", "lmtools"), seconds=SILENCE, **more):
        command = [sys.executable, *program, *map(str, words)]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = subprocess.Popen(command, **pipes, **more)
        self.clock = threading.Timer(seconds, self.process.kill)
        self.clock.start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.clock.cancel()
        self.process.kill()
        self.process.communicate()


class Service(Running):
    """A running `lmtools serve`."""

    def listen(self) -> "Service":
        self.port = self.find(rb"listening on http://127.0.0.1:(\d+)\n")
        return self

    def find(self, pattern: bytes) -> int:
        """The number that the next line of this kind has."""
        for line in self.process.stderr:
            if found := re.fullmatch(pattern, line):
                return int(found[1])
        raise AssertionError("it does not listen")

    def ask(self, method, path, content=None, **headers):
        """Status, headers and content of the answer."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SILENCE)
        client.request(method, path, content, headers)
        answer = client.getresponse()
        return answer.status, answer.headers, answer.read().decode()

    def send(self, *parts: bytes, pause=0.0, close=False) -> bytes:
        """What is answered to the very bytes; nothing where the client goes away."""
        with socket.create_connection(("127.0.0.1", self.port), SILENCE) as client:
            for part in parts:
                client.sendall(part)
                time.sleep(pause)
            answer = b""
            while not close and (block := client.recv(1 << 16)):
                answer += block
            return answer

    def end(self, kind=signal.SIGTERM) -> tuple[int, bytes]:
        """Status and errors after a signal."""
        self.process.send_signal(kind)
        _, err = self.process.communicate(timeout=SILENCE)
        return self.process.returncode, err


def wait_for(condition, seconds=60.0):
    """What the condition gives once it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.1)
    return found


def alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def gone(pids, seconds=PATIENCE) -> bool:
    until = time.monotonic() + seconds
    while any(map(alive, pids)):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def descendants(pid: int) -> list[int]:
    """The processes under `pid`."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents.setdefault(int(path.read_text().rpartition(")")[2].split()[1]), []).append(
                int(path.parent.name)
            )
    found, todo = [], [pid]
    while todo:
        todo += parents.get(todo.pop(), [])
        found += [one for one in todo if one not in found]
    return found


def workers_of(pid: int) -> list[int]:
    """The worker processes under `pid`, without the helper that Python starts beside them."""
    return [one for one in descendants(pid) if b"resource_tracker" not in command(one)]


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
