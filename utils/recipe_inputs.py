"""What the stages of a recipe read and write, as recipe.sh passes it on: which inputs are missing
and which stage makes them; which options a stage takes. Standard library only.
"""

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

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


STAGE = r"^if stage {}\b.*?^fi\b"
# a line that begins at the margin, those below it that do not, and the ends of loops and the like
CLOSER = r"(?:[ \t}].*|(?:then|do|done|fi|esac|elif|else)\b.*|)\n"
UNIT = re.compile(rf"^(?!{CLOSER}).*\n(?:{CLOSER})*", re.MULTILINE)
LOOP = re.compile(r"\bfor (\w+)\b")


def read_stage(text: str, number: int | str) -> str:
    """Return the lines of a script from `if stage N` to its `fi`; empty if there are none."""
    block = re.search(STAGE.format(number), text, re.MULTILINE | re.DOTALL)
    return block[0] if block else ""


def list_taken(script: Path, number: int, options: Iterable, shared: Iterable[Path]) -> list[str]:
    """Return the options that a stage takes: its lines name them, or variables and functions of the
    script (or of `shared` files) that are made of them; all, of a stage whose lines are not found.
    """
    text = script.read_text()
    rest = re.sub(STAGE.format(r"\d+"), "", text, flags=re.MULTILINE | re.DOTALL)
    rest = rest.partition('\noptions "$@"')[2]
    made: dict[str, set[str]] = {}
    for unit in UNIT.findall("\n".join([rest, *(path.read_text() for path in shared), ""])):
        function = re.match(r"(?:function )?(\w+) *\(\)", unit)
        names = [f"{function[1]}()"] if function else re.findall(r"(?<![$\w{/.-])(\w+)\+?=", unit)
        for name in [*names, *([] if function else LOOP.findall(unit))]:
            made.setdefault(name, set()).update(find_names(unit))
    block = read_stage(text, number)
    todo, seen = find_names(block) - {*LOOP.findall(block)}, set()
    while todo:
        name = todo.pop()
        seen.add(name)
        todo |= made.get(name, set()) - seen
    return [name for name in options if not block or name in seen]


def find_names(text: str) -> set[str]:
    """Return the names of variables that shell lines read, and WORD() for each word."""
    counted = " ".join(re.findall(r"\(\((.*?)\)\)", text))
    words = (f"{word}()" for word in re.findall(r"\w+", text))
    return {*re.findall(r"\$\{?[#!]?(\w+)", text), *re.findall(r"[a-z_]\w*", counted), *words}


def describe(number: str, title: str) -> None:
    """Print for --help what a stage reads and writes."""
    paths = read_declared().get(int(number), {"reads": [], "writes": []})
    print(f"  {number}  {title}\n       reads  {' '.join(paths['reads'])}")
    print(f"       writes {' '.join(paths['writes'])}")
