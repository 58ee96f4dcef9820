"""Options of a recipe's script: the lines `name=default # help` of recipe.sh and of the script,
before its line `options "$@"`. Standard library only.
"""

import difflib
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

DECLARED = re.compile(r"""([a-z][a-z0-9_]*)=("[^"]*"|'[^']*'|\S*)(?:\s+#\s*(.*))?""")
CONTINUED = re.compile(r"\s+#\s*(.*)")
# options that change no result, or that a stage's manifest does not record
PLAIN = ("stage", "stop_stage", "skip_done", "dry_run", "debug")
PLACES = ("datadir", "expdir")  # scripts write paths as words
COUNTS = ("nj", "processes", "nnodes")
UNRECORDED = (*PLAIN, "cmd")


class Option(NamedTuple):
    """A default, as text, and the lines of help."""

    default: str
    help: list[str]


def read_options(*scripts: Path) -> dict[str, Option]:
    """Return the options that scripts declare, by the names of their variables; an indented comment
    line continues the help above it.
    """
    options: dict[str, Option] = {}
    for script in scripts:
        last = None
        for line in script.read_text().splitlines():
            if line.startswith('options "$@"'):
                break
            if (match := DECLARED.fullmatch(line)) and not line.startswith("recipe_"):
                name, default, text = match.groups()
                if default[:1] in "\"'":
                    default = default[1:-1]
                last = options[name] = Option(default, [text] if text else [])
            elif last and (match := CONTINUED.fullmatch(line)):
                last.help.append(match[1])
            else:
                last = None
    return options


def options(script: str, recipe: Path, *words: str) -> None:
    """Print the shell's assignments of what `words` (--name value, --name=value, --switch) say;
    for what does not fit a message and exit status 2.
    """
    known = read_options(recipe, Path(script))
    try:
        values, helping = parse_words(known, list(words))
    except ValueError as error:
        print(f"{script}: {error}", file=sys.stderr)
        sys.exit(2)
    command = script
    for name, value in values:
        print(f"{name}={shlex.quote(value)}")
        if name not in PLAIN:
            command += f" --{name.replace('_', '-')} {quote(value)}"
    print(f"recipe_command={shlex.quote(command)}")
    print(f"recipe_names=({' '.join(name for name in known if name not in UNRECORDED)})")
    print(f"recipe_help={str(helping).lower()}")


def quote(word: str) -> str:
    """Return the word as a shell reads it, as bash's printf %q writes it."""
    return re.sub(r"([^\w@%+=:,./-])", r"\\\1", word, flags=re.ASCII) if word else "''"


def parse_words(known: dict[str, Option], words: list[str]) -> tuple[list[tuple[str, str]], bool]:
    """Return the names and values in their order, and whether help is wanted; a dash in a name is
    as good as an underscore.
    """
    values, helping = [], False
    while words:
        word = words.pop(0)
        if word in ("--help", "-h"):
            helping = True
            continue
        if not re.match("--.", word):
            raise ValueError(f"unexpected '{word}'; options are --name value (--help lists them)")
        spelled, equals, value = word.partition("=")
        name = spelled[2:].replace("-", "_")
        if name not in known:
            raise ValueError(describe_unknown(spelled, known))
        if not equals:
            if known[name].default in ("true", "false") and words[:1] not in (["true"], ["false"]):
                value = "true"
            elif words and not words[0].startswith("--"):
                value = words.pop(0)
            else:
                remedy = f"write {word}=VALUE if it begins with dashes"
                raise ValueError(f"{word} needs a value; {remedy}")
        check_value(name, known[name].default, value)
        if name in PLACES and re.search(r"\s", value):
            raise ValueError(f"--{name} is '{value}'; it takes a path without blanks")
        values.append((name, value))
    last = dict(values)
    first, end = (int(last.get(name, known[name].default)) for name in ("stage", "stop_stage"))
    if first > end:
        raise ValueError(f"--stage {first} comes after --stop-stage {end}; nothing would run")
    return values, helping


def describe_unknown(spelled: str, known: Sequence[str]) -> str:
    """Return the refusal of an option, naming the closest."""
    names = [*(name.replace("_", "-") for name in known), "help"]
    close = difflib.get_close_matches(spelled[2:], names, 1)
    remedy = f"did you mean --{close[0]}? " if close else ""
    return f"unknown option {spelled}; {remedy}--help lists the options"


def check_value(name: str, default: str, value: str) -> None:
    """Raise ValueError for a value of another kind than the default."""
    for kind, pattern in (("true or false", "true|false"), ("a whole number", "0|[1-9][0-9]*")):
        if re.fullmatch(pattern, default) and not re.fullmatch(pattern, value):
            raise ValueError(f"--{name.replace('_', '-')} is '{value}'; it takes {kind}")
    if name in COUNTS and value == "0":
        raise ValueError(f"--{name} is 0; it takes 1 or more")


def explain(script: Path, recipe: Path) -> None:
    """Print the script's first comment and its options; the stages explain themselves as they are
    met.
    """
    for line in script.read_text().splitlines()[1:]:
        if not line.startswith("#"):
            break
        if not line.startswith("# shellcheck "):
            print(line[2:])
    print(f"\nUsage: ./{script} [--option value]...   Paths are seen from the script's directory.")
    print("\nOptions, with their defaults:")
    for name, option in read_options(recipe, script).items():
        default = option.default or '""'
        print(f"  --{name.replace('_', '-')} {default}")
        print("".join(f"        {line}\n" for line in option.help), end="")
    print("\nStages:")
