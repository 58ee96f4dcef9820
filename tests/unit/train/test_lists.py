"""Training from N-best lists: losses by hand, gradients by finite differences, scores as `lmtools
score` has them, what a model may not lose, exact resume, refusals.
"""

import json
import math
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from toys import OBJECTIVE, WORDS, read_log, saved_bytes, sentences, settings

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats import scores
from lmtools.models.checkpoint import load_model
from lmtools.models.settings import Batch, Lists, Optim
from lmtools.train import train
from lmtools.train.corrupt import Corruptor
from lmtools.train.directory import TrainingPlan
from lmtools.train.lists import ListBatches, expect_errors
from lmtools.train.parallel import World

MWER = {"batch": Batch(sentences=8), "lists": Lists("mwer", scale=0.5), "valid_every": 5}
CONFUSIONS = "heard\tsaid\tcount\tof\ncity\tqueen\t3\t9\nthe the\tthe\t1\t9\n\tgreat river\t2\t5\n"


def write_lists(path, count, seed, luck=1.0):
    """Lists of five: the reference, and corruptions whose `am` says nothing (`luck` 1), or which is
    the reference (0).
    """
    draw, rows = random.Random(seed), []
    for number, ref in enumerate(sentences(count, seed, 6)):
        hyps = []
        for errors in range(5):
            words = ref.split()
            for _ in range(errors):
                words[draw.randrange(len(words))] = draw.choice(WORDS)
            am = luck * draw.gauss(0, 1) - 50 * (1 - luck) * errors
            hyps.append({"text": " ".join(words), "scores": {"am": am}})
        draw.shuffle(hyps)
        rows.append(json.dumps({"utt": f"u{number}", "ref": ref, "hyps": hyps}))
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def lists(tmp_path_factory):
    root = tmp_path_factory.mktemp("lists")
    (root / "confusions.tsv").write_text(CONFUSIONS)
    write_lists(root / "sure.jsonl", 24, 7, luck=0.0)
    for name, count, seed in (("train", 48, 5), ("valid", 24, 6)):
        write_lists(root / f"{name}.jsonl", count, seed)
    return root


def on_lists(model, **changes):
    return settings(model, **{**MWER, **changes})


def test_the_loss_of_lists_of_two_by_hand():
    totals = torch.tensor([[0.0, math.log(3)], [5.0, -math.inf]])
    errors = torch.tensor([[1.0, 0.0], [2.0, 0.0]])
    assert expect_errors(totals, errors).tolist() == pytest.approx([0.25, 2.0])  # p: 1/4, 3/4


@pytest.mark.parametrize("model", OBJECTIVE)
def test_gradients_are_finite_differences_of_scores_that_lmtools_has(
    trained, lists, tmp_path, model
):
    out = tmp_path / "lm"
    told = on_lists(model, steps=8, lists=Lists("mwer", sample=3))
    where = lists / "train.jsonl", lists / "valid.jsonl"
    train(told, *where, out, "cpu", trained[model])
    lm, _ = load_model(out)
    plan = TrainingPlan.read(told, *where, out=out, device=torch.device("cpu"), init=trained[model])
    batches = ListBatches(plan.train, plan, 1, world=World(), lm=lm)

    def loss():
        parts = batches.parts(lm, batches.at(0), np.random.default_rng(3))
        return sum(batches.loss(lm, part, plan.device) for part, _ in parts)

    loss().backward()
    parameters = [p for p in lm.parameters() if p.grad is not None]
    norm = math.sqrt(sum(float(p.grad.square().sum()) for p in parameters))
    ends, step = [], 0.02 / norm
    for sign in (1, -2):  # there, and back to the other side
        for parameter in parameters:
            parameter.data.add_(parameter.grad / norm, alpha=sign * step)
        ends.append(loss().item())
    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(norm, rel=0.02)
    assert main(f"score --nbest {where[1]} --lm {out} --out {tmp_path}/s --cache none".split()) == 0
    lm, table = load_model(out)[0], scores.read(tmp_path / "s")
    batches = ListBatches(plan.valid, plan, 1, world=World(), lm=lm)
    with torch.no_grad():
        ours = batches.score(lm, plan.valid.lists, plan.device)
    theirs = np.concatenate([table.log_prob[utt] for utt in plan.valid.utts])
    np.testing.assert_allclose(ours.numpy(), theirs, atol=2e-4)


@pytest.mark.parametrize("model", OBJECTIVE)
def test_long_batches_have_equal_gradients_in_less_memory(
    trained, lists, tmp_path, monkeypatch, model
):
    """A hypothesis longer than a part is one; dropout is drawn alike on the way back."""
    where = lists / "train.jsonl", lists / "valid.jsonl"
    lm, _ = load_model(trained[model])
    told, device = on_lists(model, steps=8), torch.device("cpu")
    plan = TrainingPlan.read(told, *where, out=tmp_path / "x", device=device, init=trained[model])
    batches = ListBatches(plan.train, plan, 1, world=World(), lm=lm)
    found, kept = {}, {}
    for most in (1 << 20, 100, 3):
        monkeypatch.setattr("lmtools.train.lists.MOST", most)
        lm.zero_grad()
        sizes = []
        hooks = torch.autograd.graph.saved_tensors_hooks(
            lambda t, sizes=sizes: sizes.append(t.numel()) or t, lambda t: t
        )
        with hooks:
            (part, _), *_ = batches.parts(lm, batches.at(0), np.random.default_rng(3))
            loss = batches.loss(lm, part, device)
            kept[most] = sum(sizes)
        loss.backward()
        found[most] = [p.grad.clone() for p in lm.parameters() if p.grad is not None]
    for most in (100, 3):
        assert kept[most] < 0.5 * kept[1 << 20]
        for ours, whole in zip(found[most], found[1 << 20], strict=True):
            torch.testing.assert_close(ours, whole, rtol=1e-3, atol=1e-5)


def test_training_lowers_errors_and_keeps_what_it_cannot_better(trained, lists, tmp_path):
    told = on_lists("tta", lists=Lists("mwer"), epochs=8, optim=Optim(lr=5e-3, warmup=2))
    found = train(told, *[lists / f"{n}.jsonl" for n in ("train", "train")], tmp_path / "a", "cpu",
                  trained["tta"])  # fmt: skip
    first = read_log(tmp_path / "a", "valid_loss")[0]["valid_loss"]
    assert found.best < 0.8 * first and found.best_step > 0
    told = replace(told, patience=2)
    sure = [lists / f"{name}.jsonl" for name in ("train", "sure")]
    kept = train(told, *sure, tmp_path / "b", "cpu", trained["tta"])
    assert (kept.best, kept.best_step) == (0.0, 0) and kept.step < found.step
    ours, theirs = (saved_bytes(path, "model") for path in (tmp_path / "b", trained["tta"]))
    assert ours == theirs


def test_resumed_training_has_equal_bytes(trained, lists, tmp_path, train_in_parts):
    told = on_lists("lstm", steps=12, lists=Lists("mwer", None, 1.0, 3, f"{lists}/confusions.tsv"))
    where = lists / "train.jsonl", lists / "valid.jsonl"
    train(told, *where, tmp_path / "whole", "cpu", trained["lstm"])
    train_in_parts([3, 8], told, *where, tmp_path / "parts", "cpu", trained["lstm"])
    assert saved_bytes(tmp_path / "parts") == saved_bytes(tmp_path / "whole")


def test_corrupted_references_have_the_errors_of_their_confusions(lists):
    corruptor = Corruptor.read(lists / "confusions.tsv", 4)
    texts, errors = corruptor.draw("the queen of the great river", np.random.default_rng(1))
    assert texts[0] == "the queen of the great river" and errors[0] == 0
    assert len(set(texts)) == 4 and (errors[1:] > 0).all()
    for text, count in zip(texts, errors, strict=True):
        made = text.count("city") + 2 * ("river" not in text) + text.count("the the")
        assert made == count
    again = corruptor.draw("the queen of the great river", np.random.default_rng(1))
    assert again[0] == texts
    assert corruptor.draw("stone", np.random.default_rng(1))[0] == ("stone",)


@pytest.mark.parametrize(
    ("changes", "named", "words"),
    [
        ({"lists.weights": "{lm: 1}"}, "train", "no score 'lm'; give lists.weights"),
        ({}, "bare", "utterance 'u1' has no reference; attach them"),
        ({}, "flat", "in no list do the errors of hypotheses differ"),
        ({"lists.confusions": "F"}, "train", "the head line does not name heard, said, count"),
        ({"lists.loss": "mwr"}, "train", "'mwr' is unknown"),
        ({"objective": "two-way"}, "train", "not for objective two-way; take a model of"),
    ],
)
def test_refusals_are_one_line(trained, lists, tmp_path, capsys, changes, named, words):
    hyps = '[{"text": "a", "scores": {"am": 1}}]'
    (lists / "bare.jsonl").write_text(f'{{"utt": "u1", "hyps": {hyps}}}\n')
    (lists / "flat.jsonl").write_text(f'{{"utt": "u1", "ref": "a", "hyps": {hyps}}}\n')
    (lists / "conf.yaml").write_text("lists: {loss: mwer}\nbatch: {sentences: 8}\n")
    given = [f"{k}={lists / 'conf.yaml' if v == 'F' else v}" for k, v in changes.items()]
    command = f"train --conf {lists}/conf.yaml --train {lists}/{named}.jsonl --out {tmp_path}/lm"
    command += f" --valid {lists}/valid.jsonl --init {trained['tta']}"
    assert main([*command.split(), *given]) == 1
    error = capsys.readouterr().err.strip()
    assert words in error and error.count("\n") == 0 and not (tmp_path / "lm").exists()


def test_lists_need_a_model_to_go_on_from(lists, tmp_path):
    with pytest.raises(UserError, match="give --init LM"):
        train(on_lists("tta"), *[lists / "train.jsonl"] * 2, tmp_path / "lm", "cpu")
