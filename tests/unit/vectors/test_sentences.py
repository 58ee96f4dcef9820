"""Sentence vectors against the models' own states, taken sentence by sentence and pooled here by
hand.
"""

import json
import shutil

import numpy as np
import pytest
import tokenizers
import torch
from scoring import CPU
from toys import sentences
from unit.score import test_huggingface

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.models.checkpoint import load_model
from lmtools.text.subword import BOS, EOS, MASK
from lmtools.vectors.encoders import PoolingOptions, encode, load_encoder

TEXTS = ["the king", "", *sentences(25, 5), "the king", " the  king "]
FAMILIES = ["causal", "masked", "tta", "lstm"]
POOLED = [
    ("mean", False),
    ("mean", True),
    ("max", False),
    ("max", True),
    ("eos", False),
    ("cls", False),
]
bert, roberta, gpt = test_huggingface.bert, test_huggingface.roberta, test_huggingface.gpt

FEW = Computing("cpu", rows=40)


def states_by_hand(lm, ids: list[int], layer: int, masked: bool) -> np.ndarray:
    """The states (T, D) of one sentence with its boundary tokens, from whole forward passes."""
    whole = torch.tensor([[BOS, *ids, EOS] if lm.objective.boundary == 2 else [BOS, *ids]])
    lengths = torch.tensor([whole.shape[1]])
    with torch.inference_mode():
        if not masked:
            return list(lm.trunk.layer_states(whole, lengths))[layer][0].numpy()
        rows = []
        for position in range(whole.shape[1]):
            copy = whole.clone()
            copy[0, position] = MASK
            rows.append(list(lm.trunk.layer_states(copy, lengths))[layer][0, position].numpy())
    return np.stack(rows)


def pooled(states: np.ndarray, pool: str, boundaries: bool, first: int, last: int) -> np.ndarray:
    """What the pool makes of the states (T, D) of one sentence."""
    if pool in ("eos", "cls"):
        return states[-1 if pool == "eos" else 0]
    some = states if boundaries else states[first : len(states) - last]
    return (
        (some.mean(0) if pool == "mean" else some.max(0))
        if len(some)
        else np.zeros(states.shape[1])
    )


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("pool,boundaries", POOLED)
@pytest.mark.parametrize("family", FAMILIES)
def test_vectors_are_the_pooled_states_of_each_sentence(trained, family, pool, boundaries, masked):
    lm, subword = load_model(trained[family])
    boundary = lm.objective.boundary
    if (masked and family != "masked") or (pool == "cls" and boundary == 1):
        with pytest.raises(UserError, match="leave --masked out" if masked else "use --pool eos"):
            load_encoder(
                str(trained[family]), PoolingOptions("last", pool, boundaries, masked), CPU
            )
        return
    layers = tuple(range(int(masked), lm.trunk.depth + 1))
    made = encode(
        TEXTS,
        load_encoder(
            str(trained[family]),
            PoolingOptions(layers, pool, boundaries, masked),
            Computing("cpu", rows=60),
        ),
    )
    assert made.shape[:2] == (len(TEXTS), len(layers)) and made.dtype == np.float32
    for text, row in zip(TEXTS, made, strict=True):
        for layer, vector in zip(layers, row, strict=True):
            expected = pooled(
                states_by_hand(lm, subword.encode(text), layer, masked),
                pool,
                boundaries,
                1,
                boundary - 1,
            )
            np.testing.assert_allclose(vector[: len(expected)], expected, atol=2e-5)
            assert not vector[len(expected) :].any()  # narrower layers are filled up


def test_the_state_of_a_tta_token_has_not_seen_it(trained):
    """One pass gives what masking every position in its turn would."""
    lm, subword = load_model(trained["tta"])
    ids = subword.encode("the king came to the city")
    other = [*ids[:2], (ids[2] + 1 - 5) % 20 + 5, *ids[3:]]
    one, two = (states_by_hand(lm, some, lm.trunk.depth, False) for some in (ids, other))
    np.testing.assert_allclose(one[3], two[3], atol=1e-6)
    assert np.abs(one - two).max() > 1e-3


@pytest.mark.parametrize("pool", ["mean", "max", "eos", "cls"])
def test_long_texts_are_read_in_windows(trained, pool):
    encoder = load_encoder(str(trained["tta"]), PoolingOptions("all", pool), CPU)
    text = " ".join(sentences(40, 3))
    sentence = encoder.prepare([text])[0]
    assert len(sentence) > 2 * encoder.model.longest
    made, alone = encode([text, "the king"], encoder), encode(["the king"], encoder)
    assert np.isfinite(made).all() and made[0].any()
    np.testing.assert_allclose(made[1], alone[0], atol=1e-5)
    if pool == "mean":  # layer 0 without positions is a mean over tokens, whatever the windows
        encoder.model.lm.trunk.embedding.position.weight.data.zero_()
        tokens = encoder.model.lm.trunk.embedding(torch.tensor(sentence)[:, None])[:, 0]
        np.testing.assert_allclose(
            encode([text], encoder)[0, 0], tokens.detach().mean(0), atol=1e-5
        )
    if pool in ("eos", "cls"):
        window = (
            sentence[-encoder.model.longest :]
            if pool == "eos"
            else sentence[: encoder.model.longest]
        )
        np.testing.assert_allclose(made[0], encoder.vectors([window])[0], atol=1e-5)


def test_equal_sentences_are_computed_once_and_kept(trained, tmp_path):
    encoder = load_encoder(str(trained["masked"]), PoolingOptions("all"), FEW)
    computed = []
    plain = encoder.vectors
    # batches are filled up with copies
    encoder.vectors = lambda some: computed.extend(dict.fromkeys(some)) or plain(some)
    first = encode(TEXTS, encoder, tmp_path)
    distinct = set(encoder.prepare(TEXTS))
    assert len(computed) == len(distinct) < len(TEXTS) and set(computed) == distinct
    again = encode([*TEXTS[::-1], "a new one came"], encoder, tmp_path)
    assert len(computed) == len(distinct) + 1
    np.testing.assert_array_equal(again[: len(TEXTS)], first[::-1])
    other = encode(
        TEXTS, load_encoder(str(trained["masked"]), PoolingOptions("all", "max"), FEW), tmp_path
    )
    assert not np.allclose(other, first)  # another pool is another signature
    one = load_encoder(str(trained["masked"]), PoolingOptions((1,)), FEW)
    np.testing.assert_array_equal(encode(TEXTS, one, tmp_path)[:, 0], first[:, 1])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    "pool,boundaries", [("mean", False), ("mean", True), ("cls", False), ("eos", False)]
)
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_hugging_face_models_give_transformers_states(family, pool, boundaries, masked, request):
    directory, model, tokenizer = request.getfixturevalue(family)
    texts = test_huggingface.TEXTS
    layers = (1, 3) if masked else (0, 1, 3)
    made = encode(
        texts,
        load_encoder(f"hf:{directory}", PoolingOptions(layers, pool, boundaries, masked), FEW),
    )
    for text, row in zip(texts, made, strict=True):
        ids = torch.tensor(tokenizer(text)["input_ids"])
        copies = ids.repeat(len(ids), 1)
        if masked:
            copies.fill_diagonal_(tokenizer.mask_token_id)
        with torch.inference_mode():
            hidden = model.base_model(copies, output_hidden_states=True).hidden_states
        for layer, vector in zip(layers, row, strict=True):
            states = hidden[layer].diagonal(dim1=0, dim2=1).T.numpy()
            np.testing.assert_allclose(vector, pooled(states, pool, boundaries, 1, 1), atol=1e-4)


def test_hugging_face_causal_models_end_with_the_last_token(gpt, tmp_path):
    transformers, model = test_huggingface.transformers, gpt[1]
    words = {word: i for i, word in enumerate(test_huggingface.WORDS)}
    plain = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, unk_token="[UNK]", eos_token="[SEP]"
    )
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    encoder = load_encoder(f"hf:{tmp_path}", PoolingOptions("all"), CPU)
    assert not encode([""], encoder).any()  # nothing at all is read
    texts = ["the king came", "king"]
    made = encode(texts, load_encoder(f"hf:{tmp_path}", PoolingOptions("all", "eos"), CPU))
    for text, row in zip(texts, made, strict=True):
        with torch.inference_mode():
            hidden = model.transformer(
                torch.tensor([[words[word] for word in text.split()]]), output_hidden_states=True
            ).hidden_states
        np.testing.assert_allclose(row, [states[0, -1].numpy() for states in hidden], atol=1e-4)
    for how, message in (
        (("last", "cls"), "use --pool eos"),
        (("last", "mean", False, True), "leave --masked out"),
    ):
        with pytest.raises(UserError, match=message):
            load_encoder(f"hf:{tmp_path}", PoolingOptions(*how), CPU)


@pytest.mark.parametrize(
    "lm,how,message",
    [
        ("nowhere", {}, "nowhere: no such model; give the directory of a neural model"),
        ("tfidf", {"pool": "max"}, "static vectors have layer 0 and the mean alone"),
        ("tta", {"layers": (0, 9)}, "has the layers 0 (embedding) to 2, no 9"),
        ("tta", {"layers": ()}, "empty list"),
        ("masked", {"layers": (0,), "masked": True}, "the mask's own embedding"),
    ],
)
def test_what_cannot_be_is_said(trained, lm, how, message):
    with pytest.raises(UserError) as error:
        load_encoder(str(trained.get(lm, lm)), PoolingOptions(**how), CPU)
    assert message in str(error.value)


POOLING = "pooling_mode_"
KINDS = "sentence_transformers.models."


def write_modules(directory, pooling, *more):
    modules = ["Transformer", "Pooling", *more]
    rows = [
        {"idx": i, "path": f"{i}_{kind}" if i else "", "type": KINDS + kind}
        for i, kind in enumerate(modules)
    ]
    (directory / "modules.json").write_text(json.dumps(rows))
    (directory / "1_Pooling").mkdir(exist_ok=True)
    (directory / "1_Pooling/config.json").write_text(json.dumps(pooling))


@pytest.fixture
def sentence_bert(bert, tmp_path):
    shutil.copytree(bert[0], tmp_path / "st")
    return tmp_path / "st"


@pytest.mark.parametrize(
    ("pooling", "more", "pool", "boundaries"),
    [
        ({POOLING + "mean_tokens": True, POOLING + "cls_token": False}, [], "mean", True),
        (
            {POOLING + "cls_token": True, POOLING + "mean_tokens": False},
            ["Normalize"],
            "cls",
            False,
        ),
        ({POOLING + "max_tokens": True}, [], "max", True),
        ({POOLING + "lasttoken": True}, ["Normalize"], "eos", False),
        ({"embedding_dimension": 16, "pooling_mode": "cls"}, [], "cls", False),
        ({"word_embedding_dimension": 16}, ["Normalize"], "mean", True),
    ],
)
def test_sentence_transformers_pool_as_they_say(
    sentence_bert, bert, tmp_path, pooling, more, pool, boundaries
):
    write_modules(sentence_bert, pooling, *more)
    (tmp_path / "t").write_text("".join(f"{text}\n" for text in test_huggingface.TEXTS))
    call = f"embed --lm hf:{sentence_bert} --text {tmp_path}/t --out {tmp_path}/v.npz --cache none"
    assert main(call.split()) == 0
    made = np.load(tmp_path / "v.npz")["vectors"]
    for text, vector in zip(test_huggingface.TEXTS, made, strict=True):
        ids = torch.tensor([bert[2](text)["input_ids"]])
        with torch.inference_mode():
            states = bert[1].base_model(ids).last_hidden_state[0].numpy()
        expected = pooled(states, pool, boundaries, 1, 1)
        scale = np.linalg.norm(expected) if more else 1
        np.testing.assert_allclose(vector, expected / scale, atol=1e-4)
    assert main([*call.split(), "--pool", "max"]) == 0  # whoever says how is not asked
    assert not np.allclose(np.load(tmp_path / "v.npz")["vectors"], made)


@pytest.mark.parametrize(
    ("pooling", "more", "message"),
    [
        ({POOLING + "weightedmean_tokens": True}, [], "pooling weightedmean is not followed"),
        ({POOLING + "cls_token": True, POOLING + "max_tokens": True}, [], "cls and max is not"),
        (
            {POOLING + "cls_token": True},
            ["Dense"],
            "modules.json: the module Dense is not followed",
        ),
        (None, [], "lists no modules with type and path"),
        ({}, ["prompt"], "default_prompt_name has a prompt"),
    ],
)
def test_other_modules_are_refused(sentence_bert, tmp_path, pooling, more, message, capsys):
    write_modules(sentence_bert, pooling, *(kind for kind in more if kind != "prompt"))
    if pooling is None:
        (sentence_bert / "modules.json").write_text('[{"path": 1}]')
    if more == ["prompt"]:
        told = sentence_bert / "config_sentence_transformers.json"
        told.write_text('{"default_prompt_name": "query"}')
    (tmp_path / "p").write_text("a b\tc\t1\n")
    assert main(["sts", "--lm", f"hf:{sentence_bert}", "--pairs", f"{tmp_path}/p"]) == 1
    assert message in capsys.readouterr().err
