"""A tiny random large language model for tests: a Hugging Face directory, and the same weights and
tokens as a GGUF file in float32. Its words are those of WORDS, other text falls into bytes.
"""

import json
from pathlib import Path

WORDS = [
    "He", "In", "The", "the", "cat", "sat", "on", "mat", "and", "looked", "out", "of", "window",
    "She", "asked", "him", "what", "time", "train", "would", "leave", "There", "is", "nothing",
    "new", "under", "sun", "weather", "today", "have", "never", "been", "to", "One", "I", "a",
    "king", "queen",
]  # fmt: skip
BEGIN, END = "<s>", "</s>"
HEADS, KV, LAYERS, WIDTH, HIDDEN = 4, 2, 2, 32, 48


def build_vocabulary() -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Pieces and merges of a byte-level BPE: each word, at a beginning and behind a blank."""
    from transformers.models.gpt2.tokenization_gpt2 import bytes_to_unicode

    pieces = [BEGIN, END, *bytes_to_unicode().values()]
    merges: dict[tuple[str, str], None] = {}
    for word in WORDS:
        for place in range(1, len(word)):
            merges[word[:place], word[place]] = None
        merges["Ġ", word] = None
    pieces += dict.fromkeys(a + b for a, b in merges)
    return {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}, [*merges]


def write_model(directory: Path, seed: int = 1):
    """Write the Hugging Face directory; return its model and tokenizer."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    vocabulary, merges = build_vocabulary()
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=BEGIN, eos_token=END)
    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=len(vocabulary), hidden_size=WIDTH, intermediate_size=HIDDEN,
        num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=KV,
        max_position_embeddings=256, bos_token_id=0, eos_token_id=1, tie_word_embeddings=False,
        use_sliding_window=False, rope_theta=10000.0,
    )  # fmt: skip
    model = Qwen2ForCausalLM(config).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.data.normal_(0, 0.3)
    model.save_pretrained(directory)
    fast.save_pretrained(directory)
    return model, fast


def write_gguf(directory: Path, path: Path) -> None:
    """Write the model of `write_model` as a GGUF file."""
    import gguf
    from safetensors.numpy import load_file

    vocabulary, merges = build_vocabulary()
    config = json.loads((directory / "config.json").read_text())
    out = gguf.GGUFWriter(str(path), "qwen2")
    out.add_context_length(config["max_position_embeddings"])
    out.add_embedding_length(WIDTH)
    out.add_block_count(LAYERS)
    out.add_feed_forward_length(HIDDEN)
    out.add_head_count(HEADS)
    out.add_head_count_kv(KV)
    out.add_layer_norm_rms_eps(config["rms_norm_eps"])
    out.add_rope_freq_base(10000.0)
    out.add_file_type(gguf.LlamaFileType.ALL_F32)
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(list(vocabulary))
    normal = [gguf.TokenType.NORMAL] * (len(vocabulary) - 2)
    out.add_token_types([gguf.TokenType.CONTROL] * 2 + normal)
    out.add_token_merges([f"{a} {b}" for a, b in merges])
    out.add_bos_token_id(0)
    out.add_eos_token_id(1)
    out.add_add_bos_token(True)
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
             "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
             "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
             "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down"}  # fmt: skip
    whole = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
    for name, array in load_file(directory / "model.safetensors").items():
        place, _, kind = name.rpartition(".")
        if place not in whole:
            _, _, layer, part = place.split(".", 3)
            place = f"blk.{layer}.{names[part]}"
        out.add_tensor(f"{whole.get(place, place)}.{kind}", array)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
