"""Answers of servers: what they are asked, the order of answers, answers that are not allowed."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from needs import needs
from tiny_llm import WORDS, write_gguf, write_model

from lmtools.base.computing import USUAL, Computing
from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.correction.allowed import Allowed
from lmtools.correction.lists import Corrector, open_generate
from lmtools.types import NO_WORD, NBest

LISTS = [NBest.of(f"u{n}", [f"a{n} b", f"c{n} b", "d"], am=[-1.0, -2.0, -3.0]) for n in range(30)]


@pytest.fixture
def server():
    """A server that answers with the first hypothesis, an a in it as c where there is a grammar."""
    bodies = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send({"data": [{"id": "m"}]}, 200 if self.path == "/v1/models" else 404)

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            bodies.append(body)
            last = body["prompt"].splitlines()[-4].removeprefix("- ")
            text = f" {last.replace('a', 'c')}" if "grammar" in body else f" {last} c\nSaid"
            self.send({"choices": [{"text": text}], "usage": {"total_tokens": 9}}, 200)

        def send(self, tree, status):
            content = json.dumps(tree).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    served = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{served.server_port}/v1", bodies
    served.shutdown()
    served.server_close()


@needs("llms")
def test_a_server_answers_in_the_order_of_the_lists(server):
    pytest.importorskip("httpx", reason="httpx is not installed; pip install -e '.[llm]'")
    url, bodies = server
    generate = open_generate(LMSpec.parse(f"{url},requests=4"), USUAL)
    free = [text for *_, text in Corrector(generate, free=True).answer(LISTS)]
    assert free == [f"a{n} b c" for n in range(30)]
    assert len(bodies) == 30 and not any("grammar" in body for body in bodies)
    assert bodies[0]["stop"] == ["\n"] and bodies[0]["temperature"] == 0
    held = [text for *_, text in Corrector(generate).answer(LISTS)]
    assert held == [f"c{n} b" for n in range(30)]
    assert sum("root ::=" in body.get("grammar", "") for body in bodies) == 30


@needs("llms")
def test_a_server_without_grammars_is_refused(server):
    pytest.importorskip("httpx", reason="httpx is not installed; pip install -e '.[llm]'")
    url, _ = server
    generate = open_generate(LMSpec.parse(url), USUAL)
    other = [NBest.of("u", ["a y", "a z", "b z"], am=[-1.0, -2.0, -3.0])]
    with pytest.raises(UserError, match=r"^utterance 'u': the answer 'c y' is not of the words"):
        list(Corrector(generate).correct(other))


@needs("llms")
def test_a_gguf_file_answers_as_the_same_model_of_transformers(tmp_path):
    for name in ("llama_cpp", "gguf", "transformers"):
        pytest.importorskip(name, reason=f"no {name}; pip install -e '.[gguf]'")
    write_model(tmp_path / "hf")
    write_gguf(tmp_path / "hf", tmp_path / "tiny.gguf")
    slots = (("the", "a"), ("king", "queen", "cat"), ("sat", "looked", NO_WORD), ("on", "of"))
    prompts = [f"- the {word} sat on\n- a {word} looked of\nSaid:" for word in WORDS[:20]]
    answers = []
    for lm in (f"hf:{tmp_path}/hf", f"gguf:{tmp_path}/tiny.gguf,threads=1"):
        generate = open_generate(LMSpec.parse(lm), Computing(device="cpu"))
        held, free = ([allowed] * len(prompts) for allowed in (Allowed(slots), None))
        answers.append([*generate(prompts, held, 20), *generate(prompts, free, 20)])
    assert answers[0] == answers[1] and len(set(answers[0])) > 10
    assert all(map(Allowed(slots).holds, answers[1][: len(prompts)]))
