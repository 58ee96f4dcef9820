#!/usr/bin/env python3
"""What recipe.sh leaves to Python: manifests of stages with content hashes here; the lock, the
options, and what stages read and write beside. Standard library only, but for `commands`.
"""

import contextlib
import datetime
import hashlib
import json
import os
import re
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

# lmtools.base.files needs the standard library only, too
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from recipe_inputs import check_inputs, describe, list_taken, read_declared, read_stage
from recipe_lock import lock, ready, refuse_link, stop
from recipe_options import explain, options

from lmtools.base.atomic import atomic_path
from lmtools.base.errors import UserError, one_line

SKIP = 3  # exit status of `begin`: it is done already
# a file written this shortly before it was hashed may change again without a new time stamp
RACY_SECONDS = 1.0
NO_EFFECT = {"nj"}  # options that change how fast a stage runs but not what it writes


class Hashes:
    """SHA-256 of files and directories; a file whose size, times and inode are as last time is not
    read again.
    """

    def __init__(self, path: Path):
        self.path = path
        self.known = load(path)

    def entry(self, path: str) -> dict:
        """Return size in bytes and SHA-256 of a file, or of all files of a directory (names and
        contents).
        """
        if not os.path.isdir(path):
            return {"size": os.path.getsize(path), "sha256": self.file(path)}
        files = list(walk(path))
        listing = "".join(f"{os.path.relpath(name, path)}\0{self.file(name)}\n" for name in files)
        return {
            "size": sum(map(os.path.getsize, files)),
            "files": len(files),
            "sha256": hashlib.sha256(listing.encode()).hexdigest(),
        }

    def file(self, path: str) -> str:
        """Return SHA-256 of one file's bytes, from the cache where it is still valid."""
        state = os.stat(path)
        stamp = [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
        cached = self.known.get(path)
        if isinstance(cached, list) and cached[:-1] == stamp:
            return cached[-1]
        settled = time.time() - state.st_ctime > RACY_SECONDS
        digest = hashlib.sha256()
        with open(path, "rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
        if settled:
            self.known[path] = [*stamp, digest.hexdigest()]
        return digest.hexdigest()

    def save(self):
        """Keep the hashes of files that still exist for the next run."""
        save(self.path, {path: known for path, known in self.known.items() if os.path.exists(path)})


def walk(directory: str):
    """Yield files under `directory` in a fixed order, without temporary (*.tmp) and hidden ones."""
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (
            os.path.join(folder, name)
            for name in sorted(names)
            if not name.startswith(".") and not name.endswith(".tmp")
        )


def load(path: Path) -> dict:
    """Return the JSON object in `path`; empty if there is none, which only costs work again."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def load_manifest(path: Path) -> dict:
    """Return a stage's manifest; empty if there is none, or one of another form."""
    tree = load(path)
    sides = [tree.get(side) for side in ("options", "inputs", "outputs")]
    entries = [entry for side in sides[1:] if isinstance(side, dict) for entry in side.values()]
    fits = {"stage", "commands", "finished"} <= tree.keys()
    fits = fits and all(isinstance(part, dict) for part in sides)
    # outputs have no entry before the stage ends
    return tree if fits and all(isinstance(entry, dict | None) for entry in entries) else {}


def save(path: Path, content: dict):
    """Write JSON so that a crash leaves the old file or the new one."""
    with atomic_path(path, follow=False) as temporary:
        temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


SHARED = Path(__file__).with_name("rescore.sh")


def hash_commands(script: Path, stage: int) -> str:
    """Return the SHA-256 of the lines of `script` from `if stage N` to its `fi`, and of what
    rescore.sh does in them: another command in a stage makes it another stage.
    """
    if not (block := read_stage(script.read_text(), stage)):
        return ""
    shared = SHARED.read_text() if re.search(r"\b(re)?score_sets\b", block) else ""
    return hashlib.sha256((block + shared).encode()).hexdigest()


def begin(
    path: Path,
    number: int,
    title: str,
    log: Path,
    script: str,
    command: str,
    version: str,
    skip_done: str,
    *assignments: str,
) -> None:
    """Say what changed since the stage's manifest was written, then mark the stage as started; exit
    status SKIP if it is done and may be skipped. UserError where an input is missing.
    """
    declared = read_declared()
    declared.setdefault(number, {"reads": [], "writes": []})
    check_inputs(declared, number, script, command)
    refuse_link(log)
    old, hashes = load_manifest(path), Hashes(path.with_name("hashes.json"))
    told = dict(assignment.split("=", 1) for assignment in assignments)
    stage = {
        "stage": number,
        "title": title,
        "command": command,
        "lmtools": version,
        "options": told,
        "takes": list_taken(Path(script), number, told, (SHARED, SHARED.with_name("each.sh"))),
        "commands": hash_commands(Path(script), number),
        "started": now().isoformat(),
        "finished": None,
        "seconds": None,
        "inputs": {name: hashes.entry(name) for name in declared[number]["reads"]},
        "outputs": dict.fromkeys(declared[number]["writes"]),
    }
    if skip_done == "true":
        reasons = list(differences(stage, old, hashes))
    else:
        reasons = list(say_changed(old, stage["inputs"]))
    hashes.save()
    if skip_done == "true" and not reasons:
        print(f"stage {number} ({title}) is done already: skipped")
        sys.exit(SKIP)
    print("".join(f"{reason}; running again\n" for reason in reasons if old), end="")
    save(path, stage)


def differences(stage: dict, old: dict, hashes: Hashes) -> Iterator[str]:
    """Yield each reason why the stage of the manifest `old` is not the one that is asked for, or
    not done.
    """
    number = stage["stage"]
    if not old.get("finished"):
        yield f"stage {number} did not finish"
        return
    yield from say_changed(old, stage["inputs"])
    if any(set(old[side]) != set(stage[side]) for side in ("inputs", "outputs")):
        yield f"stage {number} reads or writes other files now"
    before, options = old["options"], stage["options"]
    for name in sorted(set(stage["takes"]) - NO_EFFECT):
        if before.get(name) != options.get(name):
            yield f"option {name} was {before.get(name)!r} and is {options.get(name)!r}"
    if old["commands"] != stage["commands"]:
        yield f"the commands of stage {number} changed"
    for name, entry in old["outputs"].items():
        if not os.path.exists(name) or hashes.entry(name) != entry:
            yield f"{name} is not as stage {number} left it"


def say_changed(old: dict, inputs: dict) -> Iterator[str]:
    """Yield a line for each input whose content differs from what the manifest `old` recorded."""
    recorded = old.get("inputs", {})
    for name, entry in inputs.items():
        if name in recorded and (recorded[name] or {}).get("sha256") != entry["sha256"]:
            yield f"{name} changed since stage {old['stage']} read it"


def end(path: Path) -> None:
    """Complete the manifest with the outputs and the time; UserError, naming it, if an output is
    missing.
    """
    content, hashes = load(path), Hashes(path.with_name("hashes.json"))
    missing = [name for name in content["outputs"] if not os.path.exists(name)]
    if missing:
        raise UserError(
            f"stage {content['stage']} ({content['title']}) ended without writing"
            f" {', '.join(missing)}"
        )
    content["outputs"] = {name: hashes.entry(name) for name in content["outputs"]}
    hashes.save()
    finished = now()
    started = datetime.datetime.fromisoformat(content["started"])
    content["seconds"] = round((finished - started).total_seconds(), 1)
    content["finished"] = finished.isoformat()
    save(path, content)
    print(f"stage {content['stage']} done in {content['seconds']} s")


def stale(path: Path) -> None:
    """Warn if a stage that will not run now was interrupted, or read something that has changed
    since.
    """
    old, hashes = load_manifest(path), Hashes(path.with_name("hashes.json"))
    if not old:
        return
    inputs = {name: hashes.entry(name) for name in old["inputs"] if os.path.exists(name)}
    hashes.save()
    warnings = [f"{reason}; its outputs are stale" for reason in say_changed(old, inputs)]
    if not old["finished"]:
        warnings.append(f"stage {old['stage']} was interrupted; its outputs may be incomplete")
    for warning in warnings:
        print(f"warning: {warning}: start from --stage {old['stage']}", file=sys.stderr)


def commands(*words: str) -> None:
    """Print what `lmtools VERB --experiment F` does, command by command."""
    try:
        from recipe_commands import print_commands
    except ImportError:  # of lmtools' dependencies
        print(shlex.join(["lmtools", *words]))
    else:
        print_commands(*words)


def check(*words: str) -> None:
    """Check the commands of a recipe; not where lmtools' dependencies are missing."""
    with contextlib.suppress(ImportError):
        from recipe_commands import check_commands

        check_commands(*words)


def now() -> datetime.datetime:
    """Return the time, which is the same everywhere."""
    return datetime.datetime.now(datetime.timezone.utc)


# verbs that recipe.sh calls, and what their first words are; the rest are text
VERBS = {
    "options": (options, str, Path),
    "explain": (explain, Path, Path),
    "describe": (describe,),
    "begin": (begin, Path, int, str, Path),
    "end": (end, Path),
    "stale": (stale, Path),
    "ready": (ready, Path, Path, Path),
    "lock": (lock, Path, int, int),
    "stop": (stop, Path),
    "commands": (commands,),
    "check": (check, str, int),
}

if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `run.sh --help | head` is no mistake
    verb, *kinds = VERBS[sys.argv[1]]
    words = sys.argv[2:]
    try:
        verb(*(kind(word) for kind, word in zip(kinds, words, strict=False)), *words[len(kinds) :])
    except UserError as error:
        sys.exit(one_line(error))
    except OSError as error:
        sys.exit(f"{error}; check the path, its permissions and the disk")
