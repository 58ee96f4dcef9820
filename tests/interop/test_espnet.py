"""The commands for ESPnet users in docs/espnet.md, on a recogniser that ESPnet's own commands
train; and our models inside ESPnet's beam search.

The speech is synthetic: tones for letters, in noise, one for two letters of the alphabet, so that
only a language model tells some words apart. ESPnet comes from utils/install_espnet.sh; all takes
about a minute and a half, most of it ESPnet's training and its imports.
"""

import json
import os
import re
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from scoring import load_scorer
from toys import WORDS, sentences

from lmtools.formats import jsonl, kaldi_text, read, scores

ROOT = Path(__file__).parents[2]
INSTALLER = ROOT / "utils/install_espnet.sh"
ESPNET = ROOT / "tools/espnet"

RATE = 16_000
LETTERS = sorted(set("".join(WORDS)))
SETS = {"train": 160, "dev": 30, "test": 30}  # utterances
CAUSAL = """
model: causal
objective: causal
arch: {layers: 1, dim: 64, heads: 2, ffn: 128, positions: 64}
optim: {lr: 3.0e-3, warmup: 20}
batch: {tokens: 1500}
epochs: 2
precision: float32
"""
LSTM = CAUSAL.replace("causal\nobj", "lstm\nobj").replace(
    "heads: 2, ffn: 128, positions: 64", "units: 64"
)
SMALL = {
    "attention_heads": 2,
    "linear_units": 128,
    "dropout_rate": 0.0,
    "positional_dropout_rate": 0.0,
}
RECOGNISER = {
    "encoder": "transformer",
    "encoder_conf": {**SMALL, "output_size": 64, "num_blocks": 2, "attention_dropout_rate": 0.0},
    "decoder": "transformer",
    "decoder_conf": {
        **SMALL,
        "num_blocks": 1,
        "self_attention_dropout_rate": 0.0,
        "src_attention_dropout_rate": 0.0,
    },
    "model_conf": {"ctc_weight": 0.7},
    "frontend_conf": {"n_fft": 512, "hop_length": 160},
    "normalize": "utterance_mvn",
    "optim": "adam",
    "optim_conf": {"lr": 0.003},
    "scheduler": "warmuplr",
    "scheduler_conf": {"warmup_steps": 50},
    "batch_type": "unsorted",
    "batch_size": 16,
    "num_iters_per_epoch": 20,
    "max_epoch": 8,
    "num_workers": 0,
    "num_att_plot": 0,
    "seed": 1,
    "use_tensorboard": False,
    "best_model_criterion": [["valid", "loss", "min"]],
    "token_type": "bpe",
    "token_list": "data/token_list/bpe/tokens.txt",
    "bpemodel": "data/token_list/bpe/bpe.model",
}

# ESPnet's programs as `python -m espnet2.bin.NAME` runs them, one after the other in one process:
# their imports take longer than what they do here
PROGRAMS = """
import importlib, sys
for line in open(sys.argv[1]):
    name, *words = line.split()
    importlib.import_module(f"espnet2.bin.{name}").main(words)
"""


def sound(text: str, rng: np.random.Generator) -> np.ndarray:
    """Samples (N,) int16: 64 ms of tone a letter, a pause after each word, noise over all."""
    time = np.arange(RATE * 64 // 1000) / RATE
    parts = [np.zeros(RATE // 10)]
    for word in text.split():
        frequencies = [300 * 1.28 ** (LETTERS.index(letter) // 2) for letter in word]
        parts += [
            np.sin(2 * np.pi * frequency * time) * np.hanning(len(time))
            for frequency in frequencies
        ]
        parts.append(np.zeros(RATE * 48 // 1000))
    tones = np.concatenate([*parts, np.zeros(RATE // 10)])
    return (
        ((tones + 0.15 * rng.standard_normal(len(tones))) * 6000).clip(-32768, 32767).astype("<i2")
    )


def make_corpus(home: Path) -> None:
    """Data directories, BPE tokens as ESPnet's recipes have them, and LM text."""
    for seed, (name, count) in enumerate(SETS.items()):
        folder = home / "data" / name
        folder.mkdir(parents=True)
        rng = np.random.default_rng(seed)
        texts = {f"{name}{i:03}": text for i, text in enumerate(sentences(count, seed, 8))}
        kaldi_text.write(texts, folder / "text")
        kaldi_text.write({utt: str(folder / f"{utt}.wav") for utt in texts}, folder / "wav.scp")
        for utt, text in texts.items():
            with wave.open(str(folder / f"{utt}.wav"), "wb") as stream:
                stream.setparams((1, 2, RATE, 0, "NONE", ""))
                stream.writeframes(sound(text, rng).tobytes())
    for name, count, seed in (("train", 3000, 11), ("valid", 100, 12)):
        (home / f"{name}.txt").write_text("\n".join(sentences(count, seed, 8)) + "\n")
    bpe = home / "data/token_list/bpe"
    bpe.mkdir(parents=True)
    sentencepiece.SentencePieceTrainer.train(
        input=str(home / "train.txt"),
        model_prefix=str(bpe / "bpe"),
        model_type="bpe",
        vocab_size=50,
        character_coverage=1.0,
        minloglevel=2,
    )
    pieces = [line.split("\t")[0] for line in (bpe / "bpe.vocab").read_text().splitlines()][3:]
    (bpe / "tokens.txt").write_text("\n".join(["<blank>", "<unk>", *pieces, "<sos/eos>"]) + "\n")


def make_programs(home: Path) -> dict[str, str]:
    """The environment in which `python` is ESPnet's and `lmtools` is ours."""
    (home / "bin").mkdir()
    for name, command in (
        ("python", f"{ESPNET}/bin/python"),
        ("lmtools", f"{sys.executable} -m lmtools"),
    ):
        (home / "bin" / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (home / "bin" / name).chmod(0o755)
    paths = {
        "PATH": f"{home}/bin:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "XDG_CACHE_HOME": str(home / "cache"),
    }
    return {**os.environ, **paths, "OMP_NUM_THREADS": "1"}


def why_skipped(prefix: Path) -> str:
    """What keeps these tests from running with the ESPnet in `prefix`; "" where it is there."""
    if (prefix / "installed").exists():
        return ""
    failed = prefix / "failed"
    cause = failed.read_text().strip() if failed.exists() else "utils/install_espnet.sh installs it"
    return f"ESPnet is not installed: {cause}"


def commands_of_page() -> list[str]:
    """The blocks of docs/espnet.md about an LM of ESPnet's pieces."""
    page = (ROOT / "docs/espnet.md").read_text().partition("\n## icefall")[0]
    return re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """Runs bash commands in a directory with a corpus; their output, and a failure if they fail."""
    if why := why_skipped(ESPNET):
        pytest.skip(why)
    home = tmp_path_factory.mktemp("espnet")
    make_corpus(home)
    environment = make_programs(home)

    def run(commands: str) -> str:
        result = subprocess.run(
            ["bash", "-euc", commands], cwd=home, env=environment, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
        return result.stdout

    run.home = home
    return run


@pytest.fixture(scope="module")
def decoded(shell):
    """The same after ESPnet trained, decoded, and ran the page's three blocks."""
    (shell.home / "conf").mkdir()
    for name, content in (("asr", json.dumps(RECOGNISER)), ("causal", CAUSAL), ("lstm", LSTM)):
        (shell.home / f"conf/{name}.yaml").write_text(content)
    data = "".join(
        f" --{kind}_data_path_and_name_and_type data/{name}/{file} --{kind}_shape_file"
        f" data/{name}/wav.scp"
        for kind, name in (("train", "train"), ("valid", "dev"))
        for file in ("wav.scp,speech,sound", "text,text,text")
    )
    calls = [f"asr_train --config conf/asr.yaml{data} --output_dir exp/asr --ngpu 0"]
    calls += [
        "asr_inference --asr_train_config exp/asr/config.yaml"
        " --asr_model_file exp/asr/valid.loss.best.pth --data_path_and_name_and_type"
        f" data/{name}/wav.scp,speech,sound --nbest 20 --ctc_weight 1.0 --num_workers 0"
        f" --output_dir exp/asr/decode/{name}/logdir/output.1"
        for name in ("dev", "test")
    ]
    (shell.home / "calls.txt").write_text("\n".join(calls) + "\n")
    shell(f"python -c '{PROGRAMS}' calls.txt")
    blocks = commands_of_page()
    assert len(blocks) == 3
    for block in blocks:
        shell(block)
    return shell


def test_a_failed_download_is_the_reason_of_the_skip(tmp_path):
    assert "installs it" in why_skipped(tmp_path)
    settings = {**os.environ, "PYTHON": sys.executable, "PIP_FLAGS": "--no-index"}
    done = subprocess.run([INSTALLER, tmp_path], env=settings, capture_output=True, text=True)
    assert done.returncode == 1
    cause = "pip failed: ERROR: No matching distribution found for"
    assert cause in done.stderr and cause in why_skipped(tmp_path)


def test_lists_are_what_espnet_wrote(decoded):
    logdir = decoded.home / "exp/asr/decode/test/logdir/output.1"
    written = {}
    for folder in logdir.glob("*best_recog"):
        totals = dict(
            line.split(maxsplit=1) for line in (folder / "score").read_text().splitlines()
        )
        for line in (folder / "text").read_text().splitlines():
            utt, _, text = line.partition(" ")
            written[utt, int(folder.name.removesuffix("best_recog"))] = (
                " ".join(text.split()),
                float(totals[utt].strip("tensor()")),
            )
    nbests = list(jsonl.read(decoded.home / "test.jsonl"))
    ours = {
        (n.utt, rank): (hyp.text, hyp.scores["am"])
        for n in nbests
        for rank, hyp in enumerate(n.hyps, 1)
    }
    assert ours == written
    assert len(nbests) == SETS["test"]
    assert {n.utt: n.ref for n in nbests} == kaldi_text.read(decoded.home / "data/test/text")


def test_rescoring_lowers_the_error_rate(decoded):
    decoded("cp exp/asr/decode/test/logdir/output.1/1best_recog/text first.txt")
    evaluate = "lmtools evaluate --ref data/test/text --metric wer --hyp"
    first, rescored = (
        float(re.match(r"WER (\S+)%", decoded(f"{evaluate} {name}.txt"))[1])
        for name in ("first", "test")
    )
    assert rescored < first < 80


@pytest.fixture(scope="module")
def found(decoded):
    """The hypotheses of ESPnet's beam search by the exported model in it: causal and an LSTM."""
    decoded("lmtools train --conf conf/lstm.yaml --train train.bin --valid valid.bin --out lm/lstm")
    decoded(
        "python -m lmtools.bridges.espnet export --lm lm/lstm --token-list"
        " data/token_list/bpe/tokens.txt --out exp/lstm"
    )
    output = decoded(
        f"python {ROOT}/tests/interop/espnet_hypotheses.py exp/asr data/test/wav.scp 8 exp/lm"
        " exp/lstm"
    )
    hyps = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return {
        model: [hyp for hyp in hyps if hyp["model"] == model] for model in ("exp/lm", "exp/lstm")
    }


def compare(decoded, lm: str, hyps: list[dict]) -> list[bool]:
    """Hold ESPnet's LM scores against ours; return which hypotheses have our pieces."""
    scorer = load_scorer(str(decoded.home / lm), "cpu")
    ids = [tuple(scorer.subword.vocabulary.index(token) for token in hyp["tokens"]) for hyp in hyps]
    assert [hyp["lm"] for hyp in hyps] == pytest.approx(
        [values.sum() for values in scorer.log_probs(ids)], abs=1e-3
    )
    return [
        own == pieces
        for own, pieces in zip(scorer.prepare([hyp["text"] for hyp in hyps]), ids, strict=True)
    ]


def test_scores_inside_the_beam_search_are_ours(decoded, found):
    """ESPnet's parts are seen in Python alone; the command finds the same hypotheses."""
    hyps = found["exp/lm"]
    same_pieces = compare(decoded, "lm/causal", hyps)
    assert sum(same_pieces) > len(hyps) / 2
    utts = list(dict.fromkeys(hyp["utt"] for hyp in hyps))
    nbests = {nbest.utt: nbest for nbest in read(decoded.home / "exp/asr/decode_lm/test")}
    written = [hyp for utt in utts for hyp in nbests[utt].hyps]
    assert [hyp.text for hyp in written] == [" ".join(hyp["text"].split()) for hyp in hyps]
    assert [hyp.scores["am"] for hyp in written] == pytest.approx(
        [hyp["total"] for hyp in hyps], abs=1e-3
    )
    decoded("lmtools score --lm lm/causal --nbest exp/asr/decode_lm/test --out inside.scores")
    ours = np.concatenate(
        [scores.read(decoded.home / "inside.scores").log_prob[utt] for utt in utts]
    )
    theirs = np.array([hyp["lm"] for hyp in hyps])
    assert ours[same_pieces] == pytest.approx(theirs[same_pieces], abs=1e-3)


def test_an_lstm_serves_too(decoded, found):
    assert any(compare(decoded, "lm/lstm", found["exp/lstm"]))
