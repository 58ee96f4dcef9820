import errno
import importlib
import io
import subprocess
import sys

import pytest

import lmtools
from lmtools import cli
from lmtools.cli import VERBS, main
from lmtools.errors import UserError

TABLE_WING = ["doctor", "convert", "subword", "corpus", "ngram", "mbr", "tune", "rescore", "evaluate", "report"]


def lmtools_command(*words, **options):
    return subprocess.run([sys.executable, "-m", "lmtools", *map(str, words)], capture_output=True, text=True, **options)


def verb_that(monkeypatch, act):
    """Make `lmtools corpus` do `act`."""
    module = importlib.import_module("lmtools.verbs.corpus")
    monkeypatch.setattr(module, "arguments", lambda parser: None)
    monkeypatch.setattr(module, "run", act)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(verb, capsys):
    with pytest.raises(SystemExit) as done:
        main([verb, "--help"])
    assert done.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: lmtools {verb}")
    assert VERBS[verb].split()[-1] in text
    assert "--debug" in text


def test_help_names_every_verb(capsys):
    with pytest.raises(SystemExit) as done:
        main(["--help"])
    assert done.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert all(f"{verb} {purpose}" in text for verb, purpose in VERBS.items())


def test_version(capsys):
    with pytest.raises(SystemExit) as done:
        main(["--version"])
    assert done.value.code == 0
    assert capsys.readouterr().out == f"lmtools {lmtools.__version__}\n"


@pytest.mark.parametrize(
    "words", [[], ["nonsense"], ["corpus"], ["corpus", "--text"], ["subword", "--text", "t", "--type", "syllable", "--out", "o"]]
)
def test_wrong_usage_is_2(words):
    done = lmtools_command(*words)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: lmtools")
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_users_mistake_is_1_in_one_line(tmp_path):
    words = ("corpus", "--text", tmp_path / "no.txt", "--subword", tmp_path / "none", "--out", tmp_path / "o.bin")
    done = lmtools_command(*words)
    assert done.returncode == 1
    assert not done.stdout
    assert done.stderr == f"lmtools corpus: {tmp_path}/none/subword.yaml: cannot read: No such file or directory; check the path\n"
    assert not list(tmp_path.iterdir())
    debugged = lmtools_command(*words, "--debug")
    assert debugged.returncode == 1
    assert "Traceback" in debugged.stderr
    assert "UserError" in debugged.stderr


def test_done_is_0(tmp_path):
    text = tmp_path / "t"
    text.write_text("le chat naïf\n", encoding="utf-8")
    done = lmtools_command(
        "subword", "--text", text, "--type", "char", "--out", tmp_path / "été", encoding="utf-8", env={"PYTHONIOENCODING": "latin-1"}
    )
    assert done.returncode == 0
    assert done.stdout.startswith(f"{tmp_path}/été: char vocabulary of 15 ids")
    assert not done.stderr


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (UserError("f:3: cause;\nremedy"), 1, "lmtools corpus: f:3: cause; remedy\n"),
        (OSError(errno.ENOSPC, "No space left on device", "f"), 1, "lmtools corpus: [Errno 28] No space left on device: 'f'\n"),
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
        "import sys; from lmtools import cli; from lmtools.verbs import corpus; corpus.arguments = lambda p: None\n"
        "corpus.run = lambda a: [print('x' * 1000) for _ in range(10000)] and None\nsys.exit(cli.main(['corpus']))"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
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
    done = subprocess.run([sys.executable, "-c", script, *TABLE_WING], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_working_verbs_of_the_table_wing_never_import_torch(tmp_path):
    (tmp_path / "t").write_text("a b c\n" * 20)
    script = (
        "import sys; from lmtools.cli import main; text, folder = sys.argv[1:]\n"
        "main(['subword', '--text', text, '--type', 'bpe', '--vocab-size', '12', '--out', f'{folder}/s'])\n"
        "main(['corpus', '--text', text, '--subword', f'{folder}/s', '--out', f'{folder}/t.bin'])\n"
        "sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "t"), str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "t.bin").exists()


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
