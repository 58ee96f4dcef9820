"""Damage to every artifact: the verb that reads it refuses with one line, or gives what it gives of
the undamaged one.

Nothing vouches for the numbers and texts of lists, lattices, scores and weights: there a changed
one is no damage that can be seen, and only the way of refusing is looked at.
"""

import contextlib
import functools
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import split

from trust.common import (
    REPOSITORY,
    Case,
    Done,
    Skipped,
    Started,
    Wrong,
    drawn,
    lmtools,
    run,
    sound,
    succeeded,
)
from trust.world import World, rescoring, take, training

DONORS = ("lm/causal/model.safetensors", "test.jsonl", "train.bin", "weights.json")
HOWS = split("bit bit bits byte truncated zeroed swapped twice longer other empty gone")
MODEL = ("lm/tta", "test.jsonl")
LISTS = ("test.jsonl", "test.ngram.scores", "test.tta.scores", "weights.json")


@dataclass(frozen=True)
class Kind:
    """An artifact: what is copied, damaged files, the command that reads, what comes out."""

    needs: tuple[str, ...]
    damaged: tuple[str, ...]  # files, or directories of which a file is drawn
    command: Sequence[str]
    result: Callable[[Path, Done], object] | None  # None: whatever is read is right
    donors: tuple[str, ...] = DONORS
    prepare: Callable[[Path], None] = lambda home: None
    told: str | None = None  # what the verb says where it takes the file for another one


def score(lm: str, cache="none") -> tuple:
    words = f"score --lm {lm} --nbest test.jsonl --cache {cache} --out s --device cpu"
    return tuple(split(words))


def rows(name: str) -> Callable[[Path, Done], bytes]:
    """The rows of a score file: its header names the model."""
    return lambda home, done: (home / name).read_bytes().partition(b"\n")[2]


def files(*names: str) -> Callable[[Path, Done], list[bytes]]:
    return lambda home, done: [(home / name).read_bytes() for name in names]


def warmed(home: Path) -> None:
    """A cache with the test set's scores."""
    succeeded(run(*score("lm/tta", "kept"), home=home))
    (home / "s").unlink()


def tensors(name: str) -> Callable[[Path, Done], dict]:
    """The tensors of a file as bytes: metadata may hold times."""

    def read(home: Path, done: Done):
        from safetensors.numpy import load_file

        return {key: value.tobytes() for key, value in load_file(home / name).items()}

    return read


def finished(home: Path, done: Done) -> list:
    """All weights of a training that is complete, and what scores with it say."""
    return [tensors(f"lm/tta/{name}.safetensors")(home, done) for name in ("model", "checkpoint")]


def interrupted(home: Path) -> None:
    """A training that was killed at one of its checkpoints, in `run`; made once and copied."""
    half = World.base / "half"
    if not half.exists():
        for turn in range(8):
            place = Path(tempfile.mkdtemp(dir=World.base))
            take(place, "train.bin", "valid.bin")
            started = Started(lmtools(*training("tta", "run", *LONG)), place)
            started.until((place / "run/checkpoint.safetensors").exists)
            time.sleep(0.05 * turn)
            os.killpg(started.process.pid, signal.SIGKILL)
            started.process.wait()
            if b'"done": true' not in (place / "run/checkpoint.safetensors").read_bytes()[:5000]:
                with contextlib.suppress(OSError):  # another process has made one meanwhile
                    (place / "run").rename(half)
                break
        else:
            raise Skipped("no training could be killed half-way")
    shutil.copytree(half, home / "run")


LONG = ("steps=40", "checkpoint_every=8")  # of a training that is killed half-way
KINDS: dict[str, Kind] = {
    "model": Kind(MODEL, ("lm/tta/model.safetensors",), score("lm/tta"), rows("s")),
    "config": Kind(
        MODEL,
        ("lm/tta/config.yaml",),
        score("lm/tta"),
        rows("s"),
        ("lm/causal/config.yaml", "lm/ngram/config.yaml"),
    ),
    "model-subword": Kind(
        MODEL, ("lm/tta/subword",), score("lm/tta"), rows("s"), ("bpe/normaliser.yaml", "train.txt")
    ),
    "checkpoint": Kind(
        ("train.bin", "valid.bin"),
        ("run/checkpoint.safetensors",),
        training("tta", "run", *LONG),
        tensors("run/model.safetensors"),
        ("lm/causal/checkpoint.safetensors", "lm/tta/checkpoint.safetensors"),
        interrupted,
    ),
    "complete": Kind(
        ("train.bin", "valid.bin", "lm/tta"),
        ("lm/tta/model.safetensors", "lm/tta/checkpoint.safetensors"),
        training("tta", "lm/tta"),
        finished,
    ),
    "corpus": Kind(
        ("train.bin", "valid.bin"),
        ("train.bin",),
        training("tta", "run"),
        tensors("run/model.safetensors"),
        # another corpus whole is no damage: a first training cannot tell it from the one meant; a
        # training that goes on can (below), and a recipe by its manifest (`manifests`)
        ("valid.txt", "test.jsonl", "lm/causal/model.safetensors"),
    ),
    "corpus-resumed": Kind(
        ("train.bin", "valid.bin"),
        ("train.bin",),
        training("tta", "run", *LONG),
        tensors("run/model.safetensors"),
        ("valid.bin", "test.jsonl"),
        interrupted,
        "held a training of other settings or data; it is kept as run.1",
    ),
    "subword": Kind(
        ("bpe", "train.txt"),
        ("bpe",),
        split("corpus --text train.txt --subword bpe --out b"),
        files("b"),
    ),
    "words": Kind(
        ("words", "train.txt"),
        ("words",),
        split("corpus --text train.txt --subword words --out b"),
        files("b"),
    ),
    "ngram": Kind(
        ("lm/ngram", "test.jsonl"),
        ("lm/ngram",),
        score("lm/ngram"),
        rows("s"),
        ("lm/causal/config.yaml", "train.txt"),
    ),
    "scores": Kind(
        LISTS,
        ("test.tta.scores",),
        rescoring("test"),
        None,
        ("test.causal.scores", "dev.tta.scores", "test.ngram.scores"),
    ),
    "weights": Kind(LISTS, ("weights.json",), rescoring("test"), None),
    "cache": Kind(MODEL, ("kept",), score("lm/tta", "kept"), rows("s"), prepare=warmed),
    "vectors": Kind(
        ("vectors.npz", "pairs.tsv"),
        ("vectors.npz",),
        split("sts --vectors vectors.npz --pairs pairs.tsv --out o"),
        files("o"),
    ),
    "lists": Kind(("test.jsonl",), ("test.jsonl",), ("convert", "test.jsonl", "o.jsonl"), None),
    "lists-tune": Kind(
        ("dev.jsonl", "dev.tta.scores"),
        ("dev.jsonl",),
        split("tune --nbest dev.jsonl --scores t=dev.tta.scores --out w"),
        None,
    ),
    "lattices": Kind(
        ("lattices",), ("lattices",), ("lattice", "nbest", "lattices", "--out", "o.jsonl"), None
    ),
    "report": Kind(
        ("dev.jsonl", "test.jsonl"),
        ("exp/ppl", "exp/tune", "exp/rescore", "exp/score", "exp/lm/tta/config.yaml"),
        split("report exp --nbest data/dev/nbest.jsonl data/test/nbest.jsonl"),
        None,
        prepare=lambda home: shutil.copytree(experiment(), home, dirs_exist_ok=True),
    ),
}


@functools.cache
def experiment() -> Path:
    """A directory with exp/ and data/ as a recipe leaves them, small."""
    home = Path(tempfile.mkdtemp(dir=World.base))
    world = World.get()
    for name in ("dev", "test"):
        (home / f"data/{name}").mkdir(parents=True)
        shutil.copy(world / f"{name}.jsonl", home / f"data/{name}/nbest.jsonl")
        (home / "exp/score/tta").mkdir(parents=True, exist_ok=True)
        shutil.copy(world / f"{name}.tta.scores", home / f"exp/score/tta/{name}.scores")
    shutil.copytree(world / "lm", home / "exp/lm")
    (home / "exp/ppl/causal").mkdir(parents=True)
    shutil.copy(world / "ppl.json", home / "exp/ppl/causal/valid.json")
    column = "exp/score/tta"
    for system, scores in (("first-pass", ""), ("tta", f"--scores tta={column}/NAME.scores")):
        (home / f"exp/tune/{system}").mkdir(parents=True)
        weights, lists = f"exp/tune/{system}/weights.json", "--nbest data/NAME/nbest.jsonl"
        words = f"tune {lists} {scores} --out {weights}"
        succeeded(run(*split(words.replace("NAME", "dev")), home=home))
        for name in ("dev", "test"):
            out = f"exp/rescore/{system}/{name}.txt"
            words = f"rescore {lists} {scores} --weights {weights} --out {out}"
            succeeded(run(*split(words.replace("NAME", name)), home=home))
    succeeded(
        run("report", "exp", "--nbest", "data/dev/nbest.jsonl", "data/test/nbest.jsonl", home=home)
    )
    shutil.rmtree(home / "exp/report", ignore_errors=True)
    return home


def damaged(
    data: bytes, rng: random.Random, donors: Callable[[], bytes]
) -> tuple[str, bytes | None]:
    """(what was done, the bytes after it, None for none); always other than before."""
    for _ in range(20):
        how = rng.choice(HOWS)
        after = changed(data, how, rng, donors)
        if after != data:
            return how, after
    return "gone", None


def changed(data: bytes, how: str, rng: random.Random, donors: Callable[[], bytes]) -> bytes | None:
    """`data` after damage of this kind."""
    size, result = len(data), bytearray(data)
    place = rng.randrange(size) if size else 0
    if rng.random() < 0.3:
        place = min(place, rng.randrange(1024))  # headers are small and matter most
    length = rng.choice((1, 4, 16, 64, 512, 4096))
    match how:
        case "bit" | "bits":
            for _ in range(1 if how == "bit" else 8):
                if size:
                    result[place] ^= 1 << rng.randrange(8)
                    place = rng.randrange(size)
        case "byte":
            result[place : place + 1] = bytes([rng.randrange(256)])
        case "truncated":
            del result[place:]
        case "zeroed":
            result[place : place + length] = bytes(len(result[place : place + length]))
        case "swapped":
            other = rng.randrange(size) if size else 0
            left, right = sorted((place, other))
            length = min(length, right - left, size - right)
            result[left : left + length] = data[right : right + length]
            result[right : right + length] = data[left : left + length]
        case "twice":
            result[place:place] = data[place : place + length]
        case "longer":
            result += bytes(rng.randrange(256) for _ in range(min(length, 64)))
        case "other":
            return donors()
        case "empty":
            return b""
        case "gone":
            return None
    return bytes(result)


@functools.cache
def expected(kind: str):
    """What comes out of the undamaged artifact."""
    home = Path(tempfile.mkdtemp(dir=World.base))
    ready(home, kind)
    done = succeeded(run(*KINDS[kind].command, home=home))
    result = KINDS[kind].result
    value = result and result(home, done)
    shutil.rmtree(home)
    return value


def ready(home: Path, kind: str) -> None:
    """The files that the command reads, undamaged."""
    take(home, *KINDS[kind].needs)
    KINDS[kind].prepare(home)


def attack(home: Path, kind: str, seed: int, number: int) -> None:
    """Damage a file and let the verb read it; it refuses or gives what is expected."""
    about, rng = KINDS[kind], drawn("damage", kind, seed, number)
    right = expected(kind)
    ready(home, kind)
    found = sorted(
        p
        for name in about.damaged
        for p in ([home / name] if (home / name).is_file() else (home / name).rglob("*"))
        if p.is_file()
    )
    target = rng.choice(found)
    how, after = damaged(
        target.read_bytes(), rng, lambda: (World.get() / rng.choice(about.donors)).read_bytes()
    )
    target.unlink() if after is None else target.write_bytes(after)
    done = run(*about.command, home=home)
    try:
        sound(done)
        told = about.told is not None and about.told in done.out + done.err
        if not told and not done.status and about.result and about.result(home, done) != right:
            raise done.wrong("silent change", "status 0 with another result")
    except Wrong as wrong:
        raise Wrong(wrong.outcome, f"{target.relative_to(home)} {how}: {wrong.detail}") from None
    except Exception as error:  # what came out cannot even be read
        raise Wrong(
            "silent change",
            f"{target.relative_to(home)} {how}: {done.command}: status 0, but the result: {error}",
        ) from None


# The manifests of a recipe's stages

RECIPE = r"""#!/usr/bin/env bash
# Toy.

cd "$(dirname "$0")" && . "$REPOSITORY/utils/recipe.sh"
options "$@"

if stage 1 "write" given : $expdir/words; then
  tr ' ' '\n' <given >$expdir/words
fi

if stage 2 "sort" $expdir/words : $expdir/sorted; then
  sort $expdir/words >$expdir/sorted
fi
"""


def recipe(home: Path) -> Callable[..., Done]:
    """A recipe of two stages in `home` and a way to run it."""
    (home / "bin").mkdir()
    programs = {"lmtools": 'echo "lmtools 0"', "python3": f'exec "{sys.executable}" "$@"'}
    for name, body in programs.items():
        (home / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
        (home / "bin" / name).chmod(0o755)
    (home / "given").write_text("pear fig apple\n")
    (home / "run.sh").write_text(RECIPE)
    (home / "run.sh").chmod(0o755)
    env = {"PATH": f"{home / 'bin'}:{os.environ['PATH']}", "REPOSITORY": str(REPOSITORY)}
    return lambda *args: Started([home / "run.sh", *args], home, **env).done()


def manifests(home: Path, seed: int, number: int) -> None:
    """Damage a manifest, hashes, lock or output of a recipe and run it again."""
    rng = drawn("manifests", seed, number)
    start = recipe(home)
    if start().status:
        raise Wrong("lost", "the toy recipe does not run")
    left = (p for p in (home / "exp").rglob("*") if p.is_file() and "log" not in p.parts)
    target = rng.choice(sorted(left))
    other = (World.get() / "weights.json").read_bytes
    how, after = damaged(target.read_bytes(), rng, other)
    target.unlink() if after is None else target.write_bytes(after)
    done = start("--skip-done", "true")
    where = f"{target.relative_to(home)} {how}"
    if done.status is None:
        raise Wrong("hang", where)
    if "Traceback" in done.err + done.out:
        raise Wrong("traceback", f"{where}: {done.err[-500:]}{done.out[-500:]}")
    if done.status and len(done.said) != 1:
        raise Wrong("multi-line", f"{where}: {done.err}")
    texts = [(home / f"exp/{name}").read_text() for name in ("sorted", "words")]
    if not done.status and texts != ["apple\nfig\npear\n", "pear\nfig\napple\n"]:
        raise Wrong("silent change", f"{where}: the second run leaves another result")


SLOW = ("checkpoint", "complete", "corpus", "corpus-resumed", "manifests", "report")


def cases(size: str, seed: int) -> Iterator[Case]:
    """Some of each kind in the short campaign, 2,000 in all in the long one."""
    counts = {"short": 2, "medium": 24, "long": 110}
    for kind in (*KINDS, "manifests"):
        check = manifests if kind == "manifests" else functools.partial(attack, kind=kind)
        for number in range(1 if kind in SLOW and size == "short" else counts[size]):
            yield Case(f"{kind}-{number}", functools.partial(check, seed=seed, number=number))
