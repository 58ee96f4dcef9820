"""Columns that do not belong to the lists or the weights: refused, naming both files; those that do
belong are taken.
"""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import split

from trust.common import Case, Wrong, drawn, refused, run, succeeded
from trust.world import rescoring, take, write_lists

NEEDS = (
    *split("dev.jsonl test.jsonl lm/ngram lm/tta weights.json"),
    *(f"{n}.{lm}.scores" for n in ("dev", "test") for lm in ("ngram", "tta", "causal")),
)
Lists = list[dict]


def lists(path: Path) -> Lists:
    return [json.loads(line) for line in path.read_text().splitlines()]


def reversed_(rows: Lists, rng: random.Random) -> None:
    for row in rows:
        row["hyps"].reverse()


def reordered(rows: Lists, rng: random.Random) -> None:
    """Every list in another order."""
    for row in rows:
        rng.shuffle(row["hyps"])


def one_pair_swapped(rows: Lists, rng: random.Random) -> None:
    hyps = rng.choice(rows)["hyps"]
    place = rng.randrange(len(hyps) - 1)
    hyps[place : place + 2] = hyps[place : place + 2][::-1]


def all_changed(rows: Lists, rng: random.Random) -> None:
    """Every text another one."""
    for row in rows:
        for hyp in row["hyps"]:
            hyp["text"] += " river"


def one_word_changed(rows: Lists, rng: random.Random) -> None:
    hyp = rng.choice(rng.choice(rows)["hyps"])
    words = hyp["text"].split()
    words[rng.randrange(len(words))] = "zebra"
    hyp["text"] = " ".join(words)


def ids_swapped(rows: Lists, rng: random.Random) -> None:
    """The lists of two utterances under each other's id."""
    left, right = rng.sample(rows, 2)
    left["utt"], right["utt"] = right["utt"], left["utt"]


LISTS = {
    f.__name__.strip("_"): f
    for f in (reversed_, reordered, one_pair_swapped, all_changed, one_word_changed, ids_swapped)
}


def other_lists(home: Path, change: Callable, verb: str, seed: int) -> None:
    take(home, *NEEDS)
    name = "dev" if verb == "tune" else "test"
    rows = lists(home / f"{name}.jsonl")
    change(rows, drawn("columns", change.__name__, verb, seed))
    write_lists(rows, home / f"{name}.jsonl")
    tunes = "tune --nbest dev.jsonl --scores ng=dev.ngram.scores tta=dev.tta.scores --out w.json"
    args = rescoring("test") if verb == "rescore" else split(tunes)
    refused(run(*args, home=home), f"{name}.jsonl", f"{name}.ngram.scores")


def rescored_lists(home: Path) -> None:
    """Lists in the order of `rescore --nbest-out`, with the columns of the old order."""
    take(home, *NEEDS)
    succeeded(run(*rescoring("test"), "--nbest-out", "new.jsonl", home=home))
    rows = lists(home / "new.jsonl")
    for row in rows:
        for hyp in row["hyps"]:
            hyp["scores"] = {name: hyp["scores"][name] for name in ("am", "lm")}
    write_lists(rows, home / "new.jsonl")
    args = ["new.jsonl" if arg == "test.jsonl" else arg for arg in rescoring("test")]
    old = lists(home / "test.jsonl")
    if all(
        row["hyps"][0]["text"] == was["hyps"][0]["text"] for row, was in zip(rows, old, strict=True)
    ):
        raise Wrong("lost", "rescoring changed no order: the attack has no teeth")
    refused(run(*args, home=home), "new.jsonl", "test.ngram.scores")


def other_set(home: Path, verb: str) -> None:
    """Another set's column, whose utterances are called the same."""
    take(home, *NEEDS)
    columns = "--scores ng=dev.ngram.scores tta=dev.tta.scores"
    if verb == "rescore":
        args = split(f"rescore --nbest test.jsonl {columns} --weights weights.json --out h")
    else:
        args = split(f"tune --nbest test.jsonl {columns} --out w.json")
    refused(run(*args, home=home), "test.jsonl", "dev.ngram.scores")


def other_column(home: Path, columns: str, blamed: str, score: str = "") -> None:
    """A column of another model, or under other conditions, than was tuned with."""
    take(home, *NEEDS)
    if score:
        words = f"score {score} --nbest test.jsonl --cache none --device cpu --out {blamed}"
        succeeded(run(*split(words), home=home))
    words = f"rescore --nbest test.jsonl --scores {columns} --weights weights.json --out h"
    refused(run(*split(words), home=home), "weights.json", blamed)


def right_columns(home: Path, change: str) -> None:
    """What belongs together is taken: another order, another file, other own scores."""
    take(home, *NEEDS)
    succeeded(run(*rescoring("test", "before"), home=home))
    rows = lists(home / "test.jsonl")
    if change == "utterances":
        rows.reverse()
    elif change == "references":
        for row in rows:
            del row["ref"]
    write_lists(rows, home / "test.jsonl")
    args = list(rescoring("test", "after"))
    if change == "file":
        (home / "test.jsonl").rename(home / "moved.jsonl")
        args[args.index("test.jsonl")] = "moved.jsonl"
    succeeded(run(*args, home=home))
    texts = [(home / name).read_text().splitlines() for name in ("before", "after")]
    if sorted(texts[0]) != sorted(texts[1]):
        raise Wrong("silent change", f"{change}: other hypotheses are chosen")


OTHERS = {
    "other-model": ("ng=test.tta.scores tta=test.tta.scores", "test.tta.scores"),
    "columns-exchanged": ("ng=test.tta.scores tta=test.ngram.scores", "test.tta.scores"),
    "model-of-the-same-kind": (
        "ng=test.ngram.scores tta=test.causal.scores", "test.causal.scores",
    ),
    "other-penalty": (
        "ng=new.scores tta=test.tta.scores", "new.scores", "--lm lm/ngram,oov_penalty=5",
    ),
    "other-normalisation": (
        "ng=test.ngram.scores tta=new.scores", "new.scores", "--lm lm/tta,normalise=none",
    ),
}  # fmt: skip


def mbr_column(home: Path) -> None:
    """Expected utilities under the name of a language model's column."""
    take(home, *NEEDS)
    succeeded(run("mbr", "--nbest", "test.jsonl", "--out", "new.scores", home=home))
    words = "rescore --nbest test.jsonl --scores ng=new.scores tta=test.tta.scores"
    args = split(f"{words} --weights weights.json --out h")
    refused(run(*args, home=home), "weights.json", "new.scores")


def cases(size: str, seed: int) -> Iterator[Case]:
    """All kinds; more draws of the random ones in longer campaigns."""
    draws = {"short": 1, "medium": 2, "long": 20}[size]
    for name, change in LISTS.items():
        for verb in ("rescore", "tune") if size != "short" or name == "reversed" else ("rescore",):
            for draw in range(draws):
                yield Case.of(f"{name}-{verb}-{draw}", other_lists, change, verb, seed + draw)
    for name, parts in OTHERS.items():
        yield Case.of(name, other_column, *parts)
    kinds = {
        "rescored-lists": (rescored_lists,),
        "other-set": (other_set, ("rescore", "tune")),
        "mbr-for-model": (mbr_column,),
        "right": (right_columns, ("nothing", "utterances", "references", "file")),
    }
    yield from Case.all(kinds, "all", ())
