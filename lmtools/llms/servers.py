"""Language models behind a server: found by asking, tested with texts whose order is known, and
asked for several texts at a time. What was answered once is in the cache, by the model's name and
the text, and a run that was killed asks for the rest.
"""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

import numpy as np

from lmtools.base.computing import Computing
from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.llms.client import KEPT, KEY, Client, RefusedError
from lmtools.llms.options import ServerOptions
from lmtools.llms.protocols import BadAnswerError, Echo, Prompt
from lmtools.score.base import Scorer
from lmtools.score.cache import Cache, Kind, cache_directory

ANSWERS = Kind(
    "answers",
    lambda width: width % 8 == 0,
    lambda values: values.astype("<f8").tobytes(),
    lambda content: np.frombuffer(content, "<f8"),
)
BATCH = 8  # times the texts that are asked at a time: texts that go through together
ORDERED = (
    ("The cat sat on the mat and looked out of the window.", (5, 3, 10, 0, 8, 1, 7, 4, 9, 2, 6)),
    ("She asked him what time the train would leave.", (6, 2, 8, 4, 0, 7, 3, 5, 1)),
    ("There is nothing new under the sun.", (4, 6, 2, 0, 5, 3, 1)),
)
NEAR = 0.02  # nats a token by which answers to one text may differ


def load_server(spec: LMSpec, computing: Computing) -> "ServerScorer":
    """Load `http://HOST:PORT/v1,model=NAME`; UserError where nothing there scores texts."""
    options = spec.more or ServerOptions()
    client = Client(spec.lm, options)
    model, about = find_model(client, options)
    reader = find_reader(client, model, options.end)
    check_server(reader, spec.lm)
    return ServerScorer(reader, about, spec, computing)


def find_model(client: Client, options: ServerOptions) -> tuple[str, dict]:
    """Return the model that is asked, and what the server tells of it."""
    listed = (client.get(f"{client.url}/models") or {}).get("data")
    known = {m["id"]: m for m in listed or () if isinstance(m, dict) and "id" in m}
    model = options.model or (next(iter(known)) if len(known) == 1 else None)
    if model is None or (known and model not in known):
        names = ", ".join(known) or "it lists none"
        raise UserError(f"{client.url}: which model? give ,model=NAME behind the address ({names})")
    about = known.get(model, {})
    meta = about.get("meta") if isinstance(about.get("meta"), dict) else {}
    told = {name: meta[name] for name in ("n_params", "n_vocab", "size") if name in meta}
    return model, told | {name: about[name] for name in ("root",) if about.get(name)}


def find_reader(client: Client, model: str, end: str | None) -> Echo:
    """Return the way in which a server scores; UserError where there is none."""
    if client.get(f"{client.root}/api/version"):
        raise UserError(
            f"{client.url}: Ollama tells no log-probabilities of a text that it is given; its"
            " models are GGUF files (`ollama show --modelfile NAME` names them after FROM): give"
            " gguf:FILE"
        )
    if "default_generation_settings" in (client.get(f"{client.root}/props") or {}):
        raise UserError(
            f"{client.url}: llama.cpp's server tells no log-probabilities of a text that it is"
            " given; give its model's file, gguf:FILE"
        )
    causes = []
    for kind in (Echo, Prompt):
        try:
            return kind(client, model, end)
        except (RefusedError, BadAnswerError) as error:
            causes.append(f"{kind.name}: {error}")
            if "status 401" in str(error) or "status 403" in str(error):
                break
    raise UserError(
        f"{client.url}: {'; '.join(causes)}; a server is of use that scores all of a text that it"
        " is given, as vLLM and SGLang; give a model of llama-cpp-python's by gguf:FILE"
    )


def check_server(reader: Echo, lm: str) -> None:
    """Ask for what is known; UserError where a server answers otherwise than a language model."""
    first = ORDERED[0][0]
    try:
        once, again = reader.score(first), reader.score(first)
        sums = [[], []]
        for text, order in ORDERED:
            words = text.split()
            for side, each in zip(sums, (text, " ".join(words[i] for i in order)), strict=True):
                side.append(reader.score(each).sum())
        wrong = reader.misaligned()
    except BadAnswerError as error:
        raise UserError(f"{lm}: {error}") from None
    if len(once) != len(again) or np.abs(once - again).sum() > NEAR * len(once):
        wrong = f"scores one text {once.sum():.3f} and then {again.sum():.3f}"
    elif sum(sums[0]) <= sum(sums[1]):
        wrong = f"finds sentences ({sum(sums[0]):.2f}) no more probable than their words shuffled"
        wrong += f" ({sum(sums[1]):.2f})"
    if wrong:
        raise UserError(f"{lm}: {wrong}; nothing is scored by it: see to the server or the model")


class ServerScorer(Scorer):
    """A model behind a server. A sentence is (text,); answers tell how many tokens it has."""

    kind = "perplexity"
    ragged = True

    def __init__(self, reader: Echo, about: dict, spec: LMSpec, computing: Computing):
        self.reader, self.client, self.spec = reader, reader.client, spec
        self.rows = BATCH * self.client.options.requests
        self.signature = {
            "lm": f"server-{reader.name}", "model": reader.model, "device": "server",
            "end": reader.end, **({"about": json.dumps(about, sort_keys=True)} if about else {}),
        }  # fmt: skip
        self.cache = Cache(cache_directory(computing.cache), self.signature, ANSWERS)
        self.lengths: dict[tuple, int] = {}

    def prepare(self, texts):
        sentences = [(self.normalise(text),) for text in texts]
        self.look_up(sentences)
        return sentences

    def look_up(self, sentences: Sequence[tuple]) -> dict[int, np.ndarray]:
        """Return the answers that are known, by place; note how many tokens these have."""
        known = self.cache.get(sentences)
        self.lengths |= {sentences[place]: len(values) for place, values in known.items()}
        return known

    def cost(self, sentence):
        return 1

    def unknown(self, sentence):
        if sentence not in self.lengths:
            self.token_log_probs([sentence])
        return np.zeros(self.lengths[sentence] - 1, dtype=bool)

    def token_names(self, sentence):
        return [str(number) for number in range(1, len(self.unknown(sentence)) + 1)]

    def token_log_probs(self, sentences):
        values = self.look_up(sentences)
        left = [place for place in range(len(sentences)) if place not in values]
        for place, answer in self.ask([sentences[place] for place in left]):
            values[left[place]] = answer
            self.lengths[sentences[left[place]]] = len(answer)
        return [values[place] for place in range(len(sentences))]

    def ask(self, sentences: Sequence[tuple]) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (place, answer) of each sentence as answers come, and keep them at once; where one
        fails no more are asked, and those that are under way are kept.
        """
        failed: BaseException | None = None
        with ThreadPoolExecutor(self.client.options.requests) as pool:
            waiting = {pool.submit(self.reader.score, *s): n for n, s in enumerate(sentences)}
            try:
                while waiting:
                    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        place = waiting.pop(future)
                        if error := future.exception():
                            failed = failed or error
                            pool.shutdown(wait=False, cancel_futures=True)
                            # `wait` never hears of those that a shutdown cancels
                            waiting = {f: n for f, n in waiting.items() if not f.cancelled()}
                            continue
                        self.cache.put([(sentences[place], future.result())])
                        yield place, future.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                self.cache.write()
        if isinstance(failed, BadAnswerError):
            raise UserError(f"{self.spec.lm}: {failed}; {KEPT}: see to the server") from None
        if failed:
            raise failed


__all__ = ["KEY", "ServerScorer", "load_server"]
