import errno
import importlib
import io
import json
import os
import re
import signal
import subprocess
import sys
from shlex import split
from types import SimpleNamespace

import pytest

import lmtools
from lmtools import cli
from lmtools.base import errors
from lmtools.base.context import MAX_LINE, current
from lmtools.base.errors import UserError
from lmtools.cli import VERB_GROUPS, VERBS, main
from lmtools.verbs.help import GONE

TABLE_WING = [
    "doctor", "convert", "subword", "corpus", "ngram", "mbr", "rescue", "tune", "rescore",
    "evaluate", "report", "show",
]  # fmt: skip


def lmtools_command(*words, **options):
    return subprocess.run(
        [sys.executable, "-m", "lmtools", *map(str, words)],
        capture_output=True,
        text=True,
        **options,
    )


def verb_that(monkeypatch, act):
    """Make `lmtools corpus` do `act`."""
    module = importlib.import_module("lmtools.verbs.corpus")
    monkeypatch.setattr(module, "arguments", lambda parser: None)
    monkeypatch.setattr(module, "run", act)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb, capsys):
    with pytest.raises(SystemExit) as done:
        main([verb, "--help-all"])
    assert done.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: lmtools {verb}")
    assert VERBS[verb].split()[-1] in text
    assert "--debug" in text and "--max-line" in text


def test_help_names_every_verb(capsys):
    with pytest.raises(SystemExit) as done:
        main(["--help"])
    assert done.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    places = [text.index(f" {verb} {purpose}") for verb, purpose in VERBS.items()]
    assert places == sorted(places)
    titles = [text.index(f" {title}: ") for title, verbs in VERB_GROUPS.items() if verbs]
    assert titles == sorted(titles) and titles[0] < places[0]


def test_purposes_stand_in_one_column():
    rows = [line for line in cli.describe_verbs().splitlines() if line.startswith("  ")]
    assert len({re.match(r"  \S+ +", row).end() for row in rows}) == 1 < len(rows)


@pytest.mark.parametrize(
    ("verb", "name"),
    [
        (verb, name)
        for verbs, names, _ in GONE
        for verb in verbs.split() or [""]
        for name in names.split()
    ],
)
def test_what_is_gone_says_what_to_do(verb, name, capsys):
    with pytest.raises(SystemExit) as done:
        main([*verb.split(), name])
    said = capsys.readouterr().err
    assert done.value.code == 2 and said.count("\n") == 1
    assert said.startswith(f"{f'lmtools {verb}'.strip()}: {name} is gone; ")
    if told := re.search(r"write (?:--set )?([\w-]+)", said):  # which is there
        with pytest.raises(SystemExit):
            main([verb, *["rescore"] * (verb == "lattice"), "--help-all"])
        assert re.search(rf"(?<![\w-]){told[1]}\b", capsys.readouterr().out)


def test_help_needs_no_extra():
    script = (
        "import sys; from lmtools.base.errors import EXTRAS\nclass Hiding:\n"
        " def find_spec(name, *_):\n  if name in EXTRAS: raise ImportError(name, name=name)\n"
        "sys.meta_path.insert(0, Hiding)\n"
        "from lmtools.cli import VERBS, main\nfor verb in VERBS:\n try: main([verb, '--help'])\n"
        " except SystemExit as done: print(f'({done.code})')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.count("(0)\n") == len(VERBS), done.stderr


@pytest.mark.parametrize(
    ("noted", "said"),
    [
        ({"url": "file://HOME", "dir_info": {}}, "'HOME[asr,llm]'"),
        ({"url": "file://HOME/a%20b.whl"}, "'HOME/a b.whl[asr,llm]'"),
        ({"url": "file://HOME/gone.whl"}, "'lmtools[asr,llm]'"),
        ({"url": "https://x/a.whl"}, "'lmtools[asr,llm] @ https://x/a.whl'"),
        (
            {"url": "https://x/y", "vcs_info": {"vcs": "git", "commit_id": "1a"}},
            "'lmtools[asr,llm] @ git+https://x/y@1a'",
        ),
        (None, "'lmtools[asr,llm]'"),
    ],
)
def test_an_extra_comes_from_where_lmtools_came(tmp_path, monkeypatch, noted, said):
    (tmp_path / "a b.whl").touch()
    text = noted and json.dumps(noted).replace("HOME", str(tmp_path))
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "lib/lmtools/base/errors.py"))
    found = SimpleNamespace(read_text=lambda name: text if name == "direct_url.json" else None)
    monkeypatch.setattr(errors.metadata, "distribution", lambda name: found)
    for path, pip in ((os.path.dirname(sys.executable), "pip"), ("", f"{sys.executable} -m pip")):
        monkeypatch.setattr(errors.shutil, "which", lambda name, path=path: path and f"{path}/pip")
        told = errors.install_extra("asr", "llm")
        assert told == f"{pip} install {said}".replace("HOME", str(tmp_path))


def test_help_is_for_users_alone(capsys):
    """What the package's docstring tells those who read the code is no part of it."""
    with pytest.raises(SystemExit):
        main(["--help"])
    printed = " ".join(capsys.readouterr().out.split())
    first, *rest = (" ".join(part.split()) for part in lmtools.__doc__.strip().split("\n\n"))
    assert first in printed and rest and not any(part[:40] in printed for part in rest)


def test_version(capsys):
    with pytest.raises(SystemExit) as done:
        main(["--version"])
    assert done.value.code == 0
    assert capsys.readouterr().out == f"lmtools {lmtools.__version__}\n"


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"],
        ["corpus"],
        ["corpus", "--text"],
        ["subword", "--text", "t", "--type", "syllable", "--out", "o"],
    ],
)
def test_wrong_usage_is_2(words):
    done = lmtools_command(*words)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: lmtools")
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_users_mistake_is_1_in_one_line(tmp_path):
    words = tuple(
        split(f"corpus --text {tmp_path}/no.txt --subword {tmp_path}/none --out {tmp_path}/o.bin")
    )
    done = lmtools_command(*words)
    assert done.returncode == 1
    assert not done.stdout
    assert (
        done.stderr
        == f"lmtools corpus: {tmp_path}/none/subword.yaml: cannot read: No such file or directory;"
        " check the path\n"
    )
    assert not list(tmp_path.iterdir())
    debugged = lmtools_command(*words, "--debug")
    assert debugged.returncode == 1
    assert "Traceback" in debugged.stderr
    assert "UserError" in debugged.stderr


def test_done_is_0(tmp_path):
    text = tmp_path / "t"
    text.write_text("le chat naïf\n", encoding="utf-8")
    done = lmtools_command(
        *split(f"subword --text {text} --type char --out"),
        tmp_path / "été",
        encoding="utf-8",
        env={"PYTHONIOENCODING": "latin-1"},
    )
    assert done.returncode == 0
    assert done.stdout.startswith(f"{tmp_path}/été: char vocabulary of 15 ids")
    assert not done.stderr


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (UserError("f:3: cause;\nremedy"), 1, "lmtools corpus: f:3: cause; remedy\n"),
        (
            UserError("f:3: \x1b[2J\0 is odd\u202e; remedy"),
            1,
            "lmtools corpus: f:3: \\x1b[2J\\x00 is odd\\u202e; remedy\n",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device", "f"),
            1,
            "lmtools corpus: f: No space left on device; free space on its disk and run again\n",
        ),
        (
            MemoryError(),
            1,
            (
                "lmtools corpus: not enough memory (no more was given); give it less at a time, or"
                " a larger machine\n"
            ),
        ),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_inside_a_verb(monkeypatch, capsys, error, status, said):
    def act(args):
        raise error

    verb_that(monkeypatch, act)
    assert main(["corpus"]) == status
    assert capsys.readouterr().err == said
    if status == 1:
        with pytest.raises(type(error)):
            main(["corpus", "--debug"])


def test_a_long_message_keeps_its_ends(monkeypatch, capsys):
    def act(args):
        raise UserError(f"f:3: {chr(0) * 10**6} is no number; correct it")

    verb_that(monkeypatch, act)
    assert main(["corpus"]) == 1
    said = capsys.readouterr().err
    assert len(said) < 540 and said.count("\n") == 1
    assert said.startswith("lmtools corpus: f:3: \\x00") and said.endswith(
        "is no number; correct it\n"
    )


def test_full_standard_output(tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    script = (
        "import sys; from lmtools import cli; from lmtools.verbs import corpus; corpus.arguments ="
        " lambda p: None\ncorpus.run = lambda a: print('x' * 10**6)\nsys.exit(cli.main(['corpus']))"
    )
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", script], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert (
        done.stderr.count("\n") == 1
        and "standard output" in done.stderr
        and "; free space" in done.stderr
    )


@pytest.mark.parametrize(
    "words",
    ["corpus --max-line 2K", "lattice --max-line 2K info f", "lattice info f --max-line=2K"],
)
def test_every_verb_takes_the_longest_line(monkeypatch, words):
    monkeypatch.setenv(MAX_LINE, "1K")
    seen = []
    verb_that(monkeypatch, lambda args: seen.append(current().max_line))
    monkeypatch.setattr("lmtools.verbs.lattice.run", lambda args: seen.append(current().max_line))
    assert main(words.split()) == 0
    assert [*seen, current().max_line] == [2048, 1024]


@pytest.mark.parametrize("given", ["", "0", "-1", "16X", "1.5M", "M"])
def test_a_size_that_is_none(monkeypatch, capsys, given):
    verb_that(monkeypatch, lambda args: 0)
    with pytest.raises(SystemExit) as done:
        main(["corpus", f"--max-line={given}"])
    assert done.value.code == 2
    assert "write it as 500000, 64K, 16M or 2G" in capsys.readouterr().err


def test_our_own_mistake_is_not_hidden(monkeypatch):
    def act(args):
        raise AssertionError("a broken invariant")

    verb_that(monkeypatch, act)
    with pytest.raises(AssertionError):
        main(["corpus"])


@pytest.mark.parametrize(("returned", "status"), [(None, 0), (0, 0), (143, 143)])
def test_status_of_a_verb(monkeypatch, returned, status):
    verb_that(monkeypatch, lambda args: returned)
    assert main(["corpus"]) == status


def test_broken_pipe_is_no_mistake(tmp_path):
    script = (
        "import sys; from lmtools import cli; from lmtools.verbs import corpus; corpus.arguments ="
        " lambda p: None\ncorpus.run = lambda a: [print('x' * 1000) for _ in range(10000)] and"
        " None\nsys.exit(cli.main(['corpus']))"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    child.stdout.readline()
    child.stdout.close()
    assert child.stderr.read() == b""
    assert child.wait() == 0


def test_table_wing_never_imports_torch():
    script = (
        "import sys; from lmtools.cli import main\n"
        "for verb in sys.argv[1:]:\n"
        "    try: main([verb, '--help'])\n"
        "    except SystemExit: pass\n"
        "    heavy = {'torch', 'transformers'} & set(sys.modules)\n"
        "    if heavy: sys.exit(f'{verb} imports {heavy}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *TABLE_WING], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_working_verbs_of_the_table_wing_never_import_torch(tmp_path):
    (tmp_path / "t").write_text("a b c\n" * 20)
    script = (
        "import sys; from lmtools.cli import main; text, folder = sys.argv[1:]\nmain(['subword',"
        " '--text', text, '--type', 'bpe', '--vocab-size', '12', '--out',"
        " f'{folder}/s'])\nmain(['corpus', '--text', text, '--subword', f'{folder}/s', '--out',"
        " f'{folder}/t.bin'])\nsys.exit(bool({'torch', 'transformers'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "t"), str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "t.bin").exists()


def test_n_grams_are_asked_without_torch(tmp_path):
    (tmp_path / "t").write_text("a b c\n" * 20)
    hyps = [{"text": text, "scores": {"am": 0.5}} for text in ("a b", "a c")]
    (tmp_path / "nbest.jsonl").write_text(json.dumps({"utt": "u", "hyps": hyps}) + "\n")
    calls = [
        ["ngram", "--text", "t", "--order", "2", "--out", "lm", "--kenlm", "none"],
        ["score", "--lm", "lm", "--nbest", "nbest.jsonl", "--out", "a.scores"],
        ["score", "--lm", "mix:lm=0.5,lm=0.5", "--nbest", "nbest.jsonl", "--out", "b.scores"],
        ["ppl", "--lm", "lm", "--text", "t", "--out", "ppl.json"],
    ]
    script = (
        "import json, sys; from lmtools.cli import main\n"
        "for call in json.loads(sys.argv[1]):\n"
        "    status = main([*call, '--cache', 'none'] if call[0] != 'ngram' else call)\n"
        "    heavy = {'torch', 'transformers', 'scipy.optimize'} & set(sys.modules)\n"
        "    if heavy or status: sys.exit(f'{call}: {status}, imports {heavy}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(calls)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.scores").read_text().count("\n") == 4


def test_help_is_quick_about_imports():
    """The list of verbs needs neither numpy nor torch: it must come at once."""
    script = (
        "import sys; from lmtools.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: sys.exit(bool({'numpy', 'torch'} & set(sys.modules)))\n"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True).returncode == 0


def test_streams_that_tests_replace_are_left_alone(monkeypatch):
    verb_that(monkeypatch, lambda args: print("é"))
    monkeypatch.setattr(cli.sys, "stdout", io.StringIO())
    assert main(["corpus"]) == 0
    assert cli.sys.stdout.getvalue() == "é\n"


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_standard_streams(tmp_path, closed):
    """Nobody is told, and what is written is right."""
    (tmp_path / "a.trn").write_text("the cat (u1)\n")
    for words, status in (("convert a.trn b.jsonl --ref a.trn", 0), ("convert none b.jsonl", 1)):
        command = f"{sys.executable} -m lmtools {words} {closed}"
        done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == status
        assert done.stderr.count("\n") == ("2>" not in closed)
    assert '"ref": "the cat"' in (tmp_path / "b.jsonl").read_text()


def test_interrupted_imports(monkeypatch, capsys):
    def interrupted(name, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "make_parser", interrupted)
    assert main(["convert", "a", "b"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("words", [
    "score --nbest n --lm a --lm b --out o", "evaluate --ref r --hyp a --hyp b",
    "rescore --nbest n --weights w --phrases a --phrases b --out o",
])  # fmt: skip
def test_an_option_of_one_value_is_given_once(words, capsys):
    with pytest.raises(SystemExit):
        main(words.split())
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith(": is given twice; leave one out")


def test_several_values_are_taken_from_all_places(tmp_path, capsys):
    (tmp_path / "r").write_text("a-1 one two\nb-1 three\n")
    call = f"evaluate --ref {tmp_path}/r --hyp {tmp_path}/r --by speaker --by length"
    assert main(call.split()) == 0
    printed = capsys.readouterr().out
    assert "by speaker:" in printed and "by length:" in printed


INTERRUPTED = """
import os, signal, sys
class Finder:
    def find_spec(self, name, *more):
        if name == "lmtools.cli":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from lmtools.__main__ import run
sys.exit(run())
"""


def test_interrupted_before_the_first_verb():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, "--version"], capture_output=True)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"")
    ignored = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{INTERRUPTED}"
    done = subprocess.run([sys.executable, "-c", ignored, "--version"], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
