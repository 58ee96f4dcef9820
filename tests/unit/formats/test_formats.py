import pytest

from lmtools.errors import UserError
from lmtools.formats import FORMATS, detect, lists, read
from lmtools.types import Hypothesis, NBest

LISTS = [NBest("s_a", (Hypothesis("x y"), Hypothesis("x")), "x y"), NBest("s_b", (Hypothesis(""),), "z")]
ONE_BEST = [NBest("s_a", (Hypothesis("x y"),)), NBest("s_b", (Hypothesis(""),))]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_writes_and_reads_one_best(tmp_path, name):
    FORMATS[name].write(ONE_BEST, tmp_path / "f")
    assert FORMATS[name].read(tmp_path / "f") == ONE_BEST
    assert FORMATS[name].about


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("n.jsonl", "broken", "jsonl"),
        ("n.jsonl.gz", None, "jsonl"),
        ("lists.txt", '{"utt": "a", "hyps": []}', "jsonl"),
        ("h.trn", "x (a)", "trn"),
        ("text", "a x", None),
        ("text", "a x (laughter)", None),
        ("other.json", '{"utts": {}}', None),
        ("empty", "", None),
    ],
)
def test_detect(tmp_path, file, content, expected):
    path = tmp_path / file
    path.write_text(content) if content is not None else FORMATS["jsonl"].write(LISTS, path)
    if expected:
        assert detect(path) == expected == detect(path, default="kaldi-text")
    else:
        assert detect(path, default="kaldi-text") == "kaldi-text"
        with pytest.raises(UserError, match="--from: jsonl, espnet2"):
            detect(path)


def test_detect_finds_directories_and_leaves_standard_input(tmp_path):
    FORMATS["espnet2"].write(ONE_BEST, tmp_path / "d")
    assert detect(tmp_path / "d") == "espnet2"
    assert read(tmp_path / "d") == ONE_BEST
    with pytest.raises(UserError, match="standard input"):
        detect("-")


@pytest.mark.parametrize("name", [name for name, form in FORMATS.items() if not form.lists])
def test_formats_of_one_text_refuse_longer_lists(tmp_path, name):
    with pytest.raises(UserError, match="'s_a' has more; cut the lists with --depth 1"):
        FORMATS[name].write(LISTS, tmp_path / "f")
    assert not list(tmp_path.iterdir())


def test_attach_joins_by_id():
    attached = lists.attach(LISTS, {"s_b": "two", "s_a": "one"}, "n", "r")
    assert [(nbest.utt, nbest.ref, nbest.hyps) for nbest in attached] == [("s_a", "one", LISTS[0].hyps), ("s_b", "two", LISTS[1].hyps)]


@pytest.mark.parametrize(
    ("refs", "message"),
    [
        ({"s_a": "x"}, "r: 1 of 2 utterances in n have no reference \\(first 's_b'\\); make"),
        ({"s_a": "", "s_b": "", "c": ""}, "r: 1 of 3 references have no list \\(first 'c'\\); make"),
        ({"s_A": "x", "s_B": "x"}, "r: 2 of 2 utterances in n .*first 's_a'.*, 2 of 2 references .*first 's_A'"),
    ],
)
def test_attach_refuses_ids_that_differ(refs, message):
    with pytest.raises(UserError, match=message):
        lists.attach(LISTS, refs, "n", "r")


def test_cut_and_dedup():
    hyps = tuple(Hypothesis(text, {"am": -float(rank)}) for rank, text in enumerate(["a b", "c", "a  b ", "", " ", "c"]))
    kept = lists.dedup([NBest("u", hyps, "r")])
    assert kept == [NBest("u", (hyps[0], hyps[1], hyps[3]), "r")]
    assert lists.cut(kept, 2) == [NBest("u", hyps[:2], "r")]
    assert lists.cut(kept, 9) == kept
