"""Two writers of one output, several users of one cache: one wins whole, the other says so; never a
mixture, never other figures.
"""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from shlex import split

from trust.common import (
    Case,
    Done,
    Forked,
    Wrong,
    drawn,
    run,
    snapshot,
    sound,
    succeeded,
    temporaries,
)
from trust.damage import recipe
from trust.world import listed, take, training, write_lists


def together(home: Path, commands: Sequence[tuple], delays: Sequence[float]) -> list[Done]:
    """Run verbs at once, each after its delay."""
    begin, running = time.monotonic(), {}
    for place in sorted(range(len(commands)), key=lambda place: delays[place]):
        time.sleep(max(0.0, begin + delays[place] - time.monotonic()))
        running[place] = Forked(commands[place], home, log=home.parent / f"{home.name}.race{place}")
    return [running[place].done() for place in range(len(commands))]


def alone(home: Path, make: Callable[[Path], None], command: tuple, out: str) -> dict[str, bytes]:
    """What a command leaves at `out` when nobody interferes."""
    place = Path(tempfile.mkdtemp(dir=home.parent))
    make(place)
    succeeded(run(*command, home=place))
    return result(place, out)


def result(home: Path, out: str) -> dict[str, bytes]:
    """The files at `out` that do not hold times."""
    if (home / out).is_file():
        return {"": (home / out).read_bytes()}
    files = snapshot(
        home / out, ignored=("metrics.jsonl", "checkpoint", ".", "SHA256", "metadata", "manifest")
    )
    return {n: data for n, data in files.items() if not n.endswith((".json", ".lock", ".sha256"))}


def contend(
    home: Path,
    make: Callable[[Path], None],
    commands: Sequence[tuple],
    out: str,
    rng,
    exclusive: bool = False,
) -> None:
    """Commands write one output at once; it is one's, whole; `exclusive`: others say so."""
    wholes = [alone(home, make, command, out) for command in commands]
    make(home)
    later = [rng.choice((0.0, rng.uniform(0, 0.1), rng.uniform(0, 0.6))) for _ in commands[1:]]
    ended = together(home, commands, [0.0, *later])
    for done in ended:
        sound(done)
    if all(done.status for done in ended):
        raise ended[0].wrong("lost", f"none of the writers won: {ended[1].err[-200:]}")
    if exclusive and not any(done.status for done in ended):
        raise ended[0].wrong("lost", "both say that all is well, and one is gone")
    found = result(home, out)
    if found not in wholes:
        differing = [
            sorted(name for name in {*found, *whole} if found.get(name) != whole.get(name))
            for whole in wholes
        ]
        raise ended[0].wrong("silent change", f"{out} is of neither writer; differs in {differing}")
    if left := temporaries(home):
        raise ended[0].wrong("left behind", f"{left[:5]}")


NGRAM = "ngram --text {}.txt --order {} --out o"
WORDS = "subword --text train.txt --type {} --out o"
TUNE = "tune --nbest dev.jsonl --out w"
CORPUS = "corpus --text {}.txt --subword words --out o.bin"
RUN = training("tta", "run", "steps=30")
OTHER = training("tta", "run", "steps=30", "arch.dim=24", "seed=5")
# two writers of one output: what they read, their commands, what they write
PAIRS: dict[str, tuple[tuple[str, ...], list[tuple], str]] = {
    "trainings": (("train.bin", "valid.bin"), [RUN, OTHER], "run"),
    "same-training": (("train.bin", "valid.bin"), [RUN, RUN], "run"),
    "ngrams": (
        ("train.txt", "valid.txt"),
        [tuple(split(NGRAM.format(*each))) for each in (("train", 2), ("valid", 3))],
        "o",
    ),
    "vocabularies": (
        ("train.txt",), [tuple(split(WORDS.format(kind))) for kind in ("word", "char")], "o",
    ),
    "corpora": (
        ("train.txt", "valid.txt", "words"),
        [tuple(split(CORPUS.format(name))) for name in ("train", "valid")],
        "o.bin",
    ),
    "tunings": (
        ("dev.jsonl", "dev.tta.scores"),
        [tuple(split(TUNE + more)) for more in ("", " --scores t=dev.tta.scores")],
        "w",
    ),
}  # fmt: skip


def two_writers(home: Path, rng, pair: str) -> None:
    """Two commands write one output; of two trainings of different settings one refuses."""
    needs, commands, out = PAIRS[pair]
    contend(home, lambda place: take(place, *needs), commands, out, rng, pair == "trainings")


def scoring(lists: str, cache: str, out: str) -> tuple:
    words = f"score --lm lm/causal --nbest {lists} --cache {cache} --device cpu --rows 64"
    return (*split(words), "--out", out)


def one_cache(home: Path, rng) -> None:
    """Four scorings with one cache: each file as it is without one."""
    take(home, "lm/causal")
    for turn in range(2):
        write_lists(listed(30, turn), home / f"{turn}.jsonl")

    for turn in range(2):
        succeeded(run(*scoring(f"{turn}.jsonl", "none", f"right{turn}"), home=home))
    commands = [scoring(f"{n % 2}.jsonl", "kept", f"s{n}") for n in range(4)]
    ended = together(home, commands, [rng.uniform(0, 0.3) for _ in range(4)])
    for number, done in enumerate(ended):
        succeeded(done)
        if (home / f"s{number}").read_bytes() != (home / f"right{number % 2}").read_bytes():
            raise done.wrong("silent change", "scores by way of a shared cache differ")


def killed_cache(home: Path, rng) -> None:
    """A scoring that is killed while it fills the cache, then the same again: scores as without."""
    take(home, "lm/causal")
    write_lists(listed(60, 3), home / "l.jsonl")

    succeeded(run(*scoring("l.jsonl", "none", "right"), home=home))
    for _ in range(3):
        run(*scoring("l.jsonl", "kept", "s"), home=home, seconds=rng.uniform(0.02, 0.5))
    succeeded(run(*scoring("l.jsonl", "kept", "s"), home=home))
    if (home / "s").read_bytes() != (home / "right").read_bytes():
        raise Wrong("silent change", "scores differ after kills")
    if left := temporaries(home):
        raise Wrong("left behind", f"killed scorings left {left[:5]}")


def killed_writers(home: Path, rng) -> None:
    """Writers killed at random: the old output or the new, and the next clears up."""
    take(home, "train.txt", "test.jsonl", "lattices", "words")
    commands = {
        "o.jsonl": ("convert", "test.jsonl", "o.jsonl"),
        "lat": ("convert", "lattices", "lat", "--to", "slf"),
        "o": ("ngram", "--text", "train.txt", "--order", 3, "--out", "o"),
        "o.bin": ("corpus", "--text", "train.txt", "--subword", "words", "--out", "o.bin"),
    }
    for out, command in commands.items():
        took = succeeded(run(*command, home=home)).seconds
        whole = result(home, out)
        for _ in range(4):
            run(*command, home=home, seconds=took * rng.uniform(0.1, 1.0))
            if result(home, out) != whole:
                raise Wrong("silent change", f"a killed writer left half of {out}")
        succeeded(run(*command, home=home))
        if left := temporaries(home):
            raise Wrong("left behind", f"{left[:5]} stay after the next write of {out}")


def recipes(home: Path, rng) -> None:
    """Two runs of a recipe in one directory: one has it, the other says so."""
    start = recipe(home)
    start()
    whole = (home / "exp/sorted").read_bytes()
    (home / "exp/sorted").unlink()
    done: list[Done] = []
    threads = [threading.Thread(target=lambda: done.append(start())) for _ in range(3)]
    for thread in threads:
        thread.start()
        time.sleep(rng.uniform(0, 0.2))
    for thread in threads:
        thread.join()
    if all(one.status for one in done):
        raise done[0].wrong("lost", "none of three runs won")
    for one in done:
        if one.status is None:
            raise one.wrong("hang")
        if "Traceback" in one.err or (one.status and len(one.said) != 1):
            raise one.wrong("multi-line")
    if (home / "exp/sorted").read_bytes() != whole:
        raise Wrong("silent change", "exp/sorted")


RACES = {
    **{name: partial(two_writers, pair=name) for name in PAIRS},
    "one-cache": one_cache,
    "killed-cache": killed_cache,
    "killed-writers": killed_writers,
    "recipes": recipes,
}


def cases(size: str, seed: int) -> Iterator[Case]:
    """Each race, at other offsets each time."""
    for name, race in RACES.items():
        for draw in range({"short": 1, "medium": 4, "long": 25}[size]):
            yield Case.of(f"{name}-{draw}", race, drawn("races", name, draw, seed))
