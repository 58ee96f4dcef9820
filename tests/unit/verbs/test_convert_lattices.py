"""`lmtools convert` of lattices: from one format to another and back, and what it refuses."""

import dataclasses

import pytest
from lattices import random_lattice, sentences
from needs import needs

from lmtools.cli import main
from lmtools.formats import lattices
from lmtools.types import Lattice

WORDS = ("Blue", "finch", "naïve")
SUMMED = {"am": 1.0}

FOR_LISTS = (
    "l: references, --depth, --dedup, --drop-marks, --detokenise and --case"
    " sentence are for N-best lists"
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory with four lattices of one score as SLF (`l`), and Kaldi's words.txt."""
    monkeypatch.chdir(tmp_path)
    drawn = [
        dataclasses.replace(random_lattice(seed, words=WORDS), utt=f"u{seed}")
        for seed in range(40, 44)
    ]
    lattices.write([only_am(lattice) for lattice in drawn], "l", "slf")
    (tmp_path / "words.txt").write_text(
        "".join(f"{word} {i}\n" for i, word in enumerate(["<eps>", *WORDS]))
    )
    return tmp_path


def only_am(lattice: Lattice) -> Lattice:
    """The lattice without its score `lm`."""
    scores, final_scores = (
        {"am": columns["am"]} for columns in (lattice.scores, lattice.final_scores)
    )
    return dataclasses.replace(lattice, scores=scores, final_scores=final_scores)


def convert(capsys, *arguments):
    """The exit status and what was said."""
    status = main(["convert", *arguments])
    return status, capsys.readouterr().err


@pytest.mark.parametrize(
    ("to", "out"),
    [
        ("kaldi", "o.ark"),
        ("kaldi", "ark,t:o.ark"),
        ("openfst", "o"),
        ("plf", "o.plf"),
        ("slf", "o"),
    ],
)
def test_there_and_back(here, capsys, to, out):
    status, said = convert(capsys, "l", out, "--to", to)
    first = lattices.read("l")
    assert (
        status == 0
        and said == f"{out}: 4 lattices, {sum(len(lattice.words) for lattice in first)} arcs\n"
    )
    source = [] if to == "kaldi" and "," not in out else ["--format", to]
    assert convert(capsys, out, "back", *source)[0] == 0
    for old, new in zip(first, lattices.read("back"), strict=True):
        assert new.utt == old.utt or to == "plf"  # which numbers its lines
        found = sentences(new, dict.fromkeys(new.scores, 1.0))
        assert found == pytest.approx(sentences(old, SUMMED), abs=2e-3)


def test_lattices_become_slf_unless_said_and_cases_change(here, capsys):
    assert convert(capsys, "l", "o", "--case", "lower")[0] == 0
    for old, new in zip(lattices.read("l"), lattices.read("o", "slf"), strict=True):
        lowered = {tuple(map(str.lower, words)) for words in sentences(old, SUMMED)}
        assert set(sentences(new, SUMMED)) == lowered
        assert [word is None for word in new.words] == [word is None for word in old.words]


def test_formats_with_options(here, capsys):
    """Word ids instead of words, with the table of Kaldi under another name."""
    (here / "words.txt").rename("table")
    assert convert(capsys, "l", "o", "--to", "openfst:symbols=table")[0] == 0
    words = (here / "o" / "u40.fst.txt").read_text().split()
    assert not set(words) & set(WORDS)
    assert (
        convert(
            capsys, "o", "ark,t:-", "--format", "openfst:symbols=table", "--to", "kaldi:words=table"
        )[0]
        == 0
    )
    assert convert(capsys, "o", "back", "--format", "openfst:symbols=table")[0] == 0
    assert [set(sentences(a, SUMMED)) for a in lattices.read("back")] == [
        set(sentences(a, SUMMED)) for a in lattices.read("l")
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "l o --to jsonl",
            (
                "l: format slf holds lattices, jsonl does not; take lists from lattices with"
                " `lmtools lattice nbest`"
            ),
        ),
        ("l o --to nix", "nix: no such format; known are jsonl, "),
        ("l o --format nix", "nix: no such format; known are jsonl, "),
        ("l o --to slf:x=1", "slf:x=1: format 'slf' takes no option 'x'"),
        ("l o --depth 3", FOR_LISTS),
        ("l o --case sentence", FOR_LISTS),
        ("l o --ref words.txt", FOR_LISTS),
        ("l o.slf", "o.slf: holds one lattice, and there are more"),
        pytest.param(
            "l o --to wcn", "o: utterance 'u40': is no confusion network", marks=needs("networks")
        ),
        ("l o.ark --to kaldi --case upper", "o.ark: utterance 'u40': word "),
        ("l o/o.ark --to kaldi", "o/o.ark: no words.txt beside it; name it as kaldi:words=FILE"),
        ("l o.ark --to kaldi:words=none", "none: cannot read"),
        ("ark:none o", "none: cannot read"),
        ("ark:none o --format kaldi", "none: cannot read"),
        ("- o", "standard input is not looked into; name its format: jsonl, "),
        ("none o", "none: cannot read: No such file or directory"),
        ("empty.plf o --format plf", "empty.plf: no lattices; give the recogniser's"),
        ("hollow o --format slf", "hollow: no lattices; give the recogniser's"),
        (
            "cycle.slf o.plf --to plf",
            "cycle: cycle through state 1; cut it with lmtools lattice info --repair",
        ),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(here, capsys, arguments, message):
    (here / "empty.plf").write_text("")
    (here / "hollow").mkdir()
    arcs = "".join(
        f"J={j} S={s} E={e} W=a a=-1\n" for j, (s, e) in enumerate([(0, 1), (1, 2), (2, 1), (2, 3)])
    )
    (here / "cycle.slf").write_text(
        f"VERSION=1.0\nstart=0 end=3\nN=4 L=4\nI=0\nI=1\nI=2\nI=3\n{arcs}"
    )
    before = sorted(here.iterdir())
    status, said = convert(capsys, *arguments.split())
    assert (
        status == 1 and said.count("\n") == 1 and said.startswith(f"lmtools convert: {message}")
    ), said
    assert sorted(here.iterdir()) == before
