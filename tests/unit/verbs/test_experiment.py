"""`--experiment F`: each verb writes what single calls do, and refuses what does not fit."""

import json
from pathlib import Path
from shlex import split

import pytest
from needs import needs
from translators import random_translator

from lmtools.cli import main

TEXTS = ["the cat sat", "a cat sat", "the dog ran", "the dog sat", "a dog ran", "cat the"]
EXPERIMENT = """
metric: cer
objective: exact
lengths: [log-words]
negative: [masked-intact]
fix: {causal: 0.25}
lms: {given: MASKED}
columns:
  causal: {}
  masked: {lm: given}
  masked-intact: {lm: given, intact: true, oov_penalty: 2}
  mbr: {utility: wer, scale: 0.5, depth: 2}
systems:
  first-pass: []
  causal-mean: [causal/token]
  both: [masked-intact, causal]
  paper: {columns: [causal], form: interpolation, first_pass: {am: 0.5, words: -0.1}}
vectors:
  eos: {lm: causal, pool: eos, layer: [0, 1]}
  words: {lm: given, pool: words}
  tta: {lm: "tta", masked: false}
"""
SINGLE = [
    ("score --lm CAUSAL", "causal"),
    ("score --lm MASKED", "masked"),
    ("score --lm MASKED,intact=true,oov_penalty=2", "masked-intact"),
    ("mbr --utility wer --scale 0.5 --depth 2", "mbr"),
]


@pytest.fixture(scope="module")
def home(trained, tmp_path_factory):
    """A directory with lists, an experiment and the directory `lm` of its language models."""
    home = tmp_path_factory.mktemp("experiment")
    for name, shift in (("dev", 0), ("test", 1)):
        rows = []
        for number in range(6):
            texts = [TEXTS[(number * (rank + shift) + rank) % 6] for rank in range(3)]
            hyps = [{"text": t, "scores": {"am": -0.3 * r * number}} for r, t in enumerate(texts)]
            rows.append({"utt": f"s{number % 3}-{number}", "ref": TEXTS[number], "hyps": hyps})
        (home / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (home / "text").write_text("\n".join(TEXTS) + "\n")
    text = EXPERIMENT.replace("MASKED", str(trained["masked"]))
    (home / "e.yaml").write_text(text)
    return home


@pytest.fixture
def call(home, trained, monkeypatch):
    monkeypatch.chdir(home)

    def run(command):
        words = split(command.replace("LM/", f"{trained['causal'].parent}/"))
        words = [
            str(trained.get(lm.lower(), lm)) + comma + options
            for lm, comma, options in (word.partition(",") for word in words)
        ]
        return main([*words, *split("--cache none" if words[0] in COMPUTING else "")])

    return run


COMPUTING = ("score", "ppl", "embed")


def same(one, other):
    """Assert that two directories have the same files."""
    found, expected = (
        {
            path.relative_to(top): path.read_bytes()
            for path in Path(top).rglob("*")
            if path.is_file()
        }
        for top in (one, other)
    )
    assert found == expected and found


def test_score(call):
    with_all = "score --experiment e.yaml --lm LM/{lm} --nbest SET.jsonl --out all/{column}/SET"
    for name in ("dev", "test"):
        assert call(with_all.replace("SET", name)) == 0
        for command, column in SINGLE:
            assert call(f"{command} --nbest {name}.jsonl --out each/{column}/{name}") == 0
    same("all", "each")


def test_score_with_translation_models(call, home, tmp_path):
    place = random_translator(tmp_path)
    (home / "source").write_text("".join(f"s{n % 3}-{n} he sent unto\n" for n in range(6)))
    (home / "t.yaml").write_text(
        f"lms: {{there: {place}}}\n"
        "columns:\n"
        "  direct: {lm: there, source: true}\n"
        "  channel: {lm: there, source: true, reverse: true}\n"
        "  causal: {}\n"
    )
    both = "--nbest dev.jsonl --source source --out"
    assert call(f"score --experiment t.yaml --lm LM/{{lm}} {both} t-all/{{column}}") == 0
    assert call(f"score --lm {place} {both} t-each/direct") == 0
    assert call(f"score --lm {place} --reverse {both} t-each/channel") == 0
    assert call("score --lm CAUSAL --nbest dev.jsonl --out t-each/causal") == 0
    same("t-all", "t-each")
    assert call("ppl --experiment t.yaml --lm LM/{lm} --text text --out t-ppl/{lm}") == 0
    assert [path.name for path in Path("t-ppl").iterdir()] == ["causal"]


def test_ppl_of_each_language_model_once(call, home):
    assert call("ppl --experiment e.yaml --lm LM/{lm} --text text --out ppl-all/{lm}.json") == 0
    for name, place in (("causal", "CAUSAL"), ("given", "MASKED")):
        assert call(f"ppl --lm {place} --text text --out ppl-each/{name}.json") == 0
    same("ppl-all", "ppl-each")


@needs("vectors")
def test_embed(call):
    assert (
        call("embed --experiment e.yaml --lm LM/{lm} --text text --out vec-all/{vectors}.npz") == 0
    )
    for name, options in (
        ("eos", "--lm CAUSAL --pool eos --layer 0,1"),
        ("words", "--lm MASKED --pool words"),
        ("tta", "--lm TTA"),
    ):
        assert call(f"embed {options} --text text --out vec-each/{name}.npz") == 0
    same("vec-all", "vec-each")


TUNE = "tune --nbest dev.jsonl --metric cer --set objective=exact"
SYSTEMS = {
    "first-pass": ("", "--set lengths=log-words"),
    "causal-mean": ("causal/token=score/causal/SET", "--set lengths=log-words"),
    "both": (
        "masked-intact=score/masked-intact/SET causal=score/causal/SET",
        "--set lengths=log-words --set negative=masked-intact --fix causal=0.25",
    ),
    "paper": (
        "causal=score/causal/SET",
        "--set lengths=words --set form=interpolation --fix am=0.5 words=-0.1",
    ),
}


@pytest.fixture
def scored(call):
    for name in ("dev", "test"):
        scores = f"--nbest {name}.jsonl --out score/{{column}}/{name}"
        assert call(f"score --experiment e.yaml --lm LM/{{lm}} {scores}") == 0


def test_tune_and_rescore(call, scored):
    tuned, chosen = "{system}/weights.json", "{system}/text"
    both = "--experiment e.yaml --scores score/{column}/SET --nbest SET.jsonl"
    assert call(f"tune {both.replace('SET', 'dev')} --nj 2 --out w-all/{tuned}") == 0
    command = f"rescore {both.replace('SET', 'test')} --weights w-all/{tuned} --out w-all/{chosen}"
    assert call(command) == 0
    for name, (columns, options) in SYSTEMS.items():
        columns = f"--scores {columns}" if columns else ""
        home = f"w-each/{name}"
        single = f"{TUNE} {options} {columns.replace('SET', 'dev')} --out {home}/weights.json"
        assert call(single) == 0
        single = f"rescore --nbest test.jsonl {columns.replace('SET', 'test')}"
        assert call(f"{single} --weights {home}/weights.json --out {home}/text") == 0
    same("w-all", "w-each")


def test_a_run_of_all_systems_warns_of_nothing_that_its_report_says(call, scored, capsys):
    """Rescoring dev, and scores of no use; who calls a verb for one system is warned."""
    both = "--experiment e.yaml --scores score/{column}/dev --nbest dev.jsonl --set lengths="
    assert call(f"tune {both} --fix am=1 --out w-dev/{{system}}/w.json") == 0
    path = Path("w-dev/both/w.json")
    none = json.loads(path.read_text())
    none["features"]["causal"] = 0.0
    for place, one in (path, none["features"]), (Path("w-dev/causal-mean/w.json"), {}):
        tree = json.loads(place.read_text())
        place.write_text(json.dumps(tree | {"features": tree["features"] | one}))
    rest = both.removesuffix(" --set lengths=")
    assert call(f"rescore {rest} --weights w-dev/{{system}}/w.json --out w-dev/{{system}}/t") == 0
    assert "warning" not in capsys.readouterr().err


def test_a_flag_beside_the_file_overrides_it(call, scored):
    common = "--scores score/{column}/dev --nbest dev.jsonl --out"
    flags = "--metric wer --set objective=expected --set lengths= --folds speaker --fix am=2"
    assert call(f"tune --experiment e.yaml {flags} {common} flags/{{system}}") == 0
    Path("f.yaml").write_text(
        "base: e.yaml\nmetric: wer\nobjective: expected\nlengths: []\nfolds: speaker\n"
        "fix: {am: 2}\n"
    )
    assert call(f"tune --experiment f.yaml {common} file/{{system}}") == 0
    same("flags", "file")
    assert '"folds"' in Path("file/both").read_text()
    score = "score --lm LM/{lm},oov_penalty=0.5 --nbest dev.jsonl --out"
    assert call(f"{score} penalty/{{column}} --experiment e.yaml") == 0
    assert call("score --lm MASKED,intact=true,oov_penalty=0.5 --nbest dev.jsonl --out one") == 0
    assert Path("one").read_bytes() == Path("penalty/masked-intact").read_bytes()


SCORE = "score --experiment x.yaml --lm LM/{lm} --nbest dev.jsonl --out x/{column}"


@pytest.mark.parametrize(
    "text, command, message",
    [
        ("columns: {causal: {intakt: true}}", SCORE, "x.yaml:1: unknown option 'intakt'; did you"),
        ("columns:\n  tta:\n    intact: 3", SCORE, "x.yaml:3: setting 'intact' is 3"),
        ("columns: {tta: {oov_penalty: -1}}", SCORE, "is not a finite number from 0; mend oov_pen"),
        (
            "columns: {tta: {normalise: some}}",
            SCORE,
            "'normalise' is 'some', not one of full, none",
        ),
        ("columns: {tta: {oov_penalty: true}}", SCORE, "'oov_penalty' is True; expected float"),
        ("columns: {tta: {scale: 1}}", SCORE, "unknown option 'scale'"),
        ("columns: {mbr: {utility: wr}}", SCORE, "x.yaml:1: argument --utility: no metric is"),
        ("columns: {mbr: {utility: wer, intact: true}}", SCORE, "unknown option 'intact'"),
        ("columns: {tta: {reverse: true}}", SCORE, "reverse: of which source? write source: true"),
        ("columns: {a: {source: true, written: true}}", SCORE, "written: is for recognisers"),
        ("columns: {tta: {source: true}}", SCORE, "x.yaml:1: tta reads what the lists translate"),
        ("vectors: {tta: {pool: median}}", SCORE, "argument --pool: 'median' is none of mean, max"),
        ("vectors: {tta: {layer: first}}", SCORE, "x.yaml:1: argument --layer: 'first' is not"),
        ("systems: {a: []}", SCORE, "x.yaml:1: no columns; write them under `columns:`"),
        ("columns: {tta: {}}", SCORE.replace("{lm}", "tta"), "write {lm} in place of its name"),
        ("columns: {tta: {}}", SCORE.replace("{column}", "a"), "write {column} in place of its"),
        ("columns: {a: {}, b: {}}", SCORE.replace("dev.jsonl", "-"), "-: a pipe, but 2 columns"),
        (
            "columns: {a: {}}",
            "ppl --experiment x.yaml --lm LM/{lm} --lm CAUSAL --text text",
            "--lm: a mixture; leave it out",
        ),
        (
            "columns: {mbr: {utility: wer}}",
            "ppl --experiment x.yaml --lm LM/{lm} --text text",
            "x.yaml:1: no columns",
        ),
        (
            "columns: {a: {}}",
            "tune --experiment x.yaml --nbest dev.jsonl --scores {column} --out {system}",
            "x.yaml:1: no systems",
        ),
        (
            "columns: {a: {}}\nsystems: {a: [a]}",
            "tune --experiment x.yaml --nbest dev.jsonl --scores a --out {system}",
            "tune: a: each column needs a path of its own; write {column}",
        ),
        (
            "columns: {a: {}}\nsystems: {a: [a]}",
            "rescore --experiment x.yaml --nbest dev.jsonl --weights w --lm a=LM/tta --out o",
            "--experiment: --lm is for one system",
        ),
        pytest.param(
            "vectors: {tta: {}}",
            "embed --experiment x.yaml --lm LM/{lm} --text text --out v.npz",
            "v.npz: each vectors needs a path of its own; write {vectors}",
            marks=needs("vectors"),
        ),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    call, capsys, text, command, message
):
    Path("x.yaml").write_text(text + "\n")
    assert call(command) == 1
    assert message in capsys.readouterr().err and not Path("x").exists()
