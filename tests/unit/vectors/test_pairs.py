"""Formats of sentence pairs: what each holds is given back, and what is wrong is named by its
line.
"""

import csv
import gzip
import hashlib
import lzma
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.base.errors import UserError
from lmtools.types import SentencePair
from lmtools.vectors.pairs import PAIRS, detect, read, write

STSB = (
    'main-news\tMSRpar\t2012train\t0001\t3.800\tHe said "no\tShe said'
    ' "no"\nforums\tanswers\t2015\t0002\t0\tA b\tC\thttp://x\t"y"\n'
)
GLUE = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2"
SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
RELEASE = "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tentailment_AB\tSemEval_set"  # noqa: E501
ONE_FILE = (
    f"{RELEASE}\n1\ta"
    " b\tc\tNEUTRAL\t4.5\tx\tTRAIN\n2\td\te\tNEUTRAL\t1\tx\tTEST\n3\tf\tg\tENTAILMENT\t2\tx\tTRAIN\n"  # noqa: E501
)
AB, DE, FG = SentencePair("a b", "c", 4.5), SentencePair("d", "e", 1.0), SentencePair("f", "g", 2.0)
QUOTED = [SentencePair('He said "no', 'She said "no"', 3.8), SentencePair("A b", "C", 0.0)]


@pytest.mark.parametrize(
    ("text", "spec", "recognised", "expected"),
    [
        (STSB, None, "stsb", QUOTED),
        (f"{GLUE}\tscore\n7\tg\tf\ty\t1\tnone\tnone\ta b\tc\t4.5\n", None, "glue", [AB]),
        (f"{GLUE}\n0\tg\tf\ty\t1\tnone\tnone\ta b\tc\n", None, "glue", [SentencePair("a b", "c")]),
        (f"{SICK}\n1\ta b\tc\t4.5\tNEUTRAL\n2\td\te\t1\tNEUTRAL\n", None, "sick", [AB, DE]),
        ("pair_ID\tsentence_A\tsentence_B\n1\ta b\tc\n", None, "sick", [SentencePair("a b", "c")]),
        (ONE_FILE, None, "sick", [AB, DE, FG]),
        (ONE_FILE, "sick:set=train", "sick", [AB, FG]),
        (ONE_FILE, "sick:set=test", "sick", [DE]),
        ("a b\tc\t4.5\nd\te\t1\n", None, "tsv", [AB, DE]),
        ("a b\tc\nd\te\n", None, "tsv", [SentencePair("a b", "c"), SentencePair("d", "e")]),
        # only LF ends a line
        (" a\u2028b \tc\r\t-1.5\n", None, "tsv", [SentencePair(" a\u2028b ", "c\r", -1.5)]),
    ],
)
@pytest.mark.parametrize("opened", [open, gzip.open, lzma.open])
def test_what_is_read(tmp_path, text, spec, recognised, expected, opened):
    path = tmp_path / f"pairs{ {open: '', gzip.open: '.gz', lzma.open: '.xz'}[opened] }"
    for variant in (text, "\ufeff" + text.replace("\n", "\r\n"), text.removesuffix("\n")):
        with opened(path, "wb") as stream:
            stream.write(variant.encode())
        assert read(path, spec) == expected
        if recognised:
            assert detect(path) == recognised
        else:
            with pytest.raises(
                UserError, match="could be anything; name its format: stsb, glue, sick, tsv"
            ):
                detect(path)


def test_text_of_another_encoding_is_refused(tmp_path):
    (tmp_path / "pairs").write_bytes("a\tb\t1\nc\tcafé\t2\n".encode("latin-1"))
    with pytest.raises(UserError, match="pairs:2: not UTF-8; write"):
        read(tmp_path / "pairs")


DRUMS = [("a man drums", "a man plays", "3.3"), ("a cat", "two dogs run", "0.2"),
         ("he eats", "he eats now", "4.75"), ("rain falls", "it rains", "5")]  # fmt: skip
LAID_OUT = {
    "eight columns": "main-captions\tMSRvid\t2012test\t{id:04}\t{row}\t{score}\t{left}\t{right}",
    "split before": "dev\tmain-news\tMSRpar\t2015\t{id:04}\t{score}\t{left}\t{right}",
    "similarity first": "{score}\t{left}\t{right}",
    "numbered": "{row}\t{left}\t{right}\t{score}",
    "sources": "news\tf\t2015\t{id}\t{score}\t{left}\t{right}\thttp://a\thttp://b",
}


def lay_out(path, line):
    rows = [
        line.format(left=left, right=right, score=score, row=row, id=3 * row)
        for row, (left, right, score) in enumerate(DRUMS, 1)
    ]
    path.write_text("".join(f"{row}\n" for row in rows))
    return path


@pytest.mark.parametrize("name", LAID_OUT)
def test_columns_are_known_by_what_they_hold(tmp_path, name):
    path = lay_out(tmp_path / "p", LAID_OUT[name])
    expected = [SentencePair(left, right, float(score)) for left, right, score in DRUMS]
    assert read(path) == read(path, "stsb") == expected


@pytest.mark.parametrize(
    ("line", "columns"),
    [
        ("{left}\t{right}\t{row}", "1 2"),
        ("{score}\t{left}\t{right}\t0.5", "2 3 1"),
        ("{left}\tx y z\t{right}\t{score}", "1,3,4"),
        ("{id}\t{left}\t{right}\t9{score}", "2 3 4"),
    ],
)
def test_other_columns_are_asked_for(tmp_path, line, columns):
    path = lay_out(tmp_path / "p", line)
    with pytest.raises(UserError, match=r"could be anything; .*--columns LEFT"):
        read(path)
    with pytest.raises(UserError, match=r"p:1: no column of similarities from 0 to 5 .*--columns"):
        read(path, "stsb")
    pairs = read(path, columns=columns.split())
    assert [(pair.left, pair.right) for pair in pairs] == [row[:2] for row in DRUMS]
    assert (pairs[0].similarity is None) == (columns == "1 2")


def test_columns_by_name_and_sets_by_column(tmp_path):
    path = tmp_path / "p"
    path.write_text("split\tsid\tscore\tsentence1\tsentence2\ndev\t1\t2\ta\tb\ntest\t2\t3\tc\td\n")
    ab, cd = SentencePair("a", "b", 2.0), SentencePair("c", "d", 3.0)
    assert read(path) == [ab, cd] and read(path, "glue:set=test") == [cd]
    assert read(path, columns=["sentence2", "sentence1", "sid"])[1] == SentencePair("d", "c", 2.0)
    for columns, cause in {
        "a sentence1": "p:1: the header names 0 columns 'a'", "1": "1 columns; name",
        "sentence1 sentence2 mean": "0 columns 'mean'", "4 5 6": "p:1: 5 fields; expected 6 or",
        "0 1": "from 1",
    }.items():  # fmt: skip
        with pytest.raises(UserError, match=cause):
            read(path, columns=columns.split())


words = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\t\n"), min_size=1, max_size=8
)
sentences = words.filter(
    lambda text: text.strip() and not text.endswith("\r") and not text.startswith("\ufeff")
)
finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("similarity", [finite, st.none()])
def test_round_trip(tmp_path_factory, similarity):
    """What is written is given back, and recognised."""

    @settings(max_examples=15, deadline=None)
    @given(
        st.lists(st.builds(SentencePair, sentences, sentences, similarity), min_size=1, max_size=4)
    )
    def check(pairs):
        path = tmp_path_factory.mktemp("p") / "pairs.gz"
        PAIRS.write(pairs, path, "tsv")
        assert detect(path) == "tsv" and read(path) == pairs

    check()


def test_what_is_written_by_default(tmp_path):
    write(iter([AB, DE]), tmp_path / "p")
    assert (tmp_path / "p").read_text() == "a b\tc\t4.5\nd\te\t1.0\n"


@pytest.mark.parametrize(
    ("pairs", "spec", "message"),
    [
        ([], "tsv", ": holds no sentence pair"),
        ([AB, SentencePair("x", "y")], "tsv", ": pair 2: has no similarity, unlike"),
        ([AB, SentencePair("x\ty", "y", 1)], "tsv", r": pair 2: 'x\ty' holds a tab, a line's end"),
        ([SentencePair("x", "y\nz", 1)], "tsv", r": pair 1: 'y\nz' holds a tab"),
        ([SentencePair("x", "y\r", 1)], "tsv", r": pair 1: 'y\r' holds a tab"),
        ([SentencePair("\ufeffx", "y", 1)], "tsv", r": pair 1: '\ufeffx' holds a tab"),
        (
            [SentencePair("x", "\ud83d", 1)],
            "tsv",
            r": pair 1: '\ud83d' holds half a surrogate pair",
        ),
        ([SentencePair("x", " ", 1)], "tsv", ": pair 1: the second sentence is empty"),
        ([SentencePair("x", "y", float("nan"))], "tsv", ": pair 1: the similarity is 'nan'"),
        ([AB], "stsb", ": stsb is a form that is read alone; write tsv"),
    ],
)
def test_what_cannot_be_written_leaves_the_old_file(tmp_path, pairs, spec, message):
    path = tmp_path / "p"
    path.write_text("old")
    with pytest.raises(UserError) as caught:
        PAIRS.write(pairs, path, spec)
    assert str(caught.value).startswith(f"{path}{message}") and "\n" not in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["p"] and path.read_text() == "old"


HERE = Path(__file__).resolve().parents[4] / "shared/data/sts"
published = pytest.mark.skipif(not HERE.is_dir(), reason="no STS Benchmark and no SICK")
RELEASED = {
    "sts-train.csv": ("stsb", 5749, (5, 6, 4)),
    "sts-dev.csv": ("stsb", 1500, (5, 6, 4)),
    "sts-test.csv": ("stsb", 1379, (5, 6, 4)),
    "SICK_train.txt": ("sick", 4500, (1, 2, 3)),
    "SICK_trial.txt": ("sick", 500, (1, 2, 3)),
    "SICK_test_annotated.txt": ("sick", 4927, (1, 2, 3)),
}


@published
@pytest.mark.parametrize("name", RELEASED)
def test_all_published_pairs(tmp_path, name):
    """Against Python's own reader of tables."""
    form, count, columns = RELEASED[name]
    path = HERE / f"{name}.xz"
    assert detect(path) == form
    pairs = read(path)
    with lzma.open(path, "rt", encoding="utf-8", newline="") as stream:
        rows = list(csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))[form == "sick" :]
    assert len(pairs) == len(rows) == count
    assert [(pair.left, pair.right) for pair in pairs] == [
        tuple(row[column] for column in columns[:2]) for row in rows
    ]
    assert math.fsum(pair.similarity for pair in pairs) == pytest.approx(
        math.fsum(float(row[columns[2]]) for row in rows), abs=0
    )
    assert all(0 <= pair.similarity <= 5 for pair in pairs)
    write(pairs, tmp_path / "p")
    assert read(tmp_path / "p") == pairs and detect(tmp_path / "p") == "tsv"


@published
def test_quotes_are_letters():
    """A reader that takes them for csv's joins lines; some sentences have one that never closes."""
    pairs = read(HERE / "sts-train.csv.xz")
    assert sum((pair.left + pair.right).count('"') % 2 for pair in pairs) > 0


MINI = Path(__file__).parents[3] / "egs/stsb/mini"


def test_checksums_and_size_of_the_embedded_corpus():
    """The files of egs/stsb are those that its README tells of."""
    lines = [line.split() for line in (MINI / "SHA256SUMS").read_text().splitlines()]
    assert {name.lstrip("*") for _, name in lines} == {path.name for path in MINI.glob("*.xz")}
    for expected, name in lines:
        assert hashlib.sha256((MINI / name.lstrip("*")).read_bytes()).hexdigest() == expected
    assert sum(path.stat().st_size for path in MINI.iterdir()) < 1.6e6
