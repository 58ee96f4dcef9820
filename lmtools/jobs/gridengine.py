"""Grid Engine's arrays (Sun's, Univa's and their heirs), by qsub, qstat and qdel.

A task has a number from 1 on, without gaps; the script knows which shard that is.
"""

import shlex
from dataclasses import dataclass
from xml.etree import ElementTree

from lmtools.errors import UserError
from lmtools.jobs.queues import Queue, Queued, Refused, ask, task, user
from lmtools.jobs.shards import LOG

SCRIPT = """\
set -- {numbers}
shift $((SGE_TASK_ID - 1))
exec {task} "$1" >>{folder}/"$1"{log} 2>&1
"""


@dataclass(frozen=True)
class GridEngine(Queue):
    """What a job asks for. Resources have each cluster's own names: `memory` is of the resource
    `memory_as`, `gpus` of `gpus_as`, `cpus` beyond one of the parallel environment `cpus_as`;
    `more`: other options of qsub, as in "-l arch=lx-amd64".
    """

    queue: str | None = None
    project: str | None = None
    cpus_as: str = "smp"
    memory_as: str = "mem_free"
    gpus_as: str = "gpu"
    more: str = ""

    def options(self) -> list[str]:
        """Those that qsub is given."""
        asked = [
            (self.queue, "-q", self.queue),
            (self.project, "-P", self.project),
            (self.hours, "-l", f"h_rt={round((self.hours or 0) * 3600)}"),
            (self.memory, "-l", f"{self.memory_as}={self.memory}"),
            (self.gpus, "-l", f"{self.gpus_as}={self.gpus}"),
        ]
        words = [word for wanted, *words in asked if wanted for word in words]
        words += ["-pe", self.cpus_as, str(self.cpus)] if self.cpus > 1 else []
        return words + shlex.split(self.more)

    def submit(self, name, folder, numbers, at_once, nodes):
        if nodes > 1:
            raise UserError("--nnodes: jobs of several nodes are Slurm's alone; give --cmd slurm")
        script = SCRIPT.format(
            numbers=" ".join(map(str, numbers)),
            task=task(folder),
            folder=shlex.quote(str(folder)),
            log=LOG,
        )
        said = ask(
            *("qsub", "-terse", "-V", "-cwd", "-S", "/bin/sh", "-r", "y"),
            *("-N", name, "-t", f"1-{len(numbers)}", *(("-tc", str(at_once)) if at_once else ())),
            *("-j", "y", "-o", f"{folder}/queue{LOG}"),
            *self.options(),
            script=script,
        )
        return said.partition(".")[0]

    def entries(self, name):
        try:
            found = ElementTree.fromstring(ask("qstat", "-xml", "-u", user()))
        except ElementTree.ParseError as error:
            raise Refused(f"qstat: its answer is no XML ({error}); try again") from None
        return [
            describe(job.findtext("JB_job_number", ""), job.findtext("state", ""))
            for job in found.iter("job_list")
            if job.findtext("JB_name") == name
        ]

    def cancel(self, name):
        if numbers := {entry.number for entry in self.entries(name)}:
            ask("qdel", *sorted(numbers))


def describe(number: str, state: str) -> Queued:
    """What letters of qstat mean: E an error that Grid Engine does not try again, h held, qw
    waiting.
    """
    remedy = ""
    if "E" in state:
        remedy = f"`qstat -j {number}` says why and `qmod -cj {number}` lets them start"
    elif "h" in state:
        remedy = f"`qrls {number}` lets them start"
    if remedy:
        remedy += f", and the same command then waits for them; `qdel {number}` takes them out"
    return Queued(number, state, runs="w" not in state, remedy=remedy)
