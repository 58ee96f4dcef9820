"""`lmtools VERB` and `python3 SCRIPT` in recipes without the seconds that torch takes to load: a
process that has loaded all of lmtools forks one for each command, which then runs that module or
script.

The command has its own arguments, directory, environment and standard streams; its exit status is
handed on, and so are signals. A client that is killed has its command killed. What a script's own
processes are like (process groups, what they import) is for tests that start real ones: they set
REAL.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

REAL = "REAL_LMTOOLS"  # a variable: not by a fork
STATUS = struct.Struct("i")
CLIENT = """\
import os, signal, socket, sys
from json import dumps
server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[1])
words = dumps([os.getcwd(), dict(os.environ), sys.argv[2:]]).encode()
socket.send_fds(server, [len(words).to_bytes(8, "little")], [0, 1, 2])
server.sendall(words)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda number, frame: server.send(bytes([number])))
status = int.from_bytes(server.recv(4), "little", signed=True)
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
os._exit(status)
"""


def start(folder: Path, repository: Path) -> tuple[subprocess.Popen, str, str]:
    """Start the server of `repository` in `folder`; return it, and commands for its clients."""
    client, address = folder / "client.py", folder / "socket"
    client.write_text(CLIENT)
    env = {**os.environ, "PYTHONPATH": str(repository), "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen([sys.executable, __file__, str(address)], env=env)
    while not address.exists():
        assert server.poll() is None, "the server of forks ended"
        time.sleep(0.02)
    fork = f'[ -n "${REAL}" ] || exec "{sys.executable}" -I -S "{client}" "{address}"'
    real = f'exec "{sys.executable}"'
    return (
        server,
        f'{fork} -m lmtools "$@"\nPYTHONPATH="{repository}" {real} -m lmtools "$@"',
        f'case $1 in */recipe.py) ;; -m|*.py) {fork} "$@" ;; esac\n{real} "$@"',
    )


def load_all() -> None:
    verbs = importlib.import_module("lmtools.verbs")
    doors = importlib.import_module("lmtools.base.doors")
    for module in pkgutil.walk_packages(verbs.__path__, "lmtools.verbs."):
        importlib.import_module(module.name)
    for name in (
        *(place for *_, place in doors.collect("VERBS").values()),
        "lmtools.score.neural",
        "lmtools.train",
        "lmtools.score.ngram",
        "matplotlib.pyplot",
    ):
        importlib.import_module(name)


def serve(address: str) -> bool:
    """Answer for ever; True in a process that is to run a command."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(f"{address}.new")
    server.listen(64)
    os.rename(f"{address}.new", address)
    parent = os.getppid()
    keepers: set[int] = set()
    while os.getppid() == parent:
        keepers -= {pid for pid in keepers if os.waitpid(pid, os.WNOHANG)[0]}
        if not select.select([server], [], [], 1.0)[0]:
            continue
        client, _ = server.accept()
        if (pid := os.fork()) == 0:
            server.close()
            return keep(client)
        keepers.add(pid)
        client.close()
    return False


def keep(client: socket.socket) -> bool:
    """Fork the command of a client, hand on signals and tell its status; True in the command."""
    size, streams, _, _ = socket.recv_fds(client, 8, 3)
    content = b""
    while len(content) < int.from_bytes(size, "little"):
        content += client.recv(1 << 16)
    pid = os.fork()
    if pid == 0:
        client.close()
        become(streams, *json.loads(content))
        return True
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(pid)
    while ended not in (ready := select.select([client, ended], [], [])[0]):
        for number in (client.recv(16) or [signal.SIGKILL]) if client in ready else ():
            os.kill(pid, number)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        client.sendall(STATUS.pack(status))
    finally:
        os._exit(0)


def become(streams, directory: str, env: dict[str, str], words: list[str]) -> None:
    """Take the streams, directory, environment and arguments of a command."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 (open as long as the process)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = words


def run_command() -> None:
    """Run the module or script of sys.argv as Python does, and end without taking it apart."""
    if module := sys.argv[0] == "-m":
        del sys.argv[0]
    try:
        if os.environ.get("PYTHONSAFEPATH"):
            del sys.path[0]
        else:
            sys.path[0] = "" if module else str(Path(sys.argv[0]).resolve().parent)
        if module:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
        sys.exit(0)
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise  # a message
        threading._shutdown()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(ended.code or 0)


if __name__ == "__main__":
    load_all()
    gc.freeze()  # pages of what is loaded stay shared
    if serve(sys.argv[1]):
        run_command()
