"""lmtools translate: N-best lists of translations by a translation model.

A run over a file of sentences: batches of similar length, a journal, the same lists whatever kills
there were.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from lmtools.base.atomic import hold_lock, is_stream
from lmtools.base.computing import USUAL, Computing
from lmtools.base.errors import UserError
from lmtools.base.log import ProgressBar, say
from lmtools.base.options import check_options, fill, option
from lmtools.base.specs import LMSpec
from lmtools.formats import jsonl, kaldi_text
from lmtools.formats.checks import identifier
from lmtools.formats.jsonl import Journal, JournalEntry
from lmtools.formats.lists import other_number
from lmtools.score.load import load_kind
from lmtools.text.blocks import read_text
from lmtools.text.subword.base import Subword
from lmtools.types import Hypothesis, NBest
from lmtools.verbs.help import Rare
from lmtools.verbs.options import flags_of
from lmtools.verbs.parser import add_settings, read_settings

if TYPE_CHECKING:  # --help needs no torch
    from lmtools.score.translation import TranslationScorer
    from lmtools.translate.search import Finished

DIGITS = 6  # of scores


@dataclass(frozen=True)
class TranslateOptions:
    """Options of the search for translations by the model in directory `lm`."""

    lm: str
    beam: int = option(50, "width of the search, and the most hypotheses of a list", least=1)
    length_penalty: float = option(
        1.0, "rank by log-probability / tokens^X: 0 by the sum, 1 by the mean", least=0
    )
    batch: int = option(8, "number of sentences searched at once", least=1)
    computing: Computing = USUAL

    def __post_init__(self):
        check_options(self)


@dataclass(frozen=True)
class SourceSentence:
    """Source of one list: ids without the end, where it was read, its reference."""

    utt: str
    source: str
    ids: tuple[int, ...]
    ref: str | None = None


@dataclass(frozen=True)
class Translated:
    """Numbers of lists, and of hypotheses in them."""

    sentences: int
    hypotheses: int


def translate(
    source, out: str, options: TranslateOptions, ref=None, kaldi: bool = False, prefix: str = ""
) -> Translated:
    """Write N-best lists of the sentences in `source` to `out`, in order, with references of `ref`;
    line n of plain text has the id `prefix` and n, `kaldi` text its own. The journal has what an
    earlier run made. UserError for what does not fit; lists made are kept.
    """
    from lmtools.score.translation import TranslationScorer

    if is_stream(out):
        raise UserError(
            f"{out}: lists of translations are resumed by the name of their file; give one"
        )
    scorer = load_kind(LMSpec(options.lm, pairs=True), options.computing)
    if not isinstance(scorer, TranslationScorer):
        raise UserError(
            f"{options.lm}: no translation model; give what lmtools train made of pairs (model"
            " seq2seq)"
        )
    sentences = read_sentences(scorer, source, ref, kaldi, prefix=prefix)
    with hold_lock(out):
        # all that the bytes of the lists depend on; the sentences too, which share batches
        how = {name: getattr(options, name) for name in ("beam", "length_penalty", "batch")}
        read = [(sentence.utt, sentence.source) for sentence in sentences]
        journal = Journal(out, {**scorer.signature, **how, "sentences": read})
        known = journal.read()
        known |= translate_missing(scorer, sentences, known, journal, options=options)
        nbests = [replace(known[sentence.utt].nbest, ref=sentence.ref) for sentence in sentences]
        jsonl.write(nbests, out)
    return Translated(len(nbests), sum(len(nbest.hyps) for nbest in nbests))


def read_sentences(
    scorer: "TranslationScorer", source, ref, kaldi: bool, prefix: str
) -> list[SourceSentence]:
    """Return the sentences of `source` with their references; see `translate`."""
    from lmtools.models.objectives import split_pair

    rows = read_rows(source, kaldi, prefix)
    sentences = []
    for number, utt, text in rows:
        where = f"{source}:{number}"
        if not text:
            raise UserError(f"{where}: an empty sentence; leave it out, and its reference")
        try:
            (pair,) = scorer.prepare([(text, "")])
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
        sentences.append(SourceSentence(identifier(utt, where), text, tuple(split_pair(pair)[0])))
    if not sentences:
        raise UserError(f"{source}: no sentences; give a file with one a line")
    if ref is None:
        return sentences
    refs = {utt: text for _, utt, text in read_rows(ref, kaldi, prefix)}
    if not kaldi and len(refs) != len(sentences):
        raise other_number(ref, len(refs), f"{len(sentences)} sentences", source)
    if missing := [sentence.utt for sentence in sentences if sentence.utt not in refs]:
        raise UserError(
            f"{ref}: no reference of {len(missing)} of {len(sentences)} sentences of {source}"
            f" (first {missing[0]!r}); add them"
        )
    return [replace(sentence, ref=refs[sentence.utt]) for sentence in sentences]


def read_rows(path, kaldi: bool, prefix: str) -> list[tuple[int, str, str]]:
    if kaldi:
        return list(kaldi_text.rows(path))
    lines = read_text(path, nul=True)
    return [(number, f"{prefix}{number}", " ".join(line.split())) for number, line in lines]


def translate_missing(
    scorer: "TranslationScorer",
    sentences: Sequence[SourceSentence],
    known: dict[str, JournalEntry],
    journal: Journal,
    options: TranslateOptions,
) -> dict[str, JournalEntry]:
    """Return the entries of batches of which the journal lacks any, each written once made; batches
    are searched as a whole.
    """
    from lmtools.translate.search import search

    # the longest first: what memory does not suffice for is known at once
    order = iter(sorted(sentences, key=lambda sentence: -len(sentence.ids)))
    batches = iter(lambda: list(islice(order, options.batch)), [])
    missing = [batch for batch in batches if any(sentence.utt not in known for sentence in batch)]
    entries: dict[str, JournalEntry] = {}
    if not missing:
        return entries
    there = len(sentences) - sum(map(len, missing))
    progress = ProgressBar(f"translate by {options.lm}", len(sentences), "sentence", there)
    with progress, journal.appending() as add:
        for batch in missing:
            ids = [sentence.ids for sentence in batch]
            hypotheses = search(scorer, ids, options.beam, options.length_penalty)
            for sentence, best in zip(batch, hypotheses, strict=True):
                hyps = merge_texts(scorer.subword, best)
                nbest = NBest(sentence.utt, hyps, extra={"source": sentence.source})
                entries[sentence.utt] = JournalEntry(nbest)
                add(entries[sentence.utt])
            progress.advance(len(batch))
    return entries


def merge_texts(subword: Subword, finished: Sequence["Finished"]) -> tuple[Hypothesis, ...]:
    """Return hypotheses of what was found, best first; of those of equal text the best."""
    best: dict[str, Finished] = {}
    for hypothesis in finished:
        best.setdefault(" ".join(subword.decode(hypothesis.ids).split()), hypothesis)
    return tuple(
        Hypothesis(text, {"am": round(one.log_prob, DIGITS), "norm": round(one.norm, DIGITS)})
        for text, one in best.items()
    )


EXAMPLES = (
    "lmtools translate --lm translator --source test.source --out lists.jsonl",
    "lmtools translate --lm translator --source test.source --beam 10 --out top10.jsonl",
)


def arguments(parser):
    parser.epilog = (
        "Each hypothesis has two scores: `am`, its log-probability, and `norm`, am /"
        " tokens^length_penalty, which ranks the list. It has at most 2 n + 10 tokens if the source"
        " has n."
    )
    text = "translation model that `lmtools train` wrote (model: seq2seq)"
    parser.add("--lm", help=text)
    parser.add("--source", required=True, help="sentences to translate, one on each line")
    text = "reference translations, one on each line or, with --kaldi, with the same ids"
    parser.add("--ref", help=text)
    text = "the first word of each line of --source and --ref is its id"
    parser.add("--kaldi", help=text)
    text = "begin ids with NAME if they are line numbers"
    parser.groups["input"].add_argument("--prefix", metavar="NAME", default="", help=Rare(text))
    parser.add_argument("--beam", **flags_of(TranslateOptions)["--beam"] | {"metavar": "N"})
    add_settings(parser, TranslateOptions, ["length_penalty", "batch"])
    parser.add(
        "--out",
        metavar="F.jsonl",
        help="lists to write, as jsonl; the same command continues a run that was stopped",
    )
    parser.add("--precision", "--device")


def run(args):
    """Translate, and say on standard error what was made."""
    settings = read_settings(args, TranslateOptions)
    options = TranslateOptions(args.lm, args.beam, computing=fill(Computing, args), **settings)
    done = translate(args.source, args.out, options, args.ref, kaldi=args.kaldi, prefix=args.prefix)
    say(f"{args.out}: {done.hypotheses:,} hypotheses of {done.sentences:,} sentences")
