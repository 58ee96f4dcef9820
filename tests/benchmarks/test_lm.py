"""What `bench.py lm` counts, reads and writes (never how fast it was)."""

import json
import statistics

import numpy as np
import pytest
import torch
import yaml
from bench import main
from measures.lm import (
    HIDDEN,
    TASKS,
    Reader,
    Sizes,
    draw_zipf,
    format_table,
    multiply_adds,
    words_of,
)
from measures.score import matrix_flops, random_scorer
from scoring import CPU, load_scorer

from lmtools.base.computing import Computing
from lmtools.models import MODELS
from lmtools.models.settings import Settings
from lmtools.models.transformer import TransformerConfig
from lmtools.ngram import build
from lmtools.text import Normaliser
from lmtools.text.subword import SPECIALS

SMALL = ["--batch", "3", "--length", "4", "--contiguous", "9", "--repeats", "3", "--seconds", "0"]
SIZES = Sizes(batch=6, length=5, contiguous=11)
LSTM = {"model": "lstm", "objective": "causal", "arch": {"layers": 2, "dim": 6, "units": 10}}
CAUSAL = {
    "model": "causal",
    "objective": "causal",
    "arch": {"layers": 2, "dim": 16, "heads": 2, "ffn": 32, "positions": 16},
}


@pytest.fixture
def conf(tmp_path):
    """Writes settings to a file."""

    def write(settings: dict, name: str = "m.yaml") -> str:
        (tmp_path / name).write_text(yaml.safe_dump(settings))
        return str(tmp_path / name)

    return write


def lstm_layers(inputs: int, units: int, layers: int) -> int:
    """Multiply-adds a token: four gates of input and former output."""
    return 4 * units * (inputs + units) + (layers - 1) * 8 * units * units


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize(("tied", "output"), [(False, 10 * 300), (True, 10 * 6 + 6 * 300)])
def test_multiply_adds_and_parameters_of_an_lstm(tied, output, precision):
    settings = {**LSTM, "arch": {**LSTM["arch"], "tied": tied}}
    reader = Reader(
        "m",
        random_scorer(Settings(**settings), 300, Computing("cpu", precision, "torch")),
        SIZES,
        None,
    )
    figures, hidden = reader.size(), lstm_layers(6, 10, 2)
    biases = 2 * 2 * 4 * 10 + 300
    assert figures["parameters"] == 300 * 6 + hidden + biases + (6 * 11 if tied else 3000)
    assert figures["flops"] == hidden + output
    # the state that goes into the output matrix
    assert figures["flops_hidden"] == hidden + (10 * 6 if tied else 0)


def test_the_adaptive_softmax_counts_the_clusters_that_the_words_are_in():
    settings = {**LSTM, "criterion": "adaptive", "output": {"cutoffs": [20, 100], "divide": 2.0}}
    scorer = random_scorer(Settings(**settings), 300, CPU)
    reader = Reader("m", scorer, SIZES, None)
    ids = np.array([[*sentence, 1] for sentence in reader.calls["throughput"][0]]).ravel()
    assert len(ids) == reader.tokens["throughput"] == 30
    work = [
        10 * 22 + (10 * 5 + 5 * 80) * (20 <= i < 100) + (10 * 2 + 2 * 200) * (i >= 100)
        for i in ids.tolist()
    ]
    assert len(set(work)) == 3
    assert reader.size()["flops"] == pytest.approx(lstm_layers(6, 10, 2) + statistics.mean(work))


def test_multiply_adds_of_a_transformer():
    reader = Reader("m", random_scorer(Settings(**CAUSAL), 300, CPU), SIZES, None)
    config = TransformerConfig(**CAUSAL["arch"])
    assert reader.size()["flops"] == pytest.approx(matrix_flops(config, 5, 5, 300, 5) / 2 / 5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_flops_are_those_of_the_matrices(norm):
    config = TransformerConfig(2, 16, 4, 32, 12, norm=norm)
    sizes = {name: p.numel() for name, p in MODELS["masked"](config, 40).named_parameters()
             if p.dim() == 2 and "embedding" not in name}  # fmt: skip
    head = sum(size for name, size in sizes.items() if "head" in name)
    layers = sum(sizes.values()) - head
    assert matrix_flops(config, positions=7, attended=0) == 2 * 7 * layers
    with_output = matrix_flops(config, 7, 0, vocabulary=40, predicted=2)
    assert with_output == 2 * 7 * layers + 2 * 2 * (head + 16 * 40)


def test_multiply_adds_of_gated_convolutions():
    """A [4, 80] behind a lookup of 64, then a bottleneck of 3; half the outputs are gates."""
    settings = {
        "model": "gcnn",
        "objective": "causal",
        "arch": {"dim": 64, "blocks": ["[4, 80]", "[1, 3; 5, 3; 1, 80]"]},
    }
    scorer = random_scorer(Settings(**settings), 300, CPU)
    reader = Reader("m", scorer, Sizes(batch=80, length=10, contiguous=11), None)
    figures, hidden = reader.size(), (4 * 64 * 160 + 64 * 80) + (80 * 6 + 5 * 3 * 6 + 3 * 160)
    assert (figures["flops_hidden"], figures["flops"]) == (hidden, hidden + 80 * 300)
    carried_out = multiply_adds(lambda: reader.read("throughput", *reader.calls["throughput"]))
    assert scorer.precision == "float32" and carried_out < 800 * figures["flops"]


def test_rows_cover_models_and_tasks(tmp_path, trained, tiny, conf, capsys):
    build([tiny / "train.txt"], 2, tmp_path / "ngram", Normaliser(), kenlm="none")
    out = tmp_path / "bench" / "lm.json"
    names = {"ngram": tmp_path / "ngram", "lstm": trained["lstm"], "causal": trained["causal"]}
    models = [word for name, path in names.items() for word in ("--lm", f"{name}={path}")]
    # of one name the trained one is taken
    random = f"--conf random={conf(LSTM)} --conf lstm={conf(CAUSAL, 'lstm.yaml')}".split()
    random += ["--vocab-size", "60"]
    assert main(["lm", *models, *random, *SMALL, "--out", str(out)]) == 0
    figures = json.loads(out.read_text())
    kinds = [("random", "lstm"), ("lstm", "lstm"), ("ngram", "ngram"), ("causal", "causal")]
    assert [(row["name"], row["model"]) for row in figures["rows"]] == kinds
    for row in figures["rows"]:
        for task in (task + kind for kind in ("", HIDDEN) for task in TASKS):
            speed = row[task]
            if row["name"] == "ngram" and task.endswith(HIDDEN):
                assert speed is None
                continue
            assert (
                len(speed["values"]) == 3
                and min(speed["values"]) > 0
                and statistics.median(speed["values"]) == speed["median"]
            )
        assert (row["batch"], row["length"], row["contiguous_length"]) == (3, 4, 9)
        assert row["model"] == "ngram" or (
            0 < row["flops_hidden"] < row["flops"] and row["parameters"] > 0
        )
    own = {
        "tokens": 12,
        "contiguous": 9,
        "threads": 1,
        "precision": "float32",
        "device": "cpu",
        "size": 60,
        "repeats": 3,
        "text": None,
    }
    assert (
        figures.items() >= own.items()
        and figures["versions"]["torch"] == torch.__version__
        and figures["machine"]
    )
    printed = capsys.readouterr().out
    assert printed.splitlines() == list(format_table(figures)) and "x: times random" in printed
    names = [line.split()[0] for line in printed.splitlines()[3:]]
    assert names == ["random", "hidden", "lstm", "hidden", "ngram", "causal", "hidden"]


def test_words_of_a_text_are_the_same_for_every_model(tmp_path, trained, tiny):
    """In order, and from the beginning again at the end; a sequence has one word less."""

    (tmp_path / "t").write_text("the king came to the\n\nhouse of stone\n")
    words = words_of(tmp_path / "t", 100)
    assert (
        words == ["the", "king", "came", "to", "the", "house", "of", "stone"]
        and words_of(tmp_path / "t", 3) == words[:3]
    )
    scorer = load_scorer(str(trained["lstm"]), "cpu")
    reader = Reader("m", scorer, Sizes(batch=2, length=4, contiguous=6), words)
    (batch,), (long,) = reader.calls["throughput"], reader.calls["contiguous"]
    assert [*batch, *long] == scorer.prepare(
        ["the king came", "to the house", "of stone the king came"]
    )
    assert reader.calls["responsiveness"] == [[sentence] for sentence in batch]


def test_drawn_words_are_zipfian_and_known(trained):

    ranks = draw_zipf(1_000, 20_000)
    # half of the mass is below the root of the number
    assert abs((ranks < 31).mean() - 0.5) < 0.02 and ranks.max() < 1_000
    for scorer in (
        random_scorer(Settings(**LSTM), 60, CPU),
        load_scorer(str(trained["causal"]), "cpu"),
    ):
        reader = Reader("m", scorer, SIZES, None)
        sentences = [*reader.calls["throughput"][0], *reader.calls["contiguous"][0]]
        assert [len(s) for s in sentences] == [4] * 6 + [10]
        assert all(len(SPECIALS) <= i < scorer.lm.size for sentence in sentences for i in sentence)


def test_mistakes_are_one_line(tmp_path, tiny, conf, capsys):
    build([tiny / "train.txt"], 2, tmp_path / "ngram", Normaliser(), kenlm="none")
    (tmp_path / "empty").write_text("\n\n")
    some = ["--conf", f"m={conf(LSTM)}", "--vocab-size", "60"]
    two_way = conf({"model": "elmo", "objective": "two-way"}, "two.yaml")
    for words, message in (
        (["--conf", "m.yaml"], "--conf m.yaml: not NAME=F.yaml"),
        (["--lm", "exp"], "--lm exp: not NAME=DIR"),
        (
            ["--lm", f"bare={tmp_path}/ngram/lm.arpa"],
            "--lm bare: lists no words to draw from; give a text by --text",
        ),
        ([*some, "--text", f"{tmp_path}/empty"], "empty:1: no words in the text"),
        ([*some, "--length", "1"], "length: 1 (int) is not a whole number from 2"),
        (["--conf", f"two={two_way}"], "two.yaml: a two-way model is measured with its vocabulary"),
    ):
        assert main(["lm", *words]) == 1
        said = capsys.readouterr().err
        assert message in said and said.count("\n") == 1
