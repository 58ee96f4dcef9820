"""A tiny random language model of transformers that writes, on bytes of text."""

from pathlib import Path

import torch


def random_writer(home: Path, seed: int = 1, positions: int = 2048) -> Path:
    """A directory of a Llama with random weights and a byte-level tokenizer with special tokens."""
    import transformers
    from tokenizers import ByteLevelBPETokenizer

    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(
        ["the king came to the city\n"] * 9, vocab_size=290, special_tokens=["<s>", "</s>", "<x>"]
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=trained._tokenizer, bos_token="<s>", eos_token="</s>",
        additional_special_tokens=["<x>"],
    )  # fmt: skip
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, intermediate_size=24, max_position_embeddings=positions,
        bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.3)
    model.save_pretrained(home)
    tokenizer.save_pretrained(home)
    return home
