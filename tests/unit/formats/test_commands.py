"""Data never acts: names that were found are files, and lines of script files run nothing unless
the user says so.
"""

import io
import os
import subprocess
import sys

import pytest

from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats import detect, kaldi_tables, read
from lmtools.formats.lattices import read as read_lattices

WORDS = "<eps> 0\nblue 1\n"
TEXT, COSTS = "a-1 blue\n", "a-1 -3\n"
JSONL = '{"utt": "a", "hyps": [{"text": "blue", "scores": {"am": -1}}]}\n'
LATTICE = "a \n0\t1\t1\t1,1,\n1\t0,0,\n\n"


def touch(name="canary"):
    return f"touch {name}"


HOSTILE = {  # what lies in a directory that somebody sends
    "a pipe in acwt.scp": {"words_text": TEXT, "acwt.scp": f"a-1 {touch()}; echo -3 |\n"},
    "a pipe in words_text.scp": {"words_text.scp": f"a-1 {touch()}; echo blue |\n", "acwt": COSTS},
    "a pipe in lmwt.x.scp": {"words_text": TEXT, "acwt": COSTS, "lmwt.x.scp": f"a-1 {touch()} |\n"},
    "a score's name is a pipe": {"words_text": TEXT, "acwt": COSTS, f"lmwt.x {touch()} |": COSTS},
    "a score's name is a pipe at its start": {
        "words_text": TEXT,
        "acwt": COSTS,
        f"lmwt.| {touch()}": COSTS,
    },
    "a job's name": {
        "archives.1/words_text": TEXT,
        f"archives.1/lmwt.; {touch()} |": COSTS,
        "archives.1/acwt": COSTS,
    },
    "SRILM lists that are pipes": {"a": "-1 -1 1 blue\n", f"{touch()} |": "-1 -1 1 blue\n"},
    "SRILM lists that are specifiers": {
        "a": "-1 -1 1 blue\n",
        f"ark:{touch()} |": "-1 -1 1 blue\n",
        "-": "-1 -1 1 blue\n",
    },
    "lattices that are pipes": {
        "words.txt": WORDS,
        "lat.1": LATTICE,
        f"lat.2 {touch()} |": LATTICE,
        f"{touch()} |": "x",
    },
    "SLF that is a pipe": {
        "a.slf": "VERSION=1.0\nN=2 L=1\nI=0\nI=1\nJ=0 S=0 E=1 W=blue\n",
        f"ark:{touch()} |.slf": "N=1 L=0\nI=0\n",
    },
    "systems that are pipes": {f"{touch()} |": "blue\n", f"scp:{touch()} |": "blue\n"},
}


def laid(home, files):
    for name, content in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(content)
    return home


def run(*words):
    """Exit status and what a verb said, whatever it is."""
    try:
        return main([str(word) for word in words])
    except SystemExit as error:
        return error.code


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty directory to stand in, outside the data; standard input ends at once."""
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    return tmp_path / "home"


@pytest.mark.parametrize("attack", HOSTILE)
@pytest.mark.parametrize("inside", [False, True])
def test_nothing_in_a_directory_is_run(tmp_path, home, monkeypatch, attack, inside):
    place = laid(tmp_path / "data", HOSTILE[attack])
    if inside:
        monkeypatch.chdir(place)
        place = "."
    formats = ("kaldi", "kaldi-nbest", "srilm", "systems", "espnet2")
    commands = [["convert", place, home / name, "--format", name] for name in formats]
    commands += [
        ["doctor", "--nbest", place],
        ["convert", place, home / "o"],
        ["lattice", "info", place],
    ]
    for command in [*commands, ["score", "--nbest", place, "--lm", "none", "--out", home / "s"]]:
        assert run(*command) in (0, 1)
    assert not list(tmp_path.rglob("canary*"))


PIPES = [
    "touch canary |",
    "| touch canary",
    "ark:touch canary |",
    "ark,t:| touch canary",
    "scp:touch canary |",
]
NAMES = [*PIPES, "x.plf|", "words_text|", "-"]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_read_whatever_its_name(home, name):
    """As `lmtools convert *` gives it: the name of a file that is there means that file."""
    (home / name).write_text(JSONL)
    path = name if name != "-" else home / name
    assert [nbest.utt for nbest in read(path, "jsonl")] == ["a"]
    assert detect(path) == "jsonl"
    assert os.listdir(home) == [name]


@pytest.mark.parametrize("name", NAMES)
def test_a_table_is_read_whatever_its_name(home, name):
    (home / name).write_text(COSTS)
    path = home / name
    assert [
        (key, value) for key, value, _ in kaldi_tables.read_values(path.relative_to(home), "float")
    ] == [("a-1", -3.0)]
    assert os.listdir(home) == [name]


@pytest.mark.parametrize("name", NAMES)
def test_a_table_is_written_whatever_its_name(home, name):
    with kaldi_tables.Writer(home.joinpath(name).relative_to(home)) as out:
        out.write("a", "x")
    assert os.listdir(home) == [name] and (home / name).read_text() == "a x\n"


def test_a_pipe_is_only_what_a_specifier_says(home):
    """A bare name with a bar is a file; nothing but `ark:` and `scp:` runs a command."""
    for name in ("touch canary |", "echo a 1 |"):
        with pytest.raises(UserError, match="cannot read"):
            list(kaldi_tables.read_values(name, "float"))
    with kaldi_tables.Writer("| touch canary") as out:
        out.write("a", "x")
    assert os.listdir(home) == ["| touch canary"]
    assert [
        value for _, value, _ in kaldi_tables.read_values("ark:touch canary; echo a 1 |", "float")
    ] == [1.0]
    assert sorted(os.listdir(home)) == ["canary", "| touch canary"]


@pytest.mark.parametrize(
    "line", ["a touch canary; echo 1 |", "a touch canary |  ", "a\ttouch canary|"]
)
@pytest.mark.parametrize(
    "spec", ["scp:words_text.scp", "words_text.scp", "scp:cat words_text.scp |"]
)
def test_commands_in_script_files_need_the_option(home, capsys, line, spec):
    (home / "words_text.scp").write_text(f"{line}\n")
    assert run("convert", spec, "o", "--format", "kaldi-nbest") == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert ":1: " in said and "--allow-commands" in said and "; " in said
    assert os.listdir(home) == ["words_text.scp"]


def test_commands_in_script_files_run_with_the_option(home, capsys):
    (home / "s.scp").write_text("a-1 touch canary; echo blue |\n")
    assert run("convert", "scp:s.scp", "o", "--format", "kaldi-nbest", "--allow-commands") == 0
    assert sorted(os.listdir(home)) == ["canary", "o", "s.scp"]
    (home / "canary").unlink()
    # the option lasts for one command
    assert run("convert", "scp:s.scp", "o", "--format", "kaldi-nbest") == 1
    assert not (home / "canary").exists()
    (home / "l.scp").write_text("a printf '\\n0\\t1\\t1\\t1,1,\\n1\\t0,0,\\n\\n' |\n")
    (home / "words.txt").write_text(WORDS)
    assert run("lattice", "info", "scp:l.scp", "--allow-commands") == 0
    assert run("--allow-commands", "lattice", "info", "scp:l.scp") == 2
    assert run("lattice", "--allow-commands", "info", "scp:l.scp") == 0


def test_lines_of_script_files_are_names_of_files(home, monkeypatch):
    """No specifier, no standard input, no device in them."""
    for name in ("ark:x", "-", "scp:y"):
        (home / name).write_text("3\n")
        (home / "s.scp").write_text(f"a {name}\n")
        assert [value for _, value, _ in kaldi_tables.read_values("scp:s.scp", "float")] == [3.0]
    os.mkfifo(home / "pipe")
    for name in ("pipe", "/dev/zero", "/dev/stdin"):
        (home / "s.scp").write_text(f"a {name}\n")
        with pytest.raises(UserError, match=r"s\.scp:1: .* is no regular file; "):
            list(kaldi_tables.read_values("scp:s.scp", "float"))


def test_pipes_and_devices_in_a_directory_are_left_alone(home):
    """Else reading them would never end."""
    laid(home / "lists", {"a": "-1 -1 1 blue\n"})
    laid(home / "lattices", {"a.slf": "VERSION=1.0\nN=2 L=1\nI=0\nI=1\nJ=0 S=0 E=1 W=blue\n"})
    laid(home / "decode", {"lat.1": LATTICE, "words.txt": WORDS})
    laid(home / "systems", {"x": "blue\n"})
    for name in ("lists/b", "lattices/b.slf", "decode/lat.2", "systems/b"):
        os.mkfifo(home / name)
    assert [nbest.utt for nbest in read("lists")] == ["a"] and len(read("systems", "systems")) == 1
    assert (
        [lattice.utt for lattice in read_lattices("lattices")]
        == ["a"]
        == [lattice.utt for lattice in read_lattices("decode")]
    )


def test_every_verb_has_the_option():
    done = subprocess.run(
        [sys.executable, "-m", "lmtools", "tune", "--help-all"], capture_output=True, text=True
    )
    assert "--allow-commands" in done.stdout
