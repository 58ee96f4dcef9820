"""Two writers of one directory: the second is told at once who the first is, whenever it starts,
and the kernel frees what was killed.
"""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from lmtools import UserError
from lmtools.base.atomic import hold_lock
from lmtools.cli import main

HOLD = (
    "import sys, time; from lmtools.base.atomic import hold_lock\nwith hold_lock(sys.argv[1]):"
    " print('held', flush=True); time.sleep(60)"
)


@pytest.fixture
def holder(tmp_path):
    """A process that has the lock on `tmp_path`/m."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "m")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def refused(holder, capsys, *command) -> None:
    """Assert that a command is refused within a second, in one line that names the holder."""
    begin = time.monotonic()
    assert main([str(part) for part in command]) == 1
    err = capsys.readouterr().err
    assert (
        f"m: process {holder.pid} on {socket.gethostname()} is writing it; wait for it" in err
        and err.count("\n") == 1
    )
    assert time.monotonic() - begin < 2


def test_every_verb_that_writes_a_directory_refuses(tiny, tmp_path, holder, capsys):
    out, text = tmp_path / "m", tiny / "train.txt"
    conf = tmp_path / "c.yaml"
    conf.write_text(
        "{model: tta, objective: autoencoding, arch: {layers: 1, dim: 8, heads: 2, ffn: 8},"
        " steps: 2}"
    )
    trains = (
        "train",
        "--conf",
        conf,
        "--train",
        tiny / "train.bin",
        "--valid",
        tiny / "valid.bin",
        "--out",
        out,
    )
    refused(holder, capsys, *trains)
    refused(holder, capsys, "ngram", "--text", text, "--order", 2, "--out", out)
    refused(holder, capsys, "subword", "--text", text, "--type", "word", "--out", out)
    assert not out.exists()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert main([str(part) for part in trains]) == 0


def test_a_link_where_the_lock_belongs_is_not_followed(tmp_path):
    (tmp_path / ".m.lock").symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(UserError, match="a link stands where the lock belongs"),
        hold_lock(tmp_path / "m"),
    ):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_a_child_process_does_not_keep_the_lock(tmp_path, capsys):
    """Workers that outlive a killed process would block the next one."""
    ready, told = os.pipe()
    parent = os.fork()
    if not parent:
        with hold_lock(tmp_path / "m"):
            if not os.fork():
                time.sleep(5)
                os._exit(0)
            os.write(told, b"x")
            os.kill(os.getpid(), signal.SIGKILL)
    os.read(ready, 1)
    os.waitpid(parent, 0)
    with hold_lock(tmp_path / "m"):
        pass
