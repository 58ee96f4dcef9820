"""Low-rank updates of a Hugging Face model by the training loop: what learns, what is saved, that
a run that was stopped goes on to the same bytes, and that peft and `hf:DIR,adapter=` read it.
"""

import json
import re

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scoring import load_scorer
from toys import read_log, saved_bytes

from lmtools.base.config import from_yaml
from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.models.settings import Settings
from lmtools.train import Stopped, loop, train

hf = pytest.importorskip("unit.score.test_huggingface_causal")
LINES = ["the king came to the city", "the queen came", "a king of the city", "a queen of a king"]
MORE = ["optim.lr=3e-2", "optim.warmup=2", "batch.tokens=24", "epochs=5", "precision=float32",
        "lora.rank=2", "checkpoint_every=3", "log_every=4", "valid_every=5"]  # fmt: skip


@pytest.fixture(scope="module", params=["gemma3", "gpt2"])
def home(request, tmp_path_factory):
    root = tmp_path_factory.mktemp(request.param)
    hf.save(root / "base", request.param)
    (root / "t.txt").write_text("\n".join(LINES * 4) + "\n")
    command = f"corpus --text {root}/t.txt --subword hf:{root}/base --out {root}/t.bin"
    assert main(command.split()) == 0
    return root


def run(home, out, *more):
    settings = from_yaml(Settings, "conf/lora.yaml", [*MORE, *more])
    binary = home / "t.bin"
    with torch.inference_mode(False):
        train(settings, binary, binary, home / out, "cpu", init=f"hf:{home}/base")
    return home / out


def scores(home, out, **options):
    scorer = load_scorer(f"hf:{home}/base", adapter=str(home / out), **options)
    return np.array([row.sum() for row in scorer.log_probs(scorer.prepare(LINES))])


def test_only_the_updates_learn_and_peft_reads_them(home):
    peft = pytest.importorskip("peft", reason="peft is not installed; pip install peft")
    out = run(home, "whole")
    saved = load_file(out / "adapter_model.safetensors")
    assert all(re.search(r"\.lora_[AB]\.weight$", name) for name in saved)
    state = load_file(out / "checkpoint.safetensors")
    assert sum(t.numel() for t in state.values()) < 4 * sum(t.numel() for t in saved.values())
    assert not (out / "model.safetensors").exists()
    base = hf.transformers.AutoModelForCausalLM.from_pretrained(home / "base")
    model = peft.PeftModel.from_pretrained(base, out).eval()
    found, totals = scores(home, "whole"), []
    for line in LINES:
        ids = torch.tensor([[1, *hf.words_tokenizer()(line)["input_ids"], 2]])
        with torch.inference_mode():
            totals.append(-float(model(ids, labels=ids).loss) * (ids.shape[1] - 1))
    np.testing.assert_allclose(found, totals, rtol=1e-5, atol=1e-3)
    losses = read_log(out, "valid_loss")
    tokens = sum(len(line.split()) + 1 for line in LINES)
    assert losses[-1]["valid_loss"] < losses[0]["valid_loss"] - 0.2
    best = min(row["valid_loss"] for row in losses)
    assert best == pytest.approx(-found.sum() / tokens, rel=1e-4)


def test_a_training_that_was_stopped_gives_the_same_bytes(home, monkeypatch):
    whole = run(home, "straight")

    def stop(self, batch, step=loop.Training.step):
        self.terminated = self.progress.step == 6
        return step(self, batch)

    monkeypatch.setattr(loop.Training, "step", stop)
    with pytest.raises(Stopped):
        run(home, "halves")
    monkeypatch.undo()
    halves = run(home, "halves")
    names = "adapter_model", "checkpoint"
    assert saved_bytes(whole, *names) == saved_bytes(halves, *names)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["lora.rank=0"], "learns by low-rank updates alone; give lora.rank=8"),
        (["lora.targets=[q]"], "lora.targets: q is no linear layer of hf:.*has .*"),
        (["criterion=bce"], "give model=causal objective=causal criterion=softmax"),
        (["freeze.layers=1"], "no freeze"),
    ],
)
def test_what_does_not_fit_is_refused(home, more, said):
    with pytest.raises(UserError, match=said):
        run(home, "refused", *more)
    assert not (home / "refused").exists()


def test_targets(home):
    last = json.loads((home / "base/config.json").read_text())["model_type"] == "gpt2"
    name = "c_attn" if last else "q_proj"
    out = run(home, "targets", f"lora.targets=[{name}]", "epochs=1")
    assert all(f".{name}." in key for key in load_file(out / "adapter_model.safetensors"))


def test_other_tokens_are_refused(home, spelled):
    settings = from_yaml(Settings, "conf/lora.yaml", MORE)
    binary = spelled / "train.bin"
    with pytest.raises(UserError, match=r"other tokens; make it with lmtools corpus --subword hf:"):
        train(settings, binary, binary, home / "x", "cpu", init=f"hf:{home}/base")
