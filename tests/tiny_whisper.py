"""A Whisper model of random weights, small, as CTranslate2 writes it, with a tokenizer of bytes."""

import json
import struct
from pathlib import Path

import numpy as np

WIDTH, HEADS, LAYERS, MELS = 16, 2, 2, 80
NAMES = (
    "endoftext startoftranscript translate transcribe startoflm startofprev nospeech notimestamps"
)
SPECIAL = [f"<|{name}|>" for name in NAMES.split()]
SPECIAL += [f"<|{step * 0.02:.2f}|>" for step in range(1501)]
SUPPRESSED = [10, 11, 12]


def write_model(directory: Path, seed: int = 1) -> Path:
    """Write the model into a directory, and return this."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    directory.mkdir(parents=True, exist_ok=True)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = [*letters, *SPECIAL]
    tokenizer = Tokenizer(models.BPE({name: at for at, name in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.save(str(directory / "tokenizer.json"))
    (directory / "vocabulary.json").write_text(json.dumps(vocabulary))
    config = {
        "suppress_ids": SUPPRESSED,
        "suppress_ids_begin": [20],
        "lang_ids": [],
        "alignment_heads": [[0, 0]],
    }
    (directory / "config.json").write_text(json.dumps(config))
    with open(directory / "model.bin", "wb") as out:
        write_variables(out, make_variables(np.random.default_rng(seed), len(vocabulary)))
    return directory


def make_variables(random, words: int) -> dict[str, np.ndarray]:
    shapes = {"encoder/conv1": (WIDTH, MELS, 3), "encoder/conv2": (WIDTH, WIDTH, 3)}
    shapes["decoder/projection"] = (words, WIDTH)
    norms = ["encoder/layer_norm", "decoder/layer_norm"]
    for side in ("encoder", "decoder"):
        for at in range(LAYERS):
            layer = f"{side}/layer_{at}"
            shapes[f"{layer}/self_attention/linear_0"] = (3 * WIDTH, WIDTH)
            shapes[f"{layer}/self_attention/linear_1"] = (WIDTH, WIDTH)
            shapes[f"{layer}/ffn/linear_0"] = (4 * WIDTH, WIDTH)
            shapes[f"{layer}/ffn/linear_1"] = (WIDTH, 4 * WIDTH)
            norms += [f"{layer}/self_attention/layer_norm", f"{layer}/ffn/layer_norm"]
        if side == "decoder":
            for at in range(LAYERS):
                layer = f"{side}/layer_{at}/attention"
                for part, rows in enumerate((WIDTH, 2 * WIDTH, WIDTH)):
                    shapes[f"{layer}/linear_{part}"] = (rows, WIDTH)
                norms.append(f"{layer}/layer_norm")
    made = {"encoder/position_encodings/encodings": (1500, WIDTH)}
    made["decoder/position_encodings/encodings"] = (448, WIDTH)
    for name, shape in shapes.items():
        made |= {f"{name}/weight": shape}
        made |= {f"{name}/bias": shape[:1]} if name != "decoder/projection" else {}
    variables = {name: 0.5 * random.standard_normal(shape) for name, shape in made.items()}
    for name in norms:
        variables |= {f"{name}/gamma": np.ones(WIDTH) + 0.1, f"{name}/beta": np.zeros(WIDTH) + 0.1}
    variables = {name: value.astype("<f4") for name, value in variables.items()}
    for side in ("encoder", "decoder"):
        variables[f"{side}/num_heads"] = np.array(HEADS, "<i2")
    switches = {"activation": 1, "alibi": 0, "pre_norm": 1, "scale_embeddings": 0}
    switches["start_from_zero_embedding"] = 0
    for name, value in switches.items():
        variables[f"decoder/{name}"] = np.array(value, "<i1")
    return variables


def write_variables(out, variables: dict[str, np.ndarray]) -> None:
    kinds = {"f4": 0, "i1": 1, "i2": 2}

    def name(text: str) -> None:
        out.write(struct.pack("<H", len(text) + 1) + text.encode() + b"\0")

    out.write(struct.pack("<I", 6))
    name("WhisperSpec")
    out.write(struct.pack("<II", 3, len(variables)))
    for key, value in sorted(variables.items()):
        name(key)
        out.write(struct.pack(f"<B{value.ndim}I", value.ndim, *value.shape))
        out.write(struct.pack("<BI", kinds[value.dtype.str[1:]], value.nbytes) + value.tobytes())
    out.write(struct.pack("<I", 1))
    name("decoder/embeddings/weight")
    name("decoder/projection/weight")
