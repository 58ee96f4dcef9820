"""The parts of an output: `--shard I/N` of a verb leaves one in the directory OUT.I-of-N, `--cmd`
has a program of a cluster make them all, and `lmtools merge` joins them.

A part's `part.json`, written last, says of which run it is: the verb's options and the SHA-256 of
what it reads. Parts of several runs, or not all of one, are not joined.
"""

import argparse
import contextlib
import glob
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lmtools.base.atomic import hold_lock
from lmtools.base.errors import UserError
from lmtools.base.files import sha256
from lmtools.base.log import say
from lmtools.base.seal import digest, read_json, write_json
from lmtools.verbs.parser import find_module

VERBS = ("score", "corpus", "ngram", "decode")
PART, OUTPUT, LOG = "part.json", "out", "log"
NAME = re.compile(r"(.+)\.([0-9]+)-of-([0-9]+)")
# options that say how a part is made, not what it is
HOW = {"action", "cmd", "debug", "max_line", "nj", "shard", "typed"}
CMD, LOCAL = "LMTOOLS_CMD", "local"  # variable of the environment; what means no program
LMTOOLS = [sys.executable, *(["-P"] if sys.version_info >= (3, 11) else []), "-m", "lmtools"]


class Part(NamedTuple):
    """A part that is there: its directory, what part.json says, its output."""

    folder: Path
    facts: dict
    output: Path


def name_part(out, number, count) -> Path:
    return Path(f"{out}.{number}-of-{count}")


def make_folder(out, number, count) -> Path:
    """Make the directory of a part; UserError for a link, which could lead anywhere."""
    folder = name_part(out, number, count)
    if folder.is_symlink():
        raise UserError(f"{folder}: a link stands where the part belongs; remove it")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def sign_run(args: argparse.Namespace, out: str, reads: Iterable) -> str:
    """Return a digest of a verb's options, and of the files and directories that it reads."""
    plain = (str, int, float, list, tuple, type(None))
    options = {
        name: value
        for name, value in vars(args).items()
        if name not in HOW and isinstance(value, plain)
    }
    return digest({**options, "out": str(out), "read": [identify(path) for path in reads]})


def identify(path) -> list:
    """Return a file's SHA-256, or when a directory's files changed; UserError for a pipe."""
    if path == "-" or (os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))):
        raise UserError(f"{path}: no file, which several parts could read; write it to one")
    if os.path.isfile(path):
        return [str(path), sha256(path)]
    files = sorted(file for file in Path(path).rglob("*") if file.is_file())
    known = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return [str(path), known]


@contextlib.contextmanager
def writing_part(args: argparse.Namespace, out: str, reads: Iterable) -> Iterator[tuple | None]:
    """Yield where a part's output belongs and a mapping for facts; None where it exists."""
    folder = make_folder(out, *args.shard)
    with hold_lock(folder):
        run, mark = sign_run(args, out, reads), folder / PART
        with contextlib.suppress(UserError):
            if read_json(mark).get("run") == run:
                say(f"{folder}: is there")
                yield None
                return
        mark.unlink(missing_ok=True)
        facts: dict = {}
        yield str(folder / OUTPUT), facts
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        own = (path for path in files if path.name != LOG and not path.name.startswith("."))
        digests = {str(path.relative_to(folder)): sha256(path) for path in own}
        whose = {"verb": args.verb, "shard": str(args.shard), "run": run}
        write_json({**whose, "files": digests, "facts": facts}, mark)


def list_outputs(out: str) -> list[str]:
    """Return the outputs that have parts, of a name with `{column}` all; UserError for none."""
    pattern = re.sub(r"\{\w+\}", "*", glob.escape(out))
    names = (NAME.fullmatch(path) for path in glob.glob(pattern + ".*-of-*"))
    if not (found := sorted({match[1] for match in names if match})):
        raise UserError(f"{out}: no parts of it, {out}.1-of-N; make them by --shard I/N")
    return found


def read_parts(out: str) -> list[Part]:
    """Return all parts of an output; UserError for missing, damaged or other ones."""
    found = {}
    for path in glob.glob(glob.escape(out) + ".*-of-*"):
        if (match := NAME.fullmatch(path)) and match[1] == out:
            found[int(match[2]), int(match[3])] = Path(path)
    counts = sorted({count for _, count in found})
    if len(counts) > 1:
        raise UserError(
            f"{out}: parts of {counts[0]} and of {counts[1]}; remove those that are not wanted"
        )
    names = [name_part(out, number, counts[0]) for number in range(1, counts[0] + 1)]
    if missing := [name for name in names if name.is_symlink() or not (name / PART).is_file()]:
        raise UserError(
            f"{missing[0]}: {len(missing)} of {counts[0]} parts are missing; make them by --shard"
        )
    parts = []
    for number, folder in enumerate(names, 1):
        remedy = f"remove {folder} and make it again by --shard {number}/{counts[0]}"
        tree = read_json(folder / PART, remedy)
        one = parts[0].facts if parts else tree
        if any(tree.get(name) != one.get(name) for name in ("verb", "run")) or (
            tree.get("shard") != f"{number}/{counts[0]}"
        ):
            raise UserError(f"{folder}: a part of another run than {names[0]}; {remedy}")
        if tree["verb"] not in VERBS or not isinstance(tree.get("files"), dict):
            raise UserError(f"{folder / PART}: is of no verb that has parts; {remedy}")
        for name, expected in tree["files"].items():
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise UserError(f"{folder / PART}: names {name!r}; {remedy}")
            if sha256(folder / name) != expected:
                raise UserError(f"{folder / name}: not as it was written; {remedy}")
        parts.append(Part(folder, tree, folder / OUTPUT))
    return parts


def merge(out: str, **options) -> int:
    """Write `out` of its parts, and remove these; return the verb's exit status."""
    parts = read_parts(out)
    verb = parts[0].facts["verb"]
    joiner = find_module(verb)
    try:
        status = joiner.join(parts, out, **options)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        cause = f"{type(error).__name__}: {error}"
        raise UserError(f"{parts[0].folder / PART}: cannot be joined ({cause:.100})") from error
    for part in parts:
        shutil.rmtree(part.folder)
    say(f"{out}: joined from {len(parts)} parts")
    return status or 0


def wanted_command(args: argparse.Namespace) -> str | None:
    """Return the program that makes the parts, None: this process does all."""
    cmd = args.cmd or os.environ.get(CMD) or LOCAL
    return None if cmd == LOCAL or args.shard else cmd


def run_parts(args: argparse.Namespace, cmd: str, outs: Sequence[str], **options) -> int:
    """Have `cmd` (of the contract of Kaldi's run.pl) make `nj` parts of the outputs by this very
    command line, and join them; return the verb's exit status. UserError where it fails: the same
    command makes what is missing.
    """
    job = "JOB"
    while any(job in word for word in args.typed):  # the program replaces it everywhere
        job += "_"
    for out in outs:
        for number in range(1, args.nj + 1):
            make_folder(out, number, args.nj)
    log = name_part(outs[0], job, args.nj) / LOG
    words = [*LMTOOLS, *args.typed, "--cmd", LOCAL, "--nj", "1", "--shard", f"{job}/{args.nj}"]
    command = [*shlex.split(cmd), f"{job}=1:{args.nj}", str(log), *map(protect, words)]
    if status := run_command(command):
        raise UserError(
            f"{shlex.split(cmd)[0]}: status {status}; logs: {name_part(outs[0], 'N', args.nj)}/"
            f"{LOG}; parts that are done are kept, and the same command makes the others"
        )
    return max(merge(out, **options) for out in outs)


def protect(word: str) -> str:
    """Return the word so that a program of run.pl's contract, which puts it into a line of bash,
    passes it on as it is: without blanks, what bash would replace in $'..'.
    """
    if re.fullmatch(r"[\w@%+=:,./-]+", word, re.ASCII):
        return word
    return (
        "$'"
        + "".join(
            chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\x{byte:02x}"
            for byte in os.fsencode(word)
        )
        + "'"
    )


def run_command(command: Sequence[str]) -> int:
    """Run a command that ends with this process; return its status."""

    def end(number, frame):
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL) as process:
            try:
                return process.wait()
            except BaseException:
                process.terminate()
                raise
    except OSError as error:
        raise UserError(f"--cmd: {command[0]}: {error.strerror}; give a program") from None
    finally:
        signal.signal(signal.SIGTERM, before)
