"""Arrays by a real Grid Engine on this machine: Debian's gridengine-master and gridengine-exec, a
cell of their own with one queue of two slots, as root.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lmtools.base.jobs.arrays import run_items
from lmtools.base.jobs.commands import run_command
from lmtools.base.jobs.gridengine import GridEngine
from lmtools.base.jobs.work import Work

from lmtools.base.errors import UserError

HOME = Path("/usr/lib/gridengine")
SHARED = Path("/usr/share/gridengine")
PROGRAMS = ("sge_qmaster", "sge_execd", "qsub", "qstat", "qdel", "qconf")
MISSING = [name for name in PROGRAMS if not shutil.which(name)]
pytestmark = [
    pytest.mark.skipif(
        bool(MISSING), reason=f"no {MISSING}; apt-get install gridengine-{{master,exec,client}}"
    ),
    pytest.mark.skipif(os.geteuid() != 0, reason="the daemons start jobs as root only"),
]
BOOTSTRAP = """\
admin_user root
default_domain none
ignore_fqdn false
spooling_method classic
spooling_lib libspoolc
spooling_params {home}/default/common;{home}/qmaster
binary_path /usr/sbin
qmaster_spool_dir {home}/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""


def ask(*command, status=0) -> str:
    """What a command says."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert status is None or done.returncode == status, (command, done.stdout, done.stderr)
    return done.stdout


def change(text: str, **values: str) -> str:
    """Lines NAME VALUE with other values."""
    lines = [line.split(maxsplit=1) for line in text.replace("\\\n", " ").splitlines() if line]
    return "".join(f"{name} {values.get(name, value)}\n" for name, value in lines)


def wait_for(condition, seconds=30.0):
    """What the condition gives once it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.1)
    return found


def ended(number: int) -> bool:
    """Whether a process is no more, or only its name is."""
    try:
        return "State:\tZ" in Path(f"/proc/{number}/status").read_text()
    except OSError:
        return True


@pytest.fixture(scope="module")
def cell(tmp_path_factory):
    """A running Grid Engine."""
    home = tmp_path_factory.mktemp("cell")
    for folder in ("default/common", "qmaster/job_scripts", "execd"):
        (home / folder).mkdir(parents=True)
    for folder in ("bin", "util", "utilbin", "lib"):
        (home / folder).symlink_to(Path("/var/lib/gridengine", folder).resolve())
    common = home / "default/common"
    (common / "act_qmaster").write_text("localhost\n")
    (common / "host_aliases").write_text(f"localhost {socket.gethostname()}\n")
    (common / "bootstrap").write_text(BOOTSTRAP.format(home=home))
    settings = (SHARED / "default-configuration").read_text()
    settings = "".join(line for line in settings.splitlines(True) if line[0] != "#")
    (home / "settings").write_text(
        change(settings, execd_spool_dir=f"{home}/execd", min_uid="0", min_gid="0")
    )
    ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    variables = {"SGE_ROOT": str(home), "SGE_CELL": "default"}
    for name, port in zip(("SGE_QMASTER_PORT", "SGE_EXECD_PORT"), ports, strict=True):
        variables[name] = str(port.getsockname()[1])
        port.close()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        ask(HOME / "spoolinit", "classic", "libspoolc", f"{common};{home}/qmaster", "init")
        ask(HOME / "spooldefaults", "configuration", home / "settings")
        for what, folder in (("complexes", "centry"), ("usersets", "usersets")):
            ask(HOME / "spooldefaults", what, SHARED / "util/resources" / folder)
        ask(HOME / "spooldefaults", "managers", "root")
        ask("sge_qmaster")
        wait_for(lambda: "localhost" in ask("qconf", "-sh", status=None))
        ask("qconf", "-as", "localhost")
        queue = {"qname": "main.q", "hostlist": "localhost", "slots": "2", "pe_list": "NONE"}
        queue |= {"shell_start_mode": "posix_compliant", "load_thresholds": "NONE"}
        (home / "queue").write_text(change(ask("qconf", "-sq"), **queue))
        ask("qconf", "-Aq", home / "queue")
        often = {"schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1"}
        (home / "scheduler").write_text(change(ask("qconf", "-ssconf"), **often))
        ask("qconf", "-Msconf", home / "scheduler")
        ask("sge_execd")
        yield home
        ask("qdel", "-u", "root", status=None)
        daemons = [*home.glob("execd/*/execd.pid"), home / "qmaster/qmaster.pid"]
        for number in [int(path.read_text()) for path in daemons]:
            os.kill(number, signal.SIGTERM)
            wait_for(lambda number=number: ended(number))


@pytest.fixture
def queue(cell, tmp_path, monkeypatch):
    """Its settings."""
    monkeypatch.chdir(tmp_path)
    return GridEngine(directory=str(tmp_path / "jobs"), poll=0.2, queue="main.q", more="-p -1")


def words(*scripts: str) -> list[list[str]]:
    """Commands of the shell."""
    return [["sh", "-c", script] for script in scripts]


def test_an_array(queue, tmp_path):
    """In order; a task that fails is named, and the same call runs what is missing alone."""
    note = f"echo $SGE_TASK_ID >>{tmp_path}/done"
    items = words(f"{note}; echo a", f"test -e {tmp_path}/go && echo b", "echo c", "pwd", "echo $X")
    os.environ["X"] = "e"  # jobs have the variables
    with pytest.raises(UserError, match=r"/1\.log: .*; 1 of 5 shards are missing"):
        list(run_items(queue, Work(run_command), items, 5, at_once=2))
    Path("go").touch()
    assert list(run_items(queue, Work(run_command), items, 5)) == [
        *("a\n", "b\n", "c\n", f"{tmp_path}\n", "e\n")
    ]
    assert Path("done").read_text() == "1\n" and not any((tmp_path / "jobs").iterdir())


def test_held_tasks(queue, tmp_path, monkeypatch):
    """Are told of, and the same call waits for them once they are released."""
    monkeypatch.setattr(GridEngine, "options", lambda self: ["-h"])
    items = words("echo a", "echo b")
    with pytest.raises(UserError, match=r"array \d+: hqw: no task .*`qrls \d+` lets them"):
        list(run_items(queue, Work(run_command), items, 2))
    held = {entry.number for folder in (tmp_path / "jobs").iterdir()
            for entry in queue.entries(f"lmtools-{folder.name}")}  # fmt: skip
    assert len(held) == 1
    ask("qrls", held.pop())
    assert list(run_items(queue, Work(run_command), items, 2)) == ["a\n", "b\n"]


def test_lines_that_are_stopped(queue, tmp_path):
    """Their tasks are taken out of the queue."""
    (tmp_path / "queue.yaml").write_text("directory: jobs\npoll: 0.2\n")
    verb = subprocess.Popen(
        [sys.executable, "-m", "lmtools.base.jobs", "lines", "2", "1", "sh", "-c"],
        env={**os.environ, "LMTOOLS_CMD": "queue:queue.yaml"},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    verb.stdin.write("'echo began; sleep 100'\n" * 3)
    verb.stdin.close()
    wait_for(lambda: len(list(Path("jobs").glob("*/*.log"))) >= 2)
    verb.send_signal(signal.SIGTERM)
    assert verb.wait(10) == 128 + signal.SIGTERM
    verb.stderr.close()
    wait_for(lambda: not ask("qstat", "-u", "root"))


def test_a_task_that_is_queued_again(queue, tmp_path):
    """As when its node failed: it is done. Grid Engine starts it half a minute later."""
    script = f"test -e {tmp_path}/again || {{ touch {tmp_path}/again; sleep 100; }}; echo done"
    done = subprocess.Popen(
        [sys.executable, "-m", "lmtools.base.jobs", "lines", "2", "1", "sh", "-c"],
        env={**os.environ, "LMTOOLS_CMD": "queue:queue.yaml"},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    (tmp_path / "queue.yaml").write_text("directory: jobs\npoll: 0.2\n")
    done.stdin.write(f"'{script}'\n")
    done.stdin.close()
    wait_for(Path("again").exists)
    number = ask("qstat", "-u", "root").splitlines()[2].split()[0]
    ask("qmod", "-rj", number)
    assert done.stderr.read().endswith("done\n") and done.wait(30) == 0
    done.stderr.close()
