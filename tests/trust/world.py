"""A tiny world of every artifact, made by the verbs themselves: texts, vocabulary, models, lists,
scores, weights, lattices, vectors.
"""

import json
import os
import random
import shutil
from dataclasses import replace
from pathlib import Path
from shlex import split

from trust.common import REPOSITORY, Skipped, Wrong, run, succeeded

TINY = (
    "arch.layers=1", "arch.dim=16", "arch.heads=2", "arch.ffn=32", "arch.positions=32",
    "batch.sentences=16", "batch.tokens=null", "optim.warmup=2", "steps=12", "checkpoint_every=4",
    "valid_every=6", "precision=float32",
)  # fmt: skip
SPEECH = 12  # utterances of a set


def listed(count: int, seed: int, size: int = 4) -> list[dict]:
    """N-best lists as jsonl has them."""
    from toys import WORDS, sentences

    rng, rows = random.Random(seed), []
    for number, ref in enumerate(sentences(count, seed), 1):
        texts = {ref: None} if rng.random() < 0.7 else {}
        while len(texts) < size:
            words = ref.split()
            words[rng.randrange(len(words))] = rng.choice(WORDS)
            texts[" ".join(words + rng.choices(WORDS, k=rng.randrange(2)))] = None
        hyps = []
        for text in texts:
            am, lm = -round(rng.uniform(3, 9), 3), -round(rng.uniform(2, 6), 3)
            hyps.append({"text": text, "scores": {"am": am, "lm": lm}})
        hyps.sort(key=lambda hyp: -hyp["scores"]["am"])
        rows.append({"utt": f"u{number:03}", "ref": ref, "hyps": hyps})
    return rows


def write_lists(rows: list[dict], path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def make(home: Path) -> Path:
    """The world below `home`; Wrong if a verb fails on it."""
    from lattices import random_lattice
    from toys import WORDS, sentences

    from lmtools.formats.lattices import LATTICES

    home.mkdir(parents=True, exist_ok=True)
    for name, count, seed in (("train", 200, 1), ("valid", 30, 2)):
        (home / f"{name}.txt").write_text("\n".join(sentences(count, seed)) + "\n")
    for name, seed in (("dev", 3), ("test", 4)):
        rows = listed(SPEECH, seed)
        write_lists(rows, home / f"{name}.jsonl")
        (home / f"{name}.ref").write_text("".join(f"{row['utt']} {row['ref']}\n" for row in rows))
    rng = random.Random(5)
    both = zip(sentences(12, 6), sentences(12, 7), strict=True)
    pairs = [f"{a}\t{b}\t{rng.randrange(6)}\n" for a, b in both]
    (home / "pairs.tsv").write_text("".join(pairs))
    utts = [f"u{number:03}" for number in range(1, 5)]
    lattices = [replace(random_lattice(rng, 6, 9, WORDS, 0.0), utt=utt) for utt in utts]
    LATTICES["slf"].write(lattices, home / "lattices")
    (home / "lattices.ref").write_text("".join(f"{utt} the king\n" for utt in utts))

    def made(words: str, *more) -> None:
        succeeded(run(*split(words), *more, home=home))

    made("subword --text train.txt --type word --out words")
    made("subword --text train.txt --type bpe --vocab-size 60 --out bpe")
    for name in ("train", "valid"):
        made(f"corpus --text {name}.txt --subword words --out {name}.bin")
    for lm in ("tta", "causal"):
        succeeded(run(*training(lm, f"lm/{lm}"), home=home))
    made("ngram --text train.txt --order 2 --out lm/ngram")
    for lm in ("tta", "causal", "ngram"):
        for name in ("dev", "test"):
            made(f"score --lm lm/{lm} --nbest {name}.jsonl --cache none --out {name}.{lm}.scores")
    columns = "ng=dev.ngram.scores tta=dev.tta.scores"
    made(f"tune --nbest dev.jsonl --scores {columns} --out weights.json")
    succeeded(run(*rescoring("test"), home=home))
    pairs = [line.split("\t")[:2] for line in (home / "pairs.tsv").read_text().splitlines()]
    texts = sorted({text for pair in pairs for text in pair})
    (home / "sentences.txt").write_text("".join(f"{text}\n" for text in texts))
    made("embed --lm lm/tta --text sentences.txt --out vectors.npz")
    made("sts --vectors vectors.npz --pairs pairs.tsv --out sts.json")
    made("ppl --lm lm/causal --text valid.txt --out ppl.json")
    return home


def training(lm: str, out, *more) -> tuple:
    words = f"train --train train.bin --valid valid.bin --out {out} --device cpu --conf"
    return (*split(words), REPOSITORY / f"conf/{lm}.yaml", *TINY, *more)


def rescoring(name: str, out: str = "hyp") -> tuple:
    columns = f"ng={name}.ngram.scores tta={name}.tta.scores"
    words = f"rescore --nbest {name}.jsonl --scores {columns} --weights weights.json --out {out}"
    return tuple(split(words))


class World:
    """The world, made once for a campaign, of which each case gets copies."""

    home: Path | None = None
    base: Path = Path("/tmp")

    @classmethod
    def get(cls) -> Path:
        if cls.home is None:
            home = cls.base / "world"
            if not (home / "complete").exists():
                shutil.rmtree(home, ignore_errors=True)
                try:
                    make(home)
                except Wrong as wrong:
                    raise Skipped(f"the world could not be made: {wrong.detail}") from None
                (home / "complete").touch()
            cls.home = home
        return cls.home


def take(home: Path, *names: str) -> None:
    """Copy these files and directories of the world, under their names, to `home`."""
    source = World.get()
    for name in names:
        target = home / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (source / name).is_dir():
            shutil.copytree(source / name, target, symlinks=True)
        else:
            shutil.copy2(source / name, target)


def everything(home: Path) -> None:
    """Copy the whole world."""
    shutil.copytree(World.get(), home, dirs_exist_ok=True, symlinks=True)
    for name in (".cache", "complete"):
        if (home / name).is_dir():
            shutil.rmtree(home / name)
        elif (home / name).exists():
            os.unlink(home / name)
