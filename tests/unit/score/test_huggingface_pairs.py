"""Models of Hugging Face with encoder and decoder, against the loss that transformers itself gives;
the models are tiny, random and made here.
"""

from shlex import split

import numpy as np
import pytest
import torch
from scoring import CPU, ask
from toys import sentences
from translators import random_marian

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats import jsonl, kaldi_text, scores
from lmtools.score import Sources, huggingface_trees, load, score_texts
from lmtools.types import Hypothesis, NBest

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed; pip install -e '.[hf]'"
)
SOURCES = {f"u{n}": text for n, text in enumerate(sentences(6, 3, longest=12))}
LISTS = [
    NBest(utt, tuple(map(Hypothesis, [*sentences(6, n), SOURCES[utt], "", "the zyx </s> king"])))
    for n, utt in enumerate(SOURCES)
]
PAIRS = Sources("s", SOURCES).pair(LISTS, 0, "lists")


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    return random_marian(tmp_path_factory.mktemp("marian"))


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    """A family whose positions are relative, and whose tied logits are scaled."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    home = tmp_path_factory.mktemp("t5")
    names = ["<pad>", "</s>", "<unk>", *dict.fromkeys(" ".join(SOURCES.values()).split())]
    words = Tokenizer(models.WordLevel({w: i for i, w in enumerate(names)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="<unk>", eos_token="</s>", pad_token="<pad>"
    ).save_pretrained(home)
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=len(names), d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2,
        decoder_start_token_id=0,
    )  # fmt: skip
    model = transformers.T5ForConditionalGeneration(config).eval()
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.5)
    model.save_pretrained(home)
    return home


def losses(directory, pairs) -> list[float]:
    """What transformers says of each pair: its loss, the mean over pieces and end, by itself."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(directory).eval()
    result = []
    for source, target in pairs:
        made = tokenizer(
            source, text_target=target, return_tensors="pt", return_token_type_ids=False
        )
        with torch.inference_mode():
            result.append(-float(model(**made).loss) * made["labels"].shape[1])
    return result


def options(directory, **how):
    return ask(f"hf:{directory}", pairs=True, **{"cache": "none", "device": "cpu", **how})


def score(directory, pairs, **how):
    """The scores of pairs by `hf:DIR`, and the scorer."""
    chosen = options(directory, **how)
    scorer = load(*chosen)
    return score_texts(pairs, scorer, chosen.computing), scorer


@pytest.mark.parametrize("reverse", [False, True])
def test_scores_are_the_loss_of_transformers(marian, tmp_path, reverse):
    jsonl.write(LISTS, tmp_path / "nbest.jsonl")
    kaldi_text.write(SOURCES, tmp_path / "source")
    command = f"score --lm hf:{marian} --nbest {tmp_path}/nbest.jsonl --source {tmp_path}/source"
    command += f" --device cpu --cache none --out {tmp_path}/out" + " --reverse" * reverse
    assert main(split(command)) == 0
    table = scores.read(tmp_path / "out")
    pairs = [pair[:: -1 if reverse else 1] for pair in PAIRS]
    found = np.concatenate([table.log_prob[nbest.utt] for nbest in LISTS])
    expected = losses(marian, pairs)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)
    assert np.ptp(expected) > 10
    tokenizer = transformers.AutoTokenizer.from_pretrained(marian)
    lengths = [len(tokenizer(text_target=target)["input_ids"]) for _, target in pairs]
    assert np.concatenate([table.tokens[nbest.utt] for nbest in LISTS]).tolist() == lengths
    assert table.signature["lm"] == "hf-marian"
    assert table.signature.get("direction") == ("reverse" if reverse else None)


def test_another_family_is_scored_without_trees(t5):
    found, scorer = score(t5, PAIRS)
    assert not scorer.shares
    np.testing.assert_allclose(found.log_prob, losses(t5, PAIRS), rtol=0, atol=2e-4)


@pytest.mark.parametrize("family", ["marian", "t5"])
def test_a_source_is_encoded_once(family, request, monkeypatch):
    _, scorer = score(request.getfixturevalue(family), PAIRS[:1])
    encoded, encode = [], type(scorer).encode
    monkeypatch.setattr(
        type(scorer), "encode", lambda self, *read: encoded.append(read[0]) or encode(self, *read)
    )
    assert scorer.shares is (family == "marian")
    score_texts(PAIRS, scorer, CPU)
    assert [len(ids) for ids in encoded] == [1] * len(SOURCES)
    encoded.clear()
    score_texts([pair[::-1] for pair in PAIRS], scorer, CPU)
    assert len(encoded) == len(SOURCES)  # all sources of a target at once


def test_batch_order_and_cache_change_no_score(marian, tmp_path):
    found, scorer = score(marian, PAIRS, cache=str(tmp_path))
    whole, order = found.log_prob, np.random.default_rng(2).permutation(len(PAIRS))
    fresh = options(marian).computing
    shuffled = score_texts([PAIRS[i] for i in order], scorer, fresh).log_prob
    np.testing.assert_array_equal(shuffled, whole[order])
    np.testing.assert_array_equal(score_texts(PAIRS[9:18], scorer, fresh).log_prob, whole[9:18])
    known = options(marian, cache=str(tmp_path)).computing
    np.testing.assert_array_equal(score_texts(PAIRS[::-1], scorer, known).log_prob, whole[::-1])
    backwards = [pair[::-1] for pair in PAIRS]  # the sources of one target go through together
    there = score_texts(backwards, scorer, fresh).log_prob
    shuffled = score_texts([backwards[i] for i in order], scorer, fresh).log_prob
    np.testing.assert_array_equal(shuffled, there[order])
    some = score_texts(backwards[3:7], scorer, fresh).log_prob  # a part of a list: to rounding
    np.testing.assert_allclose(some, there[3:7], rtol=0, atol=1e-5)
    both = (dict.fromkeys(sentences(40, seed)) for seed in (1, 2))
    apart = list(zip(*both, strict=False))  # nothing in common: in batches of equal shape
    batched = score_texts(apart, scorer, fresh).log_prob
    alone = [score_texts([pair], scorer, fresh).log_prob[0] for pair in apart]
    np.testing.assert_array_equal(alone, batched)
    for rows in (1, 4096):
        other, _ = score(marian, PAIRS, rows=rows)
        np.testing.assert_allclose(other.log_prob, whole, rtol=0, atol=1e-4)


def test_bfloat16_is_near(marian):
    exact, rounded = (score(marian, PAIRS, precision=p)[0] for p in ("float32", "bfloat16"))
    np.testing.assert_allclose(rounded.log_prob, exact.log_prob, rtol=0.02, atol=0.5)
    assert (rounded.log_prob != exact.log_prob).any()


def test_unknown_pieces_are_those_of_the_target(marian):
    _, scorer = score(marian, PAIRS[:1])
    (sentence,) = scorer.prepare([("ж ж ж", "the ж")])
    assert scorer.unknown(sentence).sum() == 1
    assert len(scorer.token_names(sentence)) == len(scorer.unknown(sentence))


def test_what_is_too_long_is_refused(marian):
    for pair in (("the king " * 99, "a"), ("a", "the king " * 99)):
        with pytest.raises(UserError, match=r"the king .*the model 64 positions; drop it"):
            score(marian, [pair])


def test_a_language_code_is_refused(marian, monkeypatch):
    from transformers import MarianTokenizer

    def with_code(self, ids, others=None):
        return [3, *ids, self.eos_token_id]

    monkeypatch.setattr(MarianTokenizer, "build_inputs_with_special_tokens", with_code)
    with pytest.raises(UserError, match="its targets are not"):
        load(*options(marian))


def run(files, lm, capsys, *more) -> str:
    """The one line in which `lmtools score` refuses."""
    jsonl.write(LISTS, files / "nbest.jsonl")
    kaldi_text.write(SOURCES, files / "source")
    command = f"score --lm {lm} --nbest {files}/nbest.jsonl --out {files}/out --cache none"
    assert main([*split(command), *more]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and not (files / "out").exists()
    return err


def test_source_and_encoder_need_each_other(marian, tmp_path, capsys):
    assert "a translation model (encoder and decoder), which reads a source beside" in run(
        tmp_path, f"hf:{marian}", capsys
    )
    other = tmp_path / "gpt2"
    config = transformers.GPT2Config(vocab_size=20, n_embd=8, n_layer=1, n_head=1)
    transformers.GPT2LMHeadModel(config).save_pretrained(other)
    err = run(tmp_path, f"hf:{other}", capsys, "--source", f"{tmp_path}/source")
    assert f"hf:{other}: no translation model, so it reads no source; leave --source out" in err


def test_trees_are_not_used_where_they_give_other_scores(marian, monkeypatch):
    wanted, _ = score(marian, PAIRS)
    scorer = huggingface_trees.HuggingFaceTranslation
    monkeypatch.setattr(
        scorer, "score_tree", lambda self, some, **_: [np.zeros(len(s)) for s in some]
    )
    found, loaded = score(marian, PAIRS)
    assert not loaded.shares
    np.testing.assert_allclose(found.log_prob, wanted.log_prob, rtol=0, atol=1e-4)
