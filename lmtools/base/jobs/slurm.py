"""Slurm's arrays, by sbatch, squeue and scancel."""

from dataclasses import dataclass
from getpass import getuser
from pathlib import Path

from lmtools.base.jobs.queues import Queue, Queued, ask, task
from lmtools.base.jobs.shards import LOG

WAITING = ("PENDING", "REQUEUE_HOLD", "SPECIAL_EXIT")  # states of tasks that do not run yet
NEVER = ("DependencyNeverSatisfied", "BadConstraints")  # reasons that do not pass


@dataclass(frozen=True)
class Slurm(Queue):
    """Request of a job to Slurm, in sbatch's terms; `memory` and `gpus` as in 8G and a100:1."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None

    def options(self) -> list[str]:
        """Return those that sbatch is given."""
        asked = {
            "partition": self.partition,
            "account": self.account,
            "qos": self.qos,
            "constraint": self.constraint,
            "time": self.hours and max(1, round(self.hours * 60)),
            "mem": self.memory,
            "cpus-per-task": self.cpus,
            "gpus-per-task": self.gpus,
        }
        return [f"--{name}={value}" for name, value in asked.items() if value is not None]

    def submit(self, name, folder, numbers, *, at_once, nodes):
        limit = f"%{at_once}" if at_once else ""
        words = [
            *("sbatch", "--parsable", "--requeue", f"--job-name={name}"),
            f"--array={','.join(map(str, numbers))}{limit}",
            *(f"--output={escape(folder)}/%a{LOG}", "--open-mode=append"),
            *(f"--nodes={nodes}", "--ntasks-per-node=1"),
        ]
        wrapped = f'--wrap=exec {task(folder)} "$SLURM_ARRAY_TASK_ID"'
        return ask(*words, *self.options(), wrapped)

    def entries(self, name):
        answer = ask(*f"squeue -h -n {name} -o %F|%T|%r -u".split(), getuser())
        return [describe(*line.split("|", 2)) for line in answer.splitlines()]

    def cancel(self, name):
        ask(*f"scancel -n {name} -u".split(), getuser())


def describe(number: str, state: str, reason: str) -> Queued:
    """Interpret a line of squeue."""
    if state not in WAITING:
        return Queued(number, state, runs=True)
    remedy = ""
    if "held" in reason.lower() or "hold" in reason.lower() or state != "PENDING":
        remedy = (
            f"`scontrol release {number}` lets them start, and the same command then waits for"
            f" them; `scancel {number}` takes them out of the queue"
        )
    elif reason in NEVER:
        remedy = f"`scancel {number}` takes them out of the queue"
    return Queued(number, f"{state} ({reason})", runs=False, remedy=remedy)


def escape(path: Path) -> str:
    """Return a path in which sbatch replaces nothing."""
    return str(path).replace("%", "%%")
