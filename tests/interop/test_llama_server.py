"""Servers on loopback against transformers on the same weights in float32: llama.cpp's own, by the
package xllamacpp, where a grammar prescribes what it generates, and that of llama-cpp-python.
"""

import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from scoring import CPU

from lmtools.base.errors import UserError
from lmtools.score import load

pytest.importorskip("httpx", reason="httpx is not installed; pip install -e '.[llm]'")
pytest.importorskip("transformers", reason="transformers is not installed; pip install '.[hf]'")
pytest.importorskip("gguf", reason="gguf is not installed; pip install -e '.[gguf]'")

from tiny_llm import write_gguf, write_model

OWN = """
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
PYTHON = """
import socket, sys, uvicorn
from llama_cpp.server.app import create_app
from llama_cpp.server.settings import ModelSettings, ServerSettings
model = ModelSettings(model=sys.argv[1], logits_all=True, n_ctx=512, n_threads=1, n_threads_batch=1,
                      type_k=0, type_v=0, verbose=False)
app = create_app(server_settings=ServerSettings(), model_settings=[model])
listening = socket.create_server(("127.0.0.1", 0))
print("http://127.0.0.1:%d" % listening.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listening])
"""
TEXTS = ["He sat on the mat.", "", "é weather", "I", "the cat looked out of the window xyz"]


@contextmanager
def serve(code: str, directory):
    """The address of a server of a tiny model, whose Hugging Face directory is `hf`."""
    write_model(directory / "hf")
    write_gguf(directory / "hf", directory / "tiny.gguf")
    command = [sys.executable, "-c", code, str(directory / "tiny.gguf")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"{process.stdout.readline().strip()}/v1"
        finally:
            process.kill()


def check_equal(own, far, texts) -> None:
    for order in (texts, texts[::-1]):
        wanted, got = (each.log_probs(each.prepare(order)) for each in (own, far))
        for one, other in zip(wanted, got, strict=True):
            np.testing.assert_allclose(other, one, atol=1e-4)


def test_log_probabilities_under_a_grammar_are_those_of_transformers(tmp_path):
    pytest.importorskip("xllamacpp", reason="no server of llama.cpp; pip install xllamacpp")
    with serve(OWN, tmp_path) as url:
        check_equal(load(f"hf:{tmp_path / 'hf'}", CPU), load(url, CPU), TEXTS)


def test_llama_cpp_python_tells_of_first_tokens_by_generating_them(tmp_path):
    pytest.importorskip(
        "llama_cpp.server.app", reason="no server; pip install 'llama-cpp-python[server]'"
    )
    with serve(PYTHON, tmp_path) as url:
        own, far = load(f"hf:{tmp_path / 'hf'}", CPU), load(f"{url},requests=2", CPU)
        check_equal(own, far, [text for text in TEXTS if text])
        with pytest.raises(UserError, match="no log-probability of what begins '</s>'; give promp"):
            far.log_probs(far.prepare([""]))
