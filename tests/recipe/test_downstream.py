"""egs/gbw/downstream.sh: word senses by nearest neighbour, by hand-made cases and end to end."""

import importlib.util
import json
import math
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lmtools.errors import UserError

SOURCE = Path(__file__).parents[2] / "egs/gbw"
spec = importlib.util.spec_from_file_location("wsd", SOURCE / "tasks/wsd.py")
wsd = importlib.util.module_from_spec(spec)
spec.loader.exec_module(wsd)

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


def test_reading(tmp_path):
    text = wsd.read_semcor(
        semcor(
            tmp_path / "t",
            [f"The Banks/bank/NN/{BANK[1]},{BANK[0]} rose", "_ hot_dogs/hot_dog/NN/x ,"],
        )
    )
    assert text.sentences == [["The", "Banks", "rose"], ["_", "hot", "dogs", ","]]
    assert text.tagged == [
        wsd.Tagged(1, 2, "bank", "1", frozenset(BANK[:2])),
        wsd.Tagged(4, 6, "hot_dog", "1", frozenset("x")),
    ]
    (tmp_path / "index").write_text(INDEX)
    first = wsd.read_first_senses(tmp_path / "index")
    assert first == {
        ("bank", "1"): BANK[0], ("bank", "2"): BANK[2], ("good", "3"): "good%3:00:01::",
        ("river", "1"): "river%1:17:00::", ("hot_dog", "1"): "hot_dog%1:13:01::",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tb\n", "t:1: 2 fields; give form, lemma, tag, senses"),
        ("a\t_\tDT\t_\nb\tb\tDT\tx\n", "t:2: tag 'DT' has no senses"),
        ("a b\tb\tNN\tx\n", "t:1: a form with a space in it"),
        ("a\t_\tDT\t_\n", "t: no word with a sense"),
    ],
)
def test_what_is_no_text_with_senses(tmp_path, content, message):
    (tmp_path / "t").write_text(content)
    with pytest.raises(UserError, match=message):
        wsd.read_semcor(tmp_path / "t")


def test_senses_by_the_definition(tmp_path):
    """Random vectors, each step of the definition by itself."""
    draw, random_words = np.random.default_rng(0), random.Random(0)
    lemmas = {f"w{n}": [f"w{n}%1:0{k}:00::" for k in range(1 + n % 4)] for n in range(8)}

    def made(count, some):
        sentences = []
        for _ in range(count):
            chosen = [random_words.choice(some) for _ in range(random_words.randint(1, 6))]
            tags = [
                f"{lemma}/{lemma}/NN/{','.join(random_words.sample(lemmas[lemma], 1))}"
                if random_words.random() < 0.7
                else lemma
                for lemma in chosen
            ]
            sentences.append(" ".join([*tags, "x_y/w0/NN/w0%1:00:00::"]))
        return wsd.read_semcor(semcor(tmp_path / "t", sentences))

    train, test = made(60, list(lemmas)[:6]), made(30, list(lemmas))
    vectors = [draw.normal(size=(sum(map(len, t.sentences)), 5)) for t in (train, test)]
    first = {("w6", "1"): lemmas["w6"][0], ("w0", "1"): "other", ("w1", "1"): lemmas["w1"][1]}
    found = wsd.evaluate(train, test, vectors, first)

    def unit(v):
        return v / math.sqrt((v * v).sum())

    right, common = [], []
    for word in test.tagged:
        own = unit(vectors[1][word.begin : word.end].sum(0))
        of_sense = {}
        for other in train.tagged:
            if (other.lemma, other.part) == (word.lemma, word.part):
                for sense in other.senses:
                    v = unit(vectors[0][other.begin : other.end].mean(0))
                    of_sense.setdefault(sense, []).append(v)
        backoff = first.get((word.lemma, word.part))
        best = max(
            of_sense, key=lambda s: unit(np.mean(of_sense[s], axis=0)) @ own, default=backoff
        )
        right.append(best in word.senses)
        most = max(map(len, of_sense.values()), default=0)
        some = sorted(s for s in of_sense if len(of_sense[s]) == most)
        common.append((some[0] if some else backoff) in word.senses)
    assert found["right"] == "".join("01"[one] for one in right)
    assert found["f1"]["vectors"] == pytest.approx(100 * np.mean(right))
    assert found["f1"]["commonest"] == pytest.approx(100 * np.mean(common))
    assert found["f1"]["first"] == pytest.approx(
        100 * np.mean([first.get(w.word) in w.senses for w in test.tagged])
    )
    assert 0 < found["in_training"] < found["words"] == len(test.tagged)


def test_mcnemar_by_the_binomial():
    assert wsd.mcnemar("1110000", "0000000") == pytest.approx(2 * 0.5**3)
    assert wsd.mcnemar("1101", "1101") == 1.0
    assert wsd.mcnemar("1" * 9 + "0", "0" * 9 + "1") == pytest.approx(2 * 11 * 0.5**10)


CONTEXTS = {  # what stands around each sense of bank
    BANK[0]: ("the people gave silver and gold to the", "of the king"),
    BANK[1]: ("and he stood upon the", "of the river and the water"),
}


@pytest.fixture(scope="module")
def tree(copied, trained):
    """A repository with egs/gbw, tagged text, WordNet's lines and two LMs in it."""
    home = copied("gbw")
    (home / "senses").mkdir()
    draw = random.Random(1)
    for name, count in (("train", 40), ("test", 20)):
        chosen = [draw.choice(list(CONTEXTS)) for _ in range(count)]
        semcor(
            home / f"senses/{name}.tsv",
            [f"{CONTEXTS[k][0]} bank/bank/NN/{k} {CONTEXTS[k][1]}" for k in chosen],
        )
    (home / "index.sense").write_text(INDEX)
    return home


def test_the_recipe(tree, make_recipe, shell, trained):
    lms = f"tta={trained['tta']} causal={trained['causal']}"
    options = ["--wsd-dir", "senses", "--wordnet", "index.sense", "--vectors", "", "--lm-dirs", lms]
    run = subprocess.run(
        [tree / "downstream.sh", *options], env=shell, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    home = tree / "exp/downstream/wsd"
    said = {name: json.loads((home / f"{name}.json").read_text()) for name in ("tta", "causal")}
    # what follows tells the senses apart as what stands before does; a left-to-right LM sees that
    assert said["tta"]["f1"]["vectors"] == said["causal"]["f1"]["vectors"] == 100
    assert 20 < said["tta"]["f1"]["first"] < 80 and said["tta"]["words"] == 20
    table = (home / "RESULTS.md").read_text()
    assert (
        "| tta | 100.00 | " in table and "| *ELMo (Li et al. 2019, Table 3)* | 69.0 | | |" in table
    )
    assert not list((tree / "exp/downstream").rglob("*.tmp*"))


def test_other_words_are_refused(tree, tmp_path):
    np.savez(tmp_path / "v.npz", vectors=np.zeros((3, 2), np.float32), offsets=np.array([0, 3]))
    train = tree / "senses/train.tsv"
    run = subprocess.run(
        [
            sys.executable, SOURCE / "tasks/wsd.py", "evaluate", "--train", train, "--test", train,
            "--index", tree / "index.sense", "--vectors", tmp_path / "v.npz", tmp_path / "v.npz",
            "--out", tmp_path / "o",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 1 and "v.npz: vectors of other words than those of" in run.stderr
    assert run.stderr.count("\n") == 1 and not (tmp_path / "o").exists()
