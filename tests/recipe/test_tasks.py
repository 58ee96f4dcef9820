"""The tasks of egs/gbw/run_tasks.sh: how their files are read, their models, their figures beside
other people's or the definition's.
"""

import itertools
import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from lmtools import UserError

TASKS = Path(__file__).parents[2] / "egs/gbw/tasks"
sys.path.insert(0, str(TASKS))
import base  # noqa: E402
import dep  # noqa: E402
import inputs  # noqa: E402
import pairs  # noqa: E402
import report  # noqa: E402
import run  # noqa: E402
import srl  # noqa: E402
import unknown  # noqa: E402
import wsd  # noqa: E402

sys.path.remove(str(TASKS))

SMALL = base.Settings(epochs=2, batch=4, hidden=8, layers=2, mlp=6, word=5)
BANK = ("bank%1:14:00::", "bank%1:17:01::", "bank%2:40:00::")
INDEX = f"""\
{BANK[0]} 08420278 1 20
{BANK[1]} 09213565 2 9
{BANK[2]} 02343374 1 1
good%3:00:01:: 01123148 1 190
good%5:00:00:near:00 00452883 9 3
river%1:17:00:: 09411430 1 27
hot_dog%1:13:01:: 07697537 1 0
"""
CONLLU = """\
# text = To be 10 000
1-2\tTobe\t_\t_\t_\t_\t_\t_\t_\t_
1\tTo\tto\tPART\tTO\t_\t2\tmark\t_\t_
2\tbe\tbe\tAUX\tVB\t_\t0\troot\t_\t_
2.1\tit\t_\t_\t_\t_\t_\t_\t_\t_
3\t10 000\t_\tNUM\tCD\t_\t2\tobl:tmod\t_\t_

1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_
"""
CONLL09 = """\
1\tHe\the\the\tP\tP\t_\t_\t2\t2\ts\ts\t_\t_\tA0\tA0
2\twants\twant\twant\tV\tV\t_\t_\t0\t0\tr\tr\tY\twant.01\t_\t_
3\tto\tto\tto\tT\tT\t_\t_\t4\t4\tm\tm\t_\t_\t_\t_
4\tgo\tgo\tgo\tV\tV\t_\t_\t2\t2\tx\tx\tY\tgo.02\tA1\t_

1\tYes\tyes\tyes\tU\tU\t_\t_\t0\t0\tr\tr\t_\t_
"""
HEADER = "doc\tunit1_txt\tunit2_txt\trel_type\tlabel\n"


def written(path: Path, content: str) -> Path:
    path.write_text(content)
    return path


def draw_tree(draw: random.Random, size: int) -> list[int]:
    order = draw.sample(range(1, size + 1), size)
    heads = [0] * size
    for n, word in enumerate(order[1:], 1):
        heads[word - 1] = draw.choice(order[:n])
    return heads


def sentences_of(examples) -> list[tuple[str, ...]]:
    return inputs.distinct(s for example in examples for s in example.sentences)


def make_set(examples, layers=2, width=3, known=None, seed=0) -> base.Set:
    sentences = sentences_of(examples)
    count = sum(map(len, sentences))
    table = np.random.default_rng(seed).normal(size=(count, layers, width)).astype(np.float32)
    known = inputs.number_words(sentences) if known is None else known
    vectors = inputs.Vectors(table, np.arange(count))
    return base.Set(examples, inputs.Sentences(sentences, vectors, known), Path("test.x"))


# reading


def test_conllu(tmp_path):
    """Ranges and empty nodes are left out; a form with a blank is one word."""
    first, second = dep.read_conllu(written(tmp_path / "t.conllu", CONLLU))
    assert first == ((("To", "be", "10000"),), ([2, 0, 2], ["mark", "root", "obl:tmod"]))
    assert second.sentences == (("Go",),)


def test_conll09(tmp_path):
    first, second = srl.read_conll09(written(tmp_path / "t.conll09", CONLL09))
    assert first.sentences == (("He", "wants", "to", "go"),)
    assert first.gold == [(1, "want", "want.01", {0: "A0", 3: "A1"}), (3, "go", "go.02", {0: "A0"})]
    assert second.gold == []


def test_pairs(tmp_path):
    rels = HEADER + "d\ta b\tc <*> d\timplicit\tx.y\nd\te\tf\texplicit\tz\n"
    (one,) = pairs.DISCOURSE.read(written(tmp_path / "t.rels", rels))
    assert one == ((("a", "b"), ("c", "d")), "x.y")
    tree = {
        "gold_label": "neutral",
        "sentence1_binary_parse": "( A ( dog runs ) )",
        "sentence2_binary_parse": "( ( It sits ) . )",
    }
    lines = [json.dumps(tree), json.dumps(tree | {"gold_label": "-"})]
    (other,) = pairs.ENTAILMENT.read(written(tmp_path / "t.jsonl", "\n".join(lines) + "\n"))
    assert other == ((("A", "dog", "runs"), ("It", "sits", ".")), "neutral")
    text = "neutral\tA dog runs\tIt sits .\n-\tA\tB\n"
    assert pairs.ENTAILMENT.read(written(tmp_path / "t.tsv", text)) == [other]


def semcor(path, sentences) -> Path:
    """Sentences of words `form/lemma/tag/senses` as a file."""
    with open(path, "w") as out:
        for number, sentence in enumerate(sentences):
            out.write(f"# part document {number}\n")
            for word in sentence.split():
                fields = word.split("/")
                out.write("\t".join(fields + ["_"] * (4 - len(fields))) + "\n")
            out.write("\n")
    return path


def test_senses_in_both_forms(tmp_path):
    some = [f"The Banks/bank/NN/{BANK[1]},{BANK[0]} rose", "_ hot_dogs/hot_dog/NN/x ,"]
    examples = wsd.read_semcor(semcor(tmp_path / "t.tsv", some))
    assert examples == [
        ((("The", "Banks", "rose"),), (1, 2, "bank", "1", frozenset(BANK[:2]))),
        ((("_", "hot", "dogs", ","),), (1, 3, "hot_dog", "1", frozenset("x"))),
    ]
    xml = (
        '<corpus lang="en"><text id="d"><sentence id="s">'
        '<wf lemma="the" pos="DET">The</wf><instance id="i1" lemma="bank" pos="NOUN">Banks'
        '</instance><wf lemma="rise" pos="VERB">rose</wf></sentence><sentence id="t">'
        '<wf lemma="_" pos="X">_</wf><instance id="i2" lemma="Hot_dog" pos="NOUN">hot dogs'
        '</instance><wf lemma="," pos=".">,</wf></sentence></text></corpus>'
    )
    written(tmp_path / "t.gold.key.txt", f"i1 {BANK[1]} {BANK[0]}\ni2 x\n")
    assert wsd.WordSenses().read(written(tmp_path / "t.data.xml", xml)) == examples
    (tmp_path / "index").write_text(INDEX)
    assert wsd.read_first_senses(tmp_path / "index") == {
        ("bank", "1"): BANK[0], ("bank", "2"): BANK[2], ("good", "3"): "good%3:00:01::",
        ("river", "1"): "river%1:17:00::", ("hot_dog", "1"): "hot_dog%1:13:01::",
    }  # fmt: skip


LINE = "1\tGo\tgo\tVERB\tVB\t_\t{}\troot\t_\t_\n"
WRONG = [
    ("dep", "t.conllu", "1\ta\n", "t.conllu:1: 2 fields; CoNLL-U has 10"),
    ("dep", "t.conllu", LINE.format("x"), "t.conllu:1: word 1 with head 'x'; number words from 1"),
    ("dep", "t.conllu", LINE.format(7), "t.conllu:2: the sentence before it has a head that is no"),
    ("dep", "t.conllu", LINE.format(1), "t.conllu:2: the sentence before it has 0 roots; mend"),
    ("dep", "t.conllu", "# no\n", "t.conllu: no sentences; give CoNLL-U"),
    ("srl", "t.conll09", "1\ta\n", "t.conll09:1: 2 columns; CoNLL-2009 has 14 or more"),
    (
        "srl",
        "t.conll09",
        CONLL09.replace("\tA0\tA0", "\tA0"),
        "t.conll09:1: 15 columns; 2 predicates ask for 16",
    ),
    ("srl", "t.conll09", CONLL09.split("\n\n")[1], "t.conll09: no predicates; give CoNLL-2009"),
    ("discourse", "t.rels", "doc\tlabel\n", "t.rels:1: no column rel_type; give DISRPT's .rels"),
    ("discourse", "t.rels", HEADER + "a\tb\n", "t.rels:2: 2 fields; the header has 5"),
    ("discourse", "t.rels", HEADER, "t.rels: no pairs with a label; give {set}.rels"),
    ("nli", "t.tsv", "a\tb\n", "t.tsv:1: 2 fields; give label, premise, hypothesis"),
    ("nli", "t.tsv", "a\tb\t \n", "t.tsv:1: a sentence without words; leave the pair out"),
    ("nli", "t.jsonl", "[]\n", "t.jsonl:1: not a pair of SNLI; give gold_label"),
    ("wsd", "t.tsv", "a\tb\n", "t.tsv:1: 2 fields; give form, lemma, tag, senses"),
    ("wsd", "t.tsv", "a\t_\tDT\t_\nb\tb\tDT\tx\n", "t.tsv:2: tag 'DT' has no senses"),
    ("wsd", "t.tsv", "a b\tb\tNN\tx\n", "t.tsv:1: a form with a space in it"),
    ("wsd", "t.tsv", "a\t_\tDT\t_\n", "t.tsv: no word with a sense"),
    ("wsd", "t.data.xml", "<corpus>", "t.data.xml:1: not XML"),
    ("wsd", "t.data.xml", '<!DOCTYPE c [<!ENTITY a "b">]><c/>', "declarations in XML"),
    (
        "wsd",
        "t.data.xml",
        '<corpus><sentence><instance id="a" lemma="b" pos="NOUN">b</instance></sentence></corpus>',
        "instance 'a' without a key in",
    ),
]


@pytest.mark.parametrize(("task", "name", "content", "message"), WRONG)
def test_what_is_no_data(tmp_path, task, name, content, message):
    written(tmp_path / "t.gold.key.txt", "")
    with pytest.raises(UserError) as caught:
        run.TASKS[task].read(written(tmp_path / name, content))
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_missing_set(tmp_path):
    with pytest.raises(UserError, match=r"dev.tsv: not there; give dev.tsv or dev.jsonl, plain"):
        pairs.ENTAILMENT.find(tmp_path, "dev")
    written(tmp_path / "dev.jsonl.xz", "")
    assert pairs.ENTAILMENT.find(tmp_path, "dev") == tmp_path / "dev.jsonl.xz"


# figures


def test_best_trees_by_trying_all():
    draw = np.random.default_rng(0)
    for _ in range(300):
        size = int(draw.integers(1, 6))
        rows = draw.dirichlet(np.full(size + 1, draw.choice([0.1, 1.0])), size=size)
        scores = np.log(rows + 1e-9)

        def total(heads, scores=scores):
            return sum(scores[word, head] for word, head in enumerate(heads))

        trees = itertools.product(range(size + 1), repeat=size)
        best = max((t for t in map(list, trees) if not dep.what_is_wrong(t)), key=total)
        found = dep.find_tree(scores)
        assert not dep.what_is_wrong(found) and total(found) == pytest.approx(total(best))


def test_attachment_scores_are_those_of_the_shared_task(tmp_path):
    udeval = pytest.importorskip("udtools.udeval")
    draw = random.Random(0)
    relations = ["nsubj", "nsubj:pass", "obl", "obl:tmod", "punct"]
    texts, counts = ["", ""], []
    for _ in range(60):
        size = draw.randint(1, 12)
        trees = [dep.Tree(draw_tree(draw, size), draw.choices(relations, k=size)) for _ in range(2)]
        for tree in trees:
            for n, head in enumerate(tree.heads):
                if not head:
                    tree.relations[n] = "root"
        counts.append(dep.Dependencies().count(*trees))
        for k, tree in enumerate(trees):
            for n, (head, relation) in enumerate(zip(*tree, strict=True), 1):
                texts[k] += f"{n}\tw{n}\t_\tX\t_\t_\t{head}\t{relation}\t_\t_\n"
            texts[k] += "\n"
    files = [written(tmp_path / name, text) for name, text in zip("ab", texts, strict=True)]
    loaded = [udeval.load_conllu_file(str(path), {}) for path in files]
    said = udeval.evaluate(*loaded)
    uas, las = dep.Dependencies().score(np.sum(counts, 0))
    assert uas == pytest.approx(100 * said["UAS"].f1) and 5 < las < uas < 95
    assert las == pytest.approx(100 * said["LAS"].f1)


def test_role_scores_by_another_count():
    """Tuples (sentence, predicate, word, role) and (sentence, predicate, sense), as sets."""
    draw, task = random.Random(1), srl.SemanticRoles()
    tuples, counts = ([], []), []
    for sentence in range(40):
        both = ([], [])
        for place in draw.sample(range(9), draw.randint(0, 3)):
            for side, found in zip(both, tuples, strict=True):
                roles = {w: draw.choice(["A0", "A1"]) for w in range(9) if draw.random() < 0.4}
                sense = draw.choice(["go.01", "go.02"])
                side.append(srl.Predicate(place, "go", sense, roles))
                found += [(sentence, place, word, role) for word, role in roles.items()]
                found.append((sentence, place, sense))
        counts.append(task.count(*both))
    gold, said = map(set, tuples)

    def f1(one, other):
        precision, recall = len(one & other) / len(other), len(one & other) / len(one)
        return 200 * precision * recall / (precision + recall)

    arguments = [{t for t in some if len(t) == 4} for some in (gold, said)]
    all_of_it, of_arguments, senses = task.score(np.sum(counts, 0))
    assert all_of_it == pytest.approx(f1(gold, said))
    assert of_arguments == pytest.approx(f1(*arguments))
    asked = [t for t in gold if len(t) == 3]
    assert senses == pytest.approx(100 * sum(t in said for t in asked) / len(asked))


def test_accuracy_and_the_commonest_label():
    gold = [base.Example((("a",), ("b",)), label) for label in "xyxzx"]
    sets = {name: make_set(gold) for name in ("train", "test")}
    answers = pairs.ENTAILMENT.majority(sets)
    counts = [pairs.ENTAILMENT.count(e.gold, a) for e, a in zip(gold, answers, strict=True)]
    assert pairs.ENTAILMENT.score(np.sum(counts, 0)) == (60.0,)


# models


def trees(count: int) -> list[base.Example]:
    draw = random.Random(2)
    made = []
    for _ in range(count):
        size = draw.randint(1, 7)
        words = tuple(draw.choices("abcdef", k=size))
        tree = dep.Tree(draw_tree(draw, size), draw.choices(["x", "y", "z"], k=size))
        made.append(base.Example((words,), tree))
    return made


def roles(count: int) -> list[base.Example]:
    draw = random.Random(3)
    made = []
    for _ in range(count):
        size = draw.randint(2, 7)
        predicates = [
            srl.Predicate(place, lemma, f"{lemma}.0{draw.randint(1, 2)}", {0: "A0", size - 1: "A1"})
            for place, lemma in zip(
                draw.sample(range(size), draw.randint(0, 2)), ["go", "be"], strict=False
            )
        ]
        made.append(base.Example((tuple(draw.choices("abcdef", k=size)),), predicates))
    return made


def related(count: int) -> list[base.Example]:
    draw = random.Random(4)
    return [
        base.Example(
            tuple(tuple(draw.choices("abcdef", k=draw.randint(1, 7))) for _ in range(2)),
            draw.choice(["yes", "no"]),
        )
        for _ in range(count)
    ]


MADE = {"dep": trees, "srl": roles, "discourse": related, "nli": related}


@pytest.mark.parametrize("name", MADE)
def test_answers_do_not_depend_on_the_batch(monkeypatch, name):
    task, some = run.TASKS[name], make_set(MADE[name](24))
    torch.manual_seed(0)
    read = inputs.Inputs(some.sentences, SMALL.word, SMALL.dropout)
    model = task.model(some.examples, read, SMALL)
    together = base.count_all(task, model, some)
    monkeypatch.setattr(base, "ANSWERED", 1)
    alone = base.count_all(task, model, some)
    np.testing.assert_array_equal(together, alone)


def test_layers_are_mixed_as_in_elmo():
    some = make_set(trees(5), layers=3)
    read = inputs.Inputs(some.sentences, 4, 0.0)
    with torch.no_grad():
        read.layers.copy_(torch.tensor([1.0, -2.0, 0.5]))
        read.scale.fill_(3.0)
    sentence = some.examples[0].sentences[0]
    made = read(some.sentences.batch([sentence])).detach().numpy()[0, :, 4:]
    begin, shares = some.sentences.begin[sentence], np.exp([1.0, -2.0, 0.5])
    layers = some.sentences.vectors.table[begin : begin + len(sentence)]
    expected = 3 * np.einsum("tlw,l->tw", layers, shares / shares.sum())
    np.testing.assert_allclose(made, expected, rtol=1e-5)


# vectors


def test_vectors_of_all_sorts(tmp_path):
    sentences = [("a", "B", "a"), ("c",)]
    assert inputs.load_vectors("none", "test", sentences) is None
    drawn = inputs.load_vectors("random", "test", sentences)
    words = drawn.table[drawn.rows][:, 0]
    assert (words[0] == words[2]).all() and (words[0] != words[1]).any()
    again = inputs.load_vectors("random", "dev", [("c", "a")])
    np.testing.assert_array_equal(again.table[again.rows][:, 0], words[[3, 0]])
    file = written(tmp_path / "w.vec", "2 2\na 1 2\nb 3 4\n")
    fixed = inputs.load_vectors(str(file), "test", sentences)
    assert fixed.table[fixed.rows][:, 0].tolist() == [[1, 2], [3, 4], [1, 2], [0, 0]]
    np.savez(tmp_path / "test.npz", vectors=np.ones((4, 2, 3)), offsets=np.array([0, 3, 4]))
    assert inputs.load_vectors(str(tmp_path), "test", sentences).table.shape == (4, 2, 3)
    with pytest.raises(UserError, match=r"test\.npz: vectors of other words than the task's"):
        inputs.load_vectors(str(tmp_path), "test", sentences[::-1])
    with pytest.raises(UserError, match=r"dev\.npz: no word vectors"):
        inputs.load_vectors(str(tmp_path), "dev", sentences)


# significance


def system(counts) -> report.System:
    counts = np.array(counts)
    figures = {"accuracy": 100 * counts[..., 0].mean(1)}
    return report.System(figures, counts, {}, 0.0)


def test_significance():
    """Equal systems do not differ, nor do such as differ by their seeds alone; others do."""
    draw = np.random.default_rng(0)

    def answers(*accuracies):
        right = [draw.random(400) < accuracy for accuracy in accuracies]
        return system([[(int(one), 1) for one in some] for some in right])

    one, task = answers(0.6, 0.6, 0.6), pairs.ENTAILMENT
    assert report.compare(task, one, one) == 1.0
    assert report.compare(task, one, answers(0.8, 0.8, 0.8)) < 0.01
    assert report.compare(task, answers(0.5, 0.7, 0.6), answers(0.7, 0.5, 0.65)) > 0.05
    assert report.compare(task, one, answers(0.6, 0.6, 0.61)) > 0.05


def test_figures_by_unknown_words(tmp_path, capsys):
    """Four pairs with 0, 1 of 20, 1 of 8, 1 of 2 unknown words; the second seed misses two."""
    premises = ["a " * 3, "a " * 19 + "x", "a " * 7 + "x", "a x"]
    rows = "".join(f"yes\t{premise.strip()}\tb\n" for premise in premises)
    (tmp_path / "test.tsv").write_text(rows)
    (tmp_path / "text").write_text("a b\n")
    folder = tmp_path / "results/nli/some"
    folder.mkdir(parents=True)
    for seed, right in enumerate(([1, 0, 1, 0], [1, 0, 1, 1]), 1):
        said = {"figures": {"accuracy": 0.0}, "seconds": 1, "examples": {},
                "counts": [[one, 1] for one in right]}  # fmt: skip
        (folder / f"{seed}.json").write_text(json.dumps(said))
    unknown.main(str(tmp_path), "nli", str(tmp_path), str(tmp_path / "text"), "some")
    figures = [line.split(" | ")[-1] for line in capsys.readouterr().out.splitlines()[2:6]]
    assert figures == ["100.00 |", "0.00 |", "100.00 |", "50.00 |"]
