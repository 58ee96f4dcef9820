"""Local Hugging Face directories, against transformers' own forward passes; the models are tiny,
random and made here.
"""

import json
import shutil

import numpy as np
import pytest
import torch
from scoring import CPU, ask, load_scorer

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.score import load, score_texts
from lmtools.score.cover import rescore_cover
from lmtools.types import Arc, Final, Lattice
from lmtools.vectors.encoders import PoolingOptions, load_encoder

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed; pip install -e '.[hf]'"
)
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "king",
    "queen",
    "came",
    "to",
    "city",
    "a",
    "of",
    "##s",
]
TEXTS = [
    "the king came",
    "the queens came to the city",
    "king",
    "",
    "the xylophone",
    "a king of the city",
]
BERT = {"vocab_size": len(WORDS), "hidden_size": 16, "num_hidden_layers": 3,
"num_attention_heads": 2, "intermediate_size": 24,
        "max_position_embeddings": 24}  # fmt: skip


def saved(directory, model):
    """The model with a WordPiece tokenizer, far from initialisation so that its scores differ."""
    (directory / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    tokenizer = transformers.BertTokenizerFast(
        str(directory / "vocab.txt"), eos_token="[SEP]", bos_token="[CLS]"
    )
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.5)
    model.eval().save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return model, tokenizer


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    torch.manual_seed(0)
    directory = tmp_path_factory.mktemp("bert")
    return directory, *saved(
        directory, transformers.BertForMaskedLM(transformers.BertConfig(**BERT))
    )


@pytest.fixture(scope="module")
def roberta(tmp_path_factory):
    torch.manual_seed(1)
    directory = tmp_path_factory.mktemp("roberta")
    model = transformers.RobertaForMaskedLM(
        transformers.RobertaConfig(**BERT | {"max_position_embeddings": 30}, pad_token_id=0)
    )
    return directory, *saved(directory, model)


@pytest.fixture(scope="module")
def gpt(tmp_path_factory):
    torch.manual_seed(2)
    directory = tmp_path_factory.mktemp("gpt")
    sizes = {"vocab_size": len(WORDS), "n_positions": 24, "n_embd": 16, "n_layer": 2, "n_head": 2}
    config = transformers.GPT2Config(**sizes, bos_token_id=2, eos_token_id=3)
    return directory, *saved(directory, transformers.GPT2LMHeadModel(config))


def masked_reference(model, tokenizer, text, intact):
    """One whole forward pass a token."""
    ids = torch.tensor(tokenizer(text)["input_ids"])
    total = 0.0
    for position in range(1, len(ids) - 1):
        copy = ids.clone()
        if not intact:
            copy[position] = tokenizer.mask_token_id
        with torch.inference_mode():
            total += float(model(copy[None]).logits[0, position].log_softmax(-1)[ids[position]])
    return total


FAMILIES = {
    "DistilBert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24},
    "Electra": BERT,
    "Albert": BERT | {"embedding_size": 8},
    "DebertaV2": BERT | {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
    "ModernBert": BERT | {"pad_token_id": 0, "local_attention": 4, "reference_compile": False},
    "XLMRoberta": BERT | {"max_position_embeddings": 30, "pad_token_id": 0},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_families_of_masked_models(family, tmp_path):
    """The tokenizer is of no family: what stands around a text is its own affair."""
    torch.manual_seed(3)
    settings = {"vocab_size": len(WORDS)} | FAMILIES[family]
    config = getattr(transformers, f"{family}Config")(**settings)
    model, tokenizer = saved(tmp_path, getattr(transformers, f"{family}ForMaskedLM")(config))
    special = {f"{name}_token": getattr(tokenizer, f"{name}_token")
               for name in ("unk", "cls", "sep", "mask", "pad")}  # fmt: skip
    plain = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend_tokenizer, **special
    )
    plain.save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").unlink()
    expected = [masked_reference(model, tokenizer, text, intact=False) for text in TEXTS]
    np.testing.assert_allclose(scored(tmp_path).log_prob, expected, atol=1e-3)


def scored(directory, **how):
    options = ask(f"hf:{directory}", cache="none", **how)
    return score_texts(TEXTS, load(*options), options.computing)


@pytest.mark.parametrize("intact", [False, True])
@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_masked_models_give_the_pseudo_log_likelihood(family, intact, request):
    directory, model, tokenizer = request.getfixturevalue(family)
    expected = [masked_reference(model, tokenizer, text, intact) for text in TEXTS]
    result = scored(directory, intact=intact)
    np.testing.assert_allclose(result.log_prob, expected, atol=1e-3)
    assert result.kind == "pseudo-perplexity" and result.signature["lm"] == f"hf-{family}" + (
        "-intact" if intact else ""
    )
    assert result.unknown.tolist() == [0, 0, 0, 0, 1, 0]


def test_causal_model_predicts_all_tokens_and_the_end(gpt):
    directory, model, tokenizer = gpt
    expected = []
    for text in TEXTS:
        ids = torch.tensor(tokenizer(text, add_special_tokens=False)["input_ids"], dtype=torch.long)
        whole = torch.cat([torch.tensor([2]), ids, torch.tensor([3])])
        with torch.inference_mode():
            log_p = model(whole[None]).logits[0, :-1].log_softmax(-1)
        expected.append(float(log_p[torch.arange(len(whole) - 1), whole[1:]].sum()))
    result = scored(directory)
    np.testing.assert_allclose(result.log_prob, expected, atol=1e-3)
    assert result.tokens.tolist() == [
        len(tokenizer(t, add_special_tokens=False)["input_ids"]) + 1 for t in TEXTS
    ]


@pytest.mark.parametrize("more", [{}, {"intact": True}])
@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_long_text_is_read_in_windows(name, more, request):
    directory, model, tokenizer = request.getfixturevalue(name)
    scorer = load(*ask(f"hf:{directory}", device="cpu", cache="none", **more))
    longest = 22 if name == "bert" else 27  # positions less those of [CLS] and [SEP] (and padding)
    assert scorer.longest == longest
    ids = scorer.prepare(["the king came to a city " * 12])[0]
    found = scorer.log_probs([ids, ids[:longest]])
    assert len(found[0]) == len(ids) + 1 and np.isfinite(found[0]).all() and found[0][-1] == 0
    begins = [*range(0, len(ids) - longest, longest // 2), len(ids) - longest]
    for begin in (0, begins[-1]):
        window = (*scorer.frame[0], *ids[begin : begin + longest], *scorer.frame[1])
        at = 3 if begin == 0 else longest - 2
        row = torch.tensor([window])
        if not more:
            row[0, at + 1] = tokenizer.mask_token_id
        with torch.inference_mode():
            expected = model(input_ids=row).logits[0, at + 1].log_softmax(-1)[window[at + 1]]
        assert found[0][begin + at] == pytest.approx(float(expected), abs=1e-4)
    encoder = load_encoder(f"hf:{directory}", PoolingOptions("last", "cls"), CPU)
    first, alone = encoder.vectors([ids, ids[:longest]])
    np.testing.assert_allclose(first, alone, atol=1e-5)


@pytest.mark.parametrize("name", ["bert", "gpt"])
def test_a_tokenizer_larger_than_its_model(name, request, tmp_path):
    directory, _, tokenizer = request.getfixturevalue(name)
    shutil.copytree(directory, tmp_path / "m")
    larger = transformers.AutoTokenizer.from_pretrained(directory)
    larger.add_tokens(["zebra", "gnu"])
    larger.save_pretrained(tmp_path / "m")
    scorer = load_scorer(f"hf:{tmp_path}/m", "cpu")
    assert scorer.prepare(["the king"]) == [
        tuple(tokenizer("the king", add_special_tokens=False)["input_ids"])
    ]
    size = len(WORDS)
    with pytest.raises(
        UserError, match=f"the tokenizer has {size + 2} ids, the model {size}; call"
    ):
        scorer.prepare(["the zebra"])


def test_a_config_without_weights_is_refused(tmp_path, bert, capsys):
    (tmp_path / "config.json").write_text((bert[0] / "config.json").read_text())
    with pytest.raises(UserError):
        load_scorer(str(tmp_path))


def test_ppl_verb_takes_a_hugging_face_directory(bert, tmp_path, capsys):
    (tmp_path / "t").write_text("the king came\n\na city\n")
    assert main(f"ppl --lm hf:{bert[0]} --text {tmp_path}/t --cache none".split()) == 0
    assert "2 sentences, 5 words" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_masked_models_score_the_words_of_lattices(name, request):
    """A word's score is its pieces' in its sentence, by transformers' tokeniser."""
    scorer = load_scorer(f"hf:{request.getfixturevalue(name)[0]}", "cpu")
    arcs = [Arc(i, i + 1, word) for i, word in enumerate(["The", "queens", None, "came"])]
    rescored = rescore_cover(Lattice.of("u", 5, 0, arcs, [Final(4)]), scorer, {}, "lm")
    (scores,) = scorer.log_probs(scorer.prepare(["the queens came"]))
    assert rescored.scores["lm"] == pytest.approx(
        [scores[0], scores[1] + scores[2], 0, scores[3]], abs=1e-5
    )
    assert rescored.final_scores["lm"].tolist() == [0]


def test_a_name_of_the_hub_is_not_fetched(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t").write_text("a\n")
    assert main(["ppl", "--lm", "hf:bert-base-uncased", "--text", "t", "--cache", "none"]) == 1
    remedy = "and nothing is downloaded; give the local directory that save_pretrained wrote"
    assert (
        capsys.readouterr().err
        == f"lmtools ppl: hf:bert-base-uncased: no such directory, {remedy}\n"
    )


def test_pickled_weights_are_refused(bert, tmp_path):
    """Even sound ones: a pickle can run code."""
    directory, model, _ = bert
    for file in directory.iterdir():
        if file.suffix != ".safetensors":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(
        UserError,
        match=r"a pickle, which may run code; .* save_pretrained writes model.safetensors",
    ):
        load_scorer(f"hf:{tmp_path}")


def test_code_of_the_directory_is_not_run(bert, tmp_path):
    """Not even where config.json and the tokenizer ask for it."""
    for file in bert[0].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "own.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own:\n    pass\n"
    )
    tree = json.loads((tmp_path / "config.json").read_text())
    names = dict.fromkeys(("AutoConfig", "AutoModelForMaskedLM"), "own.Own")
    tree |= {"auto_map": {**names, "AutoTokenizer": ["own.Own"] * 2}, "model_type": "own"}
    (tmp_path / "config.json").write_text(json.dumps(tree))
    with pytest.raises(UserError, match="give a masked or causal"):
        load_scorer(f"hf:{tmp_path}")
    assert not (tmp_path / "ran").exists()
