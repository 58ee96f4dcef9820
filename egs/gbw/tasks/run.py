#!/usr/bin/env python3
"""The tasks of downstream.sh:

    run.py prepare TASK DIR OUT        a set's distinct sentences, a line each, in OUT/SET.txt
    run.py train TASK DIR VECTORS ...  learn a task by vectors, answer its test set
    run.py vectors TEXT OUT.vec        static vectors of words, to compare with
    run.py report HOME ...             tables of what `train` wrote

TASK: dep, srl, discourse, nli or wsd; the files that it reads are in its module. VECTORS: none,
random, majority (the commonest answer), F.vec (a text file of static vectors), or a directory with
SET.npz, made of OUT/SET.txt by lmtools embed.
"""

import argparse
import json
import time
import zlib
from pathlib import Path

import numpy as np
import torch
from base import Outcome, Set, Settings, Task
from dep import Dependencies
from inputs import NONE, Sentences, distinct, load_vectors, number_words
from pairs import DISCOURSE, ENTAILMENT
from report import write_report
from srl import SemanticRoles
from wsd import WordSenses

from lmtools import __version__
from lmtools.atomic import atomic_path, atomic_text, new_directory
from lmtools.config import as_tree, build, load_yaml
from lmtools.errors import UserError, exit_with_message
from lmtools.text.blocks import read_text

MAJORITY = "majority"
TASKS: dict[str, Task] = {
    "dep": Dependencies(),
    "srl": SemanticRoles(),
    "discourse": DISCOURSE,
    "nli": ENTAILMENT,
    "wsd": WordSenses(),
}


def arguments() -> argparse.Namespace:
    """What to do."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    prepare = verbs.add_parser("prepare")
    train = verbs.add_parser("train")
    for verb in prepare, train:
        verb.add_argument("task", choices=TASKS)
        verb.add_argument("folder", type=Path, metavar="DIR")
        about = "examples of training that are used, spread over the file; 0: all"
        verb.add_argument("--limit", type=int, default=0, metavar="N", help=about)
    prepare.add_argument("out", type=Path)
    train.add_argument("vectors")
    train.add_argument("--conf", required=True, metavar="F.yaml")
    train.add_argument("--seeds", type=int, nargs="+", default=[1], metavar="N")
    about = "where SEED.json goes, for each seed; of what knows no chance, the first"
    train.add_argument("--out", type=Path, required=True, metavar="DIR", help=about)
    vectors = verbs.add_parser("vectors")
    vectors.add_argument("text")
    vectors.add_argument("out")
    report = verbs.add_parser("report")
    report.add_argument("home", type=Path)
    report.add_argument("--conf", required=True, metavar="F.yaml")
    report.add_argument("--tasks", nargs="+", required=True, choices=TASKS)
    report.add_argument("--vectors", nargs="+", required=True, metavar="NAME")
    about = "vectors that all others are compared with, beside none"
    report.add_argument("--against", default="", metavar="NAME", help=about)
    about = "an LM whose vectors after each epoch were tried"
    report.add_argument("--curve", default="", metavar="NAME", help=about)
    report.add_argument("--curve-task", default="nli", choices=TASKS, metavar="TASK")
    about = "directory of its perplexities, NAME/test-epoch-N.json"
    report.add_argument("--ppl", type=Path, default=Path(), metavar="DIR", help=about)
    return parser.parse_args()


def read_sets(task: Task, folder: Path, limit: int) -> dict[str, tuple[Path, list]]:
    """File and examples of each of the task's sets."""
    paths = {name: task.find(folder, name) for name in task.sets}
    read = {name: (path, task.read(path)) for name, path in paths.items()}
    path, examples = read["train"]
    if 0 < limit < len(examples):  # some of each document: files are in the order of genres
        read["train"] = path, [examples[n * len(examples) // limit] for n in range(limit)]
    return read


def prepare(args: argparse.Namespace) -> None:
    """Write the sentences that vectors are needed of."""
    for name, (path, examples) in read_sets(TASKS[args.task], args.folder, args.limit).items():
        sentences = distinct(s for example in examples for s in example.sentences)
        with atomic_text(args.out / f"{name}.txt") as stream:
            stream.writelines(" ".join(sentence) + "\n" for sentence in sentences)
        print(f"{path}: {len(examples):,} examples, {len(sentences):,} different sentences")


def train(args: argparse.Namespace) -> None:
    """Learn and answer with each seed; write counts and figures."""
    torch.set_num_threads(1)  # so that figures do not depend on the machine's cores
    task, plain = TASKS[args.task], args.vectors == MAJORITY
    settings = build(Settings, load_yaml(args.conf)["tasks"].get(args.task) or {}, args.conf)
    sets, known = {}, {}
    for name, (path, examples) in read_sets(task, args.folder, args.limit).items():
        sentences = distinct(s for example in examples for s in example.sentences)
        known = known or number_words(sentences)
        vectors = load_vectors(NONE if plain else args.vectors, name, sentences)
        sets[name] = Set(examples, Sentences(sentences, vectors, known), path)
    with new_directory(args.out) as folder:
        for seed in args.seeds[: None if task.seeds and not plain else 1]:
            begin = time.perf_counter()
            made = answer_commonest(task, sets) if plain else task.solve(sets, settings, seed)
            figures = map(float, task.score(made.counts.sum(0)))
            said = {
                "figures": dict(zip(task.figures, figures, strict=True)),
                "epochs": made.epochs,
                "seconds": time.perf_counter() - begin,
                "examples": {name: len(some.examples) for name, some in sets.items()},
                "settings": as_tree(settings),
                "version": __version__,
                "counts": made.counts.tolist(),
            }
            (folder / f"{seed}.json").write_text(json.dumps(said) + "\n")
            shown = ", ".join(f"{name} {figure:.2f}" for name, figure in said["figures"].items())
            print(f"{args.out}/{seed}.json: {shown} ({said['seconds']:.0f} s)", flush=True)


def answer_commonest(task: Task, sets: dict[str, Set]) -> Outcome:
    """What answers are right that look at no vectors; UserError where a task knows none."""
    answers = task.majority(sets)
    if answers is None:
        raise UserError(f"no answer of this task is commonest; leave {MAJORITY} out")
    golds = (example.gold for example in sets["test"].examples)
    return Outcome(np.array([task.count(*both) for both in zip(golds, answers, strict=True)]), [])


def train_vectors(args: argparse.Namespace) -> None:
    """Skip-gram vectors with negative samples (Mikolov et al. 2013) by gensim; one thread, so that
    they repeat.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise UserError(
            "static vectors need gensim; pip install 'lmtools[tasks]', or leave `words` out"
        ) from None
    text = [row[-1].split() for row in read_text(args.text)]
    model = Word2Vec(
        text, vector_size=256, sg=1, window=5, min_count=3, epochs=5, workers=1, seed=1,
        hashfxn=lambda word: zlib.crc32(word.encode()),
    )  # fmt: skip
    with atomic_path(args.out) as path:
        model.wv.save_word2vec_format(str(path))


def main() -> None:
    """Do what the verb says."""
    args = arguments()
    if args.verb == "report":
        write_report(args, TASKS)
    else:
        {"prepare": prepare, "train": train, "vectors": train_vectors}[args.verb](args)


if __name__ == "__main__":
    with exit_with_message():
        main()
