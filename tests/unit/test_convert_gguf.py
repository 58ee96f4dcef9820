"""GGUF models as Hugging Face directories: the tokenizer against SentencePiece's own, the whole
file against the model that it was written from.
"""

import importlib.util
import io
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import tiny_llm
import torch
from scoring import load_scorer

from lmtools.base.errors import UserError, install_extra

transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed; pip install -e '.[hf]'"
)
PATH = Path(__file__).parents[2] / "utils/convert_gguf.py"
SPEC = importlib.util.spec_from_file_location("convert_gguf", PATH)
convert_gguf = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(convert_gguf)
TEXT = [
    "the king came to the city of kings",
    "a queen and a king came there",
    "the cities of the queens are there",
    "they say that a grain or two is good",
]
NEW = [*TEXT, "the kingly queen's ox", "", "zebra über größe 日本", "theking of the city aaaa"]
SIZE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 1, "intermediate_size": 64, "head_dim": 16}  # fmt: skip


@pytest.fixture(scope="module")
def pieces():
    """SentencePiece's BPE, and its pieces, scores and types as a GGUF has them."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT * 20), model_writer=model, vocab_size=340, model_type="bpe",
        byte_fallback=True, character_coverage=1.0, normalization_rule_name="identity",
        remove_extra_whitespaces=False, hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    bpe = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    ids = range(bpe.vocab_size())
    types = [6 if bpe.is_byte(i) else 3 if bpe.is_control(i) else 1 for i in ids]
    types[bpe.unk_id()] = 2
    return bpe, [bpe.id_to_piece(i) for i in ids], [bpe.get_score(i) for i in ids], types


@pytest.mark.parametrize("prefix", [True, False])
def test_texts_fall_into_the_pieces_of_sentencepiece(pieces, prefix):
    bpe, names, scores, types = pieces
    tokenizer = convert_gguf.build_bpe(names, scores, types, "<unk>", prefix)
    for text in NEW:
        found = tokenizer.encode(text)
        if prefix:
            assert found.ids == bpe.encode(text), text
        assert tokenizer.decode(found.ids) == text


def test_a_gguf_scores_as_the_model_it_was_written_from(pieces, tmp_path):
    reason = install_extra("hf", "gguf")
    pytest.importorskip("accelerate", reason=reason)
    gguf = pytest.importorskip("gguf", reason=reason)
    bpe, names, scores, types = pieces
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(names), max_position_embeddings=64, tie_word_embeddings=False, **SIZE
    )
    model = transformers.LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        parameter.data = parameter.data.normal_(0, 0.2).bfloat16().float()
    write_gguf(gguf, tmp_path / "m.gguf", model, names, scores, types, bpe)
    convert_gguf.convert_gguf(str(tmp_path / "m.gguf"), str(tmp_path / "hf"))
    scorer = load_scorer(f"hf:{tmp_path / 'hf'}", "cpu")
    for text, found in zip(NEW, scorer.log_probs(scorer.prepare(NEW)), strict=True):
        ids = torch.tensor([[bpe.bos_id(), *bpe.encode(text), bpe.eos_id()]])
        with torch.inference_mode():
            log_p = model(ids).logits[0, :-1].log_softmax(-1)
        own = log_p.gather(-1, ids[0, 1:, None])[:, 0].numpy()
        np.testing.assert_allclose(found, own, atol=2e-3)


def write_gguf(gguf, path, model, names, scores, types, bpe):
    """The Llama in a file, under llama.cpp's names and with its order of rotary columns."""
    writer = gguf.GGUFWriter(str(path), "llama")
    config = model.config
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_vocab_size(len(names))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(names)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_bos_token_id(bpe.bos_id())
    writer.add_eos_token_id(bpe.eos_id())
    writer.add_unk_token_id(bpe.unk_id())
    known = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for name, weight in model.state_dict().items():
        stem, _, kind = name.rpartition(".")
        array = weight.numpy()
        if count := heads.get(stem.rpartition(".")[2]):
            halves = array.reshape(count, 2, len(array) // count // 2, -1)
            array = np.ascontiguousarray(halves.swapaxes(1, 2).reshape(array.shape))
        writer.add_tensor(f"{known.get_name(stem)}.{kind}", array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_the_beginning_of_sentence_stands_before_a_text(pieces):
    bpe, names, scores, types = pieces
    fields = {"model": "llama", "tokens": names, "scores": scores, "token_type": types}
    fields |= {"bos_token_id": bpe.bos_id(), "unknown_token_id": bpe.unk_id()}
    for add, before in ({}, [bpe.bos_id()]), ({"add_bos_token": False}, []):
        about = {f"tokenizer.ggml.{name}": value for name, value in (fields | add).items()}
        tokenizer = convert_gguf.build_tokenizer("m.gguf", about)
        assert tokenizer("the king")["input_ids"] == [*before, *bpe.encode("the king")]


def test_bpe_over_bytes(tmp_path):
    reason = install_extra("hf", "gguf")
    for package in ("accelerate", "gguf"):
        pytest.importorskip(package, reason=reason)
    _, tokenizer = tiny_llm.write_model(tmp_path / "own")
    tiny_llm.write_gguf(tmp_path / "own", tmp_path / "m.gguf")
    convert_gguf.convert_gguf(str(tmp_path / "m.gguf"), str(tmp_path / "hf"), end="cat")
    made = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    texts = ["He sat on the mat.", "", "é weather xyz"]
    assert [made.encode(text) for text in texts] == [tokenizer.encode(text) for text in texts]
    assert made.bos_token == tiny_llm.BEGIN and made.eos_token == "cat"
    with pytest.raises(UserError, match="--end: 'no cat' is no token"):
        convert_gguf.convert_gguf(str(tmp_path / "m.gguf"), str(tmp_path / "x"), end="no cat")
    assert not (tmp_path / "x").exists()


def test_other_tokenizers_are_refused():
    fields = {"tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": ["a"]}
    with pytest.raises(UserError, match="its tokenizer is bert, not SentencePiece's BPE"):
        convert_gguf.build_tokenizer("m.gguf", fields)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="no such file; give a GGUF"):
        convert_gguf.convert_gguf(str(tmp_path / "m.gguf"), str(tmp_path / "hf"))
