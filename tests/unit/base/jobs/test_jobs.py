"""Arrays of shards, on a queue that stands for Slurm: it runs a task after the other at once."""

import math
import os
import sys
from functools import partial
from pathlib import Path

import pytest

from lmtools.base.context import CMD, using
from lmtools.base.errors import UserError
from lmtools.base.jobs.arrays import IDLE, SILENT, Array, find_queue, run_items
from lmtools.base.jobs.gridengine import GridEngine
from lmtools.base.jobs.gridengine import describe as gridengine_describe
from lmtools.base.jobs.nodes import join_node
from lmtools.base.jobs.queues import Queue, Queued, Refused
from lmtools.base.jobs.shards import PART, RESULTS, Shards, run_shard, write_shards
from lmtools.base.jobs.slurm import Slurm
from lmtools.base.jobs.slurm import describe as slurm_describe
from lmtools.base.jobs.work import Work
from lmtools.base.workers import map_ordered

# sbatch: note the call, then do each task, its output to the log; squeue and scancel: nothing
SBATCH = r"""#!{python}
import os, re, subprocess, sys
options = dict(re.fullmatch(r"--([a-z-]+)=?(.*)", one, re.DOTALL).groups() for one in sys.argv[1:])
with open("{home}/calls", "a") as calls:
    calls.write(options["array"] + "\n")
for n in options["array"].partition("%")[0].split(","):
    with open(options["output"].replace("%a", n), "ab") as log:
        env = {{**os.environ, "SLURM_ARRAY_TASK_ID": n, "SLURM_JOB_ID": n}}
        subprocess.run(["sh", "-c", options["wrap"]], env=env, stdout=log, stderr=log)
print(7)
"""


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Settings for such a queue; what it was asked is in `calls`."""
    programs = tmp_path / "bin"
    programs.mkdir()
    scripts = {"sbatch": SBATCH.format(python=sys.executable, home=tmp_path)}
    for name in ("sbatch", "squeue", "scancel"):
        (programs / name).write_text(scripts.get(name, "#!/bin/sh\n"))
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    here = str(Path(__file__).parents[4])  # where tasks find `tests`, of which work is
    here += f":{known}" if (known := os.environ.get("PYTHONPATH")) else ""
    monkeypatch.setenv("PYTHONPATH", here)
    (tmp_path / "slurm.yaml").write_text(f"directory: {tmp_path}/jobs\npoll: 0.01\n")
    with using(cmd=f"slurm:{tmp_path}/slurm.yaml") as context:
        yield find_queue(context.cmd)


def note(path: str, item: int, trouble: str = "") -> int:
    """The item's square; each call is noted. A file called `trouble` makes item 3 fail."""
    if item == 3 and trouble and Path(trouble).exists():
        raise UserError(f"{path}:3: trouble; wait")
    with open(path, "a") as calls:
        calls.write(f"{item}\n")
    return item * item


def test_results_come_in_order_and_nothing_stays(slurm, tmp_path):
    work = partial(note, str(tmp_path / "done"))
    assert list(map_ordered(work, range(7), nj=3)) == [i * i for i in range(7)]
    assert (tmp_path / "calls").read_text() == "0,1,2\n"
    assert not any((tmp_path / "jobs").iterdir())
    assert list(map_ordered(work, [5], nj=3)) == [25]  # one item: here
    assert list(map_ordered(work, range(2), nj=1)) == [0, 1]
    assert (tmp_path / "calls").read_text() == "0,1,2\n"


def test_the_same_call_does_what_is_missing(slurm, tmp_path):
    """The shard that failed goes on behind what it had done."""
    done, trouble = tmp_path / "done", tmp_path / "trouble"
    trouble.touch()
    work = partial(note, str(done), trouble=str(trouble))
    with pytest.raises(UserError, match=r"/1\.log: .*:3: trouble; wait; 1 of 2 shards are missing"):
        list(map_ordered(work, range(6), nj=2))
    assert sorted(map(int, done.read_text().split())) == [0, 1, 2, 4]
    trouble.unlink()
    assert list(map_ordered(work, range(6), nj=2)) == [i * i for i in range(6)]
    assert sorted(map(int, done.read_text().split())) == [0, 1, 2, 3, 4, 5]
    assert (tmp_path / "calls").read_text() == "0,1\n1\n"


def test_what_was_done_for_other_files_is_not_taken(slurm, tmp_path):
    read, trouble = tmp_path / "read", tmp_path / "trouble"
    read.write_text("one")
    trouble.touch()
    work = partial(note, str(tmp_path / "done"), trouble=str(trouble))
    for text in ("one", "another"):
        read.write_text(text)
        with pytest.raises(UserError, match="trouble; wait"):
            list(run_items(slurm, Work(work, reads=(read,)), range(4), 2))
    assert (tmp_path / "calls").read_text() == "0,1\n0,1\n"


def test_fresh_work_is_done_again(slurm, tmp_path):
    trouble = tmp_path / "trouble"
    trouble.touch()
    work = partial(note, str(tmp_path / "done"), trouble=str(trouble))
    for _ in range(2):
        with pytest.raises(UserError, match="trouble; wait"):
            list(run_items(slurm, Work(work), range(4), 4, at_once=2, fresh=True))
    assert (tmp_path / "calls").read_text() == "0,1,2,3%2\n0,1,2,3%2\n"


def test_an_attempt_goes_on_from_the_longest_part(tmp_path):
    """Also where its last record was cut short."""
    done = tmp_path / "done"
    shards = write_shards(tmp_path / "jobs", Work(partial(note, str(done))), range(3), 1)
    run_shard(shards.folder, 0)
    results = shards.folder / f"0{RESULTS}"
    ends = ends_of(results, shards)
    whole = results.read_bytes()
    results.unlink()
    (shards.folder / f"0.a0{PART}").write_bytes(whole[: ends[1] + 5])
    (shards.folder / f"0.a1{PART}").write_bytes(whole[: ends[0]])
    run_shard(shards.folder, 0)
    assert results.read_bytes() == whole and done.read_text().split() == ["0", "1", "2", "2"]
    assert not list(shards.folder.glob(f"*{PART}"))


def ends_of(path, shards) -> list[int]:
    """Where the records of shard 0 end in a file of results."""
    with open(path, "rb") as stream:
        return [end for _, end in shards.keys.results(0).read_records(stream)]


@pytest.mark.parametrize("damage", ["cut", "flipped", "twice", "exchanged"])
def test_results_that_are_not_whole_are_refused(tmp_path, damage):
    work = Work(partial(note, str(tmp_path / "done")))
    shards = write_shards(tmp_path / "jobs", work, [2, 3], 1)
    run_shard(shards.folder, 0)
    path = shards.folder / f"0{RESULTS}"
    first = ends_of(path, shards)[0]
    content = path.read_bytes()
    path.write_bytes(
        {
            "cut": content[:first],
            "flipped": content[:-1] + bytes([content[-1] ^ 1]),
            "twice": content + content[first:],
            "exchanged": content[first:] + content[:first],
        }[damage]
    )
    with pytest.raises(UserError, match=r"0\.results: damaged, or not written by your own"):
        list(shards.results())


def test_a_directory_that_others_write_is_refused(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs").chmod(0o777)
    with pytest.raises(UserError, match="jobs: a link, or others may write there"):
        write_shards(tmp_path / "jobs", Work(note), [1], 1)


@pytest.mark.parametrize(
    "text, wrong", [("cloud", "LMTOOLS_CMD: 'cloud' is unknown"), ("slurm:no.yaml", "no.yaml")]
)
def test_a_queue_that_is_not_there(monkeypatch, text, wrong):
    monkeypatch.setenv(CMD, text)
    with pytest.raises(UserError, match=wrong):
        list(map_ordered(abs, range(4), nj=2))


@pytest.mark.parametrize("wrong", [{"poll": -1}, {"hours": math.nan}, {"hours": math.inf}])
@pytest.mark.parametrize("queue", [Slurm, GridEngine])
def test_times_that_are_none(queue, wrong):
    with pytest.raises(UserError, match=rf"{next(iter(wrong))}: .* is no time for a job; write"):
        queue(**wrong)


def test_settings_are_options_of_sbatch():
    asked = Slurm(partition="cpu", hours=1.5, memory="8G", cpus=2).options()
    assert asked == ["--partition=cpu", "--time=90", "--mem=8G", "--cpus-per-task=2"]
    assert Slurm().options() == ["--cpus-per-task=1"]


def test_settings_are_options_of_qsub():
    settings = GridEngine(
        queue="all.q", project="p", hours=1.5, memory="8G", memory_as="h_vmem", cpus=2, gpus="1",
        more="-l arch='lx amd'",
    )  # fmt: skip
    assert settings.options() == [
        *("-q", "all.q", "-P", "p", "-l", "h_rt=5400", "-l", "h_vmem=8G", "-l", "gpu=1"),
        *("-pe", "smp", "2", "-l", "arch=lx amd"),
    ]
    assert GridEngine().options() == []
    assert GridEngine(more="-p -1").options() == ["-p", "-1"]


@pytest.mark.parametrize(
    "more",
    ["-S ./evil", "-jsv ./evil", "-v LD_PRELOAD=x", "-l a=1 -o /etc/x", "-@ x", "@x", "-b y"],
)
def test_options_of_qsub_that_run_or_write(more):
    with pytest.raises(UserError, match=r"is no option that F\.yaml may give to qsub; write"):
        GridEngine(more=more).options()
    with pytest.raises(UserError, match="mend the quotes"):
        GridEngine(more="-l 'x").options()


def test_commands_of_grid_engine_read_no_file_of_the_working_directory(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "lmtools.base.jobs.gridengine.ask", lambda *c, **how: asked.append((c, how))
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AttributeError):  # there is no answer
        GridEngine().submit("x", tmp_path, [0], at_once=None, nodes=1)
    ((command, how),) = asked
    assert how["directory"] == "/" and command[command.index("-wd") + 1] == str(tmp_path)


def test_a_task_takes_no_module_of_the_working_directory(slurm, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    for name in ("runpy", "lmtools", "json", "sitecustomize"):
        (tmp_path / f"data/{name}.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path / "data")
    assert list(map_ordered(partial(note, str(tmp_path / "done")), range(4), nj=2)) == [0, 1, 4, 9]
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    "state, reason, runs, remedy",
    [
        ("RUNNING", "None", True, ""),
        ("COMPLETING", "None", True, ""),
        ("PENDING", "Resources", False, ""),
        ("PENDING", "ReqNodeNotAvail, UnavailableNodes:n[1-2]", False, ""),
        ("PENDING", "JobHeldUser", False, "scontrol release 7"),
        ("PENDING", "launch failed requeued held", False, "scontrol release 7"),
        ("PENDING", "DependencyNeverSatisfied", False, "scancel 7"),
    ],
)
def test_what_squeue_says(state, reason, runs, remedy):
    entry = slurm_describe("7", state, reason)
    assert entry.runs == runs and remedy in entry.remedy and bool(remedy) == bool(entry.remedy)
    assert runs or reason in entry.state


@pytest.mark.parametrize(
    "state, runs, remedy",
    [("r", True, ""), ("Rr", True, ""), ("qw", False, ""), ("hqw", False, "qrls 7"),
     ("Eqw", False, "qmod -cj 7")],
)  # fmt: skip
def test_what_qstat_says(state, runs, remedy):
    entry = gridengine_describe("7", state)
    assert entry.runs == runs and remedy in entry.remedy and bool(remedy) == bool(entry.remedy)


def test_jobs_meet_at_their_first_node_on_ports_of_their_own(monkeypatch):
    """As srun calls it on the second node of a job with 16 CPUs a node."""
    ports = set()
    monkeypatch.setattr("os.execve", lambda path, command, env: calls.append((command, env)))
    for name, value in {"JOB_NUM_NODES": 2, "NODEID": 1, "CPUS_PER_TASK": 16}.items():
        monkeypatch.setenv(f"SLURM_{name}", str(value))
    monkeypatch.setenv("SLURM_LAUNCH_NODE_IPADDR", "10.0.0.1")
    for job in ("14999", "15000", "31001"):
        calls: list = []
        monkeypatch.setenv("SLURM_JOB_ID", job)
        monkeypatch.setenv("OMP_NUM_THREADS", "16")
        join_node(8, ["-m", "lmtools", "train"])
        ((command, env),) = calls
        address, _, port = command[command.index("--rdzv-endpoint") + 1].partition(":")
        assert address == "10.0.0.1" and 1024 < int(port) < 32768
        assert env["OMP_NUM_THREADS"] == "2"
        assert command[3:7] == ["--nnodes", "2", "--nproc-per-node", "8"]
        assert command[-4:] == ["is_host=False", "-m", "lmtools", "train"] and job in command
        ports.add(port)
    assert len(ports) == 3


def test_an_answer_that_is_no_xml(monkeypatch):
    monkeypatch.setattr("lmtools.base.jobs.gridengine.ask", lambda *command, **options: "busy")
    with pytest.raises(Refused, match="qstat: its answer is no XML"):
        GridEngine().entries("x")


class Idle(Queue):
    """A queue that gives the next of `answers` to each question; a Refused among them is raised."""

    def entries(self, name):
        answer = self.answers.pop(0)
        if isinstance(answer, Refused):
            raise answer
        return answer


def waits(tmp_path, monkeypatch, *answers) -> bool:
    """What waiting for an array with these answers gives."""
    monkeypatch.setattr(Idle, "answers", list(answers), raising=False)
    return Array(Idle(poll=0.0), Shards(tmp_path, None, 1, 1), None, 1).wait()


def test_why_no_task_runs_is_said_once(tmp_path, monkeypatch, capsys):
    few, waiting = IDLE - 1, [Queued("7", "PENDING (Priority)", runs=False)]
    running = [Queued("7", "RUNNING", runs=True), *waiting]
    assert waits(tmp_path, monkeypatch, *[waiting] * few, running, *[waiting] * few, [])
    assert capsys.readouterr().err == ""
    assert waits(tmp_path, monkeypatch, *[waiting] * (3 * IDLE), [])
    assert capsys.readouterr().err == "array 7 waits: PENDING (Priority)\n"


def test_held_tasks_end_the_wait(tmp_path, monkeypatch):
    held, waiting = Queued("7", "PENDING (JobHeldUser)", False, "release"), Queued("7", "qw", False)
    assert waits(tmp_path, monkeypatch, *[[held, waiting]] * (2 * IDLE), [])
    with pytest.raises(UserError, match=r"array 7: PENDING \(JobHeldUser\): no task .*; release"):
        waits(tmp_path, monkeypatch, *[[held]] * IDLE)


def test_a_queue_that_is_silent_for_a_while_is_asked_again(tmp_path, monkeypatch):
    running, silence = [Queued("7", "r", runs=True)], Refused("squeue: no answer")
    assert waits(tmp_path, monkeypatch, running, *[silence] * (SILENT - 1), running, [])
    with pytest.raises(Refused, match="no answer"):
        waits(tmp_path, monkeypatch, *[silence] * SILENT)


def test_without_the_queue_one_line_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="squeue: no such program; run where the queue"):
        list(run_items(Slurm(directory=str(tmp_path / "jobs")), Work(note), [1], 1))
