"""egs/librispeech/local/get_swbd.py and --corpus swbd, on a directory tree as the LDC distributes
it with conversations made up here.
"""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from shlex import split

import pytest

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / "egs/librispeech/local/get_swbd.py"
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
    for part in ("dev", "test"):
        (lists / f"{part}.text").write_text(f"{part}-1 hello there\n")
        hyps = [
            {"text": "hello their", "scores": {"am": -1.0}},
            {"text": "hello there", "scores": {"am": -2.0}},
        ]
        (lists / f"{part}.jsonl").write_text(json.dumps({"utt": f"{part}-1", "hyps": hyps}) + "\n")
    return tmp_path


def get(*folders, home, status=0) -> subprocess.CompletedProcess:
    command = [sys.executable, SCRIPT, home / "raw", home / "lists", *folders]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def test_whole_conversations_are_held_out(ldc):
    done = get(ldc / "ldc/swb1", ldc / "ldc/fe_03_p1_tran", home=ldc)
    train, valid = (
        (ldc / f"raw/{part}.txt").read_text().splitlines() for part in ("train", "valid")
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
    assert sorted(path.name for path in (ldc / "raw").iterdir()) == [
        "dev.text",
        "test.text",
        "train.txt",
        "valid.txt",
    ]


def test_a_file_that_lies_there_twice_counts_once(ldc):
    shutil.copytree(ldc / "ldc/swb1", ldc / "again")
    get(ldc / "ldc/swb1", ldc / "again", home=ldc)
    assert len((ldc / "raw/train.txt").read_text().splitlines()) == 4 * (COUNT - 2)


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
    """The recipe beside the corpora."""
    home = ldc / "egs/librispeech"
    (ldc / "utils").symlink_to(REPOSITORY / "utils")
    shutil.copytree(REPOSITORY / "egs/librispeech/local", home / "local")
    shutil.copy(REPOSITORY / "egs/librispeech/run.sh", home)
    return make_recipe(home, shell)


def test_corpus_swbd(recipe, ldc):
    recipe(
        *split("--corpus swbd --ldc-dir"),
        f"{ldc}/ldc/swb1 {ldc}/ldc/fe_03_p1_tran",
        "--nbest-dir",
        ldc / "lists",
        "--stop-stage",
        1,
    )
    data = recipe.home / "data"
    assert (data / "train/text").read_text().endswith("and café tv\nyes\n")
    assert (data / "dev/text").read_text() == "dev-1 hello there\n"
    lists = json.loads((data / "test/nbest.jsonl").read_text())
    assert lists["ref"] == "hello there" and len(lists["hyps"]) == 2


def test_corpus_swbd_needs_both_directories(recipe):
    assert "with --nbest-dir" in recipe("--corpus", "swbd", "--ldc-dir", "x", status=2).stderr
    assert "with --ldc-dir" in recipe("--corpus", "swbd", "--nbest-dir", "x", status=2).stderr
