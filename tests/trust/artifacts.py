"""Damages every kind of artifact at random and says what became of it: refused in one line, warned
of, or without effect.

Never may damage change what an artifact says without a word, and never may loading it end in
anything but a UserError. Where `damage` runs a verb on each damaged file, this loads them here,
which is many times as fast.
"""

import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from functools import partial
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from trust import common

from lmtools.base import seal
from lmtools.base.errors import UserError

REFUSED = "refused"
WARNED = "warned"
EQUAL = "equal"
SILENT = "silent change"
TRACEBACK = "traceback"
LINES = "multi-line"
BAD = (SILENT, TRACEBACK, LINES)


class Kind(NamedTuple):
    """What is damaged: files (patterns in the directory of `made`), and `load`, whose value says
    all that the artifact says.
    """

    made: str
    files: tuple[str, ...]
    load: Callable
    checked: bool = True  # False: another value is no damage that can be seen


class Outcome(NamedTuple):
    """What became of one damage."""

    kind: str
    file: str
    damage: str
    became: str
    said: str


def damage_campaign(kind: str, count: int, seed: int, home: Path | None = None) -> list[Outcome]:
    """What became of `count` damages of a kind of KINDS; `home` keeps the undamaged artifacts, made
    there if they are not.
    """
    with tempfile.TemporaryDirectory() as temporary:
        one, home = KINDS[kind], Path(home or temporary) / KINDS[kind].made
        if not home.exists():
            MADE[one.made](home)
        expected = one.load(home)
        rng = random.Random(f"{kind} {seed}")
        work = Path(temporary) / "damaged" / one.made
        files = sorted(
            path.relative_to(home) for pattern in one.files for path in home.glob(pattern)
        )
        outcomes = []
        for _ in range(count):
            shutil.rmtree(work, ignore_errors=True)
            shutil.copytree(home, work)
            file = rng.choice(files)
            content = (work / file).read_bytes()
            damage = rng.choice(list(DAMAGES))
            (work / file).write_bytes(DAMAGES[damage](content, rng))
            outcomes.append(Outcome(kind, str(file), damage, *consequence(one, work, expected)))
        return outcomes


def consequence(kind: Kind, work: Path, expected) -> tuple[str, str]:
    """What loading the damaged artifact comes to, and what was said."""
    said = StringIO()
    seal.say_once.cache_clear()
    try:
        with redirect_stderr(said):
            value = kind.load(work)
    except UserError as error:
        return (REFUSED if "\n" not in str(error) and str(work) in str(error) else LINES), str(
            error
        )
    except Exception as error:
        return TRACEBACK, repr(error)
    if value == expected or not kind.checked:
        return EQUAL, ""
    return (WARNED if "has no seal" in said.getvalue() else SILENT), said.getvalue()


def flipped(content: bytes, rng: random.Random, bits: int = 1) -> bytes:
    """The content with bits turned over."""
    data = bytearray(content)
    for _ in range(bits):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def block(content: bytes, rng: random.Random, fill: bytes | None) -> bytes:
    """The content with up to 64 bytes that are something else."""
    start = rng.randrange(len(content))
    size = len(content[start : start + rng.randint(1, 64)])
    return (
        content[:start] + (fill * size if fill else rng.randbytes(size)) + content[start + size :]
    )


def swapped(content: bytes, rng: random.Random) -> bytes:
    """The content with two neighbouring bytes exchanged."""
    start = rng.randrange(max(1, len(content) - 1))
    return content[:start] + content[start : start + 2][::-1] + content[start + 2 :]


DAMAGES: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "bit": flipped,
    # where files describe themselves
    "head": lambda content, rng: flipped(content[:600], rng) + content[600:],
    "bits": lambda content, rng: flipped(content, rng, 20),
    "zeros": lambda content, rng: block(content, rng, b"\0"),
    "noise": lambda content, rng: block(content, rng, None),
    "cut": lambda content, rng: content[: rng.randrange(len(content))],
    "appended": lambda content, rng: content + rng.randbytes(rng.randint(1, 64)),
    "swapped": swapped,
    "lost": lambda content, rng: (lambda at: content[:at] + content[at + 1 :])(
        rng.randrange(len(content))
    ),
    "digit": lambda content, rng: digit(content, rng),
}


def digit(content: bytes, rng: random.Random) -> bytes:
    """The content with another digit or letter in place of one: what still reads well."""
    places = [at for at, byte in enumerate(content[:20_000]) if chr(byte).isalnum()] or [0]
    at = rng.choice(places)
    return content[:at] + bytes([rng.choice(b"0123456789abcxyz")]) + content[at + 1 :]


def text(home: Path, count: int = 120) -> Path:
    """A file of sentences."""
    from toys import sentences

    home.mkdir(parents=True, exist_ok=True)
    (home / "text").write_text("\n".join(sentences(count, 1)) + "\n")
    return home / "text"


def make_subword(scheme: str) -> Callable[[Path], None]:
    """A maker of a subword model of a scheme, `spelled` too."""

    def make(home: Path) -> None:
        from lmtools.text import NORMALISERS
        from lmtools.text.subword import train

        lines, words = text(home).read_text().splitlines(), None
        if scheme == "spelled":
            words = home / "words"
            train("word", lines, 20, NORMALISERS["cased"], words)
        size = {"bpe": 40, "unigram": 40}.get(scheme)
        train(
            "char" if scheme == "spelled" else scheme,
            lines,
            size,
            NORMALISERS["cased"],
            home / "subword",
            words=words,
        )

    return make


def load_subword(home: Path):
    """All that a subword model does."""
    from lmtools.text import subword

    made = subword.load_subword(home / "subword")
    spelled = made.words and (made.words.words.vocabulary, made.words.counts.tolist())
    return made.hash, made.vocabulary, made.normaliser, made.encode("The king's stone zzz"), spelled


def make_corpus(home: Path) -> None:
    from lmtools.text.corpus import binarise
    from lmtools.text.subword import load_subword

    make_subword("word")(home)
    binarise([text(home)], load_subword(home / "subword"), home / "train.bin")


def load_corpus(home: Path):
    """What training reads of a corpus."""
    from lmtools.text.corpus import Corpus

    corpus = Corpus.open(home / "train.bin")
    corpus.digest()
    return corpus.header, corpus.subword.hash, corpus.offsets.tolist(), corpus.ids.tolist()


def make_model(home: Path) -> None:
    from toys import settings

    from lmtools.train import train

    make_corpus(home)
    train(settings("causal", steps=4), home / "train.bin", home / "train.bin", home / "lm", "cpu")


def load_model(home: Path):
    """All that scoring takes from a model directory."""
    from lmtools.models.checkpoint import load_model, model_hash

    lm, subword = load_model(home / "lm")
    return (
        model_hash(home / "lm"),
        lm.settings,
        subword.hash,
        {name: bytes_of(tensor) for name, tensor in lm.state_dict().items()},
    )


def load_checkpoint(home: Path):
    """All that a training goes on from."""
    from lmtools.models.checkpoint import STATE, load_checked

    tensors, said = load_checked(home / "lm" / STATE)
    return said, {name: bytes_of(tensor) for name, tensor in tensors.items()}


def bytes_of(tensor) -> bytes:
    return tensor.detach().numpy().tobytes()


def make_ngram(home: Path) -> None:
    from lmtools.ngram import build
    from lmtools.text import Normaliser

    build([text(home)], 3, home / "lm", Normaliser(), kenlm="none")


def load_ngram(home: Path):
    """What an n-gram model says."""
    from lmtools.ngram import Description, NgramModel

    model = NgramModel.load(home / "lm")
    return (
        Description.load(home / "lm"),
        model.hash,
        [part.tolist() for part in model.score(["the king went", "zzz of the"])],
    )


def make_weights(home: Path) -> None:
    from lmtools.rescoring import Dev, Weights

    search = {
        "form": "linear",
        "curves": {
            "tta": {"points": [[0.0, 20.5], [0.3, 21.5]], "flat": [0.3, 0.4], "chosen": 0.35}
        },
    }
    dev = Dev("dev.jsonl", "ab" * 32, 3, 20.5, 21.5)
    weights = Weights("bleu", {"am": 1.0, "tta": 0.25}, "am", dev, search)
    weights.save(home / "weights.json")


def load_weights(home: Path):
    from lmtools.rescoring import Weights

    return Weights.load(home / "weights.json")


def make_vectors(home: Path) -> None:
    import numpy as np

    from lmtools.vectors import files as vectors

    values = np.random.default_rng(1).normal(size=(5, 2, 8)).astype(np.float32)
    vectors.write_sentences(
        vectors.SentenceVectors(list("abcdé"), values, (0, 2), {"model": "x" * 64, "pool": "mean"}),
        home / "v.npz",
    )


def load_vectors(home: Path):
    from lmtools.vectors import files as vectors

    made = vectors.read_sentences(home / "v.npz")
    return list(made.texts), made.vectors.tolist(), made.layers, made.signature


SCHEMES = ("bpe", "unigram", "word", "char", "spelled")
MADE: dict[str, Callable[[Path], None]] = {
    **{f"subword-{scheme}": make_subword(scheme) for scheme in SCHEMES},
    "corpus": make_corpus,
    "model": make_model,
    "ngram": make_ngram,
    "weights": make_weights,
    "vectors": make_vectors,
}
KINDS: dict[str, Kind] = {
    **{
        f"subword-{scheme}": Kind(f"subword-{scheme}", ("subword/*",), load_subword)
        for scheme in SCHEMES
    },
    "corpus": Kind("corpus", ("train.bin",), load_corpus),
    "model": Kind("model", ("lm/model.safetensors",), load_model),
    "model-description": Kind("model", ("lm/config.yaml", "lm/subword/*"), load_model),
    "checkpoint": Kind("model", ("lm/checkpoint.safetensors",), load_checkpoint),
    "ngram": Kind("ngram", ("lm/config.yaml", "lm/lm.arpa", "lm/subword/*"), load_ngram),
    "weights": Kind("weights", ("weights.json",), load_weights, checked=False),
    "vectors": Kind("vectors", ("v.npz",), load_vectors),
}


COUNTS = {"short": 40, "medium": 200, "long": 1000}  # of damages of each kind


def cases(size: str, seed: int) -> Iterator[common.Case]:
    """A case a kind."""
    return (common.Case(kind, partial(check, kind, COUNTS[size], seed)) for kind in KINDS)


def check(kind: str, count: int, seed: int, home: Path) -> int:
    """The number of damages; Wrong where one is silent, a traceback or no line, and where damage is
    hardly ever found.
    """
    outcomes = damage_campaign(kind, count, seed, home)
    for outcome in outcomes:
        if outcome.became in BAD:
            raise common.Wrong(
                outcome.became, f"{outcome.file} ({outcome.damage}): {outcome.said[:300]}"
            )
    if sum(outcome.became == REFUSED for outcome in outcomes) < count // (
        2 if KINDS[kind].checked else 4
    ):
        raise common.Wrong(
            "accepted", "most damage has no effect: the campaign looks at the wrong bytes"
        )
    return count
