"""What recipes' scripts are made of: lines, options, the commands of stages, and where they leave
the rules of recipes (docs/recipes.md).
"""

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

LINES, OPTIONS = 120, 15  # the most that a script may have
# what a command of a stage may begin with, so that --dry-run prints what one can paste
PROGRAMS = {"lmtools", "python3", "bash", "cp", "ln", "rm", "mkdir"}
SHARED = {"score_sets", "rescore_sets"}  # of utils/rescore.sh, whose commands are programs
WRAPPERS = {"each", "submit"}  # of utils/each.sh; a program stands behind them
FEEDS = {"echo", "quoted"}  # their lines go to `each`
KEYWORDS = {"do", "then", "else", "!", "{"}  # what a command may stand behind
ASSIGNMENT = re.compile(r"\w+\+?=")
SILENT = {"for", "if", "elif", "fi", "done", "}", "[[", "((", ":", "continue"}  # print nothing
NAMES = {"lm", "column", "system", "vectors", "set", "name"}  # what verbs put in place of {NAME}

# where a command may begin, after keywords and assignments
START = r"(?:^|[;&|(]|\b(?:then|do|else|if|while|until)\s)\s*(?:\w+=\S*\s+)*"
# what no script needs, and what no stage does, in code without comments and quoted words
FORBIDDEN = {
    "nameref": r"\b(declare|local|typeset) -\w*n\b",
    "associative array": r"\b(declare|local|typeset) -\w*A\b",
    "eval": rf"{START}eval\s",
    "read": rf"{START}(read|mapfile|readarray)\s",
    "declare": rf"{START}(declare|typeset|local|readonly)\s",
    "${!x}": r"\$\{!",
    "=~": r"=~",
}
IN_STAGES = {
    "redirection": r"(?<![<=\[(\-])[<>](?![<>(])(?!=)",
    "$(command)": r"\$\((?!\()|`",
    "process substitution": r"[<>]\(",
    "here document": r"<<",
}


class Script:
    """A script of a recipe."""

    def __init__(self, path: Path):
        self.path = path
        self.text = path.read_text()

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @cached_property
    def code(self) -> str:
        """Its lines, continued ones as one, without comments."""
        text = re.sub(r"\\\n\s*", " ", self.text)
        return "\n".join(
            re.sub(r"(^|\s)#.*", "", line) for line in text.splitlines() if not line.startswith("#")
        )

    @cached_property
    def options(self) -> list[str]:
        above = self.text.partition('\noptions "$@"')[0]
        return re.findall(r"^([a-z][a-z0-9_]*)=", above, re.MULTILINE)

    @cached_property
    def stages(self) -> dict[int, str]:
        blocks = re.findall(r"^if stage (\d+) .*?^fi\b", self.code, re.MULTILINE | re.DOTALL)
        found = re.finditer(
            r"^if stage (\d+) .*?\bthen\b\n(.*?)^fi\b", self.code, re.MULTILINE | re.DOTALL
        )
        stages = {int(one[1]): one[2] for one in found}
        assert len(stages) == len(blocks), f"{self.path}: a stage without `then` at a line's end"
        return stages

    @property
    def directives(self) -> list[str]:
        """The directives of shellcheck, with their reasons."""
        return re.findall(r"# shellcheck (.*)", self.text)

    def find_faults(self) -> Iterator[str]:
        if self.lines > LINES:
            yield f"{self.lines} lines; at most {LINES}"
        if len(self.options) > OPTIONS:
            yield f"{len(self.options)} options; at most {OPTIONS}"
        yield from find_constructs(self.code, FORBIDDEN)
        yield from (f"a line {line}" for line in re.findall(r"^recipe_\w+=.*", self.code, re.M))
        yield from self.find_directives()
        for number, block in self.stages.items():
            yield from (f"stage {number}: {fault}" for fault in find_stage_faults(block))
        for name in re.findall(r"(?<!\$)\{([a-z_]+)\}", self.code):
            if name not in NAMES:
                yield f"{{{name}}}, which no verb replaces"

    def find_directives(self) -> Iterator[str]:
        others = [one for one in self.directives if not one.startswith("source=")]
        for one in others:
            if not re.match(r"disable=SC2086\s+# .", one):
                yield f"shellcheck {one}"
        if len(others) > 1:
            yield f"{len(others)} directives of shellcheck; at most one"


def find_constructs(code: str, forms: dict[str, str]) -> list[str]:
    """Return the names of forms that are in code without comments."""
    plain = re.sub(r"'[^']*'", "''", code)
    return [name for name, form in forms.items() if re.search(form, plain, re.MULTILINE)]


def find_stage_faults(block: str) -> Iterator[str]:
    """Yield where the commands of a stage are not what --dry-run prints."""
    plain = re.sub(r"\[\[ .*? \]\]|\(\(.*?\)\)", "", block)
    yield from find_constructs(plain, IN_STAGES)
    depth = 0
    for words in split_commands(block):
        depth += (words[0] == "for") - (words[0] == "done")
        if depth > 1:
            yield "a `for` inside a `for`"
        while words and (words[0] in KEYWORDS | WRAPPERS or ASSIGNMENT.match(words[0])):
            words = words[1:]
        if (
            words
            and words[0] not in PROGRAMS | SHARED | FEEDS | SILENT
            and not words[0].startswith("((")
        ):
            yield f"the command {' '.join(words[:3])} .. begins with no program of {PROGRAMS}"


def split_commands(block: str) -> Iterator[list[str]]:
    """Yield the words of each command of a block, quotes left on."""
    words = r"""(?:"[^"]*"|'[^']*'|\$\{[^}]*\}|\\.|[^\s;|&"'\\])+"""
    tests = re.sub(r"\[\[ .*? \]\]", "[[ ]]", block)
    for line in re.sub(r"\(\(.*?\)\)", "((", tests).splitlines():
        parts, current = [], []
        for token in re.findall(rf"{words}|;|\|\||&&|\|", line):
            if token in (";", "||", "&&", "|"):
                parts, current = [*parts, current], []
            else:
                current.append(token)
        yield from (part for part in [*parts, current] if part)


def find_scripts(tree: Path) -> list[Path]:
    return sorted([*tree.glob("egs/*/run*.sh"), *tree.glob("egs/*/studies/run*.sh")])


def count_scripts(tree: Path) -> dict[str, tuple[int, int]]:
    """Return lines and options of each script, and the lines of what all stand on."""
    scripts = {path: Script(path) for path in find_scripts(tree)}
    counts = {path: (script.lines, len(script.options)) for path, script in scripts.items()}
    shared = [tree / "utils" / name for name in ("each.sh", "rescore.sh")]
    for path in sorted([*tree.glob("utils/recipe*.*"), *shared]):
        counts[path] = (path.read_text().count("\n"), 0)
    return {str(path.relative_to(tree)): count for path, count in counts.items()}
