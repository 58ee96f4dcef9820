"""egs/wmt13's lists by a Marian model of Hugging Face: of a tiny one they are what the model itself
says of them.
"""

import contextlib
import io
import json
import runpy
import sys
from pathlib import Path
from shlex import split
from typing import NamedTuple
from unittest import mock

import pytest

from lmtools.formats import jsonl

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed; pip install -e '.[hf]'"
)
LOCAL = Path(__file__).parents[2] / "egs/wmt13/local"
WORDS = {
    "der": "the", "hund": "dog", "katze": "cat", "baum": "tree", "sieht": "sees", "sucht": "seeks",
    "alte": "old", "kleine": "small",
}  # fmt: skip
BEAM = 6


def pairs(count: int) -> list[tuple[str, str]]:
    """Sentences of eight words and their translations, word for word."""
    words = list(WORDS)
    rows = [
        [words[(i * (1, 3, 5)[i % 3] + j * j + i // 7) % len(words)] for j in range(3 + i % 4)]
        for i in range(count)
    ]
    return [(" ".join(row), " ".join(WORDS[word] for word in row)) for row in rows]


class Done(NamedTuple):
    """How a script ended and what it said."""

    returncode: int
    stderr: str


def call(script: str, *options) -> Done:
    """A script of the recipe, run in this process, which has transformers loaded."""
    said, status = io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", [script, *map(str, options)]),
        contextlib.redirect_stderr(said),
    ):
        try:
            runpy.run_path(str(LOCAL / script), run_name="__main__")
        except SystemExit as end:
            status = end.code
    if isinstance(status, str):  # what Python does with sys.exit("message")
        said.write(f"{status}\n")
        status = 1
    return Done(status or 0, said.getvalue())


def write_model(out: Path) -> None:
    """A Marian model of random weights, and its tokenizer with one vocabulary of both sides."""
    import sentencepiece
    import torch

    out.mkdir()
    with open(out / "source.spm", "wb") as stream:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(side for pair in pairs(120) for side in pair), model_writer=stream,
            vocab_size=40, model_type="unigram", bos_id=-1, eos_id=0, unk_id=1,
            hard_vocab_limit=False, minloglevel=2,
        )  # fmt: skip
    (out / "target.spm").write_bytes((out / "source.spm").read_bytes())
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(out / "source.spm"))
    ids = {pieces.id_to_piece(i): i for i in range(len(pieces))} | {"<pad>": len(pieces)}
    (out / "vocab.json").write_text(json.dumps(ids))
    sides = {"source_lang": "xx", "target_lang": "en", "model_max_length": 512}
    (out / "tokenizer_config.json").write_text(json.dumps(sides))
    tokenizer = transformers.MarianTokenizer.from_pretrained(out)
    torch.manual_seed(1)
    config = transformers.MarianConfig(
        vocab_size=len(tokenizer), d_model=64, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=1, decoder_attention_heads=1, encoder_ffn_dim=256,
        decoder_ffn_dim=256, activation_function="relu", init_std=0.2,
        max_position_embeddings=512, scale_embedding=True, static_position_embeddings=True,
        share_encoder_decoder_embeddings=True, pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id, forced_eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    model = transformers.MarianMTModel(config)
    model.final_logits_bias[0, tokenizer.pad_token_id] = -1e4  # never said, as by what was trained
    model.save_pretrained(out)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A model, a source and its references."""
    root = tmp_path_factory.mktemp("nmt")
    write_model(root / "model")
    for name, side in (("source", 0), ("reference", 1)):
        rows = [f"t-{i} {pair[side]}\n" for i, pair in enumerate(pairs(7), 1)]
        (root / name).write_text("".join(rows))
    return root


def translate(home: Path, out: Path, *options) -> Done:
    files = tuple(
        split(
            f"--model {home}/model --source {home}/source --reference {home}/reference --out {out}"
        )
    )
    return call("translate.py", *files, "--beam", BEAM, "--batch", 3, *options)


@pytest.fixture(scope="module")
def lists(home):
    done = translate(home, home / "lists.jsonl", "--pieces")
    assert done.returncode == 0, done.stderr
    return list(jsonl.read(home / "lists.jsonl"))


def test_lists_have_sources_references_and_the_searchs_order(home, lists):
    assert [nbest.utt for nbest in lists] == [f"t-{i}" for i in range(1, 8)]
    assert [(nbest.extra["source"], nbest.ref) for nbest in lists] == pairs(7)
    for nbest in lists:
        norms = [hyp.scores["norm"] for hyp in nbest.hyps]
        assert norms == sorted(norms, reverse=True)
        assert len({hyp.text for hyp in nbest.hyps}) == len(nbest.hyps) <= BEAM
        for hyp in nbest.hyps:
            values = list(map(float, hyp.extra["piece_scores"].split()))
            assert sum(values) == pytest.approx(hyp.scores["am"], abs=1e-3)
            assert sum(values) / len(values) == pytest.approx(hyp.scores["norm"], abs=1e-3)
            assert hyp.extra["pieces"].split()[-1] == "</s>"


def test_scores_are_the_models_own(home, lists):
    """The sum of log-probabilities, one by one from the loss that the model reports."""
    import torch

    model = transformers.MarianMTModel.from_pretrained(home / "model").eval()
    tokenizer = transformers.MarianTokenizer.from_pretrained(home / "model")
    for nbest in lists[:3]:
        source = tokenizer([nbest.extra["source"]], return_tensors="pt")
        for hyp in nbest.hyps:
            target = torch.tensor([tokenizer.convert_tokens_to_ids(hyp.extra["pieces"].split())])
            with torch.inference_mode():
                loss = model(**source, labels=target).loss
            # the search has no padding
            assert -float(loss) * target.shape[1] == pytest.approx(hyp.scores["am"], abs=0.02)


def test_a_killed_run_goes_on_and_gives_the_same_lists(home, lists):
    """A part with three whole lists and a torn one is completed; another's is not used."""
    whole = (home / "lists.jsonl").read_text()
    out, part = home / "resumed.jsonl", home / "resumed.jsonl.part"
    assert translate(home, out, "--pieces").returncode == 0
    assert out.read_text() == whole
    how = {"sources": "other"}
    part.write_text(json.dumps(how) + "\n" + "not a list\n")
    assert translate(home, out, "--pieces").returncode == 0
    assert out.read_text() == whole
    assert not part.exists()


def test_wrong_input_is_one_line(home):
    (home / "short").write_text("t-1 the dog\n")
    files = ("--model", home / "model", "--source", home / "source", "--out", home / "none.jsonl")
    done = call("translate.py", *files, "--reference", home / "short")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "short: no reference of 't-2', which" in done.stderr
    done = call(
        "translate.py", "--model", home, "--source", home / "source", "--out", home / "none.jsonl"
    )
    assert (done.returncode, "no config.json" in done.stderr) == (1, True)
    assert not (home / "none.jsonl").exists()
