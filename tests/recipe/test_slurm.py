"""Recipes by a real Slurm on this machine: a controller and two nodes (Debian's slurm-wlm
and munge, as root), with the bytes of a local run whatever happens to its jobs.
"""

import json
import os
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from fork_server import REAL
from processes import wait_for

from lmtools.base.files import read_lines

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged", "mungekey")
MISSING = [name for name in PROGRAMS if not shutil.which(name)]
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"no {MISSING}; apt-get install slurm-wlm munge"),
    pytest.mark.skipif(os.geteuid() != 0, reason="Slurm's daemons start jobs as root only"),
]
NODES = ("node1", "node2")
TINY = (
    "arch.layers=1 arch.dim=32 arch.heads=2 arch.ffn=64 batch.sentences=16 batch.tokens=null"
    " optim.warmup=5 steps=150 checkpoint_every=10"
)
OPTIONS = ("--train-opts", TINY)
OPTIONS += tuple(shlex.split("--corpus small --depth 4 --vocab-size 200 --nj 4"))
EXPERIMENT = "columns: {causal: {}}\nsystems: {first-pass: [], causal: [causal]}\n"
REPOSITORY = Path(__file__).parents[2]
TEXT = REPOSITORY / "egs/librispeech/mini/train.txt.xz"
LSTM = (
    "arch.layers=1 arch.dim=8 arch.units=12 output.cutoffs=[20,100] batch.sentences=16"
    " batch.tokens=null steps=150 checkpoint_every=10"
)
SETTINGS = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
FirstJobId={first}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/%n
SlurmdPidFile={home}/%n.pid
SlurmctldPidFile={home}/slurmctld.pid
SlurmdLogFile={home}/%n.log
SlurmctldLogFile={home}/slurmctld.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SchedulerParameters=sched_interval=1,sched_min_interval=100000,batch_sched_delay=0,bf_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
KillWait=5
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2
PartitionName=main Nodes=ALL Default=YES State=UP
"""


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """A function that runs a command of Slurm, beside a cluster of two nodes."""
    home = tmp_path_factory.mktemp("slurm")
    (home / "state").mkdir()
    for node in NODES:
        (home / node).mkdir()
    settings = home / "slurm.conf"
    host, first = socket.gethostname(), random.randrange(1, 30000)  # what ports come from
    settings.write_text(SETTINGS.format(home=home, host=host, ports=free_ports(3), first=first))
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(settings)
    subprocess.run(["mungekey", "-c", "-k", str(home / "munge.key")], check=True)
    munge = [f"--{name}={home}/munge.{name.partition('-')[0]}" for name in ("socket", "key-file")]
    munge += [f"--{name}={home}/munge.{name[:3]}" for name in ("pid-file", "log-file", "seed-file")]
    daemons = [
        ["munged", "--foreground", "--force", *munge],
        ["slurmctld", "-D", "-c"],
        *(["slurmd", "-D", "-N", node] for node in NODES),
    ]
    with open(home / "daemons.log", "w") as log:
        started = []
        for command in daemons:
            started.append(
                subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            )
            if len(started) == 1:
                wait_for((home / "munge.socket").exists)

    def ask(*command: str, status=0) -> str:
        done = subprocess.run(command, capture_output=True, text=True)
        assert status is None or done.returncode == status, done.stderr
        return done.stdout

    wait_for(lambda: ask("sinfo", "-h", "-o", "%T %D", status=None).strip() == "idle 2")
    yield ask
    ask("scancel", "-u", "root", status=None)
    for process in reversed(started):
        process.terminate()
    for process in started:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
    if before is None:
        del os.environ["SLURM_CONF"]
    else:
        os.environ["SLURM_CONF"] = before


def running(slurm, count: int) -> list[str]:
    """Numbers of the tasks that run, if they are so many at least."""
    found = slurm("squeue", "-h", "-r", "-t", "R", "-o", "%i").split()
    return found if len(found) >= count else []


def outcome(recipe) -> dict[str, bytes]:
    """What trainings, scores, weights and lattices come to."""
    exp = recipe.home / "exp"
    return {
        str(path.relative_to(exp)): path.read_bytes()
        for pattern in (
            *("lm/*/model.safetensors", "score/*/*", "ppl/*/*", "tune/*/*", "rescore/*/*"),
        )
        for path in sorted(exp.glob(pattern))
    }


def test_jobs_give_the_bytes_of_a_local_run(librispeech, slurm):
    """Training queued again, a node drained, a scoring task killed: all is as if not."""
    recipe = librispeech("slurm")
    recipe.edit("run.sh", "{causal,masked,tta}", "causal")
    recipe.edit("run.sh", "causal masked tta", "causal")
    (recipe.home / "conf/experiment.yaml").write_text(EXPERIMENT)
    recipe(*OPTIONS, "--stop-stage", "2")
    local = type(recipe)(recipe.home.with_name("local"), recipe.env)
    shutil.copytree(recipe.home, local.home, symlinks=True)
    command = [*OPTIONS, "--stage", "3", "--stop-stage", "5"]
    local(*command)
    recipe.env = {**recipe.env, "SLURM_CONF": os.environ["SLURM_CONF"], REAL: "1"}
    command += ["--cmd", "utils/slurm.sh --time 60 --partition main"]
    run = recipe.start(*command)
    recipe.said("", run, file="exp/lm/causal/checkpoint.safetensors")
    training = running(slurm, 1)[0]
    slurm("scontrol", "requeue", training)
    slurm("scontrol", "update", "nodename=node2", "state=drain", "reason=test")
    recipe.said("== stage 4", run)
    slurm("scontrol", "update", "nodename=node2", "state=resume")
    slurm("scancel", "--signal=KILL", "--batch", wait_for(lambda: running(slurm, 1))[0])
    assert run.wait(120) == 1
    said = (recipe.home / "run.out").read_text()
    assert re.search(
        r"slurm.sh: [1-4] / 4 failed, log is in exp/score/causal/dev.scores.\d-of", said
    )
    again = recipe(*command, "--stage", "4")
    assert "exp/score/causal/dev.scores: joined from 4 parts" in again.stdout
    assert outcome(recipe) == outcome(local)


def rank(number: int, home: Path) -> int | None:
    """The process of a training in `home` that torchrun calls so."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            variables = (path / "environ").read_bytes().split(b"\0")
            if os.readlink(path / "cwd") == str(home) and f"RANK={number}".encode() in variables:
                return int(path.name)
        except OSError:  # it has ended meanwhile
            continue
    return None


def train_alone(recipe, name: str) -> None:
    """Make one neural language model the only one that run.sh of egs/gbw trains."""
    recipe.edit("run.sh", "for lm in lstm gcnn; do", f"for lm in {name}; do")
    text = (recipe.home / "run.sh").read_text()
    text, loops = re.subn(
        r"  for lm in elmo-char .*?\n  done \| each lmtools train\n", "", text, flags=re.S
    )
    four = "{lstm,gcnn,elmo-char,esulmo-bpe-500}/model.safetensors\nthen"
    assert loops == 1
    (recipe.home / "run.sh").write_text(text.replace(four, f"{name}/model.safetensors\nthen"))


def test_a_training_on_two_nodes(copied, make_recipe, shell, slurm):
    """The bytes of as many processes on one machine, one of them killed too."""
    real = {**shell, REAL: "1"}
    local, nodes = (make_recipe(copied("gbw", name), real) for name in ("local", "nodes"))
    train_alone(local, "lstm")
    text = [line for _, line in read_lines(TEXT)]
    for name, part in {"train.txt": text[:800], "valid.txt": text[800:840]}.items():
        (local.home / "small" / name).write_text("".join(f"{line}\n" for line in part))
    for name in ("dev", "test"):
        lists = {"utt": "a", "ref": "and", "hyps": [{"text": "and"}]}
        (local.home / f"small/{name}.nbest.jsonl").write_text(json.dumps(lists) + "\n")
    options = ["--corpus", "small", "--nbest-dir", "small", "--nj", "1", "--train-opts", LSTM]
    local(*options, "--stop-stage", "2")
    shutil.copytree(local.home, nodes.home, symlinks=True, dirs_exist_ok=True)
    command = [*options, "--stage", "3", "--stop-stage", "3"]
    local(*command, "--processes", "2")
    refused = nodes(*command, "--nnodes", "2", status=2).stderr
    assert "--nnodes 2 are machines that Slurm gives; add --cmd utils/slurm.sh" in refused
    command += ["--nnodes", "2", "--cmd", "utils/slurm.sh"]
    nodes.env = {**nodes.env, "SLURM_CONF": os.environ["SLURM_CONF"]}
    run = nodes.start(*command)
    nodes.said("", run, file="exp/lm/lstm/checkpoint.safetensors")
    assert slurm("squeue", "-h", "-t", "R", "-o", "%D").split() == ["2"]
    os.kill(rank(1, nodes.home), signal.SIGKILL)
    assert run.wait(60) == 1 and rank(0, nodes.home) is None
    said = (nodes.home / "run.out").read_text()
    assert "slurm.sh: 1 / 1 failed, log is in exp/log/stage3.jobs.1.log" in said
    run = nodes.start(*command)
    first = wait_for(lambda: rank(0, nodes.home))
    slurm("scontrol", "requeue", wait_for(lambda: running(slurm, 1))[0])
    assert run.wait(120) == 0 and rank(0, nodes.home) != first
    trained = [recipe.home / "exp/lm/lstm/model.safetensors" for recipe in (local, nodes)]
    assert trained[0].read_bytes() == trained[1].read_bytes()


def test_an_array_and_its_end(slurm, tmp_path, monkeypatch):
    """Commands have own logs and the caller's variables; a stopped array leaves the queue."""
    monkeypatch.chdir(tmp_path)
    program = [str(REPOSITORY / "utils/slurm.sh"), "--max-jobs-run", "1", "-J", "test"]
    script = "echo 'X * JOB' $Y; pwd; [ JOB -ne 2 ]"
    env = {**os.environ, "Y": "y"}
    words = [*program, "JOB=1:3", "log/a b.JOB.log", "sh", "-c", script]
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    assert (
        done.stderr == "slurm.sh: 1 / 3 failed, log is in log/a b.2.log\n" and done.returncode == 1
    )
    said = Path("log/a b.3.log").read_text().splitlines()
    assert said[1:3] == ["X * 3 y", str(tmp_path)] and said[3].startswith("# Ended (code 0)")
    run = subprocess.Popen([*program, "J=1:2", "J.log", "sleep", "100"], stderr=subprocess.PIPE)
    wait_for(lambda: running(slurm, 1))
    run.terminate()
    assert run.wait(20) == 143
    run.stderr.close()
    wait_for(lambda: not slurm("squeue", "-h"))
