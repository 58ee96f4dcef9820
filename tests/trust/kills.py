"""SIGKILL of verbs that go on where they were, or sweep up what they left: the same command again
ends with the bytes of an undisturbed run, and nothing else lies about.
"""

import contextlib
import functools
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import split

from trust.common import REPOSITORY, Case, Started, Wrong, changes, drawn, patience, snapshot, sound
from trust.planted import recordings
from trust.world import World, take

KILLS = 5  # a case; the long campaign has eight of each verb
LONGEST = 300.0  # seconds of a run
# the verb in a process that knows a recogniser without a model
FAKE = (
    "import fake_recogniser, sys; fake_recogniser.install(); from lmtools.cli import main;"
    " sys.exit(main(sys.argv[1:]))"
)


@dataclass(frozen=True)
class Killed:
    """A verb that is killed: what puts its input in place, and its words."""

    make: Callable[[Path], None]
    words: str


def speech(home: Path) -> None:
    """Recordings that take a while."""
    recordings(home, 24)


def pairs(home: Path) -> None:
    """A translator of random weights and sentences for it."""
    from toys import sentences
    from translators import random_translator

    model = World.base / "translator"
    if not model.exists():
        place = Path(tempfile.mkdtemp(dir=World.base))
        with contextlib.suppress(OSError):  # another process has made one meanwhile
            random_translator(place).rename(model)
    shutil.copytree(model, home / "lm")
    (home / "source").write_text("\n".join(sentences(48, 5, longest=8)) + "\n")


def text(home: Path, copies: int = 60) -> None:
    """Text of many blocks, and a little of a domain."""
    from toys import sentences

    take(home, "words")
    rng, lines = drawn("kills"), sentences(4000, 3)
    with open(home / "text", "w") as out:
        for number in range(copies):
            rng.shuffle(lines)
            out.write("".join(f"{line} n{number}\n" for line in lines))
    (home / "domain").write_text("\n".join(sentences(300, 9)) + "\n")


def lists(home: Path, count: int = 300) -> None:
    from toys import sentences

    from lmtools import NBest
    from lmtools.formats import jsonl

    texts = sentences(count + 40, 7)
    jsonl.write(
        (
            NBest.of(f"u{number}", texts[number : number + 40], am=[-i / 9 for i in range(40)])
            for number in range(count)
        ),
        home / "n.jsonl",
    )


VERBS = {
    "network": Killed(lists, "network build --nbest n.jsonl --out o.json"),
    "decode": Killed(
        speech, "decode --asr fake:m --opts seconds=0.1 --audio set --nj 2 --out o.jsonl"
    ),
    "translate": Killed(
        pairs, "translate --lm lm --source source --beam 8 --set batch=4 --device cpu --out o.jsonl"
    ),
    "ngram": Killed(text, "ngram --text text --order 3 --memory 64M --kenlm none --out o"),
    "shards": Killed(text, "corpus --text text --subword words --shard-size 1M --nj 2 --out o.bin"),
    "select": Killed(
        lambda home: text(home, 8),
        "select --in-domain domain --pool text --keep 2000 --order 3 --out o --differences d"
        " --cache none --device cpu",
    ),
}


def started(home: Path, name: str) -> Started:
    """The verb in a session of its own, with a directory of its own for temporary files."""
    temporary = home.parent / f"{home.name}.tmp"
    temporary.mkdir(exist_ok=True)
    paths = f"{REPOSITORY}:{REPOSITORY / 'tests'}"
    command = [sys.executable, "-c", FAKE, *split(VERBS[name].words)]
    return Started(command, home, TMPDIR=str(temporary), PYTHONPATH=paths)


def ready(home: Path, name: str) -> Path:
    """A directory with the verb's input."""
    home.mkdir(exist_ok=True)
    VERBS[name].make(home)
    return home


def outputs(home: Path) -> dict[str, bytes]:
    """All files, temporary too, but journals, which hold times, and recogniser's notes."""
    found = snapshot(home, ignored=(".cache", "m.heard"))
    found |= snapshot(home.parent / f"{home.name}.tmp")
    return {name: data for name, data in found.items() if not name.endswith(".journal")}


@functools.cache
def whole(name: str) -> tuple[dict[str, bytes], float]:
    """What an undisturbed run leaves, and the seconds it takes."""
    home = ready(Path(tempfile.mkdtemp(dir=World.base), "case"), name)
    done = sound(started(home, name).done(patience(LONGEST)))
    if done.status:
        raise done.wrong("lost")
    return outputs(home), done.seconds


def kill(home: Path, name: str, kills: int, seed: int, number: int) -> int:
    """Kill the verb at random moments; compare what it leaves; return the kills."""
    right, seconds = whole(name)
    given = set(snapshot(ready(home, name)))
    rng, done = drawn("kills", name, seed, number), 0
    while True:
        run = started(home, name)
        if done < kills:
            with contextlib.suppress(Exception):
                run.process.wait(rng.uniform(0, seconds))
        if done < kills and run.process.poll() is None:
            os.kill(run.process.pid, signal.SIGKILL)
            if rng.random() < 0.5:
                run.end()
            done += 1
            run.process.wait()
            if alive := run.survivors():
                raise Wrong("survivors", f"{name}: {sorted(alive.values())[0][:200]}")
            continue
        ended = sound(run.done(patience(LONGEST)))
        if ended.status:
            raise ended.wrong("lost", f"after {done} kills: {ended.err.strip()[-400:]}")
        if (found := outputs(home)) != right:
            differ = changes(right, found)
            raise ended.wrong(
                "left behind" if all(name[0] == "+" for name in differ) else "silent change",
                f"after {done} kills: {differ[:8]}",
            )
        if done >= kills:
            return done
        for path in home.iterdir():
            if not any(n == path.name or n.startswith(f"{path.name}/") for n in given):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def cases(size: str, seed: int) -> Iterator[Case]:
    """Each verb, often in the long campaign; a kill of two in the short one."""
    kills = 1 if size == "short" else KILLS
    for number in range({"short": 1, "medium": 1, "long": 8}[size]):
        for name in VERBS if size != "short" else ("decode", "shards"):
            yield Case.of(f"{name}-{number}", kill, name, kills, seed, number)
