"""Left-to-right models of Hugging Face, of the families that people have, against the loss that
transformers itself gives; the models are tiny, random and made here.
"""

import json

import numpy as np
import pytest
import torch
from scoring import ask, load_scorer

from lmtools.base.errors import UserError
from lmtools.models.device import onednn_computes_bfloat16
from lmtools.score import huggingface, load, score_texts
from lmtools.score.trees import SentenceTree, cut_parts

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed; pip install -e '.[hf]'"
)
WORDS = ["<unk>", "<s>", "</s>", *["the", "king", "queen", "came", "to", "city", "a", "of"]]
TEXTS = [
    "the king came",
    "the king came to the city",
    "the queen came to the city of the king",
    "",
    "the xylophone",
    "a king of the city",
    "the king came to a city",
]
WIDTH = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2}
INNER = {**WIDTH, "intermediate_size": 24, "num_key_value_heads": 1, "head_dim": 8}
# configuration, its settings, whether beginnings are shared
FAMILIES = {
    "gpt2": ("GPT2", {"n_embd": 16, "n_layer": 2, "n_head": 2}, True),
    "llama": ("Llama", INNER, True),
    "llama-untied": ("Llama", INNER | {"tie_word_embeddings": False}, True),
    "mistral": ("Mistral", INNER | {"sliding_window": 4}, True),
    "qwen2": ("Qwen2", INNER, True),
    "gemma": ("Gemma", INNER, True),
    "gemma2": ("Gemma2", INNER, False),  # its logits are capped
    "gemma3": ("Gemma3Text", INNER | {"sliding_window": 512}, True),
    "gemma3-near": ("Gemma3Text", INNER | {"sliding_window": 4}, True),
    "gpt-neox": ("GPTNeoX", {**WIDTH, "intermediate_size": 24}, True),
    "opt": ("OPT", {**WIDTH, "ffn_dim": 24, "word_embed_proj_dim": 8}, True),
    "bloom": ("Bloom", {"hidden_size": 16, "n_layer": 2, "n_head": 2}, False),
    "mamba": ("Mamba", {"hidden_size": 16, "num_hidden_layers": 2, "state_size": 4}, False),
}


def words_tokenizer(**special):
    """A tokenizer of whole words, without padding."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = special or {"bos_token": "<s>", "eos_token": "</s>"}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token="<unk>", **special
    )


def save(directory, family, dtype=torch.float32, **special):
    """A random model in `dtype`, far from initialisation so that its scores differ."""
    torch.manual_seed(0)
    name, settings, _ = FAMILIES[family]
    config = getattr(transformers, f"{name}Config")(
        vocab_size=len(WORDS), bos_token_id=1, eos_token_id=2, pad_token_id=0, **settings
    )
    model = transformers.AutoModelForCausalLM.from_config(config)
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.3)
    model.tie_weights()
    model.to(dtype).eval().save_pretrained(directory)
    words_tokenizer(**special).save_pretrained(directory)
    return model


def own_scores(model, begin=1):
    """What transformers says of each text: its loss, the mean over tokens and end, by itself."""
    scores = []
    for text in TEXTS:
        ids = torch.tensor([[begin, *words_tokenizer()(text)["input_ids"], 2]])
        with torch.inference_mode():
            scores.append(-float(model(ids, labels=ids).loss) * (ids.shape[1] - 1))
    return scores


def score(directory, **how):
    """The scores of TEXTS by `hf:DIR`, and the scorer."""
    options = ask(f"hf:{directory}", cache="none", **how)
    scorer = load(*options)
    return score_texts(TEXTS, scorer, options.computing), scorer


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_are_those_of_the_family(family, tmp_path):
    model = save(tmp_path, family)
    found, scorer = score(tmp_path)
    np.testing.assert_allclose(found.log_prob, own_scores(model), rtol=1e-5, atol=1e-3)
    assert found.tokens.tolist() == [4, 7, 10, 1, 3, 6, 7]
    assert scorer.shares is FAMILIES[family][2]


def test_what_beginnings_share_is_computed_once(tmp_path, monkeypatch):
    save(tmp_path, "llama")
    _, scorer = score(tmp_path)
    widths = []
    trunk = scorer.trunk.forward
    monkeypatch.setattr(
        scorer.trunk,
        "forward",
        lambda *args, **named: widths.append(named["input_ids"].numel()) or trunk(*args, **named),
    )
    scorer.log_probs(scorer.prepare(TEXTS))
    assert widths == [1 + 22]  # of 38 tokens and ends


def test_weights_in_bfloat16(tmp_path):
    model = save(tmp_path, "gemma3", torch.bfloat16).float()
    found, _ = score(tmp_path)
    np.testing.assert_allclose(found.log_prob, own_scores(model), rtol=1e-5, atol=1e-3)


def test_products_in_bfloat16(tmp_path):
    model = save(tmp_path, "gemma3")
    found, scorer = score(tmp_path, precision="bfloat16")
    np.testing.assert_allclose(found.log_prob, own_scores(model), rtol=0.03, atol=0.5)
    assert scorer.shares
    if onednn_computes_bfloat16():  # elsewhere nothing is packed
        assert scorer.output.matrix(torch.bfloat16).weight is not None
    assert scorer.model.get_input_embeddings().weight.dtype == torch.float32


def test_end_of_text_stands_for_a_beginning_that_there_is_not(tmp_path):
    model = save(tmp_path, "gpt2", eos_token="</s>")
    tree = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**tree, "bos_token_id": None}))
    found, _ = score(tmp_path)
    np.testing.assert_allclose(found.log_prob, own_scores(model, begin=2), rtol=1e-5, atol=1e-3)


def test_boundaries_that_only_the_configuration_names(tmp_path):
    model = save(tmp_path, "gpt2", sep_token="</s>")
    tree = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**tree, "eos_token_id": [2, 0]}))
    found, _ = score(tmp_path)
    np.testing.assert_allclose(found.log_prob, own_scores(model), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("family", ["gemma2", "gemma3-near"])
def test_logits_are_made_in_blocks(family, tmp_path, monkeypatch):
    model = save(tmp_path, family)
    monkeypatch.setattr(huggingface, "LOGITS", 2 * 10 * len(WORDS))
    monkeypatch.setattr(huggingface, "PICKED", 3 * len(WORDS))
    found, _ = score(tmp_path)
    np.testing.assert_allclose(found.log_prob, own_scores(model), rtol=1e-5, atol=1e-3)


def test_a_model_without_its_head_is_refused(tmp_path):
    """Its scores would be those of random numbers."""
    save(tmp_path, "llama-untied")
    model = transformers.AutoModel.from_pretrained(tmp_path)
    model.save_pretrained(tmp_path)
    with pytest.raises(UserError, match=r"no weights for lm_head\.weight"):
        load_scorer(f"hf:{tmp_path}")


def test_tree_of_beginnings():
    tree = SentenceTree.of([(5, 6), (5, 7), (), (5, 6)], 1)
    assert tree.tokens.tolist() == [1, 5, 6, 7] and tree.parents.tolist() == [0, 0, 1, 1]
    assert tree.paths == [[0, 1, 2], [0, 1, 3], [0], [0, 1, 2]]
    assert tree.ancestors().astype(int).tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [1, 1, 0, 1],
    ]
    before, after = tree.predictions(9)
    values = np.array([10 * node + token for node, token in zip(before, after, strict=True)])
    assert [row.tolist() for row in tree.split_values(values)] == [
        [5, 16, 29], [5, 17, 39], [9], [5, 16, 29]
    ]  # fmt: skip


@pytest.mark.parametrize("tokens", [1, 4, 6, 100])
def test_sentences_are_cut_by_their_tokens(tokens):
    sentences = [(1, 2), (3,), (), (4, 5, 6, 7, 8), (9,)]
    parts = cut_parts([len(s) + 1 for s in sentences], tokens)
    assert [s for part in parts for s in sentences[part]] == sentences
    for part in parts:
        some = sentences[part]
        assert len(some) == 1 or sum(len(s) + 1 for s in some) <= tokens
    assert cut_parts([], tokens) == []


def peft_adapter(directory, model, **more):
    """An adapter that peft itself saves of a model, with B drawn; the model with it."""
    peft = pytest.importorskip("peft", reason="peft is not installed; pip install peft")
    config = peft.LoraConfig(r=3, lora_alpha=5, task_type="CAUSAL_LM", **more)
    adapted = peft.get_peft_model(model, config).eval()
    for name, parameter in adapted.named_parameters():
        if "lora_" in name:
            parameter.data.normal_(0, 0.3)
    adapted.save_pretrained(directory)
    return adapted


@pytest.mark.parametrize(
    ("family", "more"),
    [
        ("gemma3", {"target_modules": "all-linear"}),
        ("llama", {"target_modules": ["q_proj", "down_proj"], "use_rslora": True}),
        ("gpt2", {"target_modules": ["c_attn", "c_proj"], "fan_in_fan_out": True}),
    ],
)
def test_an_adapter_of_peft_gives_the_scores_of_peft(family, more, tmp_path):
    adapted = peft_adapter(tmp_path / "adapter", save(tmp_path / "base", family), **more)
    found, scorer = score(tmp_path / "base", adapter=str(tmp_path / "adapter"))
    np.testing.assert_allclose(found.log_prob, own_scores(adapted), rtol=1e-5, atol=1e-3)
    plain, other = score(tmp_path / "base")
    assert abs(plain.log_prob - found.log_prob).max() > 0.1
    assert scorer.signature != other.signature


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"use_dora": True}, "has use_dora, and only plain LoRA is read here; merge it"),
        ({"peft_type": "IA3"}, "is IA3, and only plain LoRA"),
        ({"megatron_core": "os"}, None),  # a module that peft would import
        (None, "not the configuration of an adapter"),
    ],
)
def test_other_adapters_are_refused(change, said, tmp_path):
    peft_adapter(tmp_path / "a", save(tmp_path, "llama"), target_modules=["q_proj"])
    path = tmp_path / "a" / "adapter_config.json"
    path.write_text("[1]" if change is None else json.dumps(json.loads(path.read_text()) | change))
    if said is None:
        assert load_scorer(f"hf:{tmp_path}", adapter=str(tmp_path / "a"))
        return
    with pytest.raises(UserError, match=said):
        load_scorer(f"hf:{tmp_path}", adapter=str(tmp_path / "a"))


def test_an_adapter_of_another_model_is_refused(tmp_path):
    peft_adapter(tmp_path / "a", save(tmp_path / "b", "llama"), target_modules=["q_proj"])
    save(tmp_path / "c", "gpt2")
    with pytest.raises(UserError, match=r"updates model\.layers\.0.* has no such layer; give the"):
        load_scorer(f"hf:{tmp_path / 'c'}", adapter=str(tmp_path / "a"))
    with pytest.raises(UserError, match="adapters are of Hugging Face models"):
        load_scorer("lm.arpa", adapter=str(tmp_path / "a"))


@pytest.mark.parametrize("family", ["llama", "mistral", "gemma2"])
def test_texts_longer_than_the_positions_slide(family, tmp_path):
    """Each token where it has most context: windows of 10 tokens, their beginnings 5 apart."""
    model = save(tmp_path, family)
    scorer = load_scorer(f"hf:{tmp_path}")
    scorer.longest = 10
    ids = tuple(3 + i * i % 8 for i in range(18))
    (found,) = scorer.log_probs([ids])
    wanted = []
    for begin, end, first, last in scorer.windows(ids):
        row = torch.tensor([[1, *ids[begin:end], 2]])
        with torch.inference_mode():
            logs = model(row).logits[0].log_softmax(-1)
        wanted += [float(logs[i, row[0, i + 1]]) for i in range(first, last)]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_the_output_matrix_in_int8(tmp_path):
    model = save(tmp_path, "gemma3")
    found, scorer = score(tmp_path, precision="int8")
    np.testing.assert_allclose(found.log_prob, own_scores(model), rtol=0.03, atol=0.5)
    assert scorer.signature["precision"] == "int8"
    save(tmp_path, "gemma2")
    with pytest.raises(UserError, match="no int8 for gemma2"):
        load_scorer(f"hf:{tmp_path}", precision="int8")
