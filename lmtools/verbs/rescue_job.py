"""The commands that `lmtools rescue` runs, their log, and notes on what its table means."""

import contextlib
import io
import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from lmtools.base.errors import UserError
from lmtools.base.files import cannot
from lmtools.evaluate.doctor import ERROR, print_findings, read_inputs
from lmtools.evaluate.doctor.inputs import plural
from lmtools.evaluate.doctor.scores import find_costs, values_of
from lmtools.evaluate.doctor.writing import Writing
from lmtools.evaluate.metrics import METRICS
from lmtools.evaluate.significance import Gains
from lmtools.rescoring.defaults import PREFIX, WHISPER
from lmtools.rescoring.features import REFERENCES
from lmtools.text.blocks import read_text
from lmtools.verbs.options import COMPUTING
from lmtools.verbs.parser import repeat_options, run_command
from lmtools.verbs.rescue_inputs import ORDER, ListSet

NO_LM = "no-lm."  # before the files of what is tuned without language models
ORACLE = "oracle."
LOG = "rescue.log"
RERUN = "--allow-commands", "--max-line"
LEFT = "text.txt"  # what is left of the text without lines that stand in references
LEAK = "leak"
# Checks whose findings change what the table means, so that they stand under it and stop nothing
MEANT = LEAK, "vocabulary"
APART = 10  # times as far apart are the scores of one set's lists as the other's: other units
NOTES = 8  # lines under the table, the worst first


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
