#!/usr/bin/env python3
"""make_tasks.py OUT [--text F]: the small data of ../../run_tasks.sh, five tasks in train, dev and
test, the same bytes every time.

    OUT/dep/SET.conllu          dependency trees, CoNLL-U: sentences of a grammar
    OUT/srl/SET.conll09         the same sentences with semantic roles, CoNLL-2009
    OUT/discourse/SET.rels      implicit discourse relations, DISRPT's .rels: of the mini corpus
    OUT/nli/SET.tsv             textual entailment, label TAB premise TAB hypothesis: by rules
    OUT/wsd/SET.tsv             word senses, SemCor's form: examples of WordNet, ../mini
    OUT/wsd/index.sense         WordNet's lines of these words

make_tasks.py OUT --wordnet DIR makes the embedded files of ../mini anew, from WordNet 3.0 as
Debian's wordnet-base and wordnet-sense-index bring it. ../mini/README.md says what the data
are good for.
"""

import argparse
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import task_senses
from task_entailment import pairs
from task_grammar import Grammar, Lexicon
from task_relations import HEADER, Relation, relations
from task_trees import Node, Speaker

from lmtools.base.atomic import atomic_text
from lmtools.base.errors import UserError, exit_with_message
from lmtools.base.files import read_lines

HERE = Path(__file__).resolve().parent
MINI = HERE.parent / "mini"
TEXT = HERE.parents[2] / "librispeech/mini/train.txt.xz"
SEED = "lmtools tasks"
TREES = {"train": 750, "dev": 150, "test": 200}
RELATIONS = {"train": 1200, "dev": 150, "test": 250}
PAIRS = {"train": 1500, "dev": 250, "test": 300}
FRESH = {
    "train": 0.0,
    "dev": 0.3,
    "test": 0.3,
}  # of words, where there is a choice, kept from train
# of eight documents, those of dev and test
HELD_OUT = {"dev": {3}, "test": {5, 7}}


def main() -> None:
    """Write all that was asked for."""
    args = arguments()
    if args.wordnet:
        embed(args.out, args.wordnet, args.text)
        return
    discourse(args.out / "discourse", args.text)  # first, as it may refuse the text
    trees(args.out)
    entailment(args.out / "nli")
    senses(args.out / "wsd")


def arguments() -> argparse.Namespace:
    """Return what to write, and where."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path, metavar="OUT", help="directory of the data")
    parser.add_argument(
        "--text", type=Path, default=TEXT, metavar="F", help="train.txt of the mini corpus"
    )
    parser.add_argument(
        "--wordnet",
        type=Path,
        metavar="DIR",
        help="make the embedded examples from WordNet's files",
    )
    return parser.parse_args()


def write(path: Path, lines: Iterable[str]) -> None:
    """Write lines as a file, whole or not at all."""
    with atomic_text(path) as stream:
        stream.writelines(f"{line}\n" for line in lines)


def spell(node: Node) -> str:
    """Return the words of a sentence as the mini corpus has them."""
    return " ".join(word.form for word, _ in node.words()).upper()


def trees(out: Path) -> None:
    """Write dependencies and roles of the same sentences."""
    lexicon, seen = Lexicon(), set()
    speaker = Speaker(lexicon)
    for name, count in TREES.items():
        grammar = Grammar(lexicon, random.Random(f"{SEED} trees {name}"), FRESH[name])
        parsed = []
        while len(parsed) < count:
            node = speaker.sentence(grammar.sentence())
            if spell(node) not in seen:
                seen.add(spell(node))
                parsed.append(node)
        numbered = list(enumerate(parsed, 1))
        write(
            out / f"dep/{name}.conllu", (s for n, node in numbered for s in conllu(node, name, n))
        )
        write(out / f"srl/{name}.conll09", (s for _, node in numbered for s in conll09(node)))


def numbers(node: Node) -> list[tuple[Node, int]]:
    """Return the words of a sentence, each with its head's number; the root's is 0."""
    words = list(node.words())
    place = {word: number for number, (word, _) in enumerate(words, 1)}
    return [(word, place[head] if head else 0) for word, head in words]


def conllu(node: Node, name: str, number: int) -> Iterator[str]:
    """Yield a sentence in CoNLL-U."""
    yield f"# sent_id = mini-{name}-{number:04d}"
    yield f"# text = {spell(node)}"
    for place, (word, head) in enumerate(numbers(node), 1):
        columns = (place, word.form.upper(), word.lemma, word.universal, word.tag, "_", head)
        yield "\t".join(map(str, (*columns, word.relation, "_", "_")))
    yield ""


def conll09(node: Node) -> Iterator[str]:
    """Yield a sentence in CoNLL-2009, predicted columns as the right ones."""
    words = numbers(node)
    predicates = [dict(word.arguments) for word, _ in words if word.sense]
    for place, (word, head) in enumerate(words, 1):
        twice = [
            x for field in (word.lemma, word.tag, "_", head, word.relation) for x in (field, field)
        ]
        sense = ("Y", word.sense) if word.sense else ("_", "_")
        roles = [arguments.get(word, "_") for arguments in predicates]
        yield "\t".join(map(str, (place, word.form.upper(), *twice, *sense, *roles)))
    yield ""


def discourse(out: Path, text) -> None:
    """Write relations of the corpus: a document is in one set, a set has about as many of each
    label as there are.
    """
    lines = [line.split() for _, line in read_lines(text)]
    draw = random.Random(f"{SEED} relations")
    waiting: dict[str, dict[str, list[Relation]]] = {name: defaultdict(list) for name in RELATIONS}
    seen = set()  # parallel passages
    for relation in relations(lines):
        texts = relation.texts
        if seen & set(texts):
            continue
        seen |= set(texts)
        place = relation.document % 8
        name = next((name for name, items in HELD_OUT.items() if place in items), "train")
        waiting[name][relation.label].append(relation)
    for name, count in RELATIONS.items():
        queues = [draw.sample(items, len(items)) for _, items in sorted(waiting[name].items())]
        if sum(map(len, queues)) < count:
            raise UserError(
                f"{text}: {sum(map(len, queues))} relations for {name}, {count} are needed; give"
                " train.txt of egs/librispeech's mini corpus"
            )
        taken: list[Relation] = []
        while len(taken) < count:
            taken += [queue.pop() for queue in queues if queue]
        taken = sorted(taken[:count], key=lambda relation: (relation.document, relation.begins))
        write(out / f"{name}.rels", ("\t".join(row) for row in [HEADER, *(r.row() for r in taken)]))


def entailment(out: Path) -> None:
    """Write pairs of sentences; those of a premise are in one set."""
    lexicon, seen = Lexicon(), set()
    for name, count in PAIRS.items():
        grammar = Grammar(lexicon, random.Random(f"{SEED} pairs {name}"), FRESH[name])
        examples = pairs(grammar, count, seen, spell)
        write(out / f"{name}.tsv", ("\t".join(pair) for pair in examples))


def senses(out: Path) -> None:
    """Write the embedded examples as sets, and the lines of index.sense."""
    every = task_senses.read_examples(MINI / "senses.tsv.xz")
    sets = task_senses.split(every, random.Random(f"{SEED} senses"))
    for name, examples in sets.items():
        write(out / f"{name}.tsv", task_senses.semcor(examples, name))
    write(out / "index.sense", (line for _, line in read_lines(MINI / "index.sense.xz")))


def embed(out: Path, wordnet: Path, text) -> None:
    """Write the examples of WordNet of words that the corpus has."""
    known = {word for _, line in read_lines(text) for word in line.split()}
    examples, index = task_senses.from_wordnet(wordnet, known)
    write(out / "senses.tsv.xz", (f"{e.key}\t{e.place}\t{' '.join(e.words)}" for e in examples))
    write(out / "index.sense.xz", index)


if __name__ == "__main__":
    with exit_with_message():
        main()
