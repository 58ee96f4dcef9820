"""Prompts that show a list, and what answers them: models that give the logits of the next token
(`writers`), and servers. What was answered once is in the cache.

Words of a list are text: they are put into the prompt once, never as special tokens, and an answer
ends with its line. Where answers are held to what a list's words can build, a model is asked only
where there is a choice, and a server gets a grammar.
"""

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

from lmtools.base.computing import Computing
from lmtools.base.doors import open_door
from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.correction.allowed import Allowed, TokenPaths
from lmtools.score.cache import Cache, Kind, cache_directory
from lmtools.score.prompts import Prompts
from lmtools.types import NBest

LIST = "{list}"  # in a prompt, the place of the hypotheses
WIDTH = 64  # of a cached text the multiple of bytes, so that there are few segments
TEXTS = Kind(
    "texts",
    lambda width: width % WIDTH == 0,
    lambda text: (data := text.encode()).ljust((len(data) // WIDTH + 1) * WIDTH, b"\0"),
    lambda content: content.rstrip(b"\0").decode(),
)
PROMPT = """\
A speech recogniser gives several guesses of each sentence. The line "Said:" has what was said.

- he went to the see with his brother
- he when to the sea with his brother
- he went to the sea with his brothers
Said: he went to the sea with his brother

- I no that the whether is find today
- I know that the whether is fine to day
- I know that weather is fine today
Said: I know that the weather is fine today

{list}
Said:"""


BUILT_IN = Prompts("the built-in prompt", PROMPT)
ALONE = NBest("", ())  # stands for the list of texts that are in none


class Generate(Protocol):
    """What writes answers: one for each prompt, of what is `allowed` (None: any), of at most
    `tokens` tokens, up to the end of the line. `signature` tells the model.
    """

    signature: dict[str, str]

    def __call__(
        self, prompts: Sequence[str], allowed: Sequence[Allowed | None], tokens: int
    ) -> Iterator[str]: ...


def read_prompts(path: str) -> Prompts:
    """Read a file of prompts as of `prompt=`; UserError for one without the place of a list."""
    prompts = Prompts.read(path)
    texts = [prompts.text] if prompts.own is None else prompts.own.values()
    if not all(LIST in text for text in texts):
        raise UserError(f"{path}: a prompt has no {LIST}; write it where the hypotheses are to be")
    return prompts


def show_list(texts: Sequence[str], prompts: Prompts = BUILT_IN, nbest: NBest = ALONE) -> str:
    """Return the prompt of a list with the texts in the place of LIST, a line each."""
    lines = "\n".join(f"- {' '.join(text.split())}" for text in texts)
    return prompts.fill(nbest, list=lines)


class CachedAnswers:
    """Answers of a model that it is asked for once; those that were not allowed are not kept."""

    def __init__(self, generate: Generate, computing: Computing):
        self.generate, self.signature = generate, generate.signature
        self.directory = cache_directory(computing.cache)

    def __call__(
        self, prompts: Sequence[str], allowed: Sequence[Allowed | None], tokens: int
    ) -> Iterator[str]:
        """Yield an answer a prompt, in order."""
        grammars = [held and held.grammar() for held in allowed]
        asked = [*zip(prompts, grammars, [tokens] * len(prompts), strict=True)]
        with contextlib.closing(Cache(self.directory, self.signature, TEXTS)) as cache:
            known = {asked[row]: text for row, text in cache.get(asked).items()}
            rows = {key: row for row, key in enumerate(asked) if key not in known}.values()
            missing = [prompts[row] for row in rows], [allowed[row] for row in rows]
            answers = zip(rows, self.generate(*missing, tokens), strict=True)
            for key in asked:
                while key not in known:
                    row, text = next(answers)
                    known[asked[row]] = text
                    if (held := allowed[row]) is None or held.holds(text):
                        cache.put([(asked[row], text)])
                yield known[key]


class ServerWriter:
    """Answers of a server by OpenAI's completions, several at a time. What is allowed goes as a
    grammar, under the names that llama.cpp, vLLM and SGLang have for it.
    """

    def __init__(self, spec: LMSpec):
        servers = open_door("llms", "servers", spec.lm)
        options = spec.more or open_door("llms", "options:ServerOptions", spec.lm)()
        self.client = open_door("llms", "client:Client", spec.lm)(spec.lm, options)
        self.model, _ = servers.find_model(self.client, options)
        self.signature = {"lm": "server", "model": self.model}
        self.several = options.requests

    def __call__(
        self, prompts: Sequence[str], allowed: Sequence[Allowed | None], tokens: int
    ) -> Iterator[str]:
        """Yield an answer a prompt, in order."""
        with ThreadPoolExecutor(self.several) as pool:
            try:
                yield from pool.map(partial(self.ask, tokens), prompts, allowed)
            finally:
                pool.shutdown(cancel_futures=True)

    def ask(self, tokens: int, prompt: str, allowed: Allowed | None) -> str:
        given = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "stop": ["\n"]}
        if allowed is not None:
            grammar = allowed.grammar()
            given |= {"grammar": grammar, "ebnf": grammar}
            given |= {"structured_outputs": {"grammar": grammar}}
        size = len(prompt.encode()) + tokens
        answer = self.client.post(
            f"{self.client.url}/completions", {"model": self.model, **given}, size
        )
        usage = answer.get("usage")
        self.client.spend(usage.get("total_tokens") or 0 if isinstance(usage, dict) else 0)
        try:
            text = answer["choices"][0]["text"]
        except (KeyError, IndexError, TypeError):
            text = None
        if not isinstance(text, str):
            raise UserError(f"{self.client.url}: answers without a text; give a model that writes")
        return " ".join(text.partition("\n")[0].split())


class TokenWriter:
    """Greedy answers of a model that is read token by token; beginnings that all prompts have are
    read once. `stops`: the tokens that no answer has.
    """

    stops: frozenset[int] = frozenset()

    def __init__(self, scorer: Any):
        self.scorer, self.signature = scorer, scorer.signature
        line, word = (self.encode(text) for text in ("a\n", "a"))
        self.end = (line[len(share_beginning([line, word])) :] or [scorer.end])[0]

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text in which nothing is a special token."""
        raise NotImplementedError

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens."""
        raise NotImplementedError

    def read(self, tokens: Sequence[int], state: Any) -> tuple[Any, Any]:
        """Return the logits behind tokens that stand behind a state, and the state there."""
        raise NotImplementedError

    def fork(self, state: Any) -> Any:
        """Return a state that stays as it is while this one is read on."""
        return state

    def __call__(
        self, prompts: Sequence[str], allowed: Sequence[Allowed | None], tokens: int
    ) -> Iterator[str]:
        """Yield an answer a prompt, in order; UserError for a prompt that is too long."""
        rows = [[self.scorer.begin, *self.encode(prompt)] for prompt in prompts]
        longest = max(map(len, rows), default=0) + tokens
        if longest > self.scorer.longest:
            raise UserError(
                f"{self.scorer.source}: a prompt and its answer have up to {longest} tokens and the"
                f" model {self.scorer.longest} positions; give a smaller --depth"
            )
        shared = share_beginning(rows)[:-1] if len(rows) > 1 else []
        state = self.read(shared, None)[1] if shared else None
        for row, held in zip(rows, allowed, strict=True):
            follow = self.write_free if held is None else self.write_held
            written = follow(row[len(shared) :], self.fork(state), held or tokens)
            yield " ".join(self.decode(written).split())

    def write_held(self, prompt: list[int], state: Any, allowed: Allowed) -> list[int]:
        """Return the tokens of an answer among those allowed."""
        known = self.scorer.words
        known.learn(allowed.words)
        paths = TokenPaths(allowed, lambda word: known.tokens(word, first=False), self.end)
        written: list[int] = []
        pending, here = prompt, paths.start
        while options := paths.options(here):
            token = next(iter(options))
            if len(options) > 1:
                logits, state = self.read(pending, state)
                pending = []
                token = max(options, key=lambda one: (float(logits[one]), -one))
            here = options[token]
            pending.append(token)
            written.append(token)
        return written[:-1]

    def write_free(self, prompt: list[int], state: Any, tokens: int) -> list[int]:
        """Return the tokens of any answer up to the end of the line."""
        written: list[int] = []
        pending = prompt
        while len(written) < tokens:
            logits, state = self.read(pending, state)
            token = int(logits.argmax())
            if token in self.stops or token == self.end or "\n" in self.decode([token]):
                break
            pending = [token]
            written.append(token)
        return written


def share_beginning(rows: Sequence[list[int]]) -> list[int]:
    """Return the tokens that all rows begin with."""
    first, last = min(rows, default=[]), max(rows, default=[])
    pairs = enumerate(zip(first, last, strict=False))
    return first[: next((place for place, (a, b) in pairs if a != b), min(len(first), len(last)))]
