"""egs/librispeech/studies: local/get_swbd.py and run_swbd.sh, on a directory tree as the LDC
distributes it with conversations made up here.
"""

import importlib.util
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / "egs/librispeech/studies/local/get_swbd.py"
UTTERANCES = {"dev": ["sw02001-1"], "test": ["en_4156-A-1", "sw_4390-A-1", "en_4156-B-1"]}
COUNT = 27  # conversations of Switchboard; the last and the last but 25 are held out


@pytest.fixture(scope="module")
def swbd():
    """get_swbd.py as a module."""
    spec = importlib.util.spec_from_file_location("get_swbd", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "written, kept",
    [
        ("hi um yeah", "hi um yeah"),
        ("Uh-huh I'M sure", "uh-huh i'm sure"),
        ("[silence]", ""),
        ("[noise] so [vocalized-noise] what [laughter]", "so what"),
        ("[laughter-yes] i [laughter-know]", "yes i know"),
        ("[it'n/isn't] it", "it'n it"),
        ("th[is]- this", "this"),
        ("-[a]nd then", "then"),
        ("wh- ammu[n]it what -kay", "what"),
        ("[laughter-th[is]-] that", "that"),
        ("[lem[guini]-/linguini] pasta", "pasta"),
        ("{yuppiedom} of them_1 and them_1's", "yuppiedom of them and them's"),
        ("[laughter-{yuppie}]", "yuppie"),
        ("<b_aside> wait <e_aside> okay", "wait okay"),
        ("at&amp;t r&b", "at&t r&b"),
        ("about nineteen ninety - or so --", "about nineteen ninety or so"),
        ("(( i think )) so ((", "i think so"),
        ("((maybe)) *frouzy, no? yes.", "maybe frouzy no yes."),
        ("watch t._v. or m._r._i.'s on the u._s. side", "watch tv or mri's on the us side"),
        ("<german ja wohl > [[skip]] [pause] right", "right"),
        ("cost was 3 dollars", "cost was 3 dollars"),
    ],
)
def test_tokens(swbd, written, kept):
    assert swbd.clean(written) == kept


@pytest.fixture
def ldc(tmp_path):
    """Both corpora, and the references of two sets."""
    ms98 = tmp_path / "ldc/swb1/swb_ms98_transcriptions"
    for number in range(COUNT):
        name = f"sw{2001 + number}"
        folder = ms98 / name[2:4] / name[2:]
        folder.mkdir(parents=True)
        for side in "AB":
            segments = [
                ("[silence]", 1.0),
                (f"hello [noise] number {number} {side}", 2.5),
                ("th[is]-", 3.0),
                ("[laughter-bye]", 4.0),
            ]
            lines = (
                f"{name}{side}-ms98-a-{n:04} {end - 1:.6f} {end:.6f} {words}\n"
                for n, (words, end) in enumerate(segments, 1)
            )
            (folder / f"{name}{side}-ms98-a-trans.text").write_text("".join(lines))
            (folder / f"{name}{side}-ms98-a-word.text").write_text(
                "sw2001A-ms98-a-0001 0.0 0.9 wrong\n"
            )
    (ms98 / "sw-ms98-dict.text").write_text("a ax\n")
    turns = tmp_path / "ldc/fe_03_p1_tran/data/trans/000"
    turns.mkdir(parents=True)
    said = (
        "# fe_03_00001.sph\n\n3.76 5.54 A: and (( café )) t._v.\n5.6 6.0 B: [laughter]\n6.1 7 B:"
        " yes\n"
    )
    (turns / "fe_03_00001.txt").write_text(said, encoding="latin-1")
    lists = tmp_path / "lists"
    lists.mkdir()
    hyps = [
        {"text": "hello their", "scores": {"am": -1.0}},
        {"text": "hello there", "scores": {"am": -2.0}},
    ]
    for part, utts in UTTERANCES.items():
        (lists / f"{part}.text").write_text("".join(f"{utt} hello there\n" for utt in utts))
        rows = (json.dumps({"utt": utt, "hyps": hyps}) + "\n" for utt in utts)
        (lists / f"{part}.jsonl").write_text("".join(rows))
    return tmp_path


def get(*folders, home, status=0) -> subprocess.CompletedProcess:
    command = [sys.executable, SCRIPT, home / "data", home / "lists", *folders]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def test_whole_conversations_are_held_out(ldc):
    done = get(ldc / "ldc/swb1", ldc / "ldc/fe_03_p1_tran", home=ldc)
    train, valid = (
        (ldc / f"data/{part}/text").read_text().splitlines() for part in ("train", "valid")
    )
    both = [[f"hello number {number} {side}", "bye"] for number in range(COUNT) for side in "ab"]
    held = [
        line for number in (1, 26) for pair in both[2 * number : 2 * number + 2] for line in pair
    ]
    assert valid == held
    rest = [
        line
        for number in range(COUNT)
        if number not in (1, 26)
        for pair in both[2 * number : 2 * number + 2]
        for line in pair
    ]
    assert train == [*rest, "and café tv", "yes"]
    assert "25 conversations of Switchboard and 1 of Fisher, 8 held out" in done.stdout
    made = {path.relative_to(ldc / "data").as_posix() for path in (ldc / "data").glob("*/*")}
    assert made == {f"{part}/text" for part in ("dev", "test", "train", "valid")}


def test_a_file_that_lies_there_twice_counts_once(ldc):
    shutil.copytree(ldc / "ldc/swb1", ldc / "again")
    get(ldc / "ldc/swb1", ldc / "again", home=ldc)
    assert len((ldc / "data/train/text").read_text().splitlines()) == 4 * (COUNT - 2)


@pytest.mark.parametrize(
    "damage, message",
    [
        (
            lambda home: shutil.rmtree(home / "ldc/swb1"),
            "no swNNNN{A,B}-ms98-a-trans.text of two conversations",
        ),
        (
            lambda home: (home / "lists/test.text").unlink(),
            "lists/test.text: not there; put the references",
        ),
        (
            lambda home: next(home.rglob("sw2003A-ms98-a-trans.text")).write_text("hello\n"),
            "sw2003A-ms98-a-trans.text:1: not `segment",
        ),
        (
            lambda home: next(home.rglob("fe_03_00001.txt")).write_text("\nhello\n"),
            "fe_03_00001.txt:2: not `start end A: words`",
        ),
    ],
)
def test_what_is_wrong_is_said(ldc, damage, message):
    damage(ldc)
    done = get(ldc / "ldc", home=ldc, status=1)
    assert message in done.stderr and done.stderr.count("\n") == 1


@pytest.fixture
def recipe(ldc, shell, make_recipe):
    home = ldc / "egs/librispeech"
    (ldc / "utils").symlink_to(REPOSITORY / "utils")
    (ldc / "conf").symlink_to(REPOSITORY / "conf")
    for folder in ("studies", "conf"):
        shutil.copytree(REPOSITORY / "egs/librispeech" / folder, home / folder)
    return make_recipe(home, shell)


EXPERIMENT = """
columns: {ngram: {}, lstm: {}}
systems: {first-pass: [], ngram: [ngram], lstm: [lstm]}
"""
SWBD = shlex.split("--order 2 --confs tiny/lstm.yaml --experiment tiny/experiment.yaml")


def test_whole(recipe, ldc):
    """To the report: test's parts are sets, and the mixture's perplexity is there."""
    (recipe.home / "tiny").mkdir()
    settings = "arch: {layers: 1, dim: 8, units: 8}\nsteps: 3\nbatch: {tokens: 200}\n"
    (recipe.home / "tiny/lstm.yaml").write_text(f"model: lstm\nobjective: causal\n{settings}")
    (recipe.home / "tiny/experiment.yaml").write_text(EXPERIMENT)
    given = ("--ldc-dir", f"{ldc}/ldc/swb1 {ldc}/ldc/fe_03_p1_tran", "--nbest-dir", ldc / "lists")
    recipe(*SWBD, *given, script="studies/run_swbd.sh")
    data, exp = recipe.home / "data/swbd", recipe.home / "exp/swbd"
    assert (data / "train/text").read_text().endswith("and café tv\nyes\n")
    assert (data / "dev/text").read_text() == "sw02001-1 hello there\n"
    found = {}
    for name in ("test", "swb", "ch"):
        lists = [
            json.loads(line) for line in (data / name / "nbest.jsonl").read_text().splitlines()
        ]
        assert all(one["ref"] == "hello there" and len(one["hyps"]) == 2 for one in lists)
        found[name] = [one["utt"] for one in lists]
        assert [line.split()[0] for line in (data / name / "text").open()] == found[name]
        assert (exp / f"rescore/lstm/{name}.txt").exists()
        figures = json.loads((exp / f"ppl/lstm+ngram/{name}.json").read_text())
        assert [Path(one["lm"]).name for one in figures["mixture"]] == ["lstm", "ngram"]
        assert figures["tokens"] == 3 * len(lists)
    first, second, third = UTTERANCES["test"]
    assert found == {"test": [first, second, third], "swb": [second], "ch": [first, third]}
    tables = (exp / "report/RESULTS.md").read_text()
    for name in found:
        assert f"## WER after rescoring: {name}" in tables
    weight = figures["mixture"][0]["weight"]
    assert f"| {weight:.2f} LSTM + {1 - weight:.2f} n-gram |" in tables


GLM = """* name "small"
* format = 'NIST1'
* max_nrules = '2500'
* copy_no_hit = 'T'
* case_sensitive = 'F'
THEIR => THERE / [ ] __ [ ]
"""
SEGMENTS = """en_4156-A-1 en_4156-A 1.0 2.0
sw_4390-A-1 sw_4390-A 0.5 1.5
en_4156-B-1 en_4156-B 3.0 4.5
"""
STM = """;; CATEGORY "0" "" ""
;; LABEL "O" "Overall" "All"
;; CATEGORY "1" "Corpus" ""
;; LABEL "en" "en" "CallHome"
;; LABEL "sw" "sw" "Switchboard"
en_4156 A en_4156-A 1.0 2.0 <O,en> hello there
sw_4390 A sw_4390-A 0.5 1.5 <O,sw> (%hesitation) hello where
en_4156 B en_4156-B 3.0 4.5 <O,en> hello there
"""


@pytest.mark.skipif(
    not Path("/usr/lib/sctk/bin/hubscr.pl").exists(),
    reason="NIST's sctk is not in /usr/lib/sctk (Debian: apt install sctk)",
)
def test_scored_as_hub5(recipe):
    """By the global map `their` is right; of seven words and an optional one, one is wrong."""
    exp = recipe.home / "exp"
    for name, content in {"small.glm": GLM, "segments": SEGMENTS, "test.stm": STM}.items():
        recipe.home.joinpath(name).write_text(content)
    (exp / "rescore/lstm").mkdir(parents=True)
    rows = "".join(f"{utt} hello their\n" for utt in UTTERANCES["test"])
    (exp / "rescore/lstm/test.txt").write_text(rows)
    call = ["bash", "studies/local/score_hub5.sh", "exp", "small.glm", "test.stm", "segments"]
    more = {"cwd": recipe.home, "env": recipe.env, "capture_output": True, "text": True}
    done = subprocess.run(call, timeout=120, **more)
    words = (exp / "scored/lstm/test.ctm").read_text().splitlines()
    assert words[:2] == ["en_4156 A 1.000 0.500 hello", "en_4156 A 1.500 0.500 their"]
    assert done.returncode == 0 and done.stdout.startswith("lstm: "), done.stderr
    # segments, words; correct, substituted, deleted, inserted, errors, wrong segments, in percent
    row = "3 7 85.7 14.3 0.0 0.0 14.3 33.3"
    assert " ".join(done.stdout.replace("|", " ").split()[2:]) == row
    done = subprocess.run(call[:-1], timeout=120, **more)
    assert done.returncode == 1 and "Kaldi's segments, after it" in done.stderr


def test_lattices_go_with_their_parts(tmp_path):
    """As stage 1 calls it."""
    whole, out = tmp_path / "test", tmp_path / "swb"
    (whole / "lattices").mkdir(parents=True)
    (whole / "text").write_text("en_1 a\nsw_1 b\n")
    row = '{"utt": "%s", "hyps": [{"text": "a", "scores": {"am": -1.0}}]}\n'
    (whole / "nbest.jsonl").write_text("".join(row % utt for utt in ("en_1", "sw_1")))
    for utt in ("en_1", "sw_1"):
        (whole / f"lattices/{utt}.slf").write_text(utt)
    split = [sys.executable, SCRIPT.with_name("split.py"), whole, out, "sw"]
    subprocess.run(split, check=True, timeout=60)
    assert [path.name for path in (out / "lattices").iterdir()] == ["sw_1.slf"]
    assert (out / "text").read_text() == "sw_1 b\n"


def test_parts_that_are_not_there(tmp_path):
    (tmp_path / "test").mkdir()
    row = '{"utt": "en_1", "hyps": [{"text": "a", "scores": {"am": -1.0}}]}\n'
    (tmp_path / "test/nbest.jsonl").write_text(row)
    split = [
        sys.executable,
        SCRIPT.with_name("split.py"),
        tmp_path / "test",
        tmp_path / "swb",
        "sw",
    ]
    done = subprocess.run(split, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "no utterance begins with 'sw'; name the beginnings" in done.stderr
    assert not (tmp_path / "swb").exists()


@pytest.mark.parametrize("given", ["--ldc-dir", "--nbest-dir"])
def test_both_directories_are_needed(recipe, given):
    done = recipe(given, "x", script="studies/run_swbd.sh", status=2)
    assert "--ldc-dir has the LDC's transcriptions, --nbest-dir" in done.stderr
