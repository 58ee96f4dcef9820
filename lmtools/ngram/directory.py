"""From text to an n-gram model's directory."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lmtools.base.atomic import atomic_directory, hold_lock
from lmtools.base.config import dump, load_yaml
from lmtools.base.errors import UserError
from lmtools.base.files import sha256
from lmtools.base.seal import add_yaml_seal
from lmtools.ngram import arpa, counts, kneser_ney
from lmtools.ngram.kenlm_files import binarise, find_program
from lmtools.ngram.model import AS_KENLM, CONFIG, KIND, SPACES, SUBWORD, Description
from lmtools.ngram.parts import TextParts
from lmtools.ngram.sentences import SYMBOLS, UNKNOWN, TokenisedText, only_known
from lmtools.text import Normaliser
from lmtools.text.subword import Subword
from lmtools.text.subword.lists import Word
from lmtools.version import __version__

ORDERS = range(1, 7)  # KenLM is built for at most 6
MEMORY = 2 << 30  # bytes that sorting may take
ARPA, BINARY = "lm.arpa", "lm.bin"
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
    with claim_directory(out) as directory:
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


@contextlib.contextmanager
def claim_directory(out) -> Iterator[Path]:
    """Yield the directory that becomes `out` in the end; UserError for a model of another kind."""
    config = Path(out) / CONFIG
    with hold_lock(out):
        if config.is_file() and load_yaml(config).get("kind") != KIND:
            raise UserError(
                f"{config}: describes another kind of model; give another --out or remove that"
                " directory"
            )
        with atomic_directory(out, CONFIG) as directory:
            yield directory


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
