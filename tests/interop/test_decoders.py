"""Our language models in other programs' decoders: what a finished hypothesis got is its score."""

import math

import numpy as np
import pytest
import torch
from toys import WORDS

import lmtools
from lmtools.cli import main

WEIGHT, BONUS = 0.7, 0.4
TEXTS = ["king queen city", "queen house", "the great river came"]


@pytest.fixture(scope="module", params=["ngram", "causal"])
def lm(request, tiny, trained, tmp_path_factory):
    """An n-gram and a neural model over words."""
    out = str(trained["causal"])
    if request.param == "ngram":
        out = str(tmp_path_factory.mktemp("lm") / "ngram")
        given = ["--text", str(tiny / "train.txt"), "--subword", str(tiny / "sw"), "--order", "3"]
        assert main(["ngram", *given, "--out", out]) == 0
    return lmtools.load(out)


def emissions(alphabet: list[str], seed: int) -> np.ndarray:
    """Log-probabilities (frames, letters) that make TEXTS[0] likely; blank is ''."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(2 * len(TEXTS[0]), len(alphabet)))
    for frame, letter in enumerate(TEXTS[0]):
        logits[2 * frame, alphabet.index(letter)] += 6
        logits[2 * frame + 1, alphabet.index("")] += 6
    return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)


def test_pyctcdecode(lm):
    decoder = pytest.importorskip("pyctcdecode")
    from lmtools.bridges.decoders.pyctcdecode import PyctcdecodeLM

    alphabet = ["", *sorted({*"".join(WORDS)}), " "]
    labels = decoder.Alphabet.build_alphabet(alphabet)
    ours = PyctcdecodeLM(lm, WEIGHT, BONUS)
    beams = decoder.BeamSearchDecoderCTC(labels, ours).decode_beams(
        emissions(alphabet, 1), beam_width=30, prune_history=False
    )
    assert beams[0][0] == TEXTS[0] and len(beams) > 5
    for text, _, _, acoustic, total in beams:
        due = WEIGHT * lm.score([text])[0] + BONUS * len(text.split())
        assert math.isclose(total - acoustic, due, abs_tol=1e-3)
    assert ours.order == (3 if lm.signature["lm"] == "ngram" else max(ours.order, 1000))


def test_flashlight(lm):
    text = pytest.importorskip("flashlight.lib.text.decoder")
    from flashlight.lib.text.dictionary import Dictionary

    from lmtools.bridges.decoders.flashlight import FlashlightLM

    letters = ["", *sorted({*"".join(WORDS)}), "|"]
    words = Dictionary([*WORDS, "<unk>"])
    order = [words.get_entry(i) for i in range(words.index_size())]
    ours = FlashlightLM(lm, order)
    space, start = letters.index("|"), ours.start(False)
    trie = text.Trie(len(letters), space)
    for word in WORDS:
        _, score = ours.score(start, words.get_index(word))
        assert math.isclose(score, lm.token_scores([word])[0].log_probs[0], abs_tol=1e-4)
        trie.insert([letters.index(letter) for letter in word], words.get_index(word), score)
    trie.smear(text.SmearingMode.MAX)
    options = text.LexiconDecoderOptions(
        beam_size=100, beam_size_token=len(letters), beam_threshold=50, lm_weight=WEIGHT,
        word_score=BONUS, unk_score=-math.inf, sil_score=0, log_add=False,
        criterion_type=text.CriterionType.CTC,
    )  # fmt: skip
    decoder = text.LexiconDecoder(
        options, trie, ours, space, 0, words.get_index("<unk>"), [], False
    )
    alphabet = [" " if letter == "|" else letter for letter in letters]
    scores = torch.tensor(emissions(alphabet, 2), dtype=torch.float32).contiguous()
    for _ in range(2):  # two utterances: the second finds nothing of the first
        found = decoder.decode(scores.data_ptr(), *scores.shape)
    best = " ".join(words.get_entry(i) for i in found[0].words if i >= 0)
    assert best == TEXTS[0]
    for one in found[:5]:
        spoken = " ".join(words.get_entry(i) for i in one.words if i >= 0)
        assert math.isclose(one.lmScore, lm.score([spoken])[0], abs_tol=1e-3)


@pytest.fixture(scope="module")
def tokenizer():
    """Byte-level BPE with pieces of words, as Whisper's."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token=None))
    model.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=90,
        special_tokens=["<|start|>", "<|end|>", "<|0.00|>"],
        initial_alphabet=sorted({*"".join(WORDS), "Ġ"}),
        show_progress=False,
    )
    model.train_from_iterator([" ".join(WORDS), *TEXTS] * 3, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=model, bos_token="<|start|>", eos_token="<|end|>", pad_token="<|end|>"
    )


@pytest.fixture(scope="module")
def translator(tokenizer):
    """A small encoder-decoder with random weights."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(5)
    config = transformers.BartConfig(
        vocab_size=len(tokenizer) + 3, d_model=16, max_position_embeddings=64,
        encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=32, decoder_ffn_dim=32, bos_token_id=0, eos_token_id=1, pad_token_id=1,
        decoder_start_token_id=0, forced_eos_token_id=None, init_std=0.6,
    )  # fmt: skip
    model = transformers.BartForConditionalGeneration(config).eval()
    names = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    for token, name in enumerate(names):  # so that words begin and sentences end
        model.final_logits_bias[0, token] = 16 * (token == 1) + 3 * name.startswith("Ġ")
    return model


def generate(translator, **more):
    """Finished hypotheses of two inputs, with sums of log-probabilities as their scores."""
    return translator.generate(
        torch.tensor([[5, 6, 7, 1], [9, 8, 4, 1]]), num_beams=6, num_return_sequences=6,
        max_new_tokens=18, min_new_tokens=4, length_penalty=0.0, return_dict_in_generate=True,
        output_scores=True, **more,
    )  # fmt: skip


def log_prob(translator, source: int, tokens: torch.Tensor) -> float:
    """What the translator itself says of a hypothesis."""
    given = torch.tensor([[[5, 6, 7, 1], [9, 8, 4, 1]][source]])
    with torch.inference_mode():
        logits = translator(input_ids=given, decoder_input_ids=tokens[None, :-1]).logits[0]
    return float(logits.log_softmax(-1)[range(len(tokens) - 1), tokens[1:]].sum())


def test_transformers(lm, tokenizer, translator):
    pytest.importorskip("transformers")
    from lmtools.bridges.decoders.transformers import ShallowFusion

    fusion = ShallowFusion(lm, tokenizer, WEIGHT, BONUS)
    for _ in range(2):  # a second call starts anew
        out = generate(translator, logits_processor=[fusion])
    checked = 0
    for row, (sequence, total) in enumerate(zip(out.sequences, out.sequences_scores, strict=True)):
        ends = (sequence == 1).nonzero()[:, 0].tolist()
        if not ends:
            continue
        tokens = sequence[: ends[0] + 1]
        text = " ".join(spell(tokenizer, tokens)).split()
        due = WEIGHT * lm.score([" ".join(text)])[0] + BONUS * len(text)
        assert math.isclose(
            float(total), log_prob(translator, row // 6, tokens) + due, abs_tol=2e-3
        )
        checked += len(text) > 1
    assert checked >= 4
    plain = generate(translator)
    assert not torch.equal(
        plain.sequences[:, :8], out.sequences[:, : min(8, out.sequences.shape[1])]
    )


def spell(tokenizer, tokens: torch.Tensor) -> list[str]:
    """The texts between control tokens; ids that the tokenizer does not know are such, too."""
    found: list[list[str]] = [[]]
    for name in tokenizer.convert_ids_to_tokens(tokens.tolist()):
        if not name or name.startswith("<|"):
            found.append([])
        else:
            found[-1].append(name)
    return [tokenizer.convert_tokens_to_string(names) for names in found]


def test_a_model_of_both_sides_is_refused(trained, tokenizer):
    from lmtools.bridges.decoders.transformers import ShallowFusion

    with pytest.raises(lmtools.UserError, match="not a left-to-right model"):
        ShallowFusion(lmtools.load(trained["masked"]), tokenizer, 1.0)
