"""What benchmarks/preparation.py measures beside lmtools: count the words of a text, and write it
as ids.

    preparation_peers.py {huggingface|sentencepiece} TEXT OUT PROCESSES MIN_COUNT

huggingface: tokenizers counts the words (WordLevelTrainer), datasets reads the text, maps it with
PROCESSES and saves ids as Arrow. sentencepiece: its word model, learnt of all lines; ids are
written as an array. Both know a word by the spaces around it, as lmtools' word lists do.
"""

import sys

PROGRAM, TEXT, OUT, PROCESSES, MIN_COUNT = sys.argv[1:]


def huggingface() -> None:
    """Both steps with Hugging Face's libraries."""
    from datasets import load_dataset
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordLevelTrainer(
        vocab_size=10_000_000, min_frequency=int(MIN_COUNT), special_tokens=["<unk>"],
        show_progress=False,
    )  # fmt: skip
    tokenizer.train([TEXT], trainer)
    tokenizer.save(f"{OUT}.json")
    text = load_dataset("text", data_files=TEXT, split="train", cache_dir=f"{OUT}.cache")

    def encode(lines: dict) -> dict:
        found = tokenizer.encode_batch(lines["text"], add_special_tokens=False)
        return {"ids": [one.ids for one in found]}

    ids = text.map(encode, batched=True, num_proc=int(PROCESSES), remove_columns=["text"])
    ids.save_to_disk(f"{OUT}.ids")


def sentencepiece() -> None:
    """Both steps with sentencepiece; the number of words with MIN_COUNT has to be counted first."""
    from collections import Counter

    import numpy
    import sentencepiece as spm

    words: Counter = Counter()
    with open(TEXT, encoding="utf-8") as lines:
        for line in lines:
            words.update(line.split())
    size = 3 + sum(count >= int(MIN_COUNT) for count in words.values())
    spm.SentencePieceTrainer.train(
        input=TEXT, model_prefix=OUT, model_type="word", vocab_size=size, hard_vocab_limit=False,
        normalization_rule_name="identity", input_sentence_size=0, num_threads=int(PROCESSES),
        character_coverage=1.0, minloglevel=2,
    )  # fmt: skip
    processor = spm.SentencePieceProcessor(model_file=f"{OUT}.model")
    with open(TEXT, encoding="utf-8") as lines, open(f"{OUT}.ids", "wb") as out:
        while block := lines.readlines(1 << 20):
            ids = processor.encode([line.rstrip("\n") for line in block], out_type=int)
            numpy.fromiter((i for one in ids for i in one), numpy.int32).tofile(out)


{"huggingface": huggingface, "sentencepiece": sentencepiece}[PROGRAM]()
