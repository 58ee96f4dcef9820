"""lmtools rescue: rescore lists by all that is needed, from text or models to a table of error
rates.
"""

import contextlib
import io
import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lmtools.base.atomic import hold_lock
from lmtools.base.errors import UserError
from lmtools.base.files import cannot
from lmtools.base.grammar import parse_pairs
from lmtools.base.specs import find_model, list_models
from lmtools.evaluate import show
from lmtools.evaluate.chance import say_why
from lmtools.evaluate.corpus import evaluate
from lmtools.evaluate.doctor import ERROR, print_findings, read_inputs
from lmtools.evaluate.doctor.inputs import plural
from lmtools.evaluate.doctor.scores import find_costs, values_of
from lmtools.evaluate.doctor.writing import Writing, choose_writing
from lmtools.evaluate.metrics import METRIC_HELP, METRICS, ErrorRate
from lmtools.evaluate.significance import TESTS, Gains
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
from lmtools.rescoring.defaults import DEFAULTS, LM, OF_WHISPER, PREFIX, WHISPER
from lmtools.rescoring.experiment import check_name
from lmtools.rescoring.features import LENGTHS, REFERENCES
from lmtools.rescoring.weights import Weights
from lmtools.score.load import check_packages
from lmtools.text.blocks import read_text
from lmtools.types import NBest
from lmtools.verbs.options import COMPUTING, SEVERAL_LMS
from lmtools.verbs.parser import repeat_options, run_command

NGRAM = "ngram"  # the column of the model that --text makes
ORDER = 4  # its longest n-gram, in words
NO_LM = "no-lm."  # before the files of what is tuned without language models
ORACLE = "oracle."
LOG = "rescue.log"
SCALES = (1, 5, 7, 9, 11, 13, 15, 17, 20)  # of the graph's score; Kaldi tries 7 to 17 (LMWT)
RERUN = "--allow-commands", "--max-line"
LEFT = "text.txt"  # what is left of the text without lines that stand in references
LEAK = "leak"
# Checks whose findings change what the table means, so that they stand under it and stop nothing
MEANT = LEAK, "vocabulary"
APART = 10  # times as far apart are the scores of one set's lists as the other's: other units
NOTES = 8  # lines under the table, the worst first

EXAMPLES = (
    "lmtools rescue --dev dev.jsonl --test test.jsonl --text text.txt --out rescued",
    "lmtools rescue --dev dev.jsonl --test test.jsonl --lm lm=lm --metric cer --out rescued",
)


def arguments(parser):
    parser.epilog = (
        "Runs lmtools convert (if lists need it), ngram (with --text), doctor, score, tune, rescore"
        f" and evaluate. --out keeps what they write: {LOG} (each command, ready to be run by"
        " itself, and what it says), lm, NAME.dev.scores, NAME.test.scores, weights.json, test.txt"
        f" (the chosen hypotheses), test.json; {NO_LM}* without language models. The same command"
        " again goes on after a run that was stopped."
    )
    group = parser.groups["input"]
    kinds = "a file, or a decode directory of Kaldi (lattices, too) or ESPnet"
    for part, help_text in (
        (
            "dev",
            f"N-best lists to tune weights on: {kinds}. Not needed for Whisper's lists, which have"
            " default weights",
        ),
        ("test", f"N-best lists to choose from: {kinds}"),
    ):
        group.add_argument(f"--{part}", metavar="F", required=part == "test", help=help_text)
        help_text = "Kaldi text, trn, stm, ctm, a manifest, CSV or JSON (default: in or beside the"
        help_text = f"references of --{part}: {help_text} lists)"
        group.add_argument(f"--{part}-ref", metavar="F", help=help_text)
    help_text = "decode --dev and --test, which are recordings, as lmtools decode does"
    parser.add("--asr", metavar="whisper:DIR", help=help_text)
    default = PREFIX + WHISPER
    help_text = "with no --dev, for Whisper's beams from any program: the weights of lmtools decode"
    parser.add("--weights", choices=[default], metavar=default, help=help_text)
    parser.add("--format")
    help_text = "words.txt of Kaldi's lattices (default: beside them, or in graph* beside that)"
    parser.add("--words", metavar="F", help=help_text)
    help_text = f"text to estimate a {ORDER}-gram of, the column `{NGRAM}`, one sentence a line"
    parser.add("--text", help=help_text)
    help_text = "how text and lists are written (default: found out; none: as they are)"
    parser.add("--normaliser", help=help_text)
    parser.add("--map-words")
    help_text = (
        "a model under a name of your choice; several, or one beside --text, are tuned together"
    )
    parser.add("--lm", **SEVERAL_LMS, help=help_text)
    help_text = f"what is tuned and compared: {METRIC_HELP} (default: wer, or cer:blanks=no of"
    parser.add("--metric", default=None, help=f"{help_text} languages without blanks)")
    parser.add("--out", metavar="DIR", help="directory to write")
    help_text = "print also each command and what it says"
    parser.add_argument("--verbose", action="store_true", help=help_text)
    parser.add(*COMPUTING, "--nj")


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


def run(args):
    """Check the input, run each command, and print the table."""
    lms = find_lms(args)
    for lm in lms.values():  # before steps that take long
        check_packages(lm)
    out, log = Path(args.out), RunLog(args)
    with hold_lock(args.out), contextlib.closing(log):
        given = {part: path for part in ("dev", "test") if (path := getattr(args, part))}
        if args.asr:
            given = {part: decode(args, part, path, log) for part, path in given.items()}
        given = list_lattices(args, given, log)
        sets = {part: read_set(args, part, path, lms) for part, path in given.items()}
        check_sets(args, sets, lms)
        writing = plan_writing(args, sets, lms)
        args.metric = args.metric or writing.metric
        for one in sets.values():
            print(one.describe())
        print(f"writing: {writing.told}")
        print(f"LM: {describe_lms(args, lms)}", flush=True)
        notes = Job(args, lms, sets, writing, log).run_all()
    table = draw_table(out, args.metric, list(lms)) if sets["test"].referenced else ()
    print("\n".join(["", *table, *[""] * bool(table), *notes]))
    told = f"{out / 'test.txt'}: the chosen hypotheses"
    if (out / "test.txt.written").exists():
        told += f"; {out / 'test.txt.written'}: as the recogniser wrote them"
    if not sets["test"].referenced:
        told += f"; not evaluated, since {args.test} has no references (--test-ref F)"
    lines = set((out / LOG).read_text(encoding="utf-8").splitlines())
    hints = sum(line.startswith(("hint: ", "warning: ")) for line in lines)
    print(f"{told}\n{plural(hints, 'hint')}: {out / LOG}")


def decode(args, part: str, path: str, log: "RunLog") -> str:
    """Return the lists of recordings that a part may be in the place of lists."""
    if Path(path).exists() and FORMATS.detect(path, NONE) != NONE:
        return path
    out = f"{args.out}/{part}.decoded.jsonl"
    print(f"{part}: {path} decoded by {args.asr}", flush=True)
    device = ["--device", args.device] if args.device not in (None, "auto") else []
    log.run("decode", "--asr", args.asr, "--audio", path, "--out", out, *device)
    return out


def list_lattices(args, given: Mapping[str, str], log: "RunLog") -> dict[str, str]:
    """Return what parts are, lists made of lattices in their place; of Kaldi's with the weight of
    the graph's score by which dev's best paths have the fewest errors.
    """
    lists, weights = dict(given), []
    for part, path in given.items():
        if (form := find_lattices(args, path)) is None:
            continue
        weights = tune_graph(args, path, form) if part == "dev" else weights
        lists[part] = f"{args.out}/{part}.lattices.jsonl"
        log.run("lattice", "nbest", path, "--format", form, *weights, "--out", lists[part])
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


class RunLog:
    """The log of a run, in the directory that it writes, which is made for the first command."""

    def __init__(self, args):
        self.args, self.file = args, None
        self.warnings: list[str] = []  # of the commands

    def close(self) -> None:
        if self.file:
            self.file.close()

    def run(self, *words) -> None:
        """Run one command; what it prints is for the log."""
        with self.capture():
            run_command([*map(str, words), *repeat_options(self.args, RERUN)])

    @contextlib.contextmanager
    def capture(self) -> Iterator[None]:
        try:
            Path(self.args.out).mkdir(exist_ok=True)
            place = Path(self.args.out) / LOG
            self.file = self.file or open(place, "w", encoding="utf-8", buffering=1)  # noqa: SIM115
        except OSError as error:
            raise cannot("write", self.args.out, error) from None
        out, err = (LogStream(self, s, self.args.verbose) for s in (sys.stdout, sys.stderr))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            yield


class LogStream(io.TextIOBase):
    """A standard stream that goes to a log, to the `terminal` if told so or for progress."""

    def __init__(self, run: "RunLog", terminal, verbose: bool):
        self.run, self.log, self.terminal, self.verbose = run, run.file, terminal, verbose

    def write(self, text: str) -> int:
        if "\r" not in text:
            self.log.write(text)
            self.run.warnings += [ln for ln in text.splitlines() if ln.startswith("warning: ")]
        if self.verbose or "\r" in text:
            self.terminal.write(text)
        return len(text)

    def isatty(self) -> bool:
        return self.terminal.isatty()

    def fileno(self) -> int:
        return self.log.fileno()


class Job:
    """The commands of one run, in their order."""

    def __init__(self, args, lms, sets: Mapping[str, ListSet], writing: Writing, log):
        self.args, self.lms, self.sets, self.writing, self.log = args, lms, sets, writing, log
        self.run = log.run
        self.out, self.metric = Path(args.out), ("--metric", args.metric)
        self.turned: list[str] = []  # options of tune that turn costs round
        self.text = args.text

    def run_all(self) -> list[str]:
        """Run them; return notes on what the table means."""
        for one in self.sets.values():
            self.convert(one)
        self.estimate()
        found = [note for one in self.sets.values() for note in self.examine(one)]
        if leaks := [note for check, note in found if check == LEAK]:
            found = [pair for pair in found if pair[0] != LEAK]
            found[:0] = [(LEAK, self.leave_out(leaks))]
        # before language models score, which may take long: what cannot be tuned is refused here
        if "dev" in self.sets:
            told = len(self.log.warnings)
            self.run_system(NO_LM, ())
            del self.log.warnings[told:]  # of weights that are not the result's
        machine = repeat_options(self.args, (*COMPUTING, "--nj"))
        for name, lm in self.lms.items():
            for one in self.sets.values():
                out = self.out / f"{name}.{one.part}.scores"
                self.run("score", "--nbest", one.used, "--lm", lm, "--out", out, *machine)
        self.run_system("", self.lms)
        if self.sets["test"].referenced:
            oracle, tree = (self.out / f"{ORACLE}test.{end}" for end in ("txt", "json"))
            ref = self.sets["test"].used
            self.run("evaluate", "--ref", ref, "--hyp", oracle, *self.metric, "--out", tree)
        notes = [*self.note_result(), *self.note_scores(), *self.note_shared()]
        notes = [*dict.fromkeys([*notes, *(note for _, note in found), *self.log.warnings])]
        more = [f"{plural(notes[NOTES:], 'more warning')}: {self.out / LOG}"] * (len(notes) > NOTES)
        return [*notes[:NOTES], *more]

    def estimate(self) -> None:
        """Estimate the n-gram of the text."""
        if self.text:
            normaliser = ["--normaliser", self.writing.text] if self.writing.text else []
            options = ["--order", ORDER, *normaliser, "--out", self.out / "lm"]
            self.run("ngram", "--text", self.text, *options)

    def leave_out(self, leaks: Sequence[str]) -> str:
        """Estimate the n-gram again without the lines of the text that references have; say so."""
        refs = [one.used for one in self.sets.values() if one.referenced]
        options = ["--ref", *refs, "--leave-out-overlap", "--out", self.out / LEFT]
        self.run("corpus", "--text", self.text, *options)
        self.text = self.out / LEFT
        if not count_lines(self.text):
            raise UserError(f"{leaks[0]}; no line is left, give other text")
        self.estimate()
        cause, less = leaks[-1].partition(";")[0], count_lines(self.args.text)
        less -= count_lines(self.text)
        return f"{cause}: the LM was estimated without {plural(less, 'line')}, of {self.text}"

    def convert(self, one: ListSet) -> None:
        """Write the lists as the commands read them, if they are not so already."""
        options = shlex.split(self.writing.lists)
        options += repeat_options(self.args, ["--map-words"])
        if options or one.ref or one.form != "jsonl":
            form = repeat_options(self.args, ["--format"])
            ref = ["--ref-lines" if one.by_line else "--ref", one.ref] if one.ref else []
            one.used = str(self.out / f"{one.part}.nbest.jsonl")
            dedup = ["--dedup"] if options else []
            self.run("convert", one.path, one.used, *form, *ref, *options, *dedup)

    def examine(self, one: ListSet) -> Iterator[tuple[str, str]]:
        """Have the doctor look; yield checks and notes, UserError for the first error that spoils
        everything and is not mended here.
        """
        # the doctor reads no mixtures; it sees lists and text as a model's normaliser leaves them
        lm = next((lm for lm in self.lms.values() if not lm.startswith("mix:")), None)
        options = {"nbest": one.used, "text": self.text, "lm": lm}
        options = {name: value for name, value in options.items() if value}
        with self.log.capture():
            words = [word for name, value in options.items() for word in (f"--{name}", value)]
            print(shlex.join(["lmtools", "doctor", *map(str, words)]))
            inputs = read_inputs(**options)
            by_check = print_findings(inputs)
        if costs := find_costs(inputs):
            by_check.pop("signs", None)
            if one.part == "dev":
                self.turn(costs)
        grave = (found for name, found in by_check.items() if name not in MEANT)
        errors = [finding for found in grave for finding in found if finding.level == ERROR]
        if errors:
            first, *more = errors
            line = f"{first.place}: {first.cause}; {first.remedy}"
            line += f"; {plural(more, 'more error')}: {self.out / LOG}" if more else ""
            raise UserError(line)
        for name in MEANT:
            for finding in by_check.get(name, ()):
                if name == LEAK or (finding.level == ERROR and one.part == "test"):
                    yield name, f"{finding.cause}; {finding.remedy}"

    def turn(self, costs: Sequence[str]) -> None:
        """Turn costs round: the first pass by its weight, others by weights below 0."""
        names = list(self.sets["dev"].nbests[0].hyps[0].scores)
        first = next((name for name in (*REFERENCES, *names) if name in names), None)
        if first in costs:
            self.turned += ["--fix", f"{first}=-1"]
        if others := [name for name in costs if name != first]:
            self.turned += ["--set", f"negative={','.join(others)}"]
        print(f"costs: the lowest {', '.join(costs)} is best; tuned by {shlex.join(self.turned)}")

    def run_system(self, before: str, names) -> None:
        """Tune, rescore and evaluate with columns; names of files begin with `before`."""
        weights, text = self.out / f"{before}weights.json", self.out / f"{before}test.txt"
        test = self.sets["test"].used

        def scores(part: str) -> list[str]:
            files = [f"{name}={self.out / f'{name}.{part}.scores'}" for name in names]
            return ["--scores", *files] if files else []

        if "dev" in self.sets:
            lists, out = ["--nbest", self.sets["dev"].used], ["--out", weights]
            self.run("tune", *lists, *scores("dev"), *self.metric, *self.turned, *out)
        else:
            weights = PREFIX + WHISPER
        columns = scores("test")
        self.run("rescore", "--nbest", test, *columns, "--weights", weights, "--out", text)
        if self.sets["test"].referenced:
            systems = ["--ref", test, "--hyp", text, "--against", test, *self.metric]
            oracle = ["--oracle-out", self.out / f"{ORACLE}test.txt"] if names else []
            self.run("evaluate", *systems, *oracle, "--out", text.with_suffix(".json"))

    def note_shared(self) -> Iterator[str]:
        """Yield how many lists of test are of dev, too."""
        if "dev" not in self.sets:
            return
        dev, test = (
            {(nbest.utt, *(hyp.text for hyp in nbest.hyps)) for nbest in one.nbests}
            for one in self.sets.values()
        )
        if both := dev & test:
            yield f"{len(both)} of {len(test)} lists of test are in dev, too: the table flatters"

    def note_scores(self) -> Iterator[str]:
        """Yield the scores that dev and test have by other signs or in other units."""
        sides = [
            values_of([n for n in one.nbests if len(n.hyps) > 1]) for one in self.sets.values()
        ]
        for name in sides[0] if len(sides) > 1 and all(sides) else ():
            rows = [side[name] for side in sides if name in side]
            signs = [np.sign(np.nanmedian(np.concatenate(row))) for row in rows]
            spans = [np.median([*map(np.ptp, row)]) for row in rows]
            what = ""
            if len({*signs} - {0}) > 1:
                what = f"{name!r} is {' and '.join('above' if s > 0 else 'below' for s in signs)} 0"
            elif min(spans) > 0 and max(spans) > APART * min(spans):
                what = f"{name!r} spans {spans[0]:.3g} and {spans[1]:.3g} in lists"
            if what:
                cause = f"{what} of dev and test, other signs or units: the weights do not hold"
                yield f"warning: {cause}; write both alike"

    def note_result(self) -> Iterator[str]:
        """Yield who gains, and whether the result is worse than the first pass."""
        if not self.sets["test"].referenced:
            return
        tree = json.loads((self.out / "test.json").read_text())
        if "gains" in tree:
            yield Gains(**tree["gains"]).describe(self.args.metric)
        first, last = tree["against"]["score"], tree["score"]
        sign = 1 if METRICS[self.args.metric].lower_is_better else -1
        if None not in (first, last) and sign * (last - first) > 0:
            yield f"warning: {first:.2f} -> {last:.2f} with LM: worse than the first pass; keep it"


def count_lines(text) -> int:
    return sum(bool(line.strip()) for _, line in read_text(text))


def draw_table(out: Path, metric: str, lms: Sequence[str] = ()) -> Iterator[str]:
    """Yield the table's lines: score, 95% interval, p against the first pass, weights."""
    trees = {before: out / f"{before}test.json" for before in (NO_LM, "", ORACLE)}
    if not (out / "weights.json").exists():
        del trees[NO_LM]
    trees = {before: json.loads(path.read_text()) for before, path in trees.items()}
    rows = {"first pass": trees[""]["against"]}
    rows |= {"tuned without LM": trees[NO_LM]} if NO_LM in trees else {}
    rows |= {"with LM": trees[""], "oracle": trees[ORACLE]}
    weights = {"tuned without LM": list_weights(out / f"{NO_LM}weights.json", lms)}
    weights["with LM"] = list_weights(out / "weights.json", lms)
    yield f"{'':16}  {METRICS[metric].title:>6}  95% interval  {'p':7}  weights"
    notes: list[str] = []
    for name, tree in rows.items():
        score, interval = show.figure(tree["score"]), show.NONE
        if tree["interval"]:
            interval = "{:.2f}, {:.2f}".format(*tree["interval"])
        tests = [kind(**tree[key]) for key, kind in TESTS.items() if key in tree]
        tests = tests if name == "with LM" else []
        p = "".join(show.NONE if test.p is None else f"{test.p:.2g}" for test in tests[:1])
        # None: of the matched pairs test, which the exact sign test stands for
        p += " (sign test)" if p and getattr(tests[0], "z", 0) is None else ""
        cells = f"{name:16}  {score:>6}  {interval:12}  {p:7}  {weights.get(name, '')}"
        yield cells.rstrip()
        notes += [f"p of {name}: {p}{test.qualify()}" for test in tests[:1] if test.qualify()]
        if tree["score"] is not None and not tree["interval"]:
            notes.append(f"no interval of {name}: {say_why(tree['utterances'])}")
    yield from notes


def list_weights(path: Path, lms: Sequence[str]) -> str:
    """Return weights in a cell: those of a file, or default ones where there is none."""
    if path.exists():
        features = Weights.load(path).features
    else:
        features = {lms[0] if name == LM else name: w for name, w in DEFAULTS[WHISPER].items()}
    return ", ".join(
        f"{name} {weight:.3g}{' (no use)' if name in lms and weight == 0 else ''}"
        for name, weight in features.items()
    )
