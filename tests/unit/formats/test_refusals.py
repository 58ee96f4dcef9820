"""What readers refuse, and what writers do: one line that says where, why and what to do."""

import math
from pathlib import Path

import pytest
import yaml
from fuzz import targets

from lmtools.base.errors import UserError
from lmtools.formats import FORMATS
from lmtools.types import Hypothesis, NBest

TARGETS = targets()
WORDS = "<eps> 0\nblue 412\nfinch 77\nßing 5\n"
GROUPS = yaml.safe_load(Path(__file__).with_name("refusals.yaml").read_text(encoding="utf-8"))
READ = [
    (
        group["spec"],
        group.get("name", ""),
        group.get("file", "%s"),
        case,
        group.get("says", "") + says,
    )
    for group in GROUPS
    if group["spec"].partition(":")[0] in TARGETS  # its door is there
    for *case, says in group["cases"]
]
LIST = '{"utt": "a", "hyps": [{"text": "x", "scores": {"am": %s}}]}'
# texts that a file of cases has no room for
LONG = [
    ("hyporadise", "h.json", "%s", ["[" * 100000], ": n"),
    ("jsonl", "n.jsonl", "%s", ["[" * 100000], ":1: n"),
    ("jsonl", "n.jsonl", LIST, ["1" + "0" * 9000], ":1: "),
    ("jsonl", "n.jsonl", LIST, ["1" + "0" * 400], ":1: hypothesis 1: score 'am' is 1" + "0" * 39),
    ("icefall", "f", "%s", ["b-0:\thyp=" + "[" * 5000], f":1: '{'[' * 40}' is not a list of words"),
]


def one(text="x", utt="a", extra=None, **scores):
    return NBest(utt, (Hypothesis(text, scores, extra or {}),))


BESIDE = one(utt="b")
# (formats, lists, what is said)
# fmt: off
WRITE = [
    ("jsonl", [NBest("a", ()), NBest("a", ())], "second time"),
    ("jsonl kaldi-text", [one(utt="a b")], "white space"),
    ("jsonl kaldi-text", [one(utt="")], "is empty"),
    ("kaldi-text", [one(utt="a\tb")], "white"), ("kaldi-text", [one(utt="a\u2028b")], "white"),
    ("kaldi-text", [one(utt="\ufeffa")], "byte-order mark"),
    ("jsonl", [one(am=math.nan)], "is nan"), ("jsonl", [one(am=math.inf)], "is inf"),
    ("jsonl", [one(**{"a m": 1.0})], "score name"), ("jsonl", [one("\ud800")], "surrogate"),
    ("jsonl", [NBest("b", (), "\udfff")], "surrogate"),
    ("jsonl", [NBest("b", (*one(am=1.0).hyps, *one().hyps))], "hypothesis 2 has scores (none)"),
    ("trn ctm kaldi-text", [NBest("a", one().hyps * 2)], "more; cut the lists with --depth 1"),
    ("ctm", [one(utt=";;a")], "starts a comment"), ("ctm", [one("<ALT_END>")], "is markup"),
    ("trn", [one(utt="a(b")], "'a(b'"), ("trn", [one(utt="a)")], "'a)'"),
    ("trn", [one("{ x }")], "markup"), ("trn", [one("x @")], "markup"),
    ("trn", [one(utt="a b")], "white space"),
    ("hyporadise", [one(am=-1.0, lm=-2.0)], "'a': has the scores am, lm"),
    ("kaldi-nbest:words_text", [one(am=1.0)], "scores am, and this format holds none"),
    *(("kaldi-nbest", [one(**{name: 1.0})], "no place in Kaldi's archives")
      for name in ("withlm", "nolm", "a/b", "a.gz", ".scp", "x" * 70, "a\0b")),
    ("kaldi-nbest", [one(extra={"ali": "1 x"})], "expected integers"),
    ("moses marian", [one("a ||| b")], "&#124;"), ("moses", [one("a", **{"x|||y": 1})], "&#124;"),
    ("moses", [NBest("zed", ())], "utterance 'zed': has no hypothesis"),
    ("srilm", [one(d0=-1.0), BESIDE], "has scores (none), earlier ones d0"),
    ("srilm", [one(d0=-1.0), one(utt="b", d0=-1.0)], "utterance 'a': has the scores d0"),
    *(("srilm", [one(utt=utt, am=-1.0), one(utt="c", am=-1.0)], "cannot name a file; rename it")
      for utt in ("a/b", "a\0b", "b\x1b[2J", ".b", "b" * 300)),
]
# fmt: on


@pytest.mark.parametrize(
    ("spec", "name", "file", "case", "says"),
    [pytest.param(*row, id=f"{row[0]}-{str(row[3])[:60]}") for row in READ + LONG],
)
def test_refuses_to_read(tmp_path, spec, name, file, case, says):
    (tmp_path / "words.txt").write_text(WORDS, encoding="utf-8")
    path = laid(tmp_path / "in", name, file, case)
    with pytest.raises(UserError) as caught:
        TARGETS[spec.partition(":")[0]].read(path, spec.replace("{}", str(tmp_path)))
    message = str(caught.value)
    assert message.removeprefix(str(path)).replace(f"{tmp_path}/in/", "").startswith(says)
    assert "; " in message and "\n" not in message


def laid(home, name: str, file, case):
    """A file or directory as refusals.yaml says; `systems`: paths with commas."""
    home.mkdir()
    if isinstance(file, str):
        assert len(case) == 1 or case[0] in file
        content = file.replace(*case) if len(case) == 2 else file % tuple(case)
        (home / name).write_bytes(content.encode("utf-8", "surrogateescape"))
        return home / name
    files = file | dict(zip(case[::2], case[1::2], strict=True))
    for inner, content in files.items():
        if content is not None:
            (home / inner).parent.mkdir(exist_ok=True)
            (home / inner).write_text(content)
    return home if file else ",".join(str(home / inner) for inner in files)


@pytest.mark.parametrize(
    ("spec", "nbests", "said"),
    [(spec, nbests, said) for specs, nbests, said in WRITE for spec in specs.split()],
)
def test_refuses_to_write(tmp_path, spec, nbests, said):
    name, _, place = spec.partition(":")
    with pytest.raises(UserError) as caught:
        FORMATS[name].write(nbests, str(tmp_path / (place or "out")))
    assert said in str(caught.value) and "; " in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["jsonl", "hyporadise", "moses", "ctm", "trn"])
def test_a_refused_list_leaves_the_old_file(tmp_path, name):
    path = tmp_path / "old"
    path.write_text("old")
    with pytest.raises(UserError):
        FORMATS[name].write([one(), one(utt="b c")], path)
    assert path.read_text() == "old" and [child.name for child in tmp_path.iterdir()] == ["old"]
