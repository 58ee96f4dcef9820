"""Pairs of source and target in training."""

import dataclasses

import numpy as np
import pytest
import torch
import yaml
from toys import ARCH, read_log, saved_bytes, settings

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.models.objectives import OBJECTIVES, count_targets
from lmtools.models.settings import Batch, Optim
from lmtools.text.corpus import Corpus
from lmtools.text.subword import BOS, EOS, PAD
from lmtools.train import train
from lmtools.train.batches import Segments

TRANSLATION = OBJECTIVES["translation"]
PARTS = ("train", "valid")
PAIRS = [[7, 8, 9, EOS, 10], [7, EOS, 11, 12], [EOS]]


def test_the_target_is_predicted_and_the_source_is_read():
    examples = TRANSLATION().training(list(map(np.array, PAIRS)), None, 20)
    assert examples.inputs.tolist() == [[BOS, 10, PAD], [BOS, 11, 12], [BOS, PAD, PAD]]
    assert examples.sources.tolist() == [[7, 8, 9, EOS], [7, EOS, PAD, PAD], [EOS, PAD, PAD, PAD]]
    assert examples.lengths.tolist() == [2, 3, 1] and examples.source_lengths.tolist() == [4, 2, 1]
    assert examples.targets.tolist() == [10, EOS, 11, 12, EOS, EOS]
    assert len(examples.read) == 4
    scored = TRANSLATION().scoring(list(map(tuple, PAIRS)))
    assert scored.inputs.shape == scored.sources.shape == (3, 4)
    assert scored.targets.tolist() == examples.targets.tolist()


def test_targets_are_counted_on_the_target_side(pairs):
    corpus = Corpus.open(pairs / "train-pairs.bin")
    size = corpus.subword.size
    counts = count_targets(TRANSLATION, corpus, size)
    examples = TRANSLATION().training(corpus.batch(range(len(corpus))), None, size)
    assert counts.tolist() == np.bincount(examples.targets, minlength=size).tolist()


def test_widths_are_those_of_the_longer_side_and_long_pairs_are_left_out(pairs):
    corpus = Corpus.open(pairs / "train-pairs.bin")
    examples = TRANSLATION().training(corpus.batch(range(len(corpus))), None, 50)
    widths = TRANSLATION.widths(corpus)
    longer = torch.maximum(examples.lengths, examples.source_lengths) - 1
    assert widths.tolist() == longer.tolist()
    segments = Segments(corpus, 5, widths, pairs=True)
    assert segments.sentence.tolist() == np.flatnonzero(widths <= 5).tolist()
    assert segments.too_long == (widths > 5).sum() > 0
    some = segments.batch(np.array([0, 3]))
    assert [one.tolist() for one in some] == [
        corpus[int(segments.sentence[i])].tolist() for i in (0, 3)
    ]


def test_a_translator_as_printed_goes_on_to_the_bit(pairs, tmp_path, train_in_parts):
    """Inverse-root decay and label smoothing; killed and resumed, the same bytes."""
    optim = Optim(lr=5e-3, warmup=3, decay="inverse-root")
    some = settings("seq2seq", output={"smoothing": 0.1}, optim=optim, steps=12, epochs=1)
    paths = [pairs / f"{part}-pairs.bin" for part in PARTS]
    train(some, *paths, tmp_path / "whole", "cpu")
    train_in_parts([0, 4, 9], some, *paths, tmp_path / "parts", "cpu")
    assert saved_bytes(tmp_path / "parts") == saved_bytes(tmp_path / "whole")
    plain = dataclasses.replace(some, output={})
    train(plain, *paths, tmp_path / "plain", "cpu")
    assert saved_bytes(tmp_path / "plain", "model") != saved_bytes(tmp_path / "whole", "model")
    facts = [
        yaml.safe_load((tmp_path / run / "config.yaml").read_text())["facts"]["criterion"]
        for run in ("whole", "plain")
    ]
    assert facts == [
        {"name": "softmax", "start": "uniform", "smoothing": 0.1},
        {"name": "softmax", "start": "uniform"},
    ]


def test_training_says_what_it_leaves_out(pairs, tmp_path, capsys):
    arch = {**ARCH["seq2seq"], "positions": 6}
    told = settings("seq2seq", batch=Batch(tokens=100), arch=arch)
    train(told, pairs / "train-pairs.bin", pairs / "valid-pairs.bin", tmp_path / "lm", "cpu")
    left = int((TRANSLATION.widths(Corpus.open(pairs / "train-pairs.bin")) > 5).sum())
    assert f"300 pairs ({left} of them left out, longer than 5 tokens)" in capsys.readouterr().err
    losses = [row["valid_loss"] for row in read_log(tmp_path / "lm", "valid_loss")]
    assert losses[-1] < losses[0]
    arch["positions"] = 1
    with pytest.raises(UserError, match="positions: 1 leave no room beside 1 bound"):
        train(told, pairs / "train-pairs.bin", pairs / "valid-pairs.bin", tmp_path / "m", "cpu")


@pytest.mark.parametrize(
    ("model", "corpora", "message"),
    [
        (
            "seq2seq/translation",
            ("", ""),
            "train.bin: holds plain sentences, objective translation",
        ),
        ("seq2seq/translation", ("-pairs", ""), "valid.bin: holds plain sentences"),
        (
            "causal/causal",
            ("-pairs", "-pairs"),
            "train-pairs.bin: holds pairs of source and target",
        ),
        ("masked/masked", ("", "-pairs"), "valid-pairs.bin: holds pairs of source and target"),
        (
            "seq2seq/causal",
            ("", ""),
            "does not go with model seq2seq, which learns translation alone",
        ),
        ("lstm/translation", ("-pairs", "-pairs"), "not go with model lstm, which learns causal"),
    ],
)
def test_what_does_not_fit_is_refused(pairs, tmp_path, capsys, model, corpora, message):
    kind, objective = model.split("/")
    (tmp_path / "c.yaml").write_text(f"model: {kind}\nobjective: {objective}\n")
    paths = [f"{pairs}/{part}{corpus}.bin" for part, corpus in zip(PARTS, corpora, strict=True)]
    command = ["train", "--conf", str(tmp_path / "c.yaml"), "--train", paths[0], "--valid"]
    assert main([*command, paths[1], "--out", str(tmp_path / "lm")]) == 1
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1, err
    assert not (tmp_path / "lm").exists()
