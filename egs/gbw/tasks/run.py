#!/usr/bin/env python3
"""The laboratory of run_tasks.sh: what word vectors bring to five tasks, as papers measure it.

    run.py prepare TASK DIR OUT --conf F     a set's distinct sentences, a line each, in OUT/SET.txt
    run.py vectors TEXT OUT.vec              static vectors of words, to compare with
    run.py train TASK DIR HOME --conf F ...  learn a task by each of --vectors, answer its test set
    run.py report HOME --conf F ...          tables of what `train` wrote

TASK: dep, srl, discourse, nli or wsd; the files that it reads are in its module. Vectors are none,
random, majority (the commonest answer), NAME of static ones in HOME/NAME.vec, or of HOME/vectors/
TASK/NAME/SET.npz, made of HOME/text/TASK/SET.txt by lmtools embed. What a training comes to is in
HOME/results/TASK/NAME/SEED.json. F has the settings of the tasks, `limit` the examples of training
that are used, spread over the file.
"""

import argparse
import json
import time
import zlib
from pathlib import Path

import numpy as np
import torch
from base import MAJORITY, Outcome, Set, Settings, Task
from dep import Dependencies
from inputs import NONE, RANDOM, STATIC, Sentences, distinct, load_vectors, number_words
from pairs import DISCOURSE, ENTAILMENT
from report import RESULTS, write_report
from srl import SemanticRoles
from wsd import WordSenses

from lmtools.base.atomic import atomic_path, atomic_text, new_directory
from lmtools.base.config import as_tree, build, load_yaml
from lmtools.base.errors import UserError, exit_with_message, install_extra
from lmtools.text.blocks import read_text
from lmtools.version import __version__

TASKS: dict[str, Task] = {
    "dep": Dependencies(),
    "srl": SemanticRoles(),
    "discourse": DISCOURSE,
    "nli": ENTAILMENT,
    "wsd": WordSenses(),
}


def arguments() -> argparse.Namespace:
    """Return what to do."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    prepare = verbs.add_parser("prepare")
    train = verbs.add_parser("train")
    for verb in prepare, train:
        verb.add_argument("task", choices=TASKS)
        verb.add_argument("folder", type=Path, metavar="DIR")
        verb.add_argument("out", type=Path)
        verb.add_argument("--conf", required=True, metavar="F.yaml")
    train.add_argument("--vectors", nargs="+", required=True, metavar="NAME")
    text = "of what knows no chance only the first"
    train.add_argument("--seeds", type=int, nargs="+", default=[1], metavar="N", help=text)
    vectors = verbs.add_parser("vectors")
    vectors.add_argument("text")
    vectors.add_argument("out")
    report = verbs.add_parser("report")
    report.add_argument("home", type=Path)
    report.add_argument("--conf", required=True, metavar="F.yaml")
    report.add_argument("--tasks", nargs="+", required=True, choices=TASKS)
    report.add_argument("--vectors", nargs="+", required=True, metavar="NAME")
    text = "vectors that all others are compared with, beside none"
    report.add_argument("--against", default="", metavar="NAME", help=text)
    text = "an LM whose vectors after each epoch were tried"
    report.add_argument("--curve", default="", metavar="NAME", help=text)
    report.add_argument("--curve-task", default="nli", choices=TASKS, metavar="TASK")
    text = "directory of its perplexities, NAME/test-epoch-N.json"
    report.add_argument("--ppl", type=Path, default=Path(), metavar="DIR", help=text)
    return parser.parse_args()


def read_sets(task: Task, folder: Path, limit: int) -> dict[str, tuple[Path, list]]:
    """Return file and examples of each of the task's sets."""
    paths = {name: task.find(folder, name) for name in task.sets}
    read = {name: (path, task.read(path)) for name, path in paths.items()}
    path, examples = read["train"]
    if 0 < limit < len(examples):  # some of each document: files are in the order of genres
        read["train"] = path, [examples[n * len(examples) // limit] for n in range(limit)]
    return read


def read_settings(conf: str, task: str) -> tuple[Settings, int]:
    """Return the settings of a task in the file, and how many examples train it; 0: all."""
    tree = dict(load_yaml(conf)["tasks"].get(task) or {})
    limit = tree.pop("limit", 0)
    return build(Settings, tree, conf), limit


def prepare(args: argparse.Namespace) -> None:
    """Write the sentences that vectors are needed of."""
    _, limit = read_settings(args.conf, args.task)
    for name, (path, examples) in read_sets(TASKS[args.task], args.folder, limit).items():
        sentences = distinct(s for example in examples for s in example.sentences)
        with atomic_text(args.out / f"{name}.txt") as stream:
            stream.writelines(" ".join(sentence) + "\n" for sentence in sentences)
        print(f"{path}: {len(examples):,} examples, {len(sentences):,} different sentences")


def train(args: argparse.Namespace) -> None:
    """Learn the task by all vectors that it can be asked of."""
    torch.set_num_threads(1)  # so that figures do not depend on the machine's cores
    settings, limit = read_settings(args.conf, args.task)
    for name in args.vectors:
        static = (args.out / f"{name}{STATIC}").exists()
        if not TASKS[args.task].takes(name, static or name == RANDOM):
            continue
        source = args.out / f"{name}{STATIC}" if static else args.out / "vectors" / args.task / name
        source = name if name in (NONE, RANDOM, MAJORITY) else str(source)
        sets = load_sets(args.task, args.folder, limit, source)
        train_seeds(args, sets, settings, name)


def load_sets(name: str, folder: Path, limit: int, source: str) -> dict[str, Set]:
    """Return the task's sets with their vectors."""
    sets, known = {}, {}
    for part, (path, examples) in read_sets(TASKS[name], folder, limit).items():
        sentences = distinct(s for example in examples for s in example.sentences)
        known = known or number_words(sentences)
        vectors = load_vectors(NONE if source == MAJORITY else source, part, sentences)
        sets[part] = Set(examples, Sentences(sentences, vectors, known), path)
    return sets


def train_seeds(args: argparse.Namespace, sets: dict[str, Set], settings: Settings, name) -> None:
    """Learn and answer with each seed; write counts and figures."""
    task, plain, out = TASKS[args.task], name == MAJORITY, args.out / RESULTS / args.task / name
    with new_directory(out) as folder:
        for seed in args.seeds[: None if task.seeds and not plain else 1]:
            begin = time.perf_counter()
            answers = answer_commonest(task, sets) if plain else task.solve(sets, settings, seed)
            figures = map(float, task.score(answers.counts.sum(0)))
            tree = {
                "figures": dict(zip(task.figures, figures, strict=True)),
                "epochs": answers.epochs,
                "seconds": time.perf_counter() - begin,
                "examples": {part: len(data.examples) for part, data in sets.items()},
                "settings": as_tree(settings),
                "version": __version__,
                "counts": answers.counts.tolist(),
            }
            (folder / f"{seed}.json").write_text(json.dumps(tree) + "\n")
            shown = ", ".join(f"{key} {figure:.2f}" for key, figure in tree["figures"].items())
            print(f"{out}/{seed}.json: {shown} ({tree['seconds']:.0f} s)", flush=True)


def answer_commonest(task: Task, sets: dict[str, Set]) -> Outcome:
    """Return what answers are right that look at no vectors; UserError where a task knows none."""
    answers = task.majority(sets)
    if answers is None:
        raise UserError(f"no answer of this task is commonest; leave {MAJORITY} out")
    golds = (example.gold for example in sets["test"].examples)
    return Outcome(np.array([task.count(*both) for both in zip(golds, answers, strict=True)]), [])


def train_vectors(args: argparse.Namespace) -> None:
    """Train skip-gram vectors with negative samples (Mikolov et al. 2013) by gensim; one thread, so
    that they repeat.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise UserError(
            f"static vectors need gensim; {install_extra('tasks')}, or leave `words` out"
        ) from None
    text = [row[-1].split() for row in read_text(args.text)]
    model = Word2Vec(
        text, vector_size=256, sg=1, window=5, min_count=3, epochs=5, workers=1, seed=1,
        hashfxn=lambda word: zlib.crc32(word.encode()),
    )  # fmt: skip
    with atomic_path(args.out) as path:
        model.wv.save_word2vec_format(str(path))


def main() -> None:
    """Run the verb."""
    args = arguments()
    if args.verb == "report":
        write_report(args, TASKS)
    else:
        {"prepare": prepare, "train": train, "vectors": train_vectors}[args.verb](args)


if __name__ == "__main__":
    with exit_with_message():
        main()
