"""N-gram models made of others: mixtures, pruned and quantised ones, ARPA files in other forms."""

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from lmtools.base.atomic import atomic_path, atomic_text, is_stream
from lmtools.base.errors import UserError
from lmtools.base.files import OPENERS, sha256
from lmtools.base.specs import find_model
from lmtools.ngram import arrays, backoff, interpolation
from lmtools.ngram.backoff import BackoffModel, fill_unigrams
from lmtools.ngram.directory import (
    ARPA,
    BINARY,
    CLOSED,
    claim_directory,
    describe_directory,
    find_arpa,
    finish_model,
    tokeniser,
)
from lmtools.ngram.kenlm_files import (
    SCRIPT,
    binarise,
    binary,
    explain_refusal,
    find_program,
    uncompressed,
)
from lmtools.ngram.model import KIND, SUBWORD, Description
from lmtools.ngram.sentences import EOS, SYMBOLS, UNK, TokenisedText, split_words
from lmtools.text import Normaliser
from lmtools.text.subword import SPECIALS, Subword, load_subword
from lmtools.text.subword.lists import Word
from lmtools.text.unknown import warn_unknown
from lmtools.version import __version__

BITS, POINTER_BITS = 8, 22  # of a quantised number, and the most leading ones of pointers cut off
BINARIES = (".bin", ".binary", ".klm", ".kenlm", ".mmap")


@dataclass
class NgramSource:
    """A model to make others of: `lm` as given, ARPA file, description (None: a bare file)."""

    lm: str
    arpa: Path
    description: Description | None
    subword: Subword | None

    @classmethod
    def of(cls, lm) -> "NgramSource":
        """Return the one of a directory, an installed model or ARPA file; else UserError."""
        path = Path(find_model(str(lm)))
        if path.is_dir():
            return cls(
                str(lm), find_arpa(path), Description.load(path), load_subword(path / SUBWORD)
            )
        if binary(path):
            raise no_ngrams(lm)
        return cls(str(lm), path, None, None)

    @property
    def foreign(self) -> bool:
        return self.description is None or self.description.foreign

    @property
    def unknown(self) -> str:
        return (self.description and self.description.unknown) or SYMBOLS[0]

    @cached_property
    def digest(self) -> str:
        """Return the SHA-256 of its ARPA file, which is as described where that can be told."""
        if self.description and self.description.file == self.arpa.name:
            return self.description.verify(self.arpa.parent)
        return sha256(self.arpa)

    def read(self, ids: dict[str, int]) -> BackoffModel:
        """Read its n-grams; `ids` gets the new words."""
        counts = None
        if self.description:
            _, counts = self.digest, self.description.counts
        return arrays.read_arpa(self.arpa, ids, counts)


def no_ngrams(lm) -> UserError:
    return UserError(f"{lm}: KenLM's binary file lists no n-grams; give the ARPA file")


def mix(
    lms: Sequence,
    out,
    weights: Sequence[float] | None = None,
    texts: Sequence = (),
    kenlm: str = "auto",
) -> tuple[Description, np.ndarray]:
    """Write the static mixture of `lms` to `out`, by `weights` or those that suit `texts` best;
    return its config.yaml's facts and the weights. Unknown words have probability 0.
    """
    if weights is not None:
        weights = interpolation.complete_weights(weights, list(map(str, lms)))
    sources = [NgramSource.of(lm) for lm in lms]
    # KenLM splits the words of a mixture where it splits those of all its models
    subword_of, foreign = check_vocabularies(sources), all(source.foreign for source in sources)
    program = find_program(kenlm)
    with claim_directory(out, closed(sources[0])) as directory:
        ids = arrays.new_vocabulary()
        models = [source.read(ids) for source in sources]
        unknown = ids.setdefault(sources[0].unknown, len(ids))
        for model in models:
            fill_unigrams(model, len(ids))
        subword = subword_of(ids)
        if weights is None:
            ours = tokeniser(subword, closed=sources[0].unknown != SYMBOLS[0])
            sentences = TokenisedText(texts, split_words if foreign else ours)
            rows = [[ids.get(word, unknown) for word in words] for words in sentences]
            known = frozenset(word for word, number in ids.items() if number != unknown)
            warn_of_text(texts, lms, sentences, known)
            probs = interpolation.token_probabilities(models, rows)
            possible = probs[:, probs.max(0) > 0]
            with np.errstate(divide="ignore"):
                weights = interpolation.tune_mixture(np.log(possible))
        model = interpolation.interpolate(models, weights)
        parts = [
            {"model": source.digest, "weight": float(weight)}
            for source, weight in zip(sources, weights, strict=True)
        ]
        description = write(directory, model, ids, describe(sources, "mixture"), program=program)
        return describe_directory(directory, description, subword, foreign, mixture=parts), weights


def warn_of_text(texts: Sequence, lms: Sequence, sentences, known: frozenset[str]) -> None:
    """Say where the models of a mixture know hardly a word of the text that it is tuned on."""
    words = [word for sentence in sentences for word in sentence]
    counts = sum(word not in known for word in words), len(words)
    models, places = (" and ".join(map(str, names)) for names in (lms, texts))
    warn_unknown(places, *counts, models, texts=[" ".join(words)], known=known.__contains__)


def prune(lm, out, threshold: float, kenlm: str = "auto") -> tuple[Description, list[int]]:
    """Write `lm` to directory `out` without the n-grams that change perplexity by less than the
    factor 1 + `threshold`; what its config.yaml says, and the n-grams an order before.
    """
    source = NgramSource.of(lm)
    program = find_program(kenlm)
    with claim_directory(out, closed(source)) as directory:
        ids = arrays.new_vocabulary()
        model = source.read(ids)
        subword = check_vocabularies([source])(ids)
        before = model.counts
        model = backoff.prune(model, threshold)
        description = write(directory, model, ids, describe([source], "pruned"), program=program)
        return describe_directory(
            directory, description, subword, source.foreign, threshold=threshold
        ), before


def quantize(lm, out, bits: int = BITS, kenlm: str = "auto") -> Description:
    """Write `lm` as KenLM's trie of so many bits (0: all); return its config.yaml's facts."""
    source = NgramSource.of(lm)
    program = find_program(kenlm)
    if program is None:
        raise UserError(f"--kenlm {kenlm}: quantize needs KenLM's build_binary; run {SCRIPT}")
    with claim_directory(out, "KenLM's trie") as directory:
        ids = arrays.new_vocabulary()
        description = describe([source], "quantized")
        if source.description is None:
            description = replace(description, counts=source.read(ids).counts)
        subword = check_vocabularies([source])(ids)
        flags = [*(["-q", bits, "-b", bits] if bits else []), "-a", POINTER_BITS]
        with uncompressed(source.arpa, directory) as arpa:
            try:
                binarise(
                    program, arpa, directory / BINARY, form="trie", options=list(map(str, flags))
                )
            except UserError as error:
                raise (
                    error if source.description else explain_refusal(source.arpa, str(error))
                ) from None
        digest = sha256(directory / BINARY)
        description = replace(
            description, order=len(description.counts), file=BINARY, sha256=digest
        )
        widths = {"probability": bits, "backoff": bits, "pointer": POINTER_BITS}
        return describe_directory(directory, description, subword, source.foreign, bits=widths)


def closed(source: NgramSource) -> str:
    return CLOSED if source.unknown != SYMBOLS[0] else ""


def check_vocabularies(sources: Sequence[NgramSource]):
    """Return a function from ids to the sources' subword model; UserError for unlike tokens."""
    known = [source for source in sources if source.subword]
    if not known:
        return lambda ids: Word(Word.listing(words_of(ids)), Normaliser())
    first = known[0]
    same = all(source.subword.hash == first.subword.hash for source in known)
    if same and len({source.unknown for source in sources}) == 1:
        return lambda ids: first.subword
    for source in sources:
        joins = source.unknown == SYMBOLS[0] and (
            source.subword is None
            or (
                source.subword.scheme == Word.scheme
                and source.subword.normaliser == first.subword.normaliser
            )
        )
        if not joins:
            raise UserError(
                f"{source.lm}: models other tokens than {first.lm}; estimate both with the same"
                " lmtools ngram --subword DIR, --unk and normaliser"
            )
    counts = Counter()
    for source in known:
        words = source.subword.vocabulary[len(SPECIALS) :]
        counts.update(dict(zip(words, source.subword.counts.tolist(), strict=True)))
    return lambda ids: Word(Word.listing({**words_of(ids), **counts}), first.subword.normaliser)


def words_of(ids: dict[str, int]) -> dict[str, int]:
    """Return the words among `ids`, as if each had been seen once."""
    return dict.fromkeys(list(ids)[len(SYMBOLS) :], 1)


def describe(sources: Sequence[NgramSource], estimator: str) -> Description:
    """Describe a model of `sources` as far as it is known before the model is written."""
    described = [source.description for source in sources if source.description]
    alone = described[0] if len(sources) == len(described) == 1 else None
    return Description(
        kind=KIND, order=0, estimator=estimator, file=ARPA, sha256="",
        text_sha256=[digest for part in described for digest in part.text_sha256],
        sentences=sum(part.sentences for part in described),
        tokens=sum(part.tokens for part in described),
        reserved=sum(part.reserved for part in described),
        counts=alone.counts if alone else [],
        discounts=alone.discounts if alone else [],
        fallback=alone.fallback if alone else [],
        version=__version__,
        unknown=described[0].unknown if described else None,
    )  # fmt: skip


def write(
    directory: Path,
    model: BackoffModel,
    ids: dict[str, int],
    description: Description,
    *,
    program: Path | None,
) -> Description:
    """Write the model's files; return the description with the n-grams."""
    with open(directory / ARPA, "wb") as stream:
        arrays.write_arpa(stream, model, ids)
    file, digest = finish_model(directory, program)
    return replace(description, order=model.order, counts=model.counts, file=file, sha256=digest)


def file_size(directory, description: Description) -> int:
    return (Path(directory) / description.file).stat().st_size


def convert(path, out, kenlm: str = "auto") -> tuple[BackoffModel, list[str]]:
    """Write the ARPA file `path` to `out`: by its suffix as ARPA (.arpa, .lm, maybe compressed) or
    as KenLM's binary form (BINARIES); the model as SRILM reads it, and what it lacks in words.
    """
    program = check_names(path, out, kenlm)
    ids = arrays.new_vocabulary()
    model = arrays.read_arpa(path, ids)
    model.add_endings()
    if program is None:
        with atomic_text(out) as stream:
            arrays.write_arpa(stream.buffer, model, ids)
    else:
        with (
            atomic_path(out) as temporary,
            tempfile.NamedTemporaryFile(dir=temporary.parent) as arpa,
        ):
            arrays.write_arpa(arpa, model, ids)
            arpa.flush()
            binarise(program, Path(arpa.name), temporary)
    return model, [
        f"{path}: lists no {SYMBOLS[i]}: {what}"
        for i, what in (
            (UNK, "a closed vocabulary, unknown words have no probability"),
            (EOS, "the end of a sentence has no probability"),
        )
        if not model.levels[0].prob[i]
    ]


def check_names(path, out, kenlm: str) -> Path | None:
    """Return build_binary where `out` names KenLM's binary form, else None; UserError otherwise."""
    if Path(path).is_dir():
        raise UserError(f"{path}: a directory; lmtools export --to arpa writes its ARPA file")
    if str(path) != "-" and binary(Path(path)):
        raise no_ngrams(path)
    name = Path(str(out))
    suffix = name.with_suffix("").suffix if name.suffix in OPENERS else name.suffix
    if suffix not in BINARIES:
        if suffix not in (".arpa", ".lm") and not is_stream(out):
            raise UserError(f"{out}: its suffix names no form; call it .arpa, .arpa.gz or .bin")
        return None
    if (program := find_program(kenlm)) is None:
        raise UserError(f"{out}: KenLM's form needs its build_binary; run {SCRIPT}, or write .arpa")
    return program
