"""What the stages of a recipe read and write, as recipe.sh passes it on: which inputs are missing
and which stage makes them. Standard library only.
"""

import os
import sys

from lmtools.base.errors import UserError


def read_declared() -> dict[int, dict[str, list[str]]]:
    """Return what each stage up to this one reads and writes, as standard input has it."""
    stages: dict[int, dict[str, list[str]]] = {}
    for line in sys.stdin.read().splitlines():
        if line:
            number, side, path = line.split("\t", 2)
            paths = stages.setdefault(int(number), {"reads": [], "writes": []})[side]
            if path not in paths:
                paths.append(path)
    return stages


def find_writer(stages: dict, path: str, before: int) -> int | None:
    """Return the last stage before another that writes `path` or a directory around it."""
    return max(
        (
            number
            for number, paths in stages.items()
            if number < before
            and any(path == out or path.startswith(f"{out}/") for out in paths["writes"])
        ),
        default=None,
    )


def find_start(stages: dict, number: int) -> int:
    """Return the earliest stage that has to run for a stage to have all its inputs."""
    lost = (path for path in stages[number]["reads"] if not os.path.exists(path))
    writers = {find_writer(stages, path, number) for path in lost} - {None}
    return min((find_start(stages, writer) for writer in writers), default=number)


def check_inputs(stages: dict, number: int, script: str, command: str) -> None:
    """Raise UserError for an input that is not there: which stage writes it, and from where to
    start.
    """
    for path in stages[number]["reads"]:
        if os.path.exists(path):
            continue
        lacks = f"{script}: stage {number} needs {path}, which"
        writer = find_writer(stages, path, number)
        if writer is not None:
            remedy = f"{command} --stage {find_start(stages, writer)} --stop-stage {writer}"
            raise UserError(f"{lacks} stage {writer} writes; run {remedy}")
        remedy = "check the path" if script == "./run.sh" else "run ./run.sh first or check it"
        raise UserError(f"{lacks} no earlier stage writes; {remedy}")


def describe(number: str, title: str) -> None:
    """Print for --help what a stage reads and writes."""
    paths = read_declared().get(int(number), {"reads": [], "writes": []})
    print(f"  {number}  {title}\n       reads  {' '.join(paths['reads'])}")
    print(f"       writes {' '.join(paths['writes'])}")
