"""lmtools rescue: rescore lists by all that is needed, from text or models to a table of error
rates.
"""

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from lmtools.base.atomic import hold_lock
from lmtools.evaluate import show
from lmtools.evaluate.chance import say_why
from lmtools.evaluate.doctor.inputs import plural
from lmtools.evaluate.metrics import METRIC_HELP, METRICS
from lmtools.evaluate.significance import TESTS
from lmtools.rescoring.defaults import DEFAULTS, LM, PREFIX, WHISPER
from lmtools.rescoring.weights import Weights
from lmtools.score.load import check_packages
from lmtools.verbs.help import Rare
from lmtools.verbs.options import COMPUTING, SEVERAL_LMS
from lmtools.verbs.rescue_inputs import (
    NGRAM,
    ORDER,
    check_sets,
    decode,
    describe_lms,
    find_lms,
    list_lattices,
    plan_writing,
    read_set,
)
from lmtools.verbs.rescue_job import LOG, NO_LM, ORACLE, Job, RunLog

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
    parser.add("--words", metavar="F", help=Rare(help_text))
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
    parser.add_argument("--verbose", action="store_true", help=Rare(help_text))
    parser.add(*COMPUTING, "--nj")


def run(args):
    """Check the input, run each command, and print the table."""
    lms = find_lms(args)
    for lm in lms.values():  # before steps that take long
        check_packages(lm)
    out, log = Path(args.out), RunLog(args)
    with hold_lock(args.out), contextlib.closing(log):
        given = {part: path for part in ("dev", "test") if (path := getattr(args, part))}
        if args.asr:
            given = {part: decode(args, part, path, log.run) for part, path in given.items()}
        given = list_lattices(args, given, log.run)
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
