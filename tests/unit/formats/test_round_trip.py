"""What each format of N-best lists can hold comes back as it was, and a second time to the byte;
what is special about a format is in its own file.
"""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmtools.formats import FORMATS, registry
from lmtools.types import TOTAL, Hypothesis, NBest


def letters(exclude: str = "", kinds=("Cs", "Z", "Cc"), size: int = 6):
    """Texts without white space, as ids are."""
    characters = st.characters(exclude_categories=kinds, exclude_characters="\ufeff" + exclude)
    return st.text(characters, min_size=1, max_size=size)


def joined(text: str) -> str:
    """`text` with single spaces."""
    return " ".join(text.split())


IDS = letters()
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufeff"), max_size=12)
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
AM = st.sampled_from([(), ("am",)])
NONE = st.just(())
NO_REF = st.none()


def rows(words, most: int = 3):
    return st.lists(words, max_size=most).map(" ".join)


def extras(required=None, **optional):
    """What hypotheses keep of a format besides: all of them these, or none anything."""
    return [st.just({}), st.fixed_dictionaries(required or {}, optional=optional)]


@st.composite
def lists(draw, ids=IDS, texts=ANY, names=AM, extra=None, ref=NO_REF, bare_ref=None, **sizes):
    """Lists of equal score names; `bare_ref`: references of lists without hypotheses."""
    scores = st.fixed_dictionaries(dict.fromkeys(draw(names), sizes.pop("floats", FLOATS)))
    kept = draw(st.sampled_from(extra)) if extra else st.just({})
    made = st.lists(st.builds(Hypothesis, texts, scores, kept), **{"max_size": 3, **sizes}).map(
        tuple
    )
    found = []
    for utt in draw(st.lists(ids, unique=True, max_size=3)):
        hyps = draw(made)
        found.append(NBest(utt, hyps, draw(ref if hyps or bare_ref is None else bare_ref)))
    return found


@st.composite
def timed(draw):
    """Lists of one text, some with times of its words."""
    plain = letters().filter(lambda word: not word.startswith(("<ALT", ";;")))
    numbers = st.floats(0, 1e300).map(repr)
    found = []
    for utt in draw(st.lists(plain, unique=True, max_size=3)):
        row, channel = draw(st.lists(plain, max_size=4)), draw(letters())
        ends = st.sampled_from([(), ("0.9",), ("NA",)])
        starts = [repr(start) for start in sorted(float(draw(numbers)) for _ in row)]
        times = [" ".join((channel, start, draw(numbers), *draw(ends))) for start in starts]
        extra = {"times": "\n".join(times)} if row and draw(st.booleans()) else {}
        found.append(NBest(utt, (Hypothesis(" ".join(row), {}, extra),)))
    return found


def named_am(nbest: NBest) -> NBest:
    """The list without extras, a total that stands alone called `am`, as Moses has it."""
    hyps = []
    for hyp in nbest.hyps:
        scores = dict(hyp.scores)
        if TOTAL in scores and "am" not in scores:
            scores["am"] = scores.pop(TOTAL)
        hyps.append(Hypothesis(hyp.text, scores))
    return NBest(nbest.utt, tuple(hyps))


def single_spaced(nbest: NBest) -> NBest:
    return replace(nbest, hyps=tuple(replace(hyp, text=joined(hyp.text)) for hyp in nbest.hyps))


def bare(nbest: NBest, close=dict) -> tuple:
    """The list without extras, for formats whose units cost the last digits."""
    return nbest.utt, nbest.ref, [(hyp.text, close(hyp.scores)) for hyp in nbest.hyps]


def closely(nbest: NBest) -> tuple:
    """What equals `bare` of a list with about these scores."""
    return bare(nbest, lambda scores: pytest.approx(dict(scores), rel=1e-14))


def same(nbest: NBest) -> NBest:
    return nbest


PLAIN = letters(kinds=("Cs", "Z", "C"), size=5)
NAMES = st.sets(IDS.filter(lambda name: "=" not in name), max_size=3)
KALDI = st.sets(st.sampled_from(["am", "graph", "lm", "nn", TOTAL, "ö.1"]))
FEATURES = [*("LM0", "TM0_0", "TM0_1", "TM0_2", "TM0", "x_1", "x_0", "x_0_0", "x_0_1", "am", TOTAL),
            *("é:", "system:a", "5")]  # fmt: skip
INTEGERS = rows(st.integers(0, 10**9).map(str))
MOSES = lists(letters(exclude="|"), ANY.map(lambda text: joined(text.replace("|||", ""))),
              st.sets(st.sampled_from(FEATURES), max_size=5), min_size=1)  # fmt: skip
FILED = IDS.filter(lambda utt: "/" not in utt and not utt.startswith("."))
# (formats, paths, lists, what of them comes back)
TRIPS = [
    (["jsonl"], ["n.jsonl", "n.jsonl.gz", "n.jsonl.xz"],
     lists(names=NAMES, ref=NO_REF | ANY), same),
    (["ctm"], ["h.ctm"], timed(), same),
    (["espnet2"], ["d"],
     lists(PLAIN, rows(PLAIN), AM | st.sampled_from([("am", "decoder", "ctc"), ("lm.2", "é-x")]),
           extras(token=rows(PLAIN), token_int=rows(PLAIN)), min_size=1)
     .filter(bool), same),
    (["hyporadise"], ["n.json", "n.json.gz"], lists(ref=NO_REF | ANY), same),
    (["hyporadise:score=-score"], ["n.json"],
     lists(names=st.just(("am",)), ref=NO_REF | ANY, min_size=1), same),
    (["kaldi-nbest"], ["d"],
     lists(PLAIN, rows(PLAIN), KALDI, extras({"ali": INTEGERS}, words=INTEGERS), min_size=1), same),
    (["kaldi-nbest"], ["ark:{}/a", "ark,t:{}/a", "words_text", "words_text.gz"],
     lists(PLAIN, rows(PLAIN), NONE, min_size=1), same),
    (["kaldi-text"], ["text"], lists(names=NONE, min_size=1, max_size=1), single_spaced),
    (["moses:gaps=skip", "marian:gaps=skip"], ["n"], MOSES, named_am),
    (["srilm"], ["lists"],
     lists(FILED, ANY.map(joined), st.just(("am", "lm")), floats=st.floats(-1e300, 1e300))
     .filter(bool).map(lambda found: sorted(found, key=lambda nbest: nbest.utt)), bare),
]  # fmt: skip


@pytest.mark.parametrize(
    ("specs", "paths", "strategy", "kept"), TRIPS, ids=[f"{t[0][0]}-{t[1][0]}" for t in TRIPS]
)
def test_round_trip(tmp_path_factory, specs, paths, strategy, kept):
    @settings(max_examples=40, deadline=None)
    @given(strategy, st.sampled_from(specs), st.sampled_from(paths))
    def check(nbests, spec, name):
        home = tmp_path_factory.mktemp("trip")
        form = registry.find_format(spec, FORMATS)
        path, again = (
            name.replace("{}", str(place)) if "{}" in name else place / name
            for place in (home / "first", home / "again")
        )
        for place in ("first", "again"):
            (home / place).mkdir()
        form.write(nbests, path)
        found = list(form.read(path))
        found = sorted(found, key=lambda nbest: nbest.utt) if spec == "srilm" else found
        assert list(map(kept, found)) == list(map(closely if kept is bare else kept, nbests))
        form.write(found, again)
        assert contents(home / "again") == contents(home / "first") or kept is bare
        assert {nbest.utt: nbest for nbest in form.read(again)} == {n.utt: n for n in found}

    check()


def contents(home) -> dict:
    """The files below a directory; compressed ones by their names alone, as they hold times."""
    files = (path for path in sorted(home.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(home)): path.suffix in (".gz", ".xz") or path.read_bytes()
        for path in files
    }
