"""A server of a tiny language model for tests, which speaks as several programs do, and fails as it
is told: its log-probabilities are those of transformers.
"""

import contextlib
import json
import re
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch

KEY = "secret-key-of-tests"


class LlmServer:
    """A server that speaks as `kind`. `faults`: what happens to coming requests, in turn;
    `answered` counts the texts that it has scored in full; `seen`: headers of the last request.
    """

    def __init__(self, model, tokenizer, kind: str):
        self.model, self.tokenizer, self.kind = model, tokenizer, kind
        self.faults: list[str] = []
        self.answered: Counter = Counter()
        self.seen: dict = {}
        self.lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                outer.reply(self, *outer.get(self.path))

            def do_POST(self):
                size = int(self.headers["Content-Length"])
                outer.seen = dict(self.headers)
                outer.post(self, json.loads(self.rfile.read(size)))

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def reply(self, handler, status, answer):
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(content)))
        if status == 429:
            handler.send_header("Retry-After", "0")
        with contextlib.suppress(OSError):  # who asked has left
            handler.end_headers()
            handler.wfile.write(content)

    def get(self, path):
        known = {"/v1/models": {"data": [{"id": "tiny"}]}}
        if self.kind == "llama.cpp":
            known["/props"] = {"default_generation_settings": {}}
        if self.kind == "ollama":
            known["/api/version"] = {"version": "1"}
        return (200, known[path]) if path in known else (404, {"error": "not found"})

    def post(self, handler, body):
        with self.lock:
            fault = self.faults.pop(0) if self.faults else ""
        if fault in ("429", "500", "401"):
            self.reply(handler, int(fault), {"error": f"Bearer {KEY}"})
        elif fault == "cut":
            handler.connection.close()
        elif fault == "html":
            self.reply(handler, 200, b"<html>login</html>")
        elif fault == "nothing":
            self.reply(handler, 200, b"")
        else:
            if fault == "slow":
                time.sleep(1.0)
            status, answer = self.completions(body)
            if fault in ("nan", "count"):
                answer = spoil(answer, fault)
            elif status == 200:
                self.answered[body["prompt"]] += 1
            self.reply(handler, status, answer)

    def encode(self, text):
        return self.tokenizer(text, add_special_tokens=False)["input_ids"]

    def log_probs(self, ids):
        with torch.inference_mode():
            return self.model(torch.tensor([ids])).logits[0].log_softmax(-1)

    def piece(self, token):
        return self.tokenizer.decode([token], skip_special_tokens=True)

    def completions(self, body):
        if self.kind == "prompt" and body.get("echo"):
            return 400, {"error": "echo is not supported"}
        ids = [0, *self.encode(body["prompt"])]
        rows = self.log_probs(ids)
        new = int(rows[-1].argmax())
        usage = {"prompt_tokens": len(ids), "completion_tokens": 1, "total_tokens": len(ids) + 1}
        read = [rows[n, token].item() for n, token in enumerate(ids[1:])]
        if self.kind == "prompt" and "prompt_logprobs" in body:
            listed = [None] + [{str(i): {"logprob": v}} for i, v in zip(ids[1:], read, strict=True)]
            return 200, {"choices": [{"text": "", "prompt_logprobs": listed}], "usage": usage}
        listed, values = [new], [rows[-1, new].item()]
        if body.get("echo") and self.kind != "bare":
            first = ids[:1] if self.kind == "vllm" else []
            listed = [*first, *ids[1:], new]
            values = [*([None] * len(first)), *read, *values]
            if self.kind == "llama-cpp-python":
                values[0] = None
        tokens = [self.tokenizer.decode([token]) for token in listed]
        logprobs = {"tokens": tokens, "token_logprobs": values}
        choice = {"text": self.piece(new), "logprobs": logprobs}
        return 200, {"choices": [choice], "usage": usage}


def spoil(answer, fault):
    """The answer with one number less, or NaN in place of one."""
    text = json.dumps(answer)
    if fault == "nan":
        return re.sub(r"-\d+\.\d+(?!.*-\d+\.\d+)", "NaN", text).encode()
    return re.sub(r"-\d+\.\d+, (?=-)|null, (?=\{)", "", text).encode()
