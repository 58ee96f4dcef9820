"""The experiment's file: what it says, how a file refines another, what it may not say."""

import pytest

from lmtools.base.errors import UserError
from lmtools.rescoring.experiment import SystemPlan, read_experiment
from lmtools.rescoring.folds import FoldPlan

BASE = """
metric: cer
folds: speaker:3
groups: session=exp/utt2session
planned: [all]
fix: {am: 2}
lms: {bert: hf:models/bert}
columns:
  ngram: {}
  tta: {}
  tta-intact: {lm: tta, intact: true}
  bert: {}
  channel: {source: true, reverse: true}
  mbr: {utility: wer, depth: 5}
systems:
  first-pass: []
  tta-mean: [tta/token]
  all: {columns: [tta, ngram], label: everything, look: {light: "#000000", dark: "#ffffff"}}
  ours: {columns: [tta], form: interpolation, first_pass: {am: 0.1, lm: 1}}
vectors:
  eos: {lm: causal, pool: eos}
"""
REFINED = """
base: base.yaml
metric: wer
folds: null
columns:
  ngram: null
  mbr: {depth: null, scale: 2}
  lstm: {}
systems:
  all: {label: T-TA}
  tta+lstm: [tta, lstm]
  ours: {columns: [bert]}
  tta-mean: null
"""


@pytest.fixture
def read(tmp_path):
    def write_and_read(text, **others):
        for name, content in {"e": text, **others}.items():
            (tmp_path / f"{name}.yaml").write_text(content)
        return read_experiment(tmp_path / "e.yaml")

    return write_and_read


def test_what_the_file_says(read):
    plan = read(BASE)
    assert plan.tuning.metric == "cer" and plan.tuning.fix == {"am": 2}
    assert plan.tuning.fold_plan == FoldPlan("speaker", 3) and plan.tuning.lengths is None
    assert list(plan.columns) == ["ngram", "tta", "tta-intact", "bert", "channel", "mbr"]
    assert plan.columns["tta-intact"].lm == "tta"
    assert plan.columns["tta-intact"].options == {"intact": True}
    assert plan.columns["channel"].source and plan.columns["mbr"].lm is None
    assert plan.trained == ["ngram", "tta", "bert"]
    assert plan.plans == {
        "first-pass": SystemPlan(()),
        "tta-mean": SystemPlan(("tta/token",)),
        "all": SystemPlan(("tta", "ngram")),
        "ours": SystemPlan(("tta",), "interpolation", {"am": 0.1, "lm": 1}),
    }
    assert plan.systems["all"].label == "everything"
    assert plan.groups == "session=exp/utt2session" and plan.planned == ("all",)
    assert plan.vectors["eos"].lm == "causal" and plan.vectors["eos"].options == {"pool": "eos"}


def test_a_file_refines_another_entry_by_entry(read):
    text = REFINED.replace("  all: {label: T-TA}", "  all: {label: T-TA, columns: [tta]}")
    plan = read(text, base=BASE)
    assert plan.tuning.metric == "wer" and plan.tuning.fold_plan is None
    assert list(plan.columns) == ["tta", "tta-intact", "bert", "channel", "mbr", "lstm"]
    assert plan.columns["mbr"].options == {"utility": "wer", "scale": 2}
    assert list(plan.systems) == ["first-pass", "all", "ours", "tta+lstm"]
    assert plan.systems["all"].label == "T-TA" and plan.systems["all"].look
    assert plan.plans["ours"] == SystemPlan(("bert",), "interpolation", {"am": 0.1, "lm": 1})


def test_an_empty_file_is_an_experiment_of_nothing(read):
    assert read("").systems == {} and read("metric: bleu\n").tuning.metric == "bleu"


@pytest.mark.parametrize(
    "text, line, message",
    [
        ("metrics: wer", 2, "unknown setting 'metrics'; did you mean metric?"),
        ("metric: weer", 2, "no metric is called 'weer'"),
        ("objective: best", 2, "'objective' is 'best', not one of expected, exact"),
        ("lengths: words", 2, "setting 'lengths' is 'words'"),
        ("folds: 1", 2, "folds: '1' is none of N, speaker and speaker:N"),
        ("fix: {am: x}", 2, "setting 'fix.am' is 'x'; expected float"),
        ("columns: [tta]", 2, "columns: expected `NAME: ...` lines"),
        ("columns:\n  tta:", 3, "columns: tta: null removes what no `base:` has; write {}"),
        ("columns:\n  tta: intact", 3, "columns: tta: expected"),
        ("columns:\n  a/b: {}", 3, "cannot name a directory"),
        ('columns:\n  "\\ud800": {}', 3, "cannot name a directory"),
        (f"columns:\n  {'a' * 201}: {{}}", 3, "cannot name a directory"),
        ("columns:\n  3: {}", 3, "the name in `columns`, 3, is no text; quote it"),
        ("columns:\n  tta: {lm: [a]}", 3, "the language model, ['a'], is no text; quote it"),
        ("columns:\n  tta:\n    source: de", 4, "setting 'source' is 'de'"),
        ("columns:\n  mbr: {utility: wer, lm: tta}", 3, "lm: utility needs none"),
        ("lms:\n  tta: ''", 3, "tta: nothing stands there; say where"),
        ("columns: {a: {lm: ../b}}", 2, "the language model, '../b', cannot name a directory"),
        ("columns: {a: {}}\nsystems:\n  a: [a, a]", 4, "columns: 'a' stands there twice"),
        ("base: [a]", 2, "base: ['a'] names no file; name one"),
        ("systems:\n  a: b", 3, "systems: a: expected"),
        ("systems:\n  a:\n    column: [b]", 4, "unknown setting 'column'; did you mean columns?"),
        ("columns: {tta: {}}\nsystems:\n  a: [tt]", 4, "unknown column 'tt'; did you mean tta?"),
        ("columns: {tta: {}}\nsystems:\n  a: [tta/words]", 4, "unknown column 'tta/words'"),
        ("systems:\n  a: [b]", 3, "unknown column 'b'; known: none"),
        ("systems:\n  a: {columns: [], form: mean}", 3, "form: 'mean' is unknown"),
        ("systems:\n  a: {columns: [], form: interpolation}", 3, "is of one column; give one"),
        ("systems:\n  a: {columns: [], first_pass: {am: 1}}", 3, "is of form interpolation alone"),
        ("vectors:\n  ..: {}", 3, "cannot name a directory"),
        ("groups: utt2spk", 2, "groups: 'utt2spk'; write speaker"),
        ("planned: a", 2, "setting 'planned' is 'a'; expected list"),
        ("systems:\n  all: []\nplanned: [al]", 4, "unknown system 'al'; did you mean all?"),
        ("columns: [a: b: c]", 2, "not YAML"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(read, text, line, message):
    with pytest.raises(UserError) as refusal:
        read(f"# an experiment\n{text}\n")
    assert f"e.yaml:{line}: " in str(refusal.value) and message in str(refusal.value)


def test_the_line_is_that_of_the_file_that_has_it(read):
    with pytest.raises(UserError, match=r"base\.yaml:3: unknown column 'b'"):
        read("base: base.yaml\nmetric: wer\n", base="metric: cer\nsystems:\n  a: [b]\n")
    with pytest.raises(UserError, match=r"e\.yaml:3: systems: b: null removes"):
        read("base: base.yaml\nsystems:\n  b: null\n", base="systems: {a: []}\n")
    with pytest.raises(UserError, match="is its own base"):
        read("base: e.yaml\n")
