"""What `lmtools rescue` is given: lists of dev and test with references, made of recordings or
lattices if need be, and language models.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lmtools.base.errors import UserError
from lmtools.base.grammar import parse_pairs
from lmtools.base.specs import find_model, list_models
from lmtools.evaluate.corpus import evaluate
from lmtools.evaluate.doctor.inputs import plural
from lmtools.evaluate.doctor.writing import Writing, choose_writing
from lmtools.evaluate.metrics import METRICS, ErrorRate
from lmtools.formats import FORMATS
from lmtools.formats.lattices import LATTICES
from lmtools.formats.lists import (
    NONE,
    Side,
    attach_lines,
    find_lists,
    find_references,
    join_ids,
    pair_ids,
)
from lmtools.formats.registry import parse_specifier
from lmtools.formats.scores import hash_lists
from lmtools.formats.texts import read_sentences, read_texts
from lmtools.lattice.check import drop_unusable
from lmtools.lattice.paths import best
from lmtools.rescoring.defaults import OF_WHISPER, PREFIX, WHISPER
from lmtools.rescoring.experiment import check_name
from lmtools.rescoring.features import LENGTHS
from lmtools.text.blocks import read_text
from lmtools.types import NBest

NGRAM = "ngram"  # the column of the model that --text makes
ORDER = 4  # its longest n-gram, in words
SCALES = (1, 5, 7, 9, 11, 13, 15, 17, 20)  # of the graph's score; Kaldi tries 7 to 17 (LMWT)


@dataclass
class ListSet:
    """Lists of dev or test, references, where both are, and the file that commands read."""

    part: str
    path: str
    form: str
    nbests: Sequence[NBest]
    ref: str | None  # a file; None: in the lists, if any
    by_line: bool = False
    rule: str = ""  # by which ids are joined
    used: str = ""

    @property
    def referenced(self) -> bool:
        return self.nbests[0].ref is not None

    def describe(self) -> str:
        refs = f"references in {self.ref or 'the lists'}"
        refs += f", ids joined {self.rule}" if self.rule else ""
        refs = refs if self.referenced else "no references"
        return f"{self.part}: {plural(self.nbests, 'list')} of {self.path} ({self.form}), {refs}"


def decode(args, part: str, path: str, run: Callable[..., None]) -> str:
    """Return the lists of recordings that a part may be in the place of lists."""
    if Path(path).exists() and FORMATS.detect(path, NONE) != NONE:
        return path
    out = f"{args.out}/{part}.decoded.jsonl"
    print(f"{part}: {path} decoded by {args.asr}", flush=True)
    device = ["--device", args.device] if args.device not in (None, "auto") else []
    run("decode", "--asr", args.asr, "--audio", path, "--out", out, *device)
    return out


def list_lattices(args, given: Mapping[str, str], run: Callable[..., None]) -> dict[str, str]:
    """Return what parts are, lists made of lattices in their place; of Kaldi's with the weight of
    the graph's score by which dev's best paths have the fewest errors.
    """
    lists, weights = dict(given), []
    for part, path in given.items():
        if (form := find_lattices(args, path)) is None:
            continue
        weights = tune_graph(args, path, form) if part == "dev" else weights
        lists[part] = f"{args.out}/{part}.lattices.jsonl"
        run("lattice", "nbest", path, "--format", form, *weights, "--out", lists[part])
        if not getattr(args, f"{part}_ref"):
            utts = [nbest.utt for nbest in FORMATS.read(lists[part], "jsonl")]
            setattr(args, f"{part}_ref", find_references(path, form, utts))
        scale = f" by {weights[1]}" if weights else ""
        print(f"{part}: lattices of {path} ({form}), lists of their best paths{scale}")
    args.format = args.format if lists == given else None
    return lists


def find_lattices(args, path: str) -> str | None:
    """Return the format of lattices in `path`; None of lists, which may lie beside lattices."""
    name = NONE
    if path == "-" or parse_specifier(path):  # which read_set refuses
        return None
    with contextlib.suppress(UserError):
        name = args.format or LATTICES.detect(path, NONE)
        if not args.format and find_lists(path):
            return None
    words = f":words={args.words}" if args.words and ":" not in name else ""
    return f"{name}{words}" if name.partition(":")[0] in LATTICES else None


def tune_graph(args, path: str, form: str) -> list[str]:
    """Return --weights of the graph's score beside the acoustic one by which best paths have the
    fewest errors, case apart; none for lattices of other scores, whose files say their weights.
    """
    texts: dict[int, dict[str, str]] = {scale: {} for scale in SCALES}
    for lattice in LATTICES.stream(path, form):
        if lattice.scores.keys() != {"am", "graph"}:
            return []
        lattice, _ = drop_unusable(lattice)
        for scale, paths in texts.items():
            words = best(lattice, {"am": 1, "graph": scale}).words
            paths[lattice.utt] = " ".join(words).casefold()
    utts = texts[SCALES[0]]
    ref = args.dev_ref or find_references(path, form, utts)
    if not ref:
        raise UserError(f"{path}: no references found; give them by --dev-ref F")
    refs = read_texts(ref)
    ids = join_ids(Side(utts, path), Side(refs, ref), "utterances have no reference")
    wanted = {utt: refs[ids[utt]].casefold() for utt in utts}
    metric = "wer" if any(" " in text for text in wanted.values()) else "cer"
    if args.metric and isinstance(METRICS[args.metric], ErrorRate):
        metric = args.metric
    rates = {scale: evaluate(wanted, some, metric).score for scale, some in texts.items()}
    return ["--weights", f"am=1,graph={min(rates, key=rates.get)}"]


def describe_lms(args, lms: Mapping[str, str]) -> str:
    made = {NGRAM: f"{ORDER}-gram of {args.text}"} if args.text else {}
    return ", ".join(f"{name} = {made.get(name, lm)}" for name, lm in lms.items())


def find_lms(args) -> dict[str, str]:
    """Return the language models by the names of their columns."""
    example = "write for instance --lm tta=exp/lm/tta"
    lms = parse_pairs(args.lm, "--lm", "NAME=LM", example)
    for name, lm in lms.items():
        check_name(name, "--lm", "a name")
        if not lm.startswith("mix:") and not Path(find_model(lm).removeprefix("hf:")).exists():
            cause = f"--lm {name}={lm}: no such language model"
            raise UserError(f"{cause}; check the path or name ({list_models()})")
    if args.text:
        if NGRAM in lms:
            raise UserError(f"--lm {NGRAM}: is the name of what --text makes; give it another")
        return {NGRAM: f"{Path(args.out) / 'lm'}", **lms}
    if not lms:
        raise UserError(
            "no language model; give --text F to estimate one, or --lm NAME=LM"
            " (docs/models.md has one for users without text)"
        )
    return lms


def read_set(args, part: str, given: str, lms: Mapping[str, str]) -> ListSet:
    """Return the lists of a part with their references; UserError for lists that cannot be read
    twice, that have a score of the name of a model, and for references of some.
    """
    ref = getattr(args, f"{part}_ref")
    for option, path in ((part, given), ("text", args.text or ""), (f"{part}-ref", ref or "")):
        if path == "-" or parse_specifier(path):
            raise UserError(f"--{option} {path}: is read several times; give a file")
    path, form = find_lists(given, args.format)
    one = ListSet(part, path, form.partition(":")[0], FORMATS.read(path, form), ref, used=path)
    if not one.nbests:
        raise UserError(f"{path}: no utterances; give the recogniser's N-best lists")
    utts = [nbest.utt for nbest in one.nbests]
    if not ref and all(nbest.ref is None for nbest in one.nbests):
        one.ref = find_references(path, one.form, utts)
    if one.ref:
        attach(one)
    without = [nbest.utt for nbest in one.nbests if nbest.ref is None]
    if without and (part == "dev" or len(without) < len(utts)):
        raise UserError(
            f"{path}: utterance {without[0]!r} has no reference; give them by --{part}-ref F"
        )
    scores = {name for nbest in one.nbests for hyp in nbest.hyps for name in hyp.scores}
    if taken := [name for name in lms if name in {*LENGTHS, "rank", *scores}]:
        raise UserError(f"--lm {taken[0]}: {path} has a score of this name; write --lm OTHER=LM")
    return one


def attach(one: ListSet) -> None:
    """Give lists their references by id, or by line where their ids are numbers from 0."""
    utts = [nbest.utt for nbest in one.nbests]
    if {*utts} == {str(row) for row in range(len(utts))}:
        lines = read_sentences(one.ref)
        last = str(len(utts) - 1)
        one.by_line = len(lines) == len(utts) and lines[-1].split(" ")[0] != last
        if one.by_line:
            one.nbests = attach_lines(one.nbests, {one.ref: lines}, one.path)
            return
    refs = read_texts(one.ref, f"--{one.part}-ref of lists 0, 1, 2 ..")
    found = pair_ids(utts, refs)
    if not found:
        join_ids(Side(utts, one.path), Side(refs, one.ref), "utterances have no reference")
        return
    one.rule, ids = found
    one.nbests = [replace(n, ref=refs[ids[n.utt]], more_refs=()) for n in one.nbests]


def check_sets(args, sets: Mapping[str, ListSet], lms: Mapping[str, str]) -> None:
    """Raise UserError where dev is test, and for lists that cannot be rescored without dev."""
    test = sets["test"].nbests
    if "dev" in sets:
        if hash_lists(sets["dev"].nbests) == hash_lists(test):
            cause = f"--test {args.test}: has the lists of --dev, on which weights are tuned"
            raise UserError(f"{cause}; give others")
        if args.weights:
            raise UserError("--weights: weights are tuned on --dev; leave one of the two out")
        return
    scores = {name for nbest in test for hyp in nbest.hyps for name in hyp.scores}
    if args.weights and "am" not in scores:
        cause = f"{args.test}: no score 'am', the sum of the log-probabilities of tokens"
        raise UserError(f"{cause}; write the beams as docs/whisper.md shows")
    own = scores & (OF_WHISPER - {"am"}) and not scores - OF_WHISPER
    if not args.weights and ("am" not in scores or not own):
        raise UserError(
            "--dev: no lists to tune weights on; give lists with references, or --weights"
            f" {PREFIX}{WHISPER} for Whisper's beams of your own program"
        )
    if len(lms) > 1:
        raise UserError("--dev: without it one language model is weighed; give --dev, or one LM")


def plan_writing(args, sets: Mapping[str, ListSet], lms: Mapping[str, str]) -> Writing:
    nbests = [nbest for one in sets.values() for nbest in one.nbests]
    known = [lm for lm in lms.values() if not lm.startswith("mix:")][:1]
    lm = None if args.text or not known else known[0]
    lines = (line for _, line in read_text(args.text)) if args.text else ()
    return choose_writing(nbests, lines, lm, normaliser=args.normaliser)
