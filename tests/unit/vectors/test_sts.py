"""lmtools embed of sentences and lmtools sts from the command line."""

import json
import subprocess
import sys
from shlex import split

import numpy as np
import pytest
from scipy import stats

from lmtools.base.seal import write_json
from lmtools.cli import main
from lmtools.vectors import encoders
from lmtools.vectors.files import read_sentences
from lmtools.verbs.options import POOLS

PAIRS = [
    ("the king came to the city", "the queen came to the city", 4.0),
    ("the king", "a river", 0.5),
    ("the king came", "the king came", 5.0),
    ("the river was long", "the king came to the city", 1.0),
    ("a queen went", "the queen went", 4.5),
    ("the city", "the river was long", 1.5),
]


@pytest.fixture
def home(tmp_path):
    (tmp_path / "pairs.tsv").write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in PAIRS))
    texts = list(dict.fromkeys(text for a, b, _ in PAIRS for text in (a, b)))
    (tmp_path / "sentences.txt").write_text("".join(f"{text}\n" for text in texts))
    return tmp_path


def embed(home, lm, *more):
    command = [
        *split(f"embed --lm {lm} --text {home}/sentences.txt --out {home}/v.npz --cache none"),
        *more,
    ]
    return main(command if lm == "tfidf" else [*command, "--device", "cpu"])


def sts(home, *more):
    return main(
        [
            *split(f"sts --pairs {home}/pairs.tsv --out {home}/sts.json --cache none"),
            *map(str, more),
        ]
    )


@pytest.mark.parametrize("layers", ["last", "all", "0"])
def test_from_a_model_and_from_its_vectors_alike(home, trained, layers, capsys):
    assert embed(home, trained["tta"], "--layer", layers) == 0
    made = read_sentences(home / "v.npz")
    shape = np.load(home / "v.npz")["vectors"].shape
    assert shape == (
        (9, 3, made.vectors.shape[2]) if layers == "all" else (9, made.vectors.shape[2])
    )
    assert sts(home, "--vectors", home / "v.npz") == 0
    stored, printed = json.loads((home / "sts.json").read_text()), capsys.readouterr().out
    assert sts(home, "--lm", trained["tta"], "--layer", layers, "--device", "cpu") == 0
    direct = json.loads((home / "sts.json").read_text())
    assert capsys.readouterr().out == printed and stored["signature"] == direct["signature"]
    place = {text: i for i, text in enumerate(made.texts)}
    for i, (one, other) in enumerate(zip(stored["rows"], direct["rows"], strict=True)):
        left, right = (
            np.array([made.vectors[place[pair[side]], i] for pair in PAIRS], dtype=np.float64)
            for side in (0, 1)
        )
        cosine = (
            (left * right).sum(1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)
        )
        np.testing.assert_allclose(one["cosine"], cosine, atol=1e-6)
        np.testing.assert_allclose(other["cosine"], cosine, atol=1e-5)
        gold = [pair[2] for pair in PAIRS]
        r = stats.pearsonr(gold, cosine)
        np.testing.assert_allclose(
            one["pearson"], [r.statistic, *r.confidence_interval()], atol=1e-5
        )
        assert one["spearman"][0] == pytest.approx(stats.spearmanr(gold, cosine).statistic)
        low, high = (100 * value for value in one["pearson"][1:])
        assert (
            f"layer {one['layer']}: pearson {100 * one['pearson'][0]:.2f} [{low:.2f}, {high:.2f}],"
            " spearman" in printed
        )


def test_vectors_of_a_file_are_correlated_without_torch(home, trained):
    """Importing torch takes seconds, and a recipe calls the verb for each system and set."""
    assert tuple(encoders.POOLS) == POOLS
    assert embed(home, trained["tta"]) == 0
    call = (
        f"main(['sts', '--pairs', {str(home / 'pairs.tsv')!r}, '--vectors',"
        f" {str(home / 'v.npz')!r}])"
    )
    code = (
        f"import sys; from lmtools.cli import main; assert {call} == 0; assert 'torch' not in"
        " sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_vectors_of_several_systems(home, trained, capsys):
    """One call writes what a call for each does."""
    for name, layer in (("one", "0"), ("two", "last")):
        assert embed(home, trained["tta"], "--layer", layer) == 0
        (home / "v.npz").rename(home / f"{name}.npz")
        assert sts(home, "--vectors", home / f"{name}.npz") == 0
        (home / "sts.json").rename(home / f"{name}.json")
    alone = capsys.readouterr().out.splitlines()
    files = [home / "one.npz", home / "two.npz"]
    call = ["sts", "--pairs", home / "pairs.tsv", "--vectors", *files, "--out"]
    assert main([*map(str, call), str(home / "all/{system}.json")]) == 0
    assert capsys.readouterr().out.splitlines() == ["one", alone[0], "two", alone[1]]
    for name in ("one", "two"):
        assert (home / f"all/{name}.json").read_bytes() == (home / f"{name}.json").read_bytes()
    assert main([*map(str, call), str(home / "o.json")]) == 1
    assert "o.json: each system needs a path of its own" in capsys.readouterr().err


def test_static_vectors_and_another_system(home, trained, tmp_path, capsys):
    (tmp_path / "w.txt").write_text("the 1 0\nking 0.5 0.5\nqueen 0.5 0.4\ncity 0 1\nriver -1 1\n")
    assert sts(home, "--lm", "tfidf") == 0
    (home / "sts.json").rename(home / "tfidf.json")
    assert sts(home, "--lm", f"words:{tmp_path / 'w.txt'}", "--against", home / "tfidf.json") == 0
    said = capsys.readouterr()
    assert "last layer against that of" in said.out and "Williams' test" in said.out
    assert "words of distinct texts have no vector, most often" in said.err
    assert json.loads((home / "sts.json").read_text())["signature"]["lm"] == "words"


def test_pairs_without_similarity_have_cosines(home, capsys):
    (home / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b, _ in PAIRS))
    assert sts(home, "--lm", "tfidf") == 0
    tree = json.loads((home / "sts.json").read_text())
    assert (
        tree["similarity"] is None
        and tree["rows"][0].keys() == {"layer", "cosine"}
        and len(tree["rows"][0]["cosine"]) == len(PAIRS)
    )
    assert "layer 0: no correlation (6 pairs)" in capsys.readouterr().out


def test_sentences_without_known_words_are_counted(home, capsys):
    (home / "pairs.tsv").write_text(
        "".join(f"{a}\t{b}\t{s}\n" for a, b, s in [*PAIRS, ("...", "the king", 2.0)])
    )
    assert sts(home, "--lm", "tfidf") == 0
    assert "1 pairs have a sentence without any known word" in capsys.readouterr().err
    assert json.loads((home / "sts.json").read_text())["rows"][0]["cosine"][-1] == 0


def test_what_cannot_be_is_one_line(home, trained, tmp_path, capsys):
    assert embed(home, trained["tta"]) == 0
    (home / "more.tsv").write_text("the king\tan unknown sentence\t1\nthe king\tthe city\t2\n")
    (home / "flat.tsv").write_text("".join(f"{a}\t{b}\t3\n" for a, b, _ in PAIRS))
    np.savez(home / "words.npz", vectors=np.zeros((2, 2)), words=np.array(["a", "b"]))
    (home / "torn.npz").write_bytes((home / "v.npz").read_bytes()[:200])
    write_json({}, home / "other.json")
    capsys.readouterr()
    vector = ["--vectors", str(home / "v.npz")]
    cases = [
        (
            [*vector, "--pairs", str(home / "more.tsv")],
            "v.npz: no vector of 'an unknown sentence', which",
        ),
        ([*vector, "--pairs", str(home / "flat.tsv")], "flat.tsv: people's similarities are all"),
        (["--vectors", str(home / "words.npz")], "words.npz: no sentence vectors ("),
        (["--vectors", str(home / "torn.npz")], "torn.npz: no sentence vectors ("),
        (
            ["--vectors", str(home / "none.npz")],
            "none.npz: cannot read: No such file or directory; check the path",
        ),
        (
            [*vector, "--against", str(home / "other.json")],
            "other.json: not what lmtools sts --out wrote; write it again",
        ),
    ]
    for more, message in cases:
        assert (
            main(
                ["sts", "--pairs", str(home / "pairs.tsv"), "--out", str(home / "none.json"), *more]
            )
            == 1
        )
        said = capsys.readouterr().err.strip()
        assert message in said and len(said.splitlines()) == 1
        assert not (home / "none.json").exists()
    assert (
        main(
            [
                *split("embed --lm tfidf --text"),
                str(home / "sentences.txt"),
                "--out",
                str(home / "v.h5"),
            ]
        )
        == 1
    )
    assert "v.h5: vectors go to a name that ends in .npz; give one" in capsys.readouterr().err
