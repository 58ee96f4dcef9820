"""Grid Engine's arrays (Sun's, Univa's and their heirs), by qsub, qstat and qdel.

A task has a number from 1 on, without gaps; the script knows which shard that is.
"""

import os
import re
import shlex
from dataclasses import dataclass
from getpass import getuser
from xml.etree import ElementTree

from lmtools.base.errors import UserError
from lmtools.base.jobs.queues import Queue, Queued, Refused, ask, task
from lmtools.base.jobs.shards import LOG

SCRIPT = """\
set -- {numbers}
shift $((SGE_TASK_ID - 1))
exec {task} "$1" >>{folder}/"$1"{log} 2>&1
"""


# options of qsub that say what a job needs
MORE = {"-A", "-ac", "-dc", "-hard", "-js", "-l", "-m", "-masterq", "-now", "-p", "-P", "-pe", "-q",
        "-R", "-soft", "-w"}  # fmt: skip
HERE = "/"  # commands run there: elsewhere files such as .sge_request add options to them


@dataclass(frozen=True)
class GridEngine(Queue):
    """Request of a job to Grid Engine. Resources have each cluster's own names: `memory` is of the
    resource `memory_as`, `gpus` of `gpus_as`, `cpus` beyond one of the parallel environment
    `cpus_as`; `more`: other options of qsub, as in "-l arch=lx-amd64".
    """

    queue: str | None = None
    project: str | None = None
    cpus_as: str = "smp"
    memory_as: str = "mem_free"
    gpus_as: str = "gpu"
    more: str = ""

    def options(self) -> list[str]:
        """Return those that qsub is given."""
        asked = [
            (self.queue, "-q", self.queue),
            (self.project, "-P", self.project),
            (self.hours, "-l", f"h_rt={round((self.hours or 0) * 3600)}"),
            (self.memory, "-l", f"{self.memory_as}={self.memory}"),
            (self.gpus, "-l", f"{self.gpus_as}={self.gpus}"),
        ]
        words = [word for wanted, *words in asked if wanted for word in words]
        words += ["-pe", self.cpus_as, str(self.cpus)] if self.cpus > 1 else []
        return words + self.other_options()

    def other_options(self) -> list[str]:
        """Return the words of `more`; UserError for options that say more than what a job needs:
        they could run programs and write files.
        """
        try:
            words = shlex.split(self.more)
        except ValueError as error:
            raise UserError(f"more: {self.more!r}: {error}; mend the quotes") from None
        for word in words:
            number = re.fullmatch(r"-\d+", word)  # as in -p -1
            if word.startswith("@") or (word.startswith("-") and word not in MORE and not number):
                raise UserError(
                    f"more: {word!r} is no option that F.yaml may give to qsub; write some of"
                    f" {' '.join(sorted(MORE))}, or put it into your own ~/.sge_request"
                )
        return words

    def submit(self, name, folder, numbers, *, at_once, nodes):
        if nodes > 1:
            raise UserError("--nnodes: jobs of several nodes are Slurm's alone; give --cmd slurm")
        script = SCRIPT.format(
            numbers=" ".join(map(str, numbers)),
            task=task(folder),
            folder=shlex.quote(str(folder)),
            log=LOG,
        )
        answer = ask(
            *("qsub", "-terse", "-V", "-wd", os.getcwd(), "-S", "/bin/sh", "-r", "y"),
            *("-N", name, "-t", f"1-{len(numbers)}", *(("-tc", str(at_once)) if at_once else ())),
            *("-j", "y", "-o", f"{folder}/queue{LOG}"),
            *self.options(),
            script=script,
            directory=HERE,
        )
        return answer.partition(".")[0]

    def entries(self, name):
        try:
            tree = ElementTree.fromstring(ask("qstat", "-xml", "-u", getuser(), directory=HERE))
        except ElementTree.ParseError as error:
            raise Refused(f"qstat: its answer is no XML ({error}); try again") from None
        return [
            describe(job.findtext("JB_job_number", ""), job.findtext("state", ""))
            for job in tree.iter("job_list")
            if job.findtext("JB_name") == name
        ]

    def cancel(self, name):
        if numbers := {entry.number for entry in self.entries(name)}:
            ask("qdel", *sorted(numbers), directory=HERE)


def describe(number: str, state: str) -> Queued:
    """Interpret the letters of qstat: E an error that is final, h held, qw waiting."""
    remedy = ""
    if "E" in state:
        remedy = f"`qstat -j {number}` says why and `qmod -cj {number}` lets them start"
    elif "h" in state:
        remedy = f"`qrls {number}` lets them start"
    if remedy:
        remedy += f", and the same command then waits for them; `qdel {number}` takes them out"
    return Queued(number, state, runs="w" not in state, remedy=remedy)
