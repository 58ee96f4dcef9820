"""Whisper's decoder asked about any text: the log-probabilities of given tokens, as CTranslate2's
search counts them.

CTranslate2's own `align` gives no probability of the end, has no list of suppressed tokens, and
computes the keys of the sound again for each text. Here they are computed once a window, and what
texts begin with alike is one path of a tree. Products are of float32: in int8, as `decode` has
them, a change of 1e-7 in any number moves a score by 0.006 a token, and so does the beam's width.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.special import erf

from lmtools.base.errors import UserError

TYPES = ("<f4", "<i1", "<i2", "<i4", "<f2")  # of the variables in a model.bin, by number
VERSIONS = range(4, 8)  # of model.bin: 4 brought types and sizes
NODES = 768  # tokens that go through the decoder together
LEAST = -70  # log of a share of attention: what is less makes slow numbers
EPSILON = 1e-5  # of layer normalisation
MOST = 448  # tokens of a text and of what is before it

Variables = Mapping[str, np.ndarray]


class Forced:
    """The decoder of the Whisper model in `directory`, as CTranslate2 wrote it.

    `suppressed` are the tokens that a search never takes, `first` those that it does not begin
    with, `end` is the token of the end.
    """

    def __init__(self, directory, suppressed: Sequence[int], first: Sequence[int], end: int):
        path = Path(directory) / "model.bin"
        try:
            variables = dict(parse_variables(np.memmap(path, mode="r")))
            self.heads = int(variables["num_heads"])
            self.output = Dense(variables, "projection")
            self.places = np.array(variables["position_encodings/encodings"], np.float32)
            self.norm = Norm(variables, "layer_norm")
            names = [name for name in variables if name.endswith("/ffn/linear_0/weight")]
            self.layers = [
                TextLayer(variables, f"layer_{at}", self.heads) for at in range(len(names))
            ]
        except (OSError, ValueError, LookupError, struct.error) as error:
            raise UserError(
                f"{path}: not a decoder as CTranslate2 4 writes it ({error}); fetch it again"
            ) from None
        self.suppressed, self.first, self.end = list(suppressed), list(first), end

    def log_probs(
        self, encoded: np.ndarray, prompt: Sequence[int], texts: Sequence[Sequence[int]]
    ) -> list[np.ndarray]:
        """Return the log-probabilities of each token of `texts`, and of the end behind them, given
        the `encoded` sound (frames, width) and the tokens of the `prompt`.

        They are among all tokens that the search may take there and, if it may not, the token
        itself. UserError for a text that is too long.
        """
        sound = [layer.hear(encoded) for layer in self.layers]
        scores: list[np.ndarray] = []
        tree = Tree(prompt)
        for text in texts:
            if len(prompt) + len(text) >= MOST:
                raise UserError(f"a text of {len(text)} tokens; cut the recording, or take it out")
            if tree.texts and len(tree.tokens) + len(text) > NODES:
                scores += self.ask(sound, tree)
                tree = Tree(prompt)
            tree.add(text)
        return scores + self.ask(sound, tree)

    def ask(self, sound: Sequence, tree: "Tree") -> list[np.ndarray]:
        """Return the log-probabilities of the texts of a tree."""
        sees = tree.sees()
        hidden = self.output.weight[tree.tokens] + self.places[tree.depths]
        for layer, heard in zip(self.layers, sound, strict=True):
            hidden = layer(hidden, sees, heard)
        logits = self.output(self.norm(hidden[tree.begin :]))
        paths = [
            (np.array(path) - tree.begin, [*text, self.end])
            for path, text in zip(tree.paths, tree.texts, strict=True)
        ]
        own = [logits[path, tokens].astype(float) for path, tokens in paths]
        logits[:, self.suppressed] = -np.inf
        logits[0, self.first] = -np.inf
        taken = [np.isfinite(logits[path, tokens]) for path, tokens in paths]
        most = logits.max(-1, keepdims=True)
        logits -= most
        sums = np.log(np.exp(logits, out=logits).sum(-1, dtype=float)) + most[:, 0]
        return [
            values - np.where(allowed, sums[path], np.logaddexp(sums[path], values))
            for values, allowed, (path, _) in zip(own, taken, paths, strict=True)
        ]


class Tree:
    """Texts behind a prompt, each token that they share once: `paths` are the places of the tokens
    that predict each text and its end; `begin` is the first of all these.
    """

    def __init__(self, prompt: Sequence[int]):
        self.tokens, self.depths = list(prompt), list(range(len(prompt)))
        self.above = list(range(-1, len(prompt) - 1))
        self.begin = len(prompt) - 1
        self.next: dict[tuple[int, int], int] = {}
        self.texts: list[Sequence[int]] = []
        self.paths: list[list[int]] = []

    def add(self, text: Sequence[int]) -> None:
        path = [self.begin]
        for token in text:
            if (place := self.next.get((path[-1], token))) is None:
                place = self.next[path[-1], token] = len(self.tokens)
                self.tokens.append(token)
                self.depths.append(self.depths[path[-1]] + 1)
                self.above.append(path[-1])
            path.append(place)
        self.texts.append(text)
        self.paths.append(path)

    def sees(self) -> np.ndarray:
        """Return what is added to the attention of each token to each: 0 to itself and those above
        it, else a number that leaves nothing.
        """
        sees = np.eye(len(self.tokens), dtype=bool)
        for place, above in enumerate(self.above[1:], 1):
            sees[place] |= sees[above]
        return np.where(sees, 0, -1e9).astype(np.float32)


class TextLayer:
    """A layer of the decoder: attention to the text, to the sound, and a network, in turn."""

    def __init__(self, variables: Variables, name: str, heads: int):
        self.heads = heads
        parts = {"own": "self_attention", "sound": "attention", "ffn": "ffn"}
        self.norms = {
            key: Norm(variables, f"{name}/{part}/layer_norm") for key, part in parts.items()
        }
        counts = {"own": 2, "sound": 3, "ffn": 2}
        self.dense = {
            (key, at): Dense(variables, f"{name}/{parts[key]}/linear_{at}")
            for key, count in counts.items()
            for at in range(count)
        }

    def hear(self, encoded: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the keys and values of the sound, (heads, frames, width of a head)."""
        return tuple(map(self.split, np.split(self.dense["sound", 1](encoded), 2, -1)))

    def split(self, x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x.reshape(len(x), self.heads, -1).swapaxes(0, 1))

    def __call__(self, x: np.ndarray, sees: np.ndarray, heard: Sequence[np.ndarray]) -> np.ndarray:
        """Return the layer's output for the tokens `x` (tokens, width)."""
        queries, *own = map(self.split, np.split(self.dense["own", 0](self.norms["own"](x)), 3, -1))
        x = x + self.dense["own", 1](attend(queries, own, sees))
        queries = self.split(self.dense["sound", 0](self.norms["sound"](x)))
        x = x + self.dense["sound", 2](attend(queries, heard))
        inner = self.dense["ffn", 0](self.norms["ffn"](x))
        return x + self.dense["ffn", 1](inner * (0.5 + 0.5 * erf(inner * np.float32(0.5**0.5))))


def attend(queries: np.ndarray, heard: Sequence[np.ndarray], sees=0) -> np.ndarray:
    """Return what `queries` (heads, tokens, width) attend to, (tokens, all widths)."""
    keys, values = heard
    weights = queries * np.float32(queries.shape[-1] ** -0.5) @ keys.swapaxes(1, 2) + sees
    weights -= weights.max(-1, keepdims=True)
    np.exp(np.maximum(weights, LEAST, out=weights), out=weights)
    weights /= weights.sum(-1, keepdims=True)
    mixed = (weights @ values).swapaxes(0, 1)
    return mixed.reshape(len(mixed), -1)


class Dense:
    """A layer x W' + b."""

    def __init__(self, variables: Variables, name: str):
        self.weight = np.array(variables[f"{name}/weight"], np.float32)
        if (scale := variables.get(f"{name}/weight_scale")) is not None:  # of a model kept in int8
            self.weight /= np.float32(scale).reshape(-1, 1)
        self.bias = np.array(variables.get(f"{name}/bias", 0), np.float32)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return x @ self.weight.T + self.bias


class Norm:
    """Layer normalisation."""

    def __init__(self, variables: Variables, name: str):
        self.gamma, self.beta = (
            np.array(variables[f"{name}/{x}"], np.float32) for x in ("gamma", "beta")
        )

    def __call__(self, x: np.ndarray) -> np.ndarray:
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * self.gamma + self.beta


def parse_variables(data: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the decoder's variables in the bytes of a model.bin, and what names them besides."""
    place = 0

    def take(size: int) -> np.ndarray:
        nonlocal place
        place += size
        return data[place - size : place]

    def number(form: str) -> int:
        return struct.unpack(form, take(struct.calcsize(form)).tobytes())[0]

    def name() -> str:
        return take(number("<H")).tobytes()[:-1].decode()

    if number("<I") not in VERSIONS or name() != "WhisperSpec":
        raise ValueError("another version or model")
    number("<I")
    found = {}
    for _ in range(number("<I")):
        key, shape = name(), [number("<I") for _ in range(number("<B"))]
        kind = TYPES[number("<B")]
        found[key] = take(number("<I")).view(kind).reshape(shape)
    for _ in range(number("<I")):
        key = name()
        found[key] = found[name()]
    for key, value in found.items():
        if key.startswith("decoder/"):
            yield key.removeprefix("decoder/"), value
