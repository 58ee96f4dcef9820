#!/usr/bin/env python3
"""What recipe.sh leaves to Python: manifests of stages, content hashes, the lock, the closest
option. Standard library only.
"""

import argparse
import contextlib
import datetime
import difflib
import fcntl
import hashlib
import json
import os
import re
import signal
import socket
import stat
import sys
import time
from pathlib import Path

# lmtools.files needs the standard library only, too
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lmtools.atomic import atomic_path
from lmtools.errors import UserError, one_line
from lmtools.files import cannot

# exit statuses of `begin` and `made`: run it, do not go on, it is done already
RUN, FAILED, SKIP = 0, 1, 3
# a file written this shortly before it was hashed may change again without a new time stamp
RACY_SECONDS = 1.0
SEAL = "seal"
NO_EFFECT = {"nj"}  # options that change how fast a stage runs but not what it writes


class Hashes:
    """SHA-256 of files and directories; a file whose size, times and inode are as last time is not
    read again.
    """

    def __init__(self, path: Path):
        self.path = path
        self.known = load(path)

    def entry(self, path: str) -> dict:
        """Size in bytes and SHA-256 of a file, or of all files of a directory (names and
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
        """SHA-256 of one file's bytes, from the cache where it is still valid."""
        state = os.stat(path)
        stamp = [state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino]
        cached = self.known.get(path)
        if cached and cached["stamp"] == stamp:
            return cached["sha256"]
        settled = time.time() - state.st_ctime > RACY_SECONDS
        digest = hashlib.sha256()
        with open(path, "rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
        if settled:
            self.known[path] = {"stamp": stamp, "sha256": digest.hexdigest()}
        return digest.hexdigest()

    def save(self):
        """Keep the hashes of files that still exist for the next run."""
        save(self.path, {path: known for path, known in self.known.items() if os.path.exists(path)})


def walk(directory: str):
    """Files under `directory` in a fixed order, without temporary (*.tmp) and hidden ones."""
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (
            os.path.join(folder, name)
            for name in sorted(names)
            if not name.startswith(".") and not name.endswith(".tmp")
        )


def load(path: Path) -> dict:
    """Return the JSON object in `path` without its seal; empty if there is none (or a damaged one,
    which only costs work again).
    """
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    sealed = content.pop(SEAL, None)  # older versions wrote none
    return content if sealed is None or sealed == seal(content) else {}


def seal(content: dict) -> str:
    """Return what vouches for `content`, as lmtools.seal has it, which needs more than the standard
    library.
    """
    return hashlib.new("sha256", json.dumps(content, sort_keys=True).encode()).hexdigest()


def save(path: Path, content: dict):
    """Write JSON so that a crash leaves the old file or the new one."""
    with atomic_path(path, follow=False) as temporary:
        sealed = {SEAL: seal(content), **content}
        temporary.write_text(json.dumps(sealed, indent=1, ensure_ascii=False) + "\n")


def commands(script: Path, stage: int) -> str:
    """SHA-256 of the lines of `script` from `if stage N` to its `fi`: another command in a stage
    makes it another stage.
    """
    block = re.search(rf"^if stage {stage}\b.*?^fi\b", script.read_text(), re.MULTILINE | re.DOTALL)
    return hashlib.sha256(block[0].encode()).hexdigest() if block else ""


def begin(args) -> int:
    """Say what changed since the stage's manifest was written, then mark the stage as started; SKIP
    if it is done and may be skipped.
    """
    path, hashes = manifest(args), Hashes(args.stages / "hashes.json")
    own(args.stages.parent / f"log/stage{args.stage}.log")
    old, inputs = load(path), {name: hashes.entry(name) for name in args.inputs}
    options = dict(assignment.split("=", 1) for assignment in args.options)
    block = commands(args.script, args.stage)
    if args.skip_done:
        reasons = list(differences(args, old, inputs, options, block, hashes))
        hashes.save()
        if not reasons:
            print(f"stage {args.stage} ({args.title}) is done already: skipped")
            return SKIP
    else:
        reasons = [
            f"{name} changed since stage {args.stage} read it" for name in changed(old, inputs)
        ]
        hashes.save()
    print("".join(f"{reason}; running again\n" for reason in reasons if old), end="")
    how = {"command": args.command, "lmtools": args.version, "options": options, "commands": block}
    when = {"started": now().isoformat(), "finished": None, "seconds": None}
    save(
        path,
        {
            "stage": args.stage,
            "title": args.title,
            **how,
            **when,
            "inputs": inputs,
            "outputs": dict.fromkeys(args.outputs),
        },
    )
    return RUN


def differences(args, old, inputs, options, block, hashes):
    """Each reason why the stage of the manifest `old` is not the one that is asked for, or not
    done.
    """
    if not old.get("finished"):
        yield f"stage {args.stage} did not finish"
        return
    yield from (f"{name} changed since stage {args.stage} read it" for name in changed(old, inputs))
    if set(old["inputs"]) != set(inputs) or set(old["outputs"]) != set(args.outputs):
        yield f"stage {args.stage} reads or writes other files now"
    before = old["options"]
    for name in sorted((set(before) | set(options)) - NO_EFFECT):
        if before.get(name) != options.get(name):
            yield f"option {name} was {before.get(name)!r} and is {options.get(name)!r}"
    if old["commands"] != block:
        yield f"the commands of stage {args.stage} changed"
    for name, entry in old["outputs"].items():
        if not os.path.exists(name) or hashes.entry(name) != entry:
            yield f"{name} is not as stage {args.stage} left it"


def changed(old: dict, inputs: dict) -> list:
    """Names of the inputs whose content differs from what the manifest `old` recorded."""
    recorded = old.get("inputs", {})
    return [
        name
        for name, entry in inputs.items()
        if name in recorded and recorded[name]["sha256"] != entry["sha256"]
    ]


def end(args) -> int:
    """Complete the manifest with the outputs and the time; FAILED, naming it, if an output is
    missing.
    """
    path, hashes = manifest(args), Hashes(args.stages / "hashes.json")
    content = load(path)
    missing = [name for name in content["outputs"] if not os.path.exists(name)]
    if missing:
        print(
            f"stage {args.stage} ({content['title']}) ended without writing {', '.join(missing)}",
            file=sys.stderr,
        )
        return FAILED
    content["outputs"] = {name: hashes.entry(name) for name in content["outputs"]}
    hashes.save()
    finished = now()
    content["seconds"] = round(
        (finished - datetime.datetime.fromisoformat(content["started"])).total_seconds(), 1
    )
    content["finished"] = finished.isoformat()
    save(path, content)
    print(f"stage {args.stage} done in {content['seconds']} s")
    return RUN


def stale(args) -> int:
    """Warn if a stage that will not run now was interrupted, or read something that has changed
    since.
    """
    path, hashes = manifest(args), Hashes(args.stages / "hashes.json")
    old = load(path)
    if not old:
        return RUN
    inputs = {name: hashes.entry(name) for name in old["inputs"] if os.path.exists(name)}
    hashes.save()
    warnings = [
        f"{name} changed since stage {args.stage} read it; its outputs are stale"
        for name in changed(old, inputs)
    ]
    if not old["finished"]:
        warnings.append(f"stage {args.stage} was interrupted; its outputs may be incomplete")
    for warning in warnings:
        print(f"warning: {warning}: start from --stage {args.stage}", file=sys.stderr)
    return RUN


def made(args) -> int:
    """SKIP if the record beside `out` says that the command made it, as it is, out of the inputs as
    they are; --record writes that.
    """
    record, hashes = (
        args.out.with_name(f".{args.out.name}.made"),
        Hashes(args.out.with_name(".hashes.json")),
    )
    inputs = {name: hashes.entry(name) for name in args.inputs}
    content = {
        "command": args.command,
        "inputs": inputs,
        "output": hashes.entry(str(args.out)) if args.out.exists() else None,
    }
    hashes.save()
    if args.record:
        save(record, content)
    elif load(record) == content:
        print(f"{args.out}: made before, by the same command of the same files")
        return SKIP
    return RUN


def manifest(args) -> Path:
    return args.stages / f"{args.stage}.json"


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


def ready(args) -> int:
    """Make the folders and the lock file; UserError if one is a link, through which files elsewhere
    would be made and changed.
    """
    try:
        args.file.parent.mkdir(parents=True, exist_ok=True)
        for folder in args.folders:
            own(folder).mkdir(exist_ok=True)
        descriptor = os.open(own(args.file), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise cannot("write", error.filename, error) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise UserError(f"{args.file}: is no file; remove it")
    return RUN


def own(path: Path) -> Path:
    """`path`, a name that nobody chose, if it is no symbolic link."""
    if path.is_symlink():
        raise UserError(
            f"{path}: is a symbolic link, through which a recipe does not write; remove it"
        )
    return path


def lock(args) -> int:
    """Take the lock on the open descriptor of the lock file, and keep it with the descriptor;
    FAILED if another run has it.

    What a killed run left working still holds its lock: that is waited for, since it may still
    write.
    """
    here = socket.gethostname()
    if not os.path.samestat(os.fstat(args.descriptor), os.lstat(own(args.file))):
        raise UserError(f"{args.file}: was replaced while the run started; run again")
    # between taking the lock and writing its name into the file a run has a moment without a name
    for _ in range(5):
        if try_lock(args.descriptor):
            break
        pid, _, host = args.file.read_text().partition(" ")
        workers = holders(args.file)
        if host and (host != here or not workers or int(pid) in workers):
            run = f"process {pid}" if host == here else f"process {pid} on {host}"
            print(
                f"{args.file.parent} is in use by another run, {run}; wait for it, or stop it and"
                " run again",
                file=sys.stderr,
            )
            return FAILED
        time.sleep(0.1)
    else:
        names = ", ".join(f"{worker} ({name})" for worker, name in workers.items())
        remedy = f"kill {' '.join(map(str, workers))} ends it"
        print(
            f"run {pid} was killed but left process {names} working; waiting for it ({remedy})",
            flush=True,
        )
        fcntl.flock(args.descriptor, fcntl.LOCK_EX)
    os.ftruncate(args.descriptor, 0)
    os.write(args.descriptor, f"{args.pid} {here}".encode())
    return RUN


def try_lock(descriptor: int) -> bool:
    """Whether the lock could be had at once."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def stop(args) -> int:
    """Ask what a run still has working to end: training saves its state; FAILED if there is
    nothing.
    """
    workers = holders(args.file)
    for worker in workers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGTERM)
    return RUN if workers else FAILED


def holders(path: Path) -> dict:
    """Process ids, with their command's name, that hold the lock on the file `path`, apart from this
    process and its parents; a run that only waits for the lock has the file open, too.
    """
    own = {os.getpid(), os.getppid()}
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # a process that ended meanwhile, or is another user's
            if int(folder.name) not in own and any(
                same(link, path) and "lock:" in (folder / "fdinfo" / link.name).read_text()
                for link in (folder / "fd").iterdir()
            ):
                found[int(folder.name)] = (folder / "comm").read_text().strip()
    return found


def same(link: Path, path: Path) -> bool:
    """Whether the open file `link` is the file `path`; pipes and sockets are not."""
    try:
        return os.path.samefile(link, path)
    except OSError:
        return False


def closest(args) -> int:
    """Print the name that resembles `word` most, if any does."""
    print("".join(difflib.get_close_matches(args.word, args.names, 1)))
    return RUN


def arguments() -> argparse.ArgumentParser:
    """The verbs that recipe.sh calls."""
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(required=True)
    for action in (begin, end, stale):
        verb = verbs.add_parser(action.__name__)
        verb.set_defaults(action=action)
        verb.add_argument("stages", type=Path)
        verb.add_argument("stage", type=int)
        if action is begin:
            for name in ("--title", "--command", "--version"):
                verb.add_argument(name)
            verb.add_argument("--script", type=Path)
            verb.add_argument("--skip-done", type=lambda word: word == "true")
            for name in ("--options", "--inputs", "--outputs"):
                verb.add_argument(name, nargs="*", default=[])
    verb = verbs.add_parser("ready")
    verb.set_defaults(action=ready)
    verb.add_argument("file", type=Path)
    verb.add_argument("folders", type=Path, nargs="*")
    for action in (lock, stop):
        verb = verbs.add_parser(action.__name__)
        verb.set_defaults(action=action)
        verb.add_argument("file", type=Path)
        if action is lock:
            verb.add_argument("descriptor", type=int)
            verb.add_argument("pid", type=int)
    verb = verbs.add_parser("made")
    verb.set_defaults(action=made)
    verb.add_argument("out", type=Path)
    verb.add_argument("--inputs", nargs="*", default=[])
    verb.add_argument("--command")
    verb.add_argument("--record", action="store_true")
    verb = verbs.add_parser("closest")
    verb.set_defaults(action=closest)
    verb.add_argument("word")
    verb.add_argument("names", nargs="*")
    return parser


if __name__ == "__main__":
    called = arguments().parse_args()
    try:
        sys.exit(called.action(called))
    except UserError as error:
        sys.exit(one_line(error))
    except OSError as error:
        sys.exit(f"{error}; check the path, its permissions and the disk")
