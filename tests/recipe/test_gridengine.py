"""Arrays by a real Grid Engine on this machine: Debian's gridengine-master and gridengine-exec, a
cell of their own with one queue of two slots, as root.
"""

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from processes import wait_for

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
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert status is None or done.returncode == status, (command, done.stdout, done.stderr)
    return done.stdout


def change(text: str, **values: str) -> str:
    lines = [line.split(maxsplit=1) for line in text.replace("\\\n", " ").splitlines() if line]
    return "".join(f"{name} {values.get(name, value)}\n" for name, value in lines)


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
def start(cell, tmp_path, monkeypatch):
    """A function that starts gridengine.sh with more words, in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    program = [str(Path(__file__).parents[2] / "utils/gridengine.sh"), "-q", "main.q", "-p", "-1"]

    def begin(*words: str) -> subprocess.Popen:
        return subprocess.Popen([*program, *words], stderr=subprocess.PIPE, text=True)

    return begin


def test_an_array(start, tmp_path, monkeypatch):
    """Commands have own logs, in the caller's directory and with its variables."""
    monkeypatch.setenv("Y", "y")
    script = "echo 'X * JOB' $Y; pwd; [ JOB -ne 2 ]"
    Path(".sge_request").write_text("-h\n")  # is not read
    run = start("--max-jobs-run", "2", "JOB=1:3", "log/a b.JOB.log", "sh", "-c", script)
    assert run.communicate()[1] == "gridengine.sh: 1 / 3 failed, log is in log/a b.2.log\n"
    assert run.returncode == 1
    said = Path("log/a b.3.log").read_text().splitlines()
    assert said[1:3] == ["X * 3 y", str(tmp_path)] and said[3].startswith("# Ended (code 0)")


def test_an_array_that_is_stopped(start):
    """Its tasks are taken out of the queue."""
    run = start("JOB=1:3", "JOB.log", "sleep", "100")
    wait_for(lambda: len(list(Path().glob("*.log"))) >= 2)
    run.terminate()
    run.communicate()
    assert run.returncode == 143
    wait_for(lambda: not ask("qstat", "-u", "root"))


def test_a_task_that_is_queued_again(start):
    """As when its node failed: it is done. Grid Engine starts it half a minute later."""
    run = start("x.log", "sh", "-c", "test -e again || { touch again; sleep 100; }; echo done")
    wait_for(Path("again").exists)
    number = ask("qstat", "-u", "root").splitlines()[2].split()[0]
    ask("qmod", "-rj", number)
    assert run.communicate()[1] == "" and run.returncode == 0
    assert "done\n# Ended (code 0)" in Path("x.log").read_text()
