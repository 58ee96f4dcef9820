"""What `--dry-run` prints of `lmtools VERB --experiment F`: a command for each column, language
model, vector or system of the file, with the same outcome. And the check of all commands before
stage 0: their options, settings and YAML files.
"""

import contextlib
import io
import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from lmtools.base.config import build, override, read_layers
from lmtools.base.errors import UserError
from lmtools.cli import VERBS, parse
from lmtools.rescoring.experiment import ExperimentPlan, find_lm
from lmtools.rescoring.features import summed
from lmtools.rescoring.tuning_options import TuningOptions
from lmtools.verbs.experiment import load_experiment, specify, split_entry
from lmtools.verbs.parser import normaliser_of

FLAGS = ("metric", "folds", "seed")  # of lmtools tune; its other settings stand behind --set
MBR = ("--nbest", "--format", "--out")  # what a column without a language model takes
Call = dict[str, list[str]]  # the words behind each flag


def print_commands(verb: str, *words: str) -> None:
    """Print the commands, one a line."""
    call: Call = {}
    for word in words:
        if word.startswith("--"):
            values = call.setdefault(word, [])
        else:
            values.append(word)
    plan = load_experiment(call.pop("--experiment")[0])
    for name, one in EXPAND[verb](plan, call):
        flags = (word for flag, values in one.items() for word in (flag, *values))
        print(shlex.join(["lmtools", name, *flags]))


def list_columns(plan: ExperimentPlan, call: Call) -> Iterator[tuple[str, Call]]:
    """Yield the calls of score, and of mbr."""
    for name, whole in plan.columns.items():
        entry, options = split_entry(whole)
        one = call | fill(call, "column", name) | spell(entry.options)
        if entry.lm is None:
            yield "mbr", {f: v for f, v in one.items() if f in MBR or f[2:] in entry.options}
            continue
        one["--lm"] = [specify(plan, entry.lm, call["--lm"][0], options)]
        dropped = () if entry.source else ("--source", "--source-lines")
        yield "score", {flag: values for flag, values in one.items() if flag not in dropped}


def list_lms(plan: ExperimentPlan, call: Call) -> Iterator[tuple[str, Call]]:
    """Yield the calls of ppl."""
    for lm in plan.trained:
        lm_words = {"--lm": [specify(plan, lm, call["--lm"][0])]}
        yield "ppl", call | fill(call, "lm", lm) | lm_words


def list_vectors(plan: ExperimentPlan, call: Call) -> Iterator[tuple[str, Call]]:
    """Yield the calls of embed."""
    for name, entry in plan.vectors.items():
        lm_words = {"--lm": [find_lm(plan, entry.lm, call["--lm"][0])]}
        yield "embed", call | fill(call, "vectors", name) | lm_words | spell(entry.options)


def list_tunings(plan: ExperimentPlan, call: Call) -> Iterator[tuple[str, Call]]:
    """Yield the calls of tune."""
    usual = asdict(TuningOptions())
    given = {n: v for n, v in asdict(plan.tuning).items() if v != usual[n]}
    fix = given.pop("fix", None) or {}
    flags = spell({name: given.pop(name) for name in FLAGS if name in given})
    for name, system in plan.systems.items():
        settings, weights, more = given, fix, call.get("--fix", [])
        if system.form != usual["form"]:  # its first pass is what it says, without lengths
            weights, more = system.first_pass, []
            settings = given | {"lengths": [], "form": system.form}
            if first := [name for name, weight in weights.items() if weight]:
                settings |= {"reference": first[0]}
        words = [f"{n}={word(value)}" for n, value in settings.items()]
        fixed = [f"{n}={value!r}" for n, value in weights.items()] + more
        lists = {"--set": words + call.get("--set", []), "--fix": fixed}
        rest = flags | take_system(name, system, {f: v for f, v in call.items() if f not in lists})
        yield "tune", rest | {f: v for f, v in lists.items() if v}


def list_rescorings(plan: ExperimentPlan, call: Call) -> Iterator[tuple[str, Call]]:
    """Yield the calls of rescore."""
    for name, system in plan.systems.items():
        yield "rescore", take_system(name, system, call)


def take_system(name: str, system, call: Call) -> Call:
    """Return the call with a system's columns and paths."""
    path = " ".join(call.get("--scores", ()))
    scores = [f"{n}={path.replace('{column}', summed(n))}" for n in system.columns]
    rest = {flag: values for flag, values in call.items() if flag != "--scores"}
    return rest | fill(rest, "system", name) | ({"--scores": scores} if scores else {})


def fill(call: Call, kind: str, name: str) -> Call:
    """Return the options whose values have {KIND}, with the name in its place."""
    mark = f"{{{kind}}}"
    return {
        flag: [value.replace(mark, name) for value in values]
        for flag, values in call.items()
        if flag != "--lm" and any(mark in value for value in values)
    }


def spell(options) -> Call:
    """Return an entry's options as flags."""
    flags = {f"--{name.replace('_', '-')}": value for name, value in options.items()}
    return {f: [] if v is True else [word(v)] for f, v in flags.items() if v is not False}


def word(value) -> str:
    """Return a value as one word of a command."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


EXPAND = {
    "score": list_columns,
    "ppl": list_lms,
    "embed": list_vectors,
    "tune": list_tunings,
    "rescore": list_rescorings,
}


def check_commands(script: str, stop: int, *made: str) -> None:
    """Check the commands of a recipe that standard input has, with what its stages declare; files
    that are `made` by it (in expdir or datadir) are left out. Print `shared` if no stage up to
    `stop` writes to datadir. UserError for the first command that would be refused.
    """
    number, seen, writes = 0, set(), set()
    for line in sys.stdin:
        if heading := re.match(r"# stage (\d+): ", line):
            number = int(heading[1])
            seen.add(number)
        elif declared := re.match(r"(\d+)\twrites\t(.+)", line):
            writes |= {int(declared[1])} if is_in(declared[2], made[1:]) else set()
        elif command := re.search(r"(?:^|\s)lmtools (\w+)(?:\s|$)", line):
            try:
                if command[1] in VERBS:
                    check_command(shlex.split(line[command.start(1) :]), made)
            except UserError as error:
                raise UserError(
                    f"{script}: stage {number}, lmtools {command[1]}: {error}"
                ) from None
    if seen and not any(number in seen and number <= stop for number in writes):
        print("shared")


def check_command(words: list[str], made: tuple[str, ...]) -> None:
    """Read a command's options, normaliser, settings and YAML files, without what it works on."""
    with contextlib.redirect_stderr(io.StringIO()) as told:
        try:
            args = parse(words)
        except SystemExit:
            raise UserError(told.getvalue().strip().rpartition("error: ")[2]) from None
    given = vars(args)
    if given.get("normaliser"):
        normaliser_of(args)
    conf, experiment = (
        None if not (path := given.get(name)) or is_in(path, made) else path
        for name in ("conf", "experiment")
    )
    plan = load_experiment(experiment) if experiment else None
    if conf and args.verb == "report":
        from lmtools.report.style import load_style  # imports matplotlib

        load_style(Path(conf), plan)
    elif conf and args.verb == "train" and not args.init:
        from lmtools.models.settings import Settings  # imports torch

        build(Settings, override(read_layers(Path(conf)), args.settings), conf)


def is_in(path: str, folders: tuple[str, ...]) -> bool:
    """Return whether a path is in one of the folders that are named."""
    roots = [os.path.abspath(folder) for folder in folders if folder]
    return any(f"{os.path.abspath(path)}/".startswith(f"{root}/") for root in roots)
