"""How servers tell the log-probabilities of a text: `/v1/completions` is asked with `echo` and
`logprobs` (vLLM, SGLang, others) or with `prompt_logprobs` (vLLM).
"""

from collections.abc import Sequence

import numpy as np

from lmtools.base.errors import UserError
from lmtools.llms.client import KEPT, Client

# beginnings and ends of text of usual models, the rarer texts first
BEGINNINGS = ("<s>", "<bos>", "<|begin_of_text|>", "<|im_start|>")
ENDS = ("<eos>", "<|end_of_text|>", "<|endoftext|>", "<｜end▁of▁sentence｜>", "</s>")
GREEDY = {"temperature": 0}
PROBES = ("The weather today is", "I have never been to", "One of the")
LOWEST = -9999.0  # and below: what servers write for the logarithm of 0 (vLLM, OpenAI: -9999.0)


class BadAnswerError(UserError):
    """An answer is not of the shape that its server documents."""


class Echo:
    """A server that reads a text and says log p of each of its tokens, by `echo` and `logprobs`.

    `end` ends a text, and `before` begins it where the server does not begin texts itself. `skip`:
    tokens of the beginning.
    """

    name = "echo"

    def __init__(self, client: Client, model: str, end: str | None):
        self.client, self.model = client, model
        self.before, self.skip = "", 0
        self.end = self.find_end() if end is None else end.replace("none", "")
        self.find_beginning()

    def ask(self, text: str, **more) -> dict:
        body = {"model": self.model, "prompt": text, "max_tokens": 1, **GREEDY, **more}
        answer = self.client.post(f"{self.client.url}/completions", body, len(text.encode()) + 2)
        usage = answer.get("usage") or {}
        self.client.spend(usage.get("total_tokens") or len(text.split()) + 1)
        choices = answer.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise BadAnswerError("answers without choices")
        return {"usage": usage, **choices[0]}

    def read(self, text: str) -> tuple[list, list]:
        """Return the tokens of a text, whatever names them, and log p of each, or None."""
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
        if count < told and values[0] is None:
            raise BadAnswerError("has no log-probability of the first token of a text")
        return tokens[:count], values[:count]

    def generate(self, text: str) -> tuple[str, float]:
        """Return the text of the most probable next token and its log p."""
        choice = self.ask(text, logprobs=1)
        values = (choice.get("logprobs") or {}).get("token_logprobs")
        return (choice.get("text", ""), values[0]) if values else ("", 0.0)

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
            if values[self.skip] is not None:
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
        scores = self.read(self.before + text + self.end)[1][self.skip :]
        return check_numbers(scores if self.end else [*scores, 0.0], text)


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


def count_common(first: Sequence, second: Sequence) -> int:
    """Return how many things two sequences have in common from the beginning."""
    pairs = zip(first, second, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))


def check_numbers(values: Sequence, text: str) -> np.ndarray:
    """Return log-probabilities as an array; BadAnswerError for what is none."""
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int | float) or not value <= 1e-3:
            raise BadAnswerError(f"has no log-probability but {value!r} in {text[:60]!r}; {KEPT}")
        if value <= LOWEST:
            raise BadAnswerError(f"has a token of probability 0 in {text[:60]!r}; {KEPT}")
    return np.array(values, dtype=np.float64)
