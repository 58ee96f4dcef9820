"""How servers tell the log-probabilities of a text, a class a way. Each reads whole texts.

| kind | is asked |
|---|---|
| echo | `/v1/completions` with `echo` and `logprobs` (vLLM, llama-cpp-python, others) |
| prompt | `/v1/completions` with `prompt_logprobs` (vLLM) |
| sglang | `/generate` with `return_logprob` |
| llama.cpp | `/completion`: it generates the tokens of the text, which a grammar prescribes |
"""

import contextlib
import itertools
from collections.abc import Sequence

import numpy as np

from lmtools.base.errors import UserError
from lmtools.llms.client import KEPT, Client, RefusedError

# ends of text of usual models, the rarer texts first
BEGINNINGS = ("<s>", "<bos>", "<|begin_of_text|>", "<|im_start|>")
ENDS = ("<eos>", "<|end_of_text|>", "<|endoftext|>", "<｜end▁of▁sentence｜>", "</s>")
GREEDY = {"temperature": 0}
FEW = 50  # most probable tokens, some of which are whole characters
WHOLE = 1 << 20  # most probable tokens that are asked for to have all
PROBES = ("The weather today is", "I have never been to", "One of the")
LOWEST = -9999.0  # and below: what servers write for the logarithm of 0 (vLLM, OpenAI: -9999.0)


class BadAnswerError(UserError):
    """An answer is not of the shape that its server documents."""


class Reader:
    """A server that reads a text and says log p of each of its tokens.

    `end` ends a text, and `before` begins it where the server does not begin texts itself. `skip`:
    tokens of the beginning. `firsts`: log p of tokens that begin texts, by id.
    """

    name: str

    def __init__(self, client: Client, model: str, end: str | None):
        self.client, self.model = client, model
        self.before, self.end = "", ""
        self.firsts: dict[int, float | None] = {}
        self.skip = 0
        self.end = self.find_end() if end is None else end.replace("none", "")
        self.find_beginning()

    def read(self, text: str) -> tuple[list, list]:
        """Return the tokens of a text, whatever names them, and log p of each, or None."""
        raise NotImplementedError

    def generate(self, text: str) -> tuple[str, float]:
        """Return the text of the most probable next token and its log p."""
        raise NotImplementedError

    def first(self, text: str) -> float:
        """Return log p of the token that begins a text, where reading the text does not tell it."""
        raise BadAnswerError("has no log-probability of the first token of a text")

    def find_end(self) -> str:
        """Return the first of ENDS that is one token to the server; none if none is."""
        alone = len(self.read("He sat")[0])
        return next((end for end in ENDS if len(self.read(f"He sat{end}")[0]) == alone + 1), "")

    def find_beginning(self) -> None:
        """Find how a text begins so that its first token has a log-probability."""
        wrong = None
        for before in dict.fromkeys(("", self.end, *BEGINNINGS)):
            self.before = before
            (one, values), (other, _) = (self.read(f"{before}{word} sat") for word in ("He", "In"))
            self.skip = count_common(one, other)
            if wrong := self.misaligned():
                continue
            with contextlib.suppress(RefusedError, BadAnswerError):
                if values[self.skip] is None:
                    self.first("He sat")
                return
        raise BadAnswerError(wrong or "has no log-probability of the tokens of a prompt")

    def misaligned(self) -> str | None:
        """Return what is wrong where the most probable next token has another log p when it is
        read than when it was generated.
        """
        for text in PROBES:
            text = self.before + text
            token, value = self.generate(text)
            tokens, values = self.read(text + token)
            if token and len(tokens) == len(self.read(text)[0]) + 1 and values[-1] is not None:
                if abs(values[-1] - value) < 0.05 + 0.02 * abs(value):
                    return None
                return f"generates {token!r} with log p {value:.3f} and reads it with" + (
                    f" {values[-1]:.3f}"
                )
        return None

    def score(self, text: str) -> np.ndarray:
        """Return log p of each token of a text, and of its end (0 without one)."""
        scores = list(self.read(self.before + text + self.end)[1][self.skip :])
        if scores and scores[0] is None:
            scores[0] = self.first(text + self.end)
        return check_numbers(scores if self.end else [*scores, 0.0], text)


class Echo(Reader):
    """`echo` and `logprobs` of OpenAI's completions."""

    name = "echo"

    def ask(self, text: str, **more) -> dict:
        body = {"model": self.model, "prompt": text, "max_tokens": 1, **GREEDY, **more}
        answer = self.client.post(f"{self.client.url}/completions", body, len(text.encode()) + 2)
        usage = answer.get("usage") or {}
        self.client.spend(usage.get("total_tokens") or len(text.split()) + 1)
        choices = answer.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise BadAnswerError("answers without choices")
        return {"usage": usage, **choices[0]}

    def read(self, text):
        choice = self.ask(text, echo=True, logprobs=1)
        listed = choice.get("logprobs") or {}
        tokens, values = listed.get("tokens"), listed.get("token_logprobs")
        if not tokens or not values or len(tokens) != len(values):
            raise BadAnswerError("answers without the log-probabilities of a prompt")
        usage = choice["usage"]
        count = len(tokens) - usage.get("completion_tokens", 1)
        told = usage.get("prompt_tokens", count)
        if count not in (told, told - 1) or count < 1:  # some leave the beginning of text out
            raise BadAnswerError(f"says {told} tokens of a prompt and has scores of {count}")
        return tokens[:count], values[:count]

    def generate(self, text):
        choice = self.ask(text, logprobs=1)
        values = (choice.get("logprobs") or {}).get("token_logprobs")
        return (choice.get("text", ""), values[0]) if values else ("", 0.0)

    def first(self, text):
        """See Reader. llama-cpp-python's server hides the first token that it reads, and tells log
        p of the model of one that it generates: the token is made certain. Of a text that is empty
        it does so in a stream alone.
        """
        ids, others = self.identify(text), self.identify("He" if text[:1] != "H" else "In")
        place = count_common(ids, others)
        value = self.generate_certainly(ids[place]) if place < len(ids) else None
        if value is None:
            raise BadAnswerError(
                f"has no log-probability of what begins {text[:60]!r}; load the model by"
                " gguf:FILE or hf:DIR"
            )
        return value

    def identify(self, text: str) -> list[int]:
        """Return the ids of a text and its beginning."""
        body = {"input": self.before + text}
        ids = self.client.post(f"{self.client.root}/extras/tokenize", body).get("tokens")
        if not isinstance(ids, list):
            raise BadAnswerError("answers /extras/tokenize without tokens")
        return ids

    def generate_certainly(self, token: int) -> float | None:
        """Return log p of a token that begins a text, None where the server tells nothing."""
        if token not in self.firsts:
            choice = self.ask(self.before, logprobs=1, stream=True, logit_bias={str(token): 1000})
            values = (choice.get("logprobs") or {}).get("token_logprobs")
            self.firsts[token] = values[0] if values else None
        return self.firsts[token]


class Prompt(Echo):
    """`prompt_logprobs` of vLLM: for each token of a prompt, log p by its id."""

    name = "prompt"

    def read(self, text):
        choice = self.ask(text, prompt_logprobs=0)
        listed, told = choice.get("prompt_logprobs"), choice["usage"].get("prompt_tokens")
        if not isinstance(listed, list):
            raise BadAnswerError("answers without prompt_logprobs")
        if told not in (None, len(listed)):
            raise BadAnswerError(f"says {told} tokens of a prompt and has scores of {len(listed)}")
        # the first has neither an id nor a score
        pairs = [next(iter(item.items())) if item else ("", {}) for item in listed]
        return [name for name, _ in pairs], [value.get("logprob") for _, value in pairs]


class Sglang(Reader):
    """`return_logprob` of SGLang's own address."""

    name = "sglang"

    def ask(self, text: str, start: int) -> dict:
        body = {
            "text": text, "sampling_params": {"max_new_tokens": 1, **GREEDY},
            "return_logprob": True, "logprob_start_len": start,
            "return_text_in_logprobs": True,
        }  # fmt: skip
        answer = self.client.post(f"{self.client.root}/generate", body, len(text.encode()) + 2)
        told = answer.get("meta_info")
        if not isinstance(told, dict):
            raise BadAnswerError("answers without meta_info")
        self.client.spend(told.get("prompt_tokens", 0) + told.get("completion_tokens", 1))
        return told

    def read(self, text):
        told = self.ask(text, 0)
        listed, count = told.get("input_token_logprobs"), told.get("prompt_tokens")
        if not listed or count not in (None, len(listed)):
            size = len(listed or ())
            raise BadAnswerError(f"says {count} tokens of a prompt and has scores of {size}")
        return [item[1] for item in listed], [item[0] for item in listed]

    def generate(self, text):
        listed = self.ask(text, -1).get("output_token_logprobs")
        if not listed or len(listed[0]) < 3:
            return "", 0.0
        return listed[0][2] or "", listed[0][0]


class LlamaCpp:
    """llama.cpp's own server, which has log p of what it generates alone: a grammar prescribes the
    tokens of the text one by one, and the log-probabilities are those of the model, before grammar
    and sampling.
    """

    name = "llama.cpp"

    def __init__(self, client: Client, model: str, end: str | None):
        self.client, self.model = client, model
        props = client.get(f"{client.root}/props") or {}
        self.parts: set[int] = set()
        begin = props.get("bos_token") or props.get("eos_token") or ""
        self.begin = self.tokens(begin, special=True)[:1]
        self.end = props.get("eos_token", "") if end is None else end.replace("none", "")
        self.last = self.tokens(self.end, special=True)[:1]

    def tokens(self, text: str, special: bool = False) -> list[int]:
        """Return the ids of a text, without a beginning or end, and note which are parts of
        characters alone.
        """
        body = {"content": text, "add_special": False, "parse_special": special}
        body["with_pieces"] = True
        listed = self.client.post(f"{self.client.root}/tokenize", body).get("tokens")
        if not isinstance(listed, list) or not all(isinstance(i, dict) for i in listed):
            raise BadAnswerError("answers /tokenize without tokens")
        self.parts |= {item["id"] for item in listed if not isinstance(item["piece"], str)}
        return [item["id"] for item in listed]

    def generate(self, ids: Sequence[int], **more) -> list[dict]:
        """Return what is told of each token that is generated behind ids."""
        body = {"prompt": list(ids), "n_probs": 1, "cache_prompt": True, **GREEDY, **more}
        size = len(ids) + more["n_predict"]
        answer = self.client.post(f"{self.client.root}/completion", body, size)
        self.client.spend(size)
        listed = answer.get("completion_probabilities")
        if not isinstance(listed, list) or not all(
            isinstance(item, dict) and {"id", "logprob"} <= item.keys() for item in listed
        ):
            raise BadAnswerError("answers without completion_probabilities")
        return listed

    def most_probable(self, ids: list[int], count: int) -> list[dict]:
        """Return log p of the most probable tokens behind ids. What is generated is the end: parts
        of characters would be held back.
        """
        (got,) = self.generate(ids, n_predict=1, n_probs=count, grammar='root ::= ""')
        return got.get("top_logprobs", [])

    def misaligned(self) -> str | None:
        """Return what is wrong with log p of a token that is prescribed."""
        for text in PROBES:
            ids = self.begin + self.tokens(text)
            listed = self.most_probable(ids, FEW)
            free = next((item for item in listed if is_whole(item.get("bytes", ()))), None)
            if free is None:
                continue
            (read,) = self.generate(ids, n_predict=1, grammar=f"root ::= <[{free['id']}]>")
            if abs(free["logprob"] - read["logprob"]) > 0.05:
                return f"has log p {free['logprob']} of a token, and {read['logprob']} by a grammar"
        return None

    def score(self, text: str) -> np.ndarray:
        """See Reader."""
        ids = self.tokens(text) if text else []
        values, place = [], 0
        for part, run in itertools.groupby(ids, self.parts.__contains__):
            for wanted in ([token] for token in run) if part else (list(run),):
                read = self.read_part if part else self.read_run
                values += read(self.begin + ids[:place], wanted, place + len(wanted) == len(ids))
                place += len(wanted)
        if not ids or ids[-1] in self.parts:
            values += self.read_run(self.begin + ids, [], True)
        return check_numbers(values if self.last else [*values, 0.0], text)

    def read_run(self, before: list[int], wanted: list[int], last: bool) -> list[float]:
        """Return log p of tokens that a grammar prescribes, and of the end behind the `last`."""
        if not (wanted or self.last):
            return []
        after = self.last if last else []
        more = {"grammar": "root ::= " + (" ".join(f"<[{token}]>" for token in wanted) or '""')}
        if after:  # of several tokens that end a text, this one
            more["logit_bias"] = [[after[0], 1000.0]]
        got = self.generate(before, n_predict=len(wanted + after), **more)
        if [item["id"] for item in got] != wanted + after:
            raise BadAnswerError(
                f"generated {len(got)} tokens where a grammar prescribes {len(wanted)} and the end;"
                " grammars of tokens need llama.cpp of 2026 or newer"
            )
        return [item["logprob"] for item in got]

    def read_part(self, before: list[int], wanted: list[int], last: bool) -> list[float]:
        """Return log p of a part of a character, which no grammar takes: among those of all."""
        listed = self.most_probable(before, WHOLE)
        known = {item["id"]: item["logprob"] for item in listed}
        return [known.get(wanted[0])]


def count_common(first: Sequence, second: Sequence) -> int:
    """Return how many things two sequences have in common from the beginning."""
    pairs = zip(first, second, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def is_whole(content: Sequence[int]) -> bool:
    """Return whether some bytes are whole characters."""
    try:
        bytes(content).decode()
    except UnicodeDecodeError:
        return False
    return True


def check_numbers(values: Sequence, text: str) -> np.ndarray:
    """Return log-probabilities as an array; BadAnswerError for what is none."""
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or not value <= 1e-3:
            raise BadAnswerError(f"has no log-probability but {value!r} in {text[:60]!r}; {KEPT}")
        if value <= LOWEST:
            raise BadAnswerError(f"has a token of probability 0 in {text[:60]!r}; {KEPT}")
    return np.array(values, dtype=np.float64)
