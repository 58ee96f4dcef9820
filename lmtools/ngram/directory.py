"""From text to an n-gram model's directory. Of a text that several processes tokenised and
numbered, each leaves a part, and the text of all parts is as one process has it.
"""

import contextlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lmtools.base.atomic import atomic_directory, atomic_path, atomic_text, hold_lock
from lmtools.base.computing import Shard
from lmtools.base.config import dump, load_yaml
from lmtools.base.errors import UserError
from lmtools.base.files import sha256
from lmtools.base.log import say
from lmtools.base.seal import add_yaml_seal
from lmtools.ngram import arpa, counts, kneser_ney
from lmtools.ngram.counts import BLOCK, DiskArray, IndexedText, index
from lmtools.ngram.kenlm_files import binarise, find_program
from lmtools.ngram.model import AS_KENLM, CONFIG, KIND, SPACES, SUBWORD, Description
from lmtools.ngram.sentences import BOS, SYMBOLS, UNKNOWN, TokenisedText, only_known
from lmtools.text import Normaliser
from lmtools.text.subword import Subword, load_subword
from lmtools.text.subword.lists import Word
from lmtools.version import __version__

WORDS = ".words.json"  # what follows the name of the ids


def write_part(texts: Sequence, tokenise: Callable, shard: Shard, out) -> dict[str, int]:
    """Write the ids, int32, of a part of texts, and the vocabulary beside it; return tallies."""
    sentences = TokenisedText(texts, tokenise, shard)
    text = index(sentences, folder=Path(out).parent)
    with atomic_path(out) as path, open(path, "wb") as stream:
        for block in text.ids.blocks():
            stream.write(block.astype("<i4").tobytes())
    with atomic_path(f"{out}{WORDS}") as path:
        path.write_text(json.dumps(text.vocabulary), encoding="utf-8")
    return {name: getattr(sentences, name) for name in ("sentences", "tokens", "reserved")}


class TextParts:
    """The parts of a text in files of `write_part`, with the sums of their tallies."""

    def __init__(self, paths: Sequence[Path], tallies: Sequence[dict[str, int]], text: str):
        self.paths, self.text = paths, text
        self.sentences, self.tokens, self.reserved = (
            sum(tally[name] for tally in tallies) for name in ("sentences", "tokens", "reserved")
        )

    def index(self, closed: bool, folder=None) -> IndexedText:
        """Return the text, of a `closed` vocabulary with UNKNOWN as its last word."""
        if not self.sentences:
            raise UserError(
                f"{self.text}: no sentence in the text; give text with one sentence a line"
            )
        numbers = {symbol: number for number, symbol in enumerate(SYMBOLS)}
        ids, occurrences = DiskArray(folder, np.int32), np.zeros(0, dtype=np.int64)
        for path in self.paths:
            words = json.loads(Path(f"{path}{WORDS}").read_text(encoding="utf-8"))
            number_of = np.array([numbers.setdefault(word, len(numbers)) for word in words])
            with open(path, "rb") as stream:
                while content := stream.read(4 * BLOCK):
                    block = number_of[np.frombuffer(content, "<i4")].astype(np.int32)
                    counted = np.bincount(block, minlength=len(numbers))
                    counted[: len(occurrences)] += occurrences
                    occurrences = counted
                    ids.append(block)
        if closed:
            numbers.setdefault(UNKNOWN, len(numbers))
        occurrences = np.pad(occurrences, (0, len(numbers) - len(occurrences)))
        occurrences[BOS] = 0
        return IndexedText(ids, list(numbers), occurrences)


ORDERS = range(1, 7)  # KenLM is built for at most 6
MEMORY = 2 << 30  # bytes that sorting may take
ARPA, BINARY = "lm.arpa", "lm.bin"
ARPA_FILE = re.compile(r".*\.arpa(\.gz|\.xz|\.bz2)?", re.DOTALL)
COMPRESSED = f"{ARPA}.gz"  # what older versions kept of an estimation by lmplz


@dataclass(frozen=True)
class BuildOptions:
    """Options of an estimation: `kenlm`: as `find_program` takes it; `memory`: bytes that sorting
    may take; `min_counts`: how often n-grams must occur.

    `closed`: all that the subword model lacks, and <unk> in the text, is one token of the model,
    UNKNOWN; probabilities of the vocabulary and UNKNOWN sum to 1.
    """

    kenlm: str = "auto"
    memory: int = MEMORY
    closed: bool = False
    min_counts: Sequence[int] = ()


def build(
    texts: Sequence,
    order: int,
    out,
    tokens: Normaliser | Subword,
    parts: TextParts | None = None,
    **options,
) -> Description:
    """Write an interpolated modified Kneser-Ney model of `texts` to `out`, under BuildOptions;
    return what its config.yaml says. `tokens`: a subword model, or the normaliser of text modelled
    by words. `parts`: the texts as other processes counted them.
    """
    options = BuildOptions(**options)
    if order not in ORDERS:
        raise UserError(f"--order {order}: choose {ORDERS[0]} to {ORDERS[-1]}")
    least = complete_min_counts(options.min_counts, order)
    program = find_program(options.kenlm)
    sentences = parts or TokenisedText(texts, tokeniser(tokens, options.closed))
    with claim_directory(out, CLOSED if options.closed else "") as directory:
        text, grams = count_ngrams(sentences, order, least, directory, options=options)
        sizes = [gram.size for gram in grams]
        if least and 0 in sizes:
            raise UserError(
                f"--min-count {' '.join(map(str, least))}: no n-gram of {sizes.index(0) + 1} tokens"
                " is left; give a lower count or --order"
            )
        estimate = kneser_ney.estimate(grams, options.memory, directory, options.closed)
        with open(directory / ARPA, "wb") as stream:
            arpa.write(stream, text.vocabulary, grams)
        file, digest = finish_model(directory, program)
        subword = tokens if isinstance(tokens, Subword) else list_words(text, tokens)
        description = Description(
            kind=KIND, order=order, estimator="lmtools", file=file, sha256=digest,
            text_sha256=[sha256(path) for path in texts if str(path) != "-"],
            sentences=sentences.sentences, tokens=sentences.tokens, reserved=sentences.reserved,
            counts=sizes, discounts=[list(amounts) for amounts in estimate.discounts],
            fallback=estimate.fallback, version=__version__,
            unknown=UNKNOWN if options.closed else None,
        )  # fmt: skip
        return describe_directory(directory, description, subword)


def count_ngrams(
    sentences: TokenisedText | TextParts,
    order: int,
    min_counts: Sequence[int],
    directory: Path,
    *,
    options: BuildOptions,
) -> tuple[counts.IndexedText, list[counts.Grams]]:
    """Return the vocabulary and the counted n-grams, in unnamed files beside `directory`."""
    if isinstance(sentences, TextParts):
        text = sentences.index(options.closed, directory)
    else:
        text = counts.index(sentences, [UNKNOWN] if options.closed else [], directory)
    return text, counts.count(text, order, options.memory, directory, min_counts=min_counts)


def list_words(text: counts.IndexedText, normaliser: Normaliser) -> Word:
    words = zip(text.vocabulary, text.occurrences.tolist(), strict=True)
    content = Word.listing({word: number for word, number in words if word not in SYMBOLS})
    return Word(content, normaliser)


CLOSED = "the vocabulary that --unk closes"


def names_arpa(out) -> bool:
    """Return whether `out` names an ARPA file (.arpa, .arpa.gz ..) and no directory."""
    return bool(ARPA_FILE.fullmatch(str(out))) and not Path(out).is_dir()


@contextlib.contextmanager
def claim_directory(out, beyond: str = "") -> Iterator[Path]:
    """Yield the directory that becomes `out` in the end, or whose n-grams do where `out` names an
    ARPA file; UserError for a model of another kind, and for such a file where the model has what
    is `beyond` one.
    """
    config = Path(out) / CONFIG
    if names_arpa(out) and beyond:
        raise UserError(f"{out}: an ARPA file cannot hold {beyond}; give a directory as --out")
    with hold_lock(out):
        if names_arpa(out):
            with (
                tempfile.TemporaryDirectory(dir=Path(out).parent) as folder,
                atomic_text(out) as to,
            ):
                yield Path(folder)
                with open(Path(folder, ARPA), "rb") as stream:
                    shutil.copyfileobj(stream, to.buffer)
                say_bare(out, load_subword(Path(folder) / SUBWORD))
            return
        if config.is_file() and load_yaml(config).get("kind") != KIND:
            raise UserError(
                f"{config}: describes another kind of model; give another --out or remove that"
                " directory"
            )
        with atomic_directory(out, CONFIG) as directory:
            yield directory


def say_bare(out, subword: Subword) -> None:
    """Say what the ARPA file `out` does not keep of a model's tokens."""
    if subword.scheme != Word.scheme or subword.normaliser != Normaliser():
        say(
            f"{out}: an ARPA file keeps no normaliser and no pieces: whoever reads it gives it text"
            " written so; a directory keeps them"
        )


def finish_model(directory: Path, program: Path | None) -> tuple[str, str]:
    """Write lm.bin with `program`, if any; return name and SHA-256 of the file to load."""
    if program:
        binarise(program, directory / ARPA, directory / BINARY)
    name = BINARY if program else ARPA
    return name, sha256(directory / name)


def describe_directory(
    directory: Path, description: Description, subword: Subword, foreign: bool = False, **facts
) -> Description:
    """Write subword model and config.yaml, with more `facts`; return what that says."""
    subword.save_to(directory / SUBWORD)
    facts = {
        "parameters": sum(description.counts),
        "vocabulary": {"scheme": subword.scheme, "size": subword.size},
        **facts,
        **({SPACES: AS_KENLM} if foreign else {}),
    }
    description = replace(description, facts=facts)
    (directory / CONFIG).write_text(add_yaml_seal(dump(description)), encoding="utf-8")
    return description


def tokeniser(tokens: Normaliser | Subword, closed: bool) -> Callable[[str], list[str]]:
    if isinstance(tokens, Subword):
        return only_known(tokens) if closed else tokens.pieces
    if closed:
        raise UserError(
            "--unk closes the vocabulary of a list; name the list's directory with --subword"
        )
    return tokens.words


def complete_min_counts(given: Sequence[int], order: int) -> list[int]:
    """Return the least counts of each order, (order,), rising from 1; none if all n-grams stay."""
    least = [*given, *given[-1:] * (order - len(given))]
    if not given or max(least) == 1:
        return []
    if len(least) > order or least[0] != 1 or sorted(least) != least:
        numbers = " ".join(map(str, given))
        raise UserError(
            f"--min-count {numbers}: give at most {order} numbers of orders 1 to {order}, the first"
            " 1 and none below the one before it; words are left out by --subword DIR --unk"
        )
    return least


def find_arpa(directory) -> Path:
    """Find the ARPA file, maybe compressed, in a model's directory; UserError for none."""
    for name in (ARPA, COMPRESSED):
        path = Path(directory) / name
        if path.is_file():
            return path
    raise UserError(
        f"{directory}: has no {ARPA}, and KenLM's binary file lists no n-grams; estimate the model"
        " again with lmtools ngram"
    )
