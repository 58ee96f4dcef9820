"""Trainings that start from another model's weights: what is copied by piece, what is averaged,
what is refused.
"""

import dataclasses
import json
import math
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file as load_tensors
from toys import read_log, saved_bytes, settings

from lmtools.base.config import dump
from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.models.checkpoint import load_model, read_settings
from lmtools.models.device import choose_device
from lmtools.models.lm import LanguageModel
from lmtools.models.objectives import count_targets
from lmtools.models.outputs.corrected import Corrected
from lmtools.models.settings import Freeze, Optim
from lmtools.text.corpus import Corpus
from lmtools.train import train
from lmtools.train.directory import TrainingPlan
from lmtools.train.loop import Training
from lmtools.train.start import start_from

LSTM = {"model": "lstm", "arch": {"layers": 1, "dim": 8, "units": 12}}
KINDS = {
    "causal": {},
    "untied": {"arch": {"layers": 1, "dim": 8, "heads": 2, "ffn": 8, "tied": False}},
    "gcnn": {"model": "gcnn", "arch": {"dim": 8, "blocks": ["[3, 12]", "[1, 6; 3, 6; 1, 12]"]}},
    "elmo": {
        "model": "elmo", "objective": "two-way",
        "arch": {"piece_dim": 4, "filters": [[1, 4], [2, 6]], "highway": 1, "dim": 8, "units": 12},
    },
    "adaptive": {**LSTM, "criterion": "adaptive", "output": {"cutoffs": [6, 16], "divide": 2.0}},
    **{
        criterion: {**LSTM, "criterion": criterion, "output": {"samples": 12}}
        for criterion in ("bce-mcs", "bce-nce", "ce-is", "ce-nce")
    },
    **{criterion: {**LSTM, "criterion": criterion} for criterion in ("bce", "mse", "softmax")},
}  # fmt: skip


@pytest.fixture(scope="module")
def other(spelled, tmp_path_factory):
    """Corpora of another text, by another word list and spelled by other characters."""
    root = tmp_path_factory.mktemp("other")
    lines = (spelled / "train.txt").read_text().replace("river", "quay").splitlines()
    (root / "train.txt").write_text("\n".join(lines[:80]) + "\n")
    for args in (
        f"subword --text {root}/train.txt --type word --vocab-size 22 --out {root}/sw",
        f"subword --text {root}/train.txt --type char --words {root}/sw --out {root}/spelled",
        f"corpus --text {root}/train.txt --subword {root}/sw --out {root}/train.bin",
        f"corpus --text {root}/train.txt --subword {root}/spelled --out {root}/train-spelled.bin",
    ):
        assert main(args.split()) == 0
    return root


@pytest.fixture(scope="module")
def sources(spelled, tmp_path_factory):
    """A function that trains a kind of model for a few steps, once."""
    root = tmp_path_factory.mktemp("sources")

    def make(kind):
        with torch.inference_mode(False):
            train(told(kind, steps=4), *corpora(spelled, kind), root / kind, "cpu")
        return root / kind

    return make


def told(kind, **changes):
    return dataclasses.replace(settings("causal", **changes), **KINDS[kind])


def corpora(root, kind, parts=("train", "valid")):
    return [root / f"{part}{'-spelled' if kind == 'elmo' else ''}.bin" for part in parts]


def fresh(kind, path):
    """An untrained model of a kind over a corpus, and its vocabulary."""
    corpus = Corpus.open(path)
    some, subword = told(kind, seed=5), corpus.subword
    untrained = LanguageModel(some, subword.size, words=subword.words)
    ids = subword.words.size if untrained.two_way else subword.size
    counts = count_targets(untrained.objective, corpus, ids)
    return LanguageModel(some, subword.size, counts, subword.words).eval(), subword


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_the_same_vocabulary_gives_the_same_model(sources, spelled, kind):
    """Sampled criteria too, although the noise is that of another text."""
    source, subword = load_model(sources(kind))
    (path,) = corpora(spelled, kind, ["valid"])
    lm, _ = fresh(kind, path)
    assert start_from(sources(kind), lm, subword) == f"weights of {sources(kind)}"
    states = torch.randn(7, lm.trunk.width)
    expected, made = source.output.distribution(states), lm.output.distribution(states)
    reached = expected > -50  # the text of the noise may lack words
    if kind == "ce-nce":  # the noise is within the link
        assert (made - expected)[reached].abs().mean() < 0.2
    elif isinstance(lm.output, Corrected):
        np.testing.assert_allclose(made[reached], expected[reached], atol=1e-4)
    else:
        assert torch.equal(made, expected)
    for name, parameter in lm.trunk.named_parameters():
        assert torch.equal(parameter, dict(source.trunk.named_parameters())[name]), name


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_rows_of_another_vocabulary_go_by_piece(sources, spelled, other, kind):
    source, old = load_model(sources(kind))
    lm, new = fresh(kind, corpora(other, kind, ["train"])[0])
    said = start_from(sources(kind), lm, new)
    table, before = lm.trunk.lookup.weight, source.trunk.lookup.weight
    for row, piece in enumerate(new.vocabulary):
        known = piece in old.vocabulary
        expected = before[old.vocabulary.index(piece)] if known else before[5:].mean(0)
        torch.testing.assert_close(table[row], expected)
    ours, theirs = ((one.words.words if one.words else one).vocabulary for one in (new, old))
    known = len(set(ours[5:]) & set(theirs))
    assert 0 < known < len(ours[5:]) < len(theirs[5:])
    what = "predicted words" if kind == "elmo" else "pieces"
    assert said.endswith(
        f"; {known} of {len(ours) - 5} {what} are known there, 1 start from the average"
    )
    states = torch.randn(7, lm.trunk.width)
    expected, made = source.output.distribution(states), lm.output.distribution(states)
    np.testing.assert_allclose(made.exp().sum(1), 1.0, rtol=1e-4)
    same = [(ours.index(word), theirs.index(word)) for word in ours[5:] if word in theirs]
    if kind in ("adaptive", "ce-nce"):  # words in other clusters; noise within the link
        return
    # the ratio of two words that both know does not change
    here, there = np.transpose(same)
    made, expected = made[:, here], expected[:, there]
    ratio = (made - made[:, :1]) - (expected - expected[:, :1])
    np.testing.assert_allclose(ratio, 0.0, atol=1e-4)


@pytest.mark.parametrize(
    ("old", "new", "bound"),
    [
        ("bce-nce", "mse", 1e-4),
        ("mse", "bce-nce", 1e-4),
        ("bce-nce", "softmax", 1e-4),
        ("bce-mcs", "ce-is", 1e-4),
        ("softmax", "bce-mcs", 1e-4),
        # a logistic output is a probability that is nearly exp(z)
        ("bce-nce", "bce", 0.3),
        ("ce-nce", "mse", 0.3),
    ],
)
@torch.inference_mode()
def test_another_criterion_starts_from_the_same_matrix_and_log_probabilities(
    sources, spelled, old, new, bound
):
    source, subword = load_model(sources(old))
    lm, _ = fresh(new, spelled / "train.bin")
    buffers = {name: buffer.clone() for name, buffer in lm.output.named_buffers()}  # the noise
    assert start_from(sources(old), lm, subword).startswith(
        f"weights of {sources(old)}; criterion {old} there and {new} here: the output matrix stays"
    )
    assert torch.equal(lm.output.weight, source.output.weight)
    for name, parameter in lm.trunk.named_parameters():
        assert torch.equal(parameter, dict(source.trunk.named_parameters())[name]), name
    for name, buffer in lm.output.named_buffers():
        assert torch.equal(buffer, buffers[name]), name
    state = torch.zeros(1, lm.trunk.width)
    here, there = lm.output.distribution(state)[0], source.output.distribution(state)[0]
    difference = (here - there)[5:]  # of words, which no noise excludes
    assert (difference - difference.mean()).abs().max() < bound
    never = there < -50  # what the noise excluded is rare now, where it is summed
    assert not never.any() or here[never].max() < here[~never].min() + 1e-4


def test_mse_goes_on_from_a_converged_nce_model_and_may_be_killed(
    sources, spelled, tmp_path, train_in_parts
):
    """Gao et al. 2021 tried it; killed and resumed, the same bytes."""
    where, some = corpora(spelled, "mse"), told("mse", steps=12)
    whole = train(some, *where, tmp_path / "whole", "cpu", sources("bce-nce"))
    fresh_start = train(told("mse", steps=12), *where, tmp_path / "fresh", "cpu")
    assert math.isfinite(whole.best) and whole.best != fresh_start.best
    train_in_parts([0, 3, 9], some, *where, tmp_path / "parts", "cpu", sources("bce-nce"))
    assert saved_bytes(tmp_path / "parts") == saved_bytes(tmp_path / "whole")


def test_the_adaptive_softmax_keeps_words_of_one_cluster(sources, other):
    source, old = load_model(sources("adaptive"))
    lm, new = fresh("adaptive", other / "train.bin")
    start_from(sources("adaptive"), lm, new)
    first = lm.output.edges[0]
    heads = [
        {subword.vocabulary[i]: row for row, i in enumerate(model.output.rank.argsort()[:first])}
        for model, subword in ((lm, new), (source, old))
    ]
    both = [(row, heads[1][word]) for word, row in heads[0].items() if word in heads[1]]
    assert 2 < len(both) < first
    for here, there in both:
        assert torch.equal(lm.output.head.weight[here], source.output.head.weight[there])
    assert torch.equal(lm.output.head.weight[first:], source.output.head.weight[first:])


def test_a_training_goes_on_from_another_and_may_be_stopped(
    sources, other, spelled, tmp_path, train_in_parts, capsys
):
    """Step 0 is validated, the best weights may be those; killed and resumed, the same bytes."""
    where = corpora(other, "causal", ["train", "train"])
    some, source = told("causal", steps=12), sources("causal")
    whole = train(some, *where, tmp_path / "whole", "cpu", source)
    assert "whole: weights of" in capsys.readouterr().err
    log = read_log(tmp_path / "whole", "step")
    assert log[0]["step"] == 0 and log[0]["valid_loss"] > whole.best
    train_in_parts([0, 3, 9], some, *where, tmp_path / "parts", "cpu", source)
    assert saved_bytes(tmp_path / "parts") == saved_bytes(tmp_path / "whole")
    # other weights to start from are another training
    train(some, *where, tmp_path / "parts", "cpu")
    assert (tmp_path / "parts.1").is_dir()
    assert saved_bytes(tmp_path / "parts") != saved_bytes(tmp_path / "whole")


def test_a_start_that_nothing_improves_on_stays(sources, spelled, tmp_path):
    hot = dataclasses.replace(told("causal"), optim=Optim(lr=1.0, warmup=0), patience=1)
    where = corpora(spelled, "causal")
    progress = train(hot, *where, tmp_path / "m", "cpu", sources("causal"))
    assert (progress.best_step, progress.worse) == (0, 1)
    files = [load_tensors(one / "model.safetensors") for one in (tmp_path / "m", sources("causal"))]
    assert all(torch.equal(tensor, files[1][name]) for name, tensor in files[0].items())


def test_what_cannot_be_continued_is_refused_in_a_line(sources, spelled, tmp_path, capsys):
    (conf := tmp_path / "c.yaml").write_text(dump(told("causal")))
    paths = corpora(spelled, "causal")
    base = f"train --conf {conf} --train {paths[0]} --valid {paths[1]} --out {tmp_path}/m --init"
    source = sources("causal")
    for init, given, message in (
        (source, "arch.ffn=64", "arch.ffn is 32 there and 64 here; --init continues"),
        (source, "model=tta objective=autoencoding", "model is causal there and tta here"),
        (source, "criterion=adaptive output.cutoffs=[6]", "criterion is softmax there"),
        (source, "criterion=mse arch.tied=false", "arch.tied is true there and false here"),
        (sources("adaptive"), "", "model is lstm there and causal here"),
        (tmp_path / "m", "", "cannot start from itself"),
        (tmp_path / "none", "", "none/config.yaml"),
    ):
        capsys.readouterr()  # of the trainings of the sources
        assert main([*base.split(), str(init), *given.split()]) == 1
        said = capsys.readouterr().err
        assert message in said and said.count("\n") == 1, said
        assert not (tmp_path / "m").exists()
    assert main([*base.split(), str(source), "arch.dropout=0.3", "steps=1"]) == 0
    with pytest.raises(UserError, match=r"output\.cutoffs is \[6, 16\] there and \[5, 16\] here"):
        some = dataclasses.replace(told("adaptive"), output={"cutoffs": [5, 16], "divide": 2.0})
        train(some, *paths, tmp_path / "m", "cpu", sources("adaptive"))
    with pytest.raises(UserError, match="criterion is adaptive there and mse here"):
        train(told("mse"), *paths, tmp_path / "m", "cpu", sources("adaptive"))


def test_another_validation_text_is_told_and_changes_nothing(
    sources, spelled, other, tmp_path, monkeypatch, capsys
):
    """As of the old domain; early stopping and weights are those without it."""
    where, old = corpora(other, "causal", ["train", "train"]), tmp_path / "old.bin"
    text, same = spelled / "valid.txt", tmp_path / "same.bin"
    command = f"corpus --text {text} --subword {other}/sw --out {old}"
    assert main(command.split()) == 0
    shutil.copy(where[1], same)
    some, source = told("causal", steps=12, valid_every=3), sources("causal")
    train(some, *where, tmp_path / "alone", "cpu", source)
    also = {"general": old, "same": same}
    progress = train(some, *where, tmp_path / "m", "cpu", source, also)
    files = [tmp_path / run / "model.safetensors" for run in ("alone", "m")]
    assert files[0].read_bytes() == files[1].read_bytes()
    rows = read_log(tmp_path / "m", "also")
    losses = {row["step"]: (row["valid_loss"], row["also"]) for row in rows}
    assert list(losses) == [0, 3, 6, 9, 12]
    assert all(loss == others["same"] for loss, others in losses.values())
    first, at_best = (losses[step][1]["general"] for step in (0, progress.best_step))
    assert progress.also["general"] == pytest.approx((first, at_best), abs=1e-6)
    # a model that starts from the end of the training starts with what was measured there
    again = train(told("causal", steps=1), *where, tmp_path / "next", "cpu", tmp_path / "m", also)
    assert again.also["general"][0] == pytest.approx(at_best, abs=1e-6)
    # stopped and resumed it knows what was at first
    step = Training.step

    def interrupted(self, batch):
        if self.progress.step == 8:
            raise KeyboardInterrupt
        return step(self, batch)

    monkeypatch.setattr(Training, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(some, *where, tmp_path / "parts", "cpu", source, also)
    monkeypatch.undo()
    (conf := tmp_path / "c.yaml").write_text(dump(some))
    base = f"train --conf {conf} --train {where[0]} --valid {where[1]} --init {source} --also-valid"
    capsys.readouterr()
    assert main([*base.split(), f"general={old}", "--out", str(tmp_path / "parts")]) == 0
    told_last = capsys.readouterr()
    assert f"; general {at_best:.4f}, {first:.4f} at first\n" in told_last.out
    assert f"perplexity {math.exp(at_best):.2f} ({math.exp(first):.2f} at first)" in told_last.err
    for given, message in (
        (f"general={spelled}/valid.bin", "made with another word model"),
        (f"{old}", "not NAME=F.bin"),
        (f"a={old} --also-valid a={old}", "a second one called 'a'"),
    ):
        assert main([*base.split(), *given.split(), "--out", str(tmp_path / "x")]) == 1
        said = capsys.readouterr().err
        assert message in said and said.count("\n") == 1, said


CPU = choose_device("cpu")


def last_weights(directory) -> dict:
    """The tensors of a model as its last step left them."""
    saved = load_tensors(directory / "checkpoint.safetensors")
    return {n.removeprefix("model."): t for n, t in saved.items() if n.startswith("model.")}


def changed(before, after) -> set[str]:
    """The names of the tensors that a training changed in its `before`."""
    old, new = load_tensors(before / "model.safetensors"), last_weights(after)
    assert set(old) == set(new)
    return {name for name in old if not torch.equal(old[name], new[name])}


def continued(model, source, tiny, out, **changes):
    """A training that goes on from `source`, regularised to change all that it may."""
    optim = Optim(lr=5e-3, warmup=0, decay="none", weight_decay=0.0)
    some = settings(model, **{"steps": 4, "valid_every": 1, "optim": optim, **changes})
    train(some, tiny / "train.bin", tiny / "train.bin", out, "cpu", source)
    return out


@pytest.mark.parametrize(
    ("model", "freeze", "stays"),
    [
        ("causal", {"embedding": True}, ("trunk.embedding.",)),
        ("causal", {"layers": 1}, ("trunk.blocks.0.",)),
        ("masked", {"layers": 2}, ("trunk.blocks.",)),
        ("causal", {"output": True}, ("trunk.embedding.token.", "output.")),
        ("lstm", {"embedding": True, "layers": 1}, ("trunk.embedding.", "trunk.layers.0.")),
        ("lstm", {"output": True}, ("output.",)),
    ],
)
def test_what_is_frozen_stays(trained, tiny, tmp_path, model, freeze, stays):
    made = continued(model, trained[model], tiny, tmp_path / "m", freeze=Freeze(**freeze))
    names = set(load_tensors(made / "model.safetensors"))
    frozen = {name for name in names if name.startswith(stays)}
    assert frozen and changed(trained[model], made) == names - frozen
    assert load_model(made)[0].settings.freeze == Freeze(**freeze)


SGD = Optim(name="nag", lr=0.1, warmup=2, momentum=0.9, decay="plateau")
RESUMED = {
    "frozen": ("causal", {"freeze": Freeze(embedding=True, layers=1)}),
    "plateau": ("lstm", {"freeze": Freeze(output=True), "optim": SGD}),
    "sparse": ("lstm", {"optim": Optim(lr=5e-3, sparse=True), "freeze": Freeze(layers=1)}),
}


@pytest.mark.parametrize("case", RESUMED)
def test_stopped_and_resumed_gives_the_same_bytes(trained, corpora, tmp_path, train_in_parts, case):
    model, changes = RESUMED[case]
    some = settings(model, **{"steps": 17, **changes})
    train(some, *corpora, tmp_path / "whole", "cpu", trained[model])
    train_in_parts([3, 9, 14], some, *corpora, tmp_path / "parts", "cpu", trained[model])
    assert saved_bytes(tmp_path / "parts") == saved_bytes(tmp_path / "whole")


def test_what_does_not_fit_is_refused_in_a_line(trained, tiny, corpora, tmp_path, capsys):
    (conf := tmp_path / "c.yaml").write_text(dump(settings("causal")))
    base = (
        f"train --conf {conf} --train {tiny}/train.bin --valid {tiny}/valid.bin --out {tmp_path}/m"
    )
    init = f"--init {trained['causal']}"
    for given, message in (
        ("lora.rank=2", "lora: is gone; leave it out"),
        ("--init hf:gemma", "train adapters of Hugging Face models by the package peft"),
        ("freeze.embedding=true", "give it as --init DIR"),
        (f"{init} freeze.layers=3", "freeze.layers: 3 is more than the 2 layers"),
        (f"{init} freeze.layers=-1", "freeze.layers: -1 is too small"),
        (f"{init} freeze.layers=2 arch.norm=pre", "arch.norm is post there and pre"),
        (f"{init} freeze.embeddings=true", "unknown setting 'freeze.embeddings'; did you mean"),
    ):
        assert main([*base.split(), *given.split()]) == 1
        said = capsys.readouterr().err
        assert message in said and said.count("\n") == 1, said
        assert not (tmp_path / "m").exists()
    with pytest.raises(UserError, match="nothing is left to train"):
        every = Freeze(embedding=True, layers=1, output=True)
        lone = {"arch": {**settings("lstm").arch, "layers": 1}, "freeze": every}
        train(settings("lstm", **{**lone, "freeze": Freeze(), "steps": 1}),
              *corpora, tmp_path / "one", "cpu")  # fmt: skip
        continued("lstm", tmp_path / "one", tiny, tmp_path / "m", **lone)


def test_settings_without_it_are_those_of_older_versions(tiny, corpora, tmp_path):
    """What was trained before is not trained again."""
    said = dump(settings("causal"))
    assert "freeze" not in said
    text = (
        f"{said}lora: {{rank: 2}}\nvocabulary: {{size: 9, hash: a}}\n"  # merged by older versions
    )
    (tmp_path / "config.yaml").write_text(text)
    assert read_settings(tmp_path)[0] == settings("causal")
    plan = TrainingPlan.read(settings("causal"), *corpora, out="m", device=CPU)
    assert plan.fingerprint == fingerprint_of_0_1(settings("causal"), tiny)


def fingerprint_of_0_1(some, tiny) -> str:
    """As it was made before there were accumulate, freeze, cut_alpha and lists."""
    import hashlib

    tree = dataclasses.asdict(some)
    for name in ("accumulate", "freeze", "cut_alpha", "lists"):
        del tree[name]
    corpora = [Corpus.open(tiny / f"{part}.bin") for part in ("train", "valid")]
    parts = tree, corpora[0].subword.hash, *(corpus.digest() for corpus in corpora)
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
