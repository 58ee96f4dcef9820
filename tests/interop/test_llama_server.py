"""llama.cpp's own server on loopback, by the package xllamacpp, against transformers on the same
weights in float32: a grammar prescribes what it generates, whose log-probabilities it tells.
"""

import subprocess
import sys

import numpy as np
import pytest
from scoring import CPU

from lmtools.score import load

pytest.importorskip("xllamacpp", reason="no server of llama.cpp; pip install xllamacpp")
pytest.importorskip("httpx", reason="httpx is not installed; pip install -e '.[llm]'")
pytest.importorskip("transformers", reason="transformers is not installed; pip install '.[hf]'")

from tiny_llm import write_gguf, write_model

SERVE = """
import sys, time, xllamacpp as x
how = x.CommonParams()
how.model.path, how.hostnames, how.port = sys.argv[1], ["127.0.0.1"], 0
how.n_ctx, how.n_parallel, how.warmup, how.n_gpu_layers, how.fit_params = 1024, 2, False, 0, False
how.cpuparams.n_threads = how.cpuparams_batch.n_threads = 1
how.cache_type_k = how.cache_type_v = x.ggml_type.GGML_TYPE_F32
how.flash_attn_type = x.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
server = x.Server(how)
print(server.listening_address, flush=True)
time.sleep(600)
"""
TEXTS = ["He sat on the mat.", "", "é weather", "the cat looked out of the window xyz"]


def test_log_probabilities_under_a_grammar_are_those_of_transformers(tmp_path):
    write_model(tmp_path / "hf")
    write_gguf(tmp_path / "hf", tmp_path / "tiny.gguf")
    command = [sys.executable, "-c", SERVE, str(tmp_path / "tiny.gguf")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = process.stdout.readline().strip()
            own, far = load(f"hf:{tmp_path / 'hf'}", CPU), load(f"{url}/v1", CPU)
            for texts in (TEXTS, TEXTS[::-1]):
                wanted, got = (each.log_probs(each.prepare(texts)) for each in (own, far))
                for one, other in zip(wanted, got, strict=True):
                    np.testing.assert_allclose(other, one, atol=1e-4)
        finally:
            process.kill()
