"""From text to an n-gram model's directory."""

import contextlib
import gzip
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from lmtools.atomic import atomic_directory
from lmtools.config import dump, load_yaml
from lmtools.errors import UserError
from lmtools.files import OPENERS, sha256
from lmtools.lock import hold_lock
from lmtools.ngram import arpa, counts, kneser_ney
from lmtools.ngram.count_files import CountFiles
from lmtools.ngram.kenlm import KenlmPrograms, LmplzReport
from lmtools.ngram.model import AS_KENLM, CONFIG, KIND, SPACES, SUBWORD, Description
from lmtools.ngram.sentences import (
    RESERVED,
    SYMBOLS,
    UNKNOWN,
    UNKNOWN_ID,
    TokenisedText,
    only_known,
)
from lmtools.seal import add_yaml_seal
from lmtools.subword import Subword
from lmtools.subword.lists import Word
from lmtools.text import Normaliser
from lmtools.version import __version__

ORDERS = range(1, 7)  # KenLM is built for at most 6
# bytes of text: from here lmplz estimates where it is installed
LARGE = 200_000_000
COMPRESSION = 4  # how much smaller compressed text is, roughly
MEMORY = 2 << 30  # bytes that sorting may take

ARPA, BINARY = "lm.arpa", "lm.bin"
COMPRESSED = f"{ARPA}.gz"  # the ARPA file beside lmplz's lm.bin


def build(
    texts: Sequence,
    order: int,
    out,
    tokens: Normaliser | Subword,
    kenlm: str = "auto",
    memory: int = MEMORY,
    closed: bool = False,
    min_counts: Sequence[int] = (),
    keep_arpa: bool = True,
    counted: bool = False,
) -> Description:
    """Write an interpolated modified Kneser-Ney model of `texts` (one sentence a line; `counted`:
    files of counts instead, as CountFiles reads them) to directory `out`; what its config.yaml
    says.

    `tokens`: a subword model whose pieces are modelled, or the normaliser of text that is modelled
    word by word. `kenlm`: "auto" takes lmplz for large text and build_binary where they are
    installed, "none" neither, a directory takes both from there. `memory`: bytes that sorting may
    take; the rest is on the disk of `out`.

    `closed`: all that the subword model lacks (words outside a list, and <unk> where the text has
    it) is one token of the model, UNKNOWN of lmtools.ngram.sentences, with a probability from the
    text; so is, when the model is asked, a word of the list that the text lacks. Probabilities of
    the vocabulary and UNKNOWN then sum to 1; with lmplz, which keeps its <unk>, to 1 less what that
    has.

    `min_counts`: how often an n-gram must occur in the text, as `complete_min_counts` takes them.
    `keep_arpa` keeps lmplz's ARPA file, compressed: other models are made of it
    (lmtools.ngram.derived).
    """
    if order not in ORDERS:
        raise UserError(f"--order {order}: choose {ORDERS[0]} to {ORDERS[-1]}")
    least = complete_min_counts(min_counts, order)
    programs = KenlmPrograms.find(kenlm)
    sentences = TokenisedText(texts, tokeniser(tokens, closed))
    if counted:
        sentences = CountFiles(texts, rename_unknown(tokens) if closed else str)
    large = kenlm != "auto" or size(texts) > LARGE
    by_lmplz = programs and order > 1 and large and not counted
    with contextlib.ExitStack() as held:
        held.enter_context(hold_lock(out))
        guard(out)
        directory = held.enter_context(atomic_directory(out, CONFIG))
        if by_lmplz:
            occurrences, report = estimate_by_lmplz(
                sentences, order, directory, programs, memory, least, keep_arpa
            )
        else:
            occurrences, report = estimate_here(
                sentences, order, directory, programs, memory, closed, least
            )
        subword = tokens if isinstance(tokens, Subword) else Word(Word.listing(occurrences), tokens)
        subword.save_to(directory / SUBWORD)
        file = BINARY if programs else ARPA
        # words of a text are what its normaliser parts, those of counts are what is counted
        foreign = counted and sentences.foreign and tokens == Normaliser()
        description = Description(
            kind=KIND,
            order=order,
            estimator="lmplz" if by_lmplz else "lmtools",
            file=file,
            sha256=sha256(directory / file),
            text_sha256=[sha256(path) for path in texts if str(path) != "-"],
            sentences=sentences.sentences,
            tokens=sentences.tokens,
            reserved=sentences.reserved,
            counts=report.counts,
            discounts=report.discounts,
            fallback=report.fallback,
            version=__version__,
            unknown=UNKNOWN if closed else None,
            facts={
                "parameters": sum(report.counts),
                "vocabulary": {"scheme": subword.scheme, "size": subword.size},
                **({SPACES: AS_KENLM} if foreign else {}),
            },
        )
        (directory / CONFIG).write_text(add_yaml_seal(dump(description)), encoding="utf-8")
    return description


def tokeniser(tokens: Normaliser | Subword, closed: bool) -> Callable[[str], list[str]]:
    """Return the function from a line to the tokens that are modelled."""
    if isinstance(tokens, Subword):
        return only_known(tokens) if closed else tokens.pieces
    if closed:
        raise UserError(
            "--unk closes the vocabulary of a list; name the list's directory with --subword"
        )
    return lambda line: tokens(line).split()


def rename_unknown(subword: Subword) -> Callable[[str], str]:
    """Return a function from a token to its name in a closed vocabulary."""
    known = {piece for i, piece in enumerate(subword.vocabulary) if i != UNKNOWN_ID} - RESERVED
    return lambda piece: piece if piece in known else UNKNOWN


def guard(out) -> None:
    """Raise UserError if `out` holds a model of another kind, which building would replace."""
    config = Path(out) / CONFIG
    if config.is_file() and load_yaml(config).get("kind") != KIND:
        raise UserError(
            f"{config}: describes another kind of model; give another --out or remove that"
            " directory"
        )


def size(texts: Sequence) -> int:
    """The size of `texts` in bytes, rough for compressed ones; standard input counts nothing."""
    paths = [path for path in map(Path, texts) if path.is_file()]
    return sum(
        path.stat().st_size * (COMPRESSION if path.suffix in OPENERS else 1) for path in paths
    )


def estimate_here(
    sentences: TokenisedText | CountFiles,
    order: int,
    directory: Path,
    programs: KenlmPrograms | None,
    memory: int,
    closed: bool,
    min_counts: Sequence[int],
) -> tuple[dict[str, int], LmplzReport]:
    """Write lm.arpa (with `programs` lm.bin too) of our own estimator into `directory`, where its
    unnamed files lie; the occurrences of each word, and the report.
    """
    if isinstance(sentences, CountFiles):
        text, grams = sentences.tally(order, closed, directory, min_counts)
    else:
        text = counts.index(sentences, [UNKNOWN] if closed else [], directory)
        grams = counts.count(text, order, memory, directory, min_counts)
    sizes = [gram.size for gram in grams]
    refuse_empty(sizes, min_counts)
    made = kneser_ney.estimate(grams, memory, directory, closed)
    with open(directory / ARPA, "wb") as stream:
        arpa.write(stream, text.vocabulary, grams)
    if programs:
        programs.binarise(directory / ARPA, directory / BINARY)
    words = zip(text.vocabulary, text.occurrences.tolist(), strict=True)
    report = LmplzReport(sizes, [list(amounts) for amounts in made.discounts], made.fallback)
    return {word: number for word, number in words if word not in SYMBOLS}, report


def estimate_by_lmplz(
    sentences: TokenisedText,
    order: int,
    directory: Path,
    programs: KenlmPrograms,
    memory: int,
    min_counts: Sequence[int],
    keep_arpa: bool,
) -> tuple[dict[str, int], LmplzReport]:
    """Write lm.bin by lmplz and build_binary, and lm.arpa.gz if it is to be kept; the occurrences
    of each word, and the report.
    """
    occurrences, report = programs.estimate(sentences, order, memory, directory / ARPA, min_counts)
    refuse_empty(report.counts, min_counts)
    programs.binarise(directory / ARPA, directory / BINARY, "trie", memory)
    if keep_arpa:
        # the time of the file is left out, so that equal models are equal files
        with (
            open(directory / ARPA, "rb") as plain,
            gzip.GzipFile(directory / COMPRESSED, "wb", compresslevel=1, mtime=0) as compressed,
        ):
            shutil.copyfileobj(plain, compressed, 1 << 20)
    (directory / ARPA).unlink()
    return occurrences, report


def complete_min_counts(given: Sequence[int], order: int) -> list[int]:
    """Return the least counts of n-grams of each order, (order,), the last one given for all longer
    ones; none where all n-grams stay. UserError unless they rise from 1.
    """
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


def refuse_empty(counts: Sequence[int], min_counts: Sequence[int]) -> None:
    """Raise UserError where `min_counts` leave no n-gram of an order."""
    if min_counts and 0 in counts:
        raise UserError(
            f"--min-count {' '.join(map(str, min_counts))}: no n-gram of"
            f" {counts.index(0) + 1} tokens is left; give a lower count or --order"
        )


def find_arpa(directory) -> Path:
    """Find the ARPA file in a model's directory, maybe compressed; UserError if only KenLM's binary
    file is there.
    """
    for name in (ARPA, COMPRESSED):
        path = Path(directory) / name
        if path.is_file():
            return path
    raise UserError(
        f"{directory}: has no {ARPA}, and KenLM's binary file lists no n-grams; estimate the model"
        " again with lmtools ngram, without --no-arpa"
    )
