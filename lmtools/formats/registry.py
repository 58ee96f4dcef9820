"""Formats: their descriptions, recognition, reading and writing, and the `NAME:option=value` by
which users name one.
"""

import inspect
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import ModuleType

from lmtools.base.errors import UserError
from lmtools.base.files import DAMAGED, OPENERS, cannot, not_as_named
from lmtools.base.grammar import parse_pairs
from lmtools.text.blocks import ARTIFACTS, HEAD, identify
from lmtools.types import EMPTY

FEW = 8  # formats that a message may name
# What a file may be that no format recognises, by what it looks like
NEAREST = {
    "directory": ("kaldi-nbest", "espnet2", "srilm"),
    "JSON": ("whisper", "cloud", "vosk"),
    "|||": ("moses", "marian", "fairseq"),
    "lines": ("kaldi-text", "trn", "ctm"),
    "stream": ("jsonl", "kaldi-nbest", "kaldi-text"),
}
SPECIFIER = re.compile(r"(ark|scp)(,[a-z,]+)?:")
INSIDE = {  # files of directories that are no lists, and what these are
    "model.safetensors": "a model directory, which goes to --lm",
    "lm.arpa": "a model directory, which goes to --lm",
    "lm.bin": "a model directory, which goes to --lm",
    "subword.yaml": "a subword model's directory",
    "nbest.jsonl": "a directory with the lists nbest.jsonl in it, which have to be named",
}


@dataclass(frozen=True)
class Specifier:
    """One of Kaldi's specifiers: ark or scp, options, and file, `-`, `command |` or `| command`."""

    kind: str
    options: frozenset[str]
    place: str


def parse_specifier(path) -> Specifier | None:
    """Parse `path` as a specifier that the user typed; return None if it is none.

    What the user types is a str. A Path is a name that was found: a file, whatever it looks like.
    So is a str that names what is there, as the shell's `*` gives it. Nothing else than this
    function makes a Specifier, and nothing but a Specifier runs a command.
    """
    match = SPECIFIER.match(path) if isinstance(path, str) else None
    if not match or os.path.lexists(path):
        return None
    return Specifier(
        match[1], frozenset((match[2] or "").split(",")) - {""}, path[match.end() :].strip() or "-"
    )


def list_children(path) -> list[Path]:
    """Return a directory's entries by name, without pipes, sockets and devices."""
    try:
        return sorted(
            child
            for child in Path(path).iterdir()
            if child.is_file() or child.is_dir() or not child.exists()
        )
    except OSError as error:
        raise cannot("read", path, error) from None


def list_numbered(path, name: re.Pattern) -> list[tuple[int, Path]]:
    """Return the entries of a directory whose names match, as sorted (number in the name, path)."""
    inside = ((name.fullmatch(child.name), child) for child in list_children(path))
    return sorted((int(match[1]), child) for match, child in inside if match)


@dataclass(frozen=True)
class Format:
    """One format of N-best lists or of lattices.

    `recognises(path, first line)` gets '' as the first line of a directory. `read(path, **options)`
    gives utterances, lazily where the format permits it; `write(utterances, path, **options)` takes
    them one by one. `options` explains what either takes by name. `lists` is False where a file
    holds one text an utterance, which may be a hypothesis or a reference. `tables`: whether a
    specifier means this format where none is named. `merge` says, of a lattice format that holds
    two scores, or one, which score takes all others, and which stay apart; None: it holds all.
    """

    summary: str
    recognises: Callable[[Path, str], bool]
    read: Callable[..., Iterable]
    write: Callable[..., None]
    options: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    lists: bool = True
    tables: bool = False
    merge: tuple[str, Sequence[str]] | None = None


def format_of(module: ModuleType, **more) -> Format:
    """Return the format that `module` implements, which says what it is in SUMMARY; its OPTIONS, if
    any, explain what `read` and `write` take by name, its MERGE is `merge`; `more` are other
    fields.
    """
    given = {name: getattr(module, name) for name in ("recognises", "read", "write")}
    given |= {"options": getattr(module, "OPTIONS", EMPTY), "merge": getattr(module, "MERGE", None)}
    return Format(module.SUMMARY, **given | more)


def find_format(spec: str, formats: Mapping[str, Format]) -> Format:
    """Find the format of NAME or NAME:option=value,... and bind its options; else UserError."""
    name, _, rest = spec.partition(":")
    if name not in formats:
        raise UserError(f"{spec}: no format is called {name!r}; known are {', '.join(formats)}")
    form = formats[name]
    known = f"its options are: {', '.join(f'{key}=...' for key in form.options) or 'none'}"
    options = parse_pairs(filter(None, rest.split(",")), f"{spec}: option", remedy=known)
    if unknown := [option for option in options if option not in form.options]:
        raise UserError(f"{spec}: format {name!r} takes no option {unknown[0]!r}; {known}")
    return replace(
        form, read=bind_options(form.read, options), write=bind_options(form.write, options)
    )


class Formats(dict[str, Format]):
    """The formats of one kind by name. A spec is NAME, NAME:option=value, or None: recognised."""

    def detect(self, path, default: str | None = None) -> str:
        """Return the name of the format of `path`, or `default`; UserError if that is None too."""
        return detect(path, self, default)

    def read(self, path, spec: str | None = None) -> list:
        """Return all items of `path` as a list."""
        return list(self.stream(path, spec))

    def stream(self, path, spec: str | None = None) -> Iterator:
        """Yield the items of `path` one by one, as soon as they can be read."""
        yield from find_format(spec or detect(path, self), self).read(path)

    def write(self, items: Iterable, path, spec: str) -> None:
        """Write `items` to `path`."""
        find_format(spec, self).write(items, path)


def bind_options(function: Callable, options: Mapping[str, str]) -> Callable:
    """Bind those of `options` that `function` takes."""
    known = inspect.signature(function).parameters
    any_name = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    taken = {name: value for name, value in options.items() if any_name or name in known}
    return partial(function, **taken)


def detect(path, formats: Mapping[str, Format], default: str | None = None) -> str:
    """Return the name of the format of `path`, or `default` if none recognises it. UserError if
    that is None too, and for what can hold neither lists nor lattices.
    """
    if path == "-" or (is_pipe(path) and default is None):
        what = "standard input" if path == "-" else f"{path}: a pipe"
        near = name_nearest("stream", formats)
        raise UserError(f"{what} is not looked into; name its format: {near}")
    first = ""
    if parse_specifier(path):
        names = [name for name, form in formats.items() if form.tables]
    else:
        first = "" if Path(path).is_dir() or is_pipe(path) else read_first_line(path)
        names = [name for name, form in formats.items() if form.recognises(Path(path), first)]
        if len(names) > 1 and '"hyps"' not in first:  # what a file holds says more than its name
            names = [name for name in names if name != "jsonl"]
    if not names and not parse_specifier(path) and (other := unlike_lists(path, default is None)):
        near = name_nearest("stream", formats)
        raise UserError(
            f"{path}: is {other}; give a file or directory in one of the formats {near}"
        )
    if len(names) > 1 or not (names or default):
        near = ", ".join(names) or name_nearest(look_at(path, first), formats)
        what = " or ".join(names) or "anything"
        raise UserError(f"{path}: could be {what}; name its format: {near}")
    return names[0] if names else default


def look_at(path, first: str) -> str:
    if not first and Path(path).is_dir():
        return "directory"
    return "JSON" if first.lstrip().startswith(("{", "[")) else "|||" if "|||" in first else "lines"


def name_nearest(look: str, formats: Mapping[str, Format]) -> str:
    """Return names of `formats` for a message: all if they are few, else the nearest."""
    near = [name for name in NEAREST[look] if name in formats]
    if len(formats) <= FEW or not near:
        return ", ".join(formats)
    return f"{', '.join(near)}, or another of lmtools convert --help"


def is_pipe(path) -> bool:
    """Return whether `path` can be read only once, as a pipe."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def unlike_lists(path, empty: bool) -> str | None:
    """Return in words what is certainly no list, with `empty` an empty file too; else None."""
    if Path(path).is_dir():
        names = {child.name for child in list_children(path)}
        return next(
            (what for name, what in INSIDE.items() if name in names),
            None if names or not empty else "an empty directory",
        )
    if is_pipe(path):
        return None
    head = read_beginning(path)
    kind = identify(head, ARTIFACTS)
    return kind.what if kind else None if head.strip() or not empty else "empty"


def read_beginning(path, size: int = HEAD) -> bytes:
    """Read the first `size` bytes of a file, decompressed; UserError for a damaged archive."""
    try:
        with OPENERS.get(Path(path).suffix, open)(path, "rb") as stream:
            head = stream.read(size)
    except DAMAGED as error:
        raise not_as_named(path) or UserError(
            f"{path}:1: damaged archive ({error}); fetch or write it again"
        ) from None
    except OSError as error:
        raise not_as_named(path) or cannot("read", path, error) from None
    if Path(path).suffix not in OPENERS and (error := not_as_named(path)):
        raise error
    return head


def read_first_line(path) -> str:
    """Read the first line of `path` as far as a format's mark may reach, whatever its encoding."""
    return read_beginning(path).partition(b"\n")[0].decode("utf-8-sig", "replace").rstrip("\r")


def all_rows(path, first: str, fits: Callable[[str], bool]) -> bool:
    """Return whether every line at a file's beginning `fits`, but for empty lines and `;;`."""
    if not (first.startswith(";;") or fits(first)):
        return False
    beginning = read_beginning(path)
    lines = beginning.decode("utf-8-sig", "replace").split("\n")
    whole = lines[:-1] if len(beginning) == HEAD else lines
    rows = [line for line in whole if line.strip() and not line.startswith(";;")]
    return bool(rows) and all(map(fits, rows))


def describe_formats(formats: Mapping[str, Format]) -> str:
    """Describe all of `formats` and their options, line by line, for a verb's help."""
    lines = []
    for name, form in formats.items():
        lines.append(wrap_text(f"  {name}: ", form.summary))
        lines += [
            wrap_text(f"      :{option}=... ", meaning) for option, meaning in form.options.items()
        ]
    return "\n".join(lines).replace("%", "%%")


def wrap_text(begin: str, text: str) -> str:
    """Wrap text into lines of at most 100 characters, those after the first indented."""
    return textwrap.fill(
        text, 100, initial_indent=begin, subsequent_indent=" " * (begin.index(begin.strip()) + 4)
    )
