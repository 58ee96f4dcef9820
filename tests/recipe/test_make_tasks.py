"""egs/gbw/tasks/make/make_tasks.py: the constructed data of five tasks are of their formats, say
what their README says, and come out the same.
"""

import hashlib
import lzma
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from recipe.test_tasks import wsd

HOME = Path(__file__).parents[2] / "egs/gbw"
WORDNET = Path("/usr/share/wordnet")
README = (HOME / "tasks/mini/README.md").read_text(encoding="utf-8")
SETS = ("train", "dev", "test")
CONNECTIVES = {
    *("FOR", "BUT", "YET", "NEVERTHELESS", "HOWEVER", "MOREOVER", "ALSO", "AND", "THEN"),
    *("AFTERWARD", "BECAUSE", "THOUGH", "ALTHOUGH", "IF", "UNTIL", "SO_THAT"),
}


def make(out, *options, seed="0"):
    return subprocess.run(
        [sys.executable, HOME / "tasks/make/make_tasks.py", out, *map(str, options)],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONHASHSEED": seed},
    )  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("tasks")
    run = make(out)
    assert run.returncode == 0, run.stderr
    return out


def content(folder: Path) -> dict[str, bytes]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def unpacked(path: Path) -> str:
    return lzma.decompress(path.read_bytes()).decode()


def rows(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines()]


def sentences(path: Path) -> list[list[list[str]]]:
    """The sentences of a file in columns, without comments."""
    blocks = path.read_text().strip("\n").split("\n\n")
    lines = ([x for x in block.split("\n") if not x.startswith("# ")] for block in blocks)
    return [[line.split("\t") for line in block] for block in lines]


def words(sentence) -> str:
    return " ".join(row[1] for row in sentence)


def test_the_same_bytes_every_time(made, tmp_path):
    assert make(tmp_path, seed="1").returncode == 0
    assert content(tmp_path) == content(made)
    both = [*(f"dep/{name}.conllu" for name in SETS), *(f"srl/{name}.conll09" for name in SETS)]
    both += [f"{task}/{name}.tsv" for task in ("nli", "wsd") for name in SETS]
    both += [*(f"discourse/{name}.rels" for name in SETS), "wsd/index.sense"]
    assert sorted(content(made)) == sorted(both)
    whole = hashlib.sha256(b"".join(content(made).values())).hexdigest()
    assert whole in README  # on any machine


def test_trees(made):
    found = {name: sentences(made / f"dep/{name}.conllu") for name in SETS}
    assert [len(found[name]) for name in SETS] == [750, 150, 200]
    relations = set()
    for sentence in (one for some in found.values() for one in some):
        assert all(len(row) == 10 for row in sentence)
        assert [int(row[0]) for row in sentence] == list(range(1, len(sentence) + 1))
        heads = [int(row[6]) for row in sentence]
        assert heads.count(0) == 1
        for place in range(1, len(heads) + 1):  # every word leads to the root
            path = []
            while place:
                assert place not in path
                path.append(place)
                place = heads[place - 1]
        assert all((row[7] == "root") == (row[6] == "0") for row in sentence)
        assert re.fullmatch(r"[A-Z ]+", words(sentence))
        relations |= {row[7] for row in sentence}
    assert relations == {
        *("nsubj", "obj", "iobj", "obl", "nmod", "amod", "advmod", "det", "nummod", "case", "conj"),
        *("cc", "acl:relcl", "nsubj:pass", "aux", "aux:pass", "ccomp", "xcomp", "mark", "root"),
    }
    text = {name: set(map(words, some)) for name, some in found.items()}
    assert sum(map(len, text.values())) == len(set.union(*text.values())) == 1100


def test_words_decide(made):
    """What test has to know: words that training lacks, attachments and parts of speech that the
    form leaves open.
    """
    train, test = (sentences(made / f"dep/{name}.conllu") for name in ("train", "test"))
    known = {row[1] for sentence in train for row in sentence}
    fresh = [row[1] not in known for sentence in test for row in sentence]
    assert 0.1 < np.mean(fresh) < 0.25
    attached, tags = defaultdict(set), defaultdict(Counter)
    for sentence in train + test:
        for row in sentence:
            tags[row[1]][row[3]] += 1
            noun = sentence[int(row[6]) - 1]
            head = sentence[int(noun[6]) - 1]
            verb = head if noun[7] == "obl" else sentence[int(head[6]) - 1]
            # a phrase after an object, at the verb or at the object
            objects = [r for r in sentence if r[7] == "obj" and r[6] == verb[0]]
            order = [int(one[0]) for one in (verb, *objects, row)]
            follows = row[7] == "case" and objects and order == sorted(order)
            if follows and (noun[7] == "obl" or (noun[7] == "nmod" and head in objects)):
                attached[verb[2], row[2], noun[2]].add(noun[7])
    assert all(len(some) == 1 for some in attached.values()) and len(attached) > 400
    prepositions = Counter((key[1], *some) for key, some in attached.items())
    for preposition in ("with", "in", "from", "by"):
        assert min(prepositions[preposition, kind] for kind in ("obl", "nmod")) >= 10
    both = {word for word, some in tags.items() if min(some["NOUN"], some["VERB"]) > 0}
    assert {"STONE", "BEAR"} <= both and len(both) >= 10


def test_roles(made):
    frames, labels, counts = defaultdict(set), Counter(), Counter()
    for name in SETS:
        trees = sentences(made / f"dep/{name}.conllu")
        for tree, sentence in zip(trees, sentences(made / f"srl/{name}.conll09"), strict=True):
            predicates = [row for row in sentence if row[12] == "Y"]
            assert {len(row) for row in sentence} == {14 + len(predicates)}
            assert [(row[12] == "Y") == (row[13] != "_") for row in sentence]
            for row, of_tree in zip(sentence, tree, strict=True):
                assert row[:2] == of_tree[:2] and row[2] == row[3] == of_tree[2]
                assert row[4] == row[5] == of_tree[4] and row[8] == row[9] == of_tree[6]
                assert row[10] == row[11] == of_tree[7]
            # every verb is a predicate, and has its subject or what stands for it
            assert [row[0] for row in predicates] == [row[0] for row in tree if row[3] == "VERB"]
            for number, predicate in enumerate(predicates):
                assert re.fullmatch(re.escape(predicate[2]) + r"\.\d\d", predicate[13])
                roles = [row[14 + number] for row in sentence if row[14 + number] != "_"]
                core = [role for role in roles if role[0] == "A" and role[1] != "M"]
                assert core and len(set(core)) == len(core)
                frames[predicate[2]].add((predicate[13], tuple(sorted(core))))
                labels.update(roles)
                counts[predicate[13]] += 1
    wanted = {"A0", "A1", "A2", "AM-TMP", "AM-LOC", "AM-MNR", "AM-NEG", "R-A0", "R-A1", "R-A2"}
    assert set(labels) == wanted
    several = {verb for verb, some in frames.items() if len({sense for sense, _ in some}) > 1}
    assert {"keep", "leave", "draw", "serve", "turn", "bear", "call", "ask"} <= several
    assert min(count for sense, count in counts.items() if sense.endswith(".02")) >= 3


def test_relations(made):
    lines = unpacked(HOME.parent / "librispeech/mini/train.txt.xz").splitlines()
    texts, documents = {}, {}
    for name, count in zip(SETS, (1200, 150, 250), strict=True):
        header, *found = rows(made / f"discourse/{name}.rels")
        assert len(found) == count and header[:3] == ["doc", "unit1_toks", "unit2_toks"]
        assert all(len(row) == len(header) == 13 for row in found)
        labels = Counter(row[-1] for row in found)
        assert len(labels) == 6 and max(labels.values()) < 0.25 * count
        for row in found:
            assert row[9:11] == ["1<2", "implicit"] and row[11].startswith(row[12])
            number = int(row[0].rsplit("_", 1)[1])
            of_document = " ".join(lines[400 * (number - 1) : 400 * number]).split()
            spans = [tuple(map(int, span.split("-"))) for span in row[1:3]]
            for (begin, end), unit in zip(spans, row[3:5], strict=True):
                assert of_document[begin - 1 : end] == unit.split()
            between = of_document[spans[0][1] : spans[1][0] - 1]
            assert "_".join(between) in CONNECTIVES
        texts[name] = {row[column] for row in found for column in (3, 4)}
        documents[name] = {row[0] for row in found}
    for one, other in (("train", "dev"), ("train", "test"), ("dev", "test")):
        assert not texts[one] & texts[other] and not documents[one] & documents[other]


def bag_of_words(train: list[tuple[str, str]], test: list[tuple[str, str]]) -> float:
    """The accuracy of a logistic regression, over (label, text)."""
    vocabulary = {
        word: n for n, word in enumerate(sorted({w for _, s in train for w in s.split()}))
    }
    labels = sorted({label for label, _ in train})

    def features(some):
        bags = np.zeros((len(some), len(vocabulary) + 1))
        bags[:, -1] = 1
        for n, (_, text) in enumerate(some):
            bags[n, [vocabulary[word] for word in text.split() if word in vocabulary]] = 1
        return bags, np.array([labels.index(label) for label, _ in some])

    bags, right = features(train)
    weights = np.zeros((bags.shape[1], len(labels)))
    for _ in range(200):
        scores = np.exp(bags @ weights)
        slope = scores / scores.sum(1, keepdims=True) - np.eye(len(labels))[right]
        weights -= 0.5 * (bags.T @ slope / len(bags) + 1e-3 * weights)
    bags, right = features(test)
    return float(np.mean((bags @ weights).argmax(1) == right))


def test_pairs(made):
    found = {name: rows(made / f"nli/{name}.tsv") for name in SETS}
    for name, count in zip(SETS, (1500, 250, 300), strict=True):
        labels = Counter(row[0] for row in found[name])
        assert len(found[name]) == count and all(len(row) == 3 for row in found[name])
        assert set(labels) == {"entailment", "neutral", "contradiction"}
        assert max(labels.values()) - min(labels.values()) <= 1
        assert all(premise != hypothesis for _, premise, hypothesis in found[name])
        # one pair of sentences has one label
        assert len({tuple(row[1:]) for row in found[name]}) == len({tuple(r) for r in found[name]})
    premises = {name: {row[1] for row in some} for name, some in found.items()}
    assert not premises["train"] & (premises["dev"] | premises["test"])
    assert not premises["dev"] & premises["test"]
    # the hypothesis tells nothing by itself, nor does a form
    train, both = found["train"], found["dev"] + found["test"]
    for side in (1, 2):
        assert (
            bag_of_words([(r[0], r[side]) for r in train], [(r[0], r[side]) for r in both]) < 0.45
        )
    denied = Counter(row[0] for row in train if "NOT" in row[2].split())
    assert max(denied.values()) - min(denied.values()) <= 2 and min(denied.values()) > 150


def test_senses(made):
    read = {name: wsd.read_semcor(made / f"wsd/{name}.tsv") for name in SETS}
    first = wsd.read_first_senses(made / "wsd/index.sense")
    known = {sense for example in read["train"] for sense in example.gold.senses}
    seen: set[str] = set()
    for examples in read.values():
        words = [example.gold for example in examples]
        assert {word.word for word in words} <= set(first)
        assert all(word.senses <= known for word in words)
        said = {" ".join(example.sentences[0]) for example in examples}
        assert len(said) == len(examples) and not seen & said  # a word a sentence
        assert all(re.fullmatch(r"[A-Z' ]+", one) for one in said)
        seen |= said
    several = Counter(
        word for word, _ in {(e.gold.word, s) for e in read["train"] for s in e.gold.senses}
    )
    assert min(several.values()) >= 2
    assert {example.gold.part for example in read["test"]} == {"1", "2", "3", "4"}


def test_counts_of_the_readme(made):
    for name in SETS:
        trees = sentences(made / f"dep/{name}.conllu")
        predicates = sum(
            row[12] == "Y" for s in sentences(made / f"srl/{name}.conll09") for row in s
        )
        senses = len(wsd.read_semcor(made / f"wsd/{name}.tsv"))
        figures = (
            f"{len(trees):,}", f"{sum(map(len, trees)):,}", f"{predicates:,}",
            f"{len(rows(made / f'discourse/{name}.rels')) - 1:,}",
            f"{len(rows(made / f'nli/{name}.tsv')):,}", f"{senses:,}",
        )  # fmt: skip
        assert f"| {name} | " + " | ".join(figures) + " |" in README
    small = sum(path.stat().st_size for path in (HOME / "tasks/mini").iterdir())
    assert small < 150_000


@pytest.mark.skipif(not (WORDNET / "data.noun").exists(), reason="no wordnet-base of Debian")
def test_embedded_files_come_from_wordnet(tmp_path):
    run = make(tmp_path, "--wordnet", WORDNET)
    assert run.returncode == 0, run.stderr
    for name in ("senses.tsv.xz", "index.sense.xz"):
        assert unpacked(tmp_path / name) == unpacked(HOME / "tasks/mini" / name)
    index = set((WORDNET / "index.sense").read_text().splitlines())
    assert set(unpacked(tmp_path / "index.sense.xz").splitlines()) <= index


@pytest.mark.parametrize(
    ("option", "message"),
    [("--text", "t: 0 relations for train, 1200 are needed"), ("--wordnet", "index.sense: cannot")],
)
def test_what_is_refused(tmp_path, option, message):
    (tmp_path / "t").write_text("IN THE BEGINNING\n")
    run = make(tmp_path / "out", option, tmp_path / "t")
    assert run.returncode == 1 and message in run.stderr and run.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
