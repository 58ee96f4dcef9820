"""Every check has a set of files that it, and of its kind only it, complains of; a sound set passes
them all.
"""

import dataclasses
import json
from pathlib import Path
from shlex import split

import numpy as np
import pytest

from lmtools.cli import main
from lmtools.evaluate.doctor import CHECKS, ERROR, HINT, examine, read_inputs
from lmtools.evaluate.doctor.inputs import WARNING
from lmtools.evaluate.doctor.scores import find_outliers
from lmtools.formats import jsonl
from lmtools.types import Hypothesis, NBest

SPEECH = "the old king said unto his men go up and take it's all we have seen before now"
WORDS = SPEECH.split()


def sentences(count, seed):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(2, 12))) for _ in range(count)]


def lists(count=40, depth=4, seed=0):
    """Sound lists: sorted by am + 5 lm, natural logs that grow with length."""
    rng = np.random.default_rng(seed)
    made = []
    for number, ref in enumerate(sentences(count, seed)):
        words = ref.split()
        texts = dict.fromkeys(
            [
                ref,
                *(
                    " ".join([*words[:i], str(rng.choice(WORDS)), *words[i:]])
                    for i in rng.integers(0, len(words), 9)
                ),
            ]
        )
        hyps = [(text, len(text.split())) for text in texts][:depth]
        hyps = [
            Hypothesis(
                t, {"am": -90.0 * n - rng.uniform(0, 40), "lm": -4.0 * n - rng.uniform(0, 5)}
            )
            for t, n in hyps
        ]
        made.append(
            NBest(
                f"u{number}",
                tuple(sorted(hyps, key=lambda h: -h.scores["am"] - 5 * h.scores["lm"])),
                ref,
            )
        )
    return made


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jsonl.write(lists(), "n.jsonl")
    Path("ref").write_text("".join(f"{nbest.utt} {nbest.ref}\n" for nbest in lists()))
    Path("text").write_text("\n".join(sentences(200, 1)) + "\n")
    return tmp_path


def found(**options):
    """Findings of `n.jsonl` by check."""
    inputs = read_inputs("n.jsonl", **options)
    return {name: findings for name, check in CHECKS.items() if (findings := list(check(inputs)))}


def only(check, level, place, cause, remedy="", also=(), **options):
    """Assert that `check` has one finding of this kind, others but `also` none."""
    by_check = found(**options)
    assert by_check.keys() - also == {check}, by_check
    (finding,) = by_check[check]
    assert (finding.level, finding.place) == (level, place), finding
    assert cause in finding.cause and remedy in finding.remedy, finding


def edit(change, keep=lambda row: True):
    """Rewrite `n.jsonl` with `change` applied to the lists that `keep` chooses by row."""
    jsonl.write(
        [change(nbest) if keep(row) else nbest for row, nbest in enumerate(lists())], "n.jsonl"
    )


def texts(change):
    return lambda nbest: alter(nbest, lambda hyp: Hypothesis(change(hyp.text), hyp.scores))


def scores(change):
    return lambda nbest: alter(nbest, lambda h: Hypothesis(h.text, change(dict(h.scores), h)))


def alter(nbest, change):
    return NBest(nbest.utt, tuple(map(change, nbest.hyps)), nbest.ref)


def rewrite(path, change):
    Path(path).write_text(change(Path(path).read_text()))


def append(text, name="n.jsonl"):
    with open(name, "a") as out:
        out.write(text)


def both(change):
    """Change hypotheses and references alike."""
    return lambda nbest: dataclasses.replace(texts(change)(nbest), ref=change(nbest.ref))


def translate(nbest):
    """As translations have it, whose commas and quotation marks are another's."""
    ref = f"{nbest.ref}, so."
    return dataclasses.replace(texts(lambda text: f"{text}, 《so》.")(nbest), ref=ref)


def add(hyp):
    return lambda nbest: dataclasses.replace(nbest, hyps=(*nbest.hyps, hyp))


def double(nbest):
    return dataclasses.replace(nbest, hyps=(nbest.hyps[0], *nbest.hyps))


def take_apart():
    made = [
        NBest(f"{n.utt}-{rank}", (h,), n.ref) for n in lists() for rank, h in enumerate(n.hyps, 1)
    ]
    jsonl.write(made, "n.jsonl")


def row(*numbers):
    return lambda number: number in numbers


# what is done to the files; check, level, place, cause, remedy; other checks and options
FINDINGS = {
    "refused by readers": (
        lambda: append('{"hyps": []}\n'),
        ("read", ERROR, "n.jsonl:41", "key 'utt' is missing", "add it"), {},
    ),
    "a missing file": (
        str, ("read", ERROR, "gone", "cannot read", "check the path"), {"text": "gone"},
    ),
    "no lists": (
        lambda: Path("n.jsonl").write_text("\n"), ("read", ERROR, "n.jsonl", "no utterances"), {},
    ),
    "not UTF-8": (
        lambda: Path("text").write_bytes(b"caf\xe9\n"),
        ("read", ERROR, "text:1", "not UTF-8", "iconv"), {"text": "text"},
    ),
    "an empty reference": (
        lambda: edit(lambda nbest: dataclasses.replace(nbest, ref=" "), row(5)),
        ("references", HINT, "n.jsonl:6", "1 of 40 (2.5%) references are empty: 'u5'"), {},
    ),
    "lists taken apart": (
        take_apart,
        ("ids", ERROR, "n.jsonl:1", "one hypothesis and an id `utt-n`: lists of 40 utterances"), {},
    ),
    "case": (
        lambda: edit(texts(str.upper)),
        ("writing", ERROR, "n.jsonl:1", "the references in n.jsonl have lower case, the hypotheses"
         " have upper case", "write both alike"), {},
    ),
    "punctuation": (
        lambda: edit(texts(lambda text: text + " ?")),
        ("writing", ERROR, "n.jsonl:1", "the hypotheses have ? (", "write both alike"), {},
    ),
    "other punctuation on both sides": (
        lambda: edit(translate),
        ("writing", HINT, "n.jsonl:1", "the hypotheses have 《 》 (", "fine where both are free"),
        {},
    ),
    "an odd letter": (
        lambda: edit(texts(lambda text: text + " é"), row(4)),
        ("characters", HINT, "n.jsonl:5", "the references in n.jsonl have not: é (U+00E9)"), {},
    ),
    "duplicates": (
        lambda: edit(double, row(3, 8)),
        ("duplicates", HINT, "n.jsonl:4", "2 of 40 (5.0%) lists hold the same words more than once",
         "--dedup"), {},
    ),
    "positive scores that fall down the list": (
        lambda: edit(scores(lambda s, _: {"am": 3000 + s["am"] + 5 * s["lm"]})),
        ("signs", HINT, "n.jsonl", "all values of 'am' are positive", "densities", {"base"}), {},
    ),
    "divided by length": (
        lambda: edit(
            scores(lambda s, h: {"am": (s["am"] + 5 * s["lm"]) / len(h.text.split())})
        ),
        ("base", HINT, "n.jsonl", "'am' looks like a mean per token", "multiply it by"),
        {"also": {"order"}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FINDINGS)
def test_one_finding(here, name):
    change, finding, more = FINDINGS[name]
    change()
    only(*finding, **more)


SOUND = {
    "as it is": str,
    "one mark in a thousand words": lambda: rewrite("text", lambda x: x.replace("\n", " .\n", 1)),
    "punctuation everywhere": lambda: (
        edit(both(lambda text: text + " ?")), rewrite("text", lambda x: x.replace("\n", " ?\n"))
    ),
    "rare Latin letters": lambda: edit(texts(lambda text: text.replace("king", "kinq")), row(4)),
    "brackets that references have": lambda: edit(both(lambda text: f"{text} (king)")),
    # a phrase penalty counts phrases; tuning finds its sign
    "positive features": lambda: edit(scores(lambda s, h: s | {"tm4": float(len(h.text.split()))})),
}  # fmt: skip


@pytest.mark.parametrize("ref", [None, "ref"])
@pytest.mark.parametrize("name", SOUND)
def test_a_sound_set_has_no_findings(here, name, ref):
    SOUND[name]()
    if name in ("as it is", "one mark in a thousand words") or not ref:
        text = "text" if name != "brackets that references have" else None
        assert found(ref=ref, text=text) == {} and found() == {}


def test_what_is_not_found(here):
    """Small scores of other models are no log10; variants count where references are cased."""
    edit(scores(lambda s, _: s | {"am": s["am"] / 100}))
    assert "base" not in found()

    def vary(nbest):
        head = nbest.hyps[0]
        other = dataclasses.replace(head, text=nbest.ref.upper())
        return NBest(nbest.utt, (head, other), nbest.ref.capitalize())

    edit(vary)
    assert "duplicates" not in found()


@pytest.mark.parametrize("level, places", [(ERROR, ["n.jsonl:3"]), (HINT, ["n.jsonl:1"])])
def test_references_that_are_missing(here, level, places):
    edit(
        lambda nbest: dataclasses.replace(nbest, ref=None),
        lambda row: level == HINT or row in (2, 4),
    )
    only("references", level, *places, "2 of 40" if level == ERROR else "40 of 40", "convert --ref")


@pytest.mark.parametrize("change, case", [(str.upper, "upper"), (str.title, "mixed")])
@pytest.mark.parametrize("lm", [None, "lm"])
def test_case_against_text(here, change, case, lm):
    """One finding, whatever else follows from it; the option that it names is one that works."""
    rewrite("text", change)
    command = split("ngram --text text --order 2 --out")
    assert main([*command, "lm"]) == 0
    remedy = "--normaliser librispeech"
    only(
        "writing",
        ERROR,
        "text:1",
        f"the text in text has {case} case, the hypotheses have lower case",
        f"{remedy} to lmtools rescue, ngram or subword",
        text="text",
        lm=lm,
    )
    assert main([*command, "mended", *remedy.split()]) == 0
    assert found(text="text", lm="mended") == {}


def test_case_and_punctuation_against_references_and_text_have_one_cause(here):
    edit(texts(lambda text: f"{text.title()}."))
    (count,) = {sum(len(one.hyps) for one in lists())}
    cause = (
        "the references in n.jsonl have lower case, the hypotheses have mixed case and"
        f" . ({count} in"
    )
    command = "lmtools convert --normaliser none --case lower --punctuation strip"
    only("writing", ERROR, "n.jsonl:1", cause, command, text="text")
    assert main([*split(command)[1:], "n.jsonl", "n.jsonl"]) == 0
    assert found(text="text") == {}


@pytest.mark.parametrize("count, level", [(2, HINT), (200, ERROR)])
def test_punctuation_in_text(here, count, level):
    rewrite("text", lambda text: text.replace("\n", " .\n", count))
    only(
        "writing",
        level,
        "text:1",
        f"the text in text has . ({count} in 1,",
        "--normaliser none:punctuation=strip to lmtools rescue, ngram or subword",
        text="text",
    )


@pytest.mark.parametrize(
    "hyp, other, remedy",
    [
        ("it's", "its", "--normaliser none:apostrophe=strip to lmtools rescue, ngram or subword"),
        ("2", "two", "would not know them"),
        ("старый", "old", "would not know them"),
    ],
)
def test_characters_that_the_text_never_has(here, hyp, other, remedy):
    """From 5% of the characters on an error."""
    word = {"it's": "it's", "2": "now", "старый": "old"}.get(hyp, "king")
    edit(
        lambda nbest: dataclasses.replace(
            texts(lambda text: text.replace(word, hyp))(nbest), ref=nbest.ref.replace(word, hyp)
        )
    )
    rewrite("text", lambda text: text.replace(word, other))
    first = next(n.utt for n in list(jsonl.read("n.jsonl")) if any(hyp in h.text for h in n.hyps))
    only(
        "characters",
        ERROR if hyp == "старый" else WARNING,
        f"n.jsonl:{int(first[1:]) + 1}",
        "that the text in text has not",
        remedy,
        {"vocabulary"},
        text="text",
    )


@pytest.mark.parametrize(
    "hyp, other, remedy",
    [
        ("it's", "it’s", "lmtools subword --apostrophe straight"),
        ("ki\u0301ng", "k\u00edng", "lmtools subword --unicode-form NFC"),
        ("k\u00edng", "ki\u0301ng", "lmtools subword --unicode-form NFC"),
        ("k\u00ading", "king", "lmtools convert --unify invisible, and of the text utils/unify.py"),
    ],
)
def test_forms_that_the_text_has_otherwise(here, hyp, other, remedy):
    word = "it's" if hyp == "it's" else "king"
    edit(
        lambda nbest: dataclasses.replace(
            texts(lambda text: text.replace(word, hyp))(nbest), ref=nbest.ref.replace(word, hyp)
        )
    )
    rewrite("text", lambda text: text.replace(word, other))
    first = next(n.utt for n in list(jsonl.read("n.jsonl")) if any(hyp in h.text for h in n.hyps))
    place = f"n.jsonl:{int(first[1:]) + 1}"
    only(
        "forms",
        ERROR,
        place,
        "words of the hypotheses are in text",
        remedy,
        {"vocabulary"},
        text="text",
    )


TOYS = {"vocabulary", "base"}  # the lists' scores are those of fewer words, the text is small


def written(text):
    """`text` with punctuation, escapes and a capital, as people write it."""
    return f'{text[0].upper()}{text[1:]}, & so "it\'s", he well-said.'


def tokenised(text):
    """What Moses's tokeniser makes of what `written` gives."""
    escapes = (
        ("&", "&amp;"),
        ('"', " &quot; "),
        ("'", " &apos;"),
        ("-", " @-@ "),
        (",", " ,"),
        (".", " ."),
    )
    for mark, token in escapes:
        text = text.replace(mark, token)
    return " ".join(text.split())


SIDES = {"hypotheses": "n.jsonl:1", "references": "n.jsonl:1", "text": "text:1"}
FIXES = {
    "hypotheses": "convert --detokenise LANG",
    "references": "convert --detokenise-ref LANG",
    "text": "utils/detokenise.py",
}


def translations(cut, sides, base=written):
    """Hypotheses, references and text as `base` writes them, those on `sides` cut up by `cut`."""
    say = {
        side: lambda text, side=side: cut(base(text)) if side in sides else base(text)
        for side in SIDES
    }
    edit(
        lambda nbest: dataclasses.replace(
            texts(say["hypotheses"])(nbest), ref=say["references"](nbest.ref)
        )
    )
    rewrite("text", lambda text: "".join(f"{say['text'](line)}\n" for line in text.splitlines()))


@pytest.mark.parametrize("end", ["", " (NATO) …", " « oui » ; vraiment ? R&D; x@y.z"])
def test_translations_as_people_write_them(here, end):
    translations(tokenised, (), lambda text: written(text) + end)
    assert found(text="text").keys() <= TOYS


@pytest.mark.parametrize("side", SIDES)
def test_tokenised_text(here, side):
    """Escapes and spaces on one side, and no other complaint of punctuation or characters."""
    translations(tokenised, [side])
    by_check = found(text="text")
    assert by_check.keys() - TOYS == {"tokenisation"}, by_check
    told = "escapes of Moses's tokeniser", "spaces before commas and full stops"
    for one, about in zip(by_check["tokenisation"], told, strict=True):
        assert (one.level, one.place) == (ERROR, SIDES[side])
        assert about in one.cause
        assert FIXES[side] in one.remedy


def test_tokenised_text_on_all_sides(here):
    translations(tokenised, SIDES)
    by_check = found(text="text")
    assert by_check.keys() - TOYS == {"tokenisation"}
    assert [one.level for one in by_check["tokenisation"]] == [HINT] * 4


def test_spaces_before_punctuation_that_the_model_does_not_see(here):
    assert (
        main(
            ["subword", "--text", "text", "--type", "word", "--punctuation", "strip", "--out", "sw"]
        )
        == 0
    )
    translations(lambda text: text.replace(",", " ,").replace(".", " ."), ["text"])
    assert "tokenisation" not in found(text="text", lm="sw")


@pytest.mark.parametrize(
    "cut", [lambda text: text.replace("o", "o@@ "), lambda text: f"▁{text.replace(' ', ' ▁')}"]
)
@pytest.mark.parametrize(
    "sides", [["hypotheses"], ["references"], ["text"], ["hypotheses", "references"]]
)
def test_pieces(here, cut, sides):
    translations(cut, sides)
    by_check = found(text="text")
    assert by_check.keys() - TOYS == {"tokenisation"}, by_check
    for one, side in zip(by_check["tokenisation"], sides, strict=True):
        assert (one.level, one.place) == (ERROR, SIDES[side])
        assert "subword marks" in one.cause
        assert "join them" in one.remedy


@pytest.mark.parametrize("side", SIDES)
def test_truecased(here, side):
    translations(
        lambda text: text[0].lower() + text[1:], [side], lambda text: f"{written(text)} New York"
    )
    remedy = {"hypotheses": "--case sentence", "text": "--normaliser librispeech to lmtools"}.get(
        side, "write both alike"
    )
    by_check = found(text="text")
    assert by_check.keys() - TOYS == {"truecasing"}, by_check
    for one in by_check["truecasing"]:
        assert one.level == ERROR
        assert one.place == SIDES[side].partition(":")[0]
        assert "100% of first words in lower case" in one.cause
    assert remedy in by_check["truecasing"][0].remedy


@pytest.mark.parametrize(
    "mark", ["<unk>", "[noise]", "++NOISE++", "</s>", "!SIL", "[Music playing]", "♪", "<|en|>"]
)
def test_marks_that_are_no_words(here, mark):
    edit(texts(lambda text: f"{text} {mark}"), lambda row: row == 9)
    by_check = found()
    (finding,) = by_check["marks"]
    assert (finding.level, finding.place) == (HINT, "n.jsonl:10")
    assert f"are marks: '{mark}' (first in 'u9')" in finding.cause
    assert "nothing else" not in finding.cause and "--drop-marks" in finding.remedy


def test_hypotheses_that_are_marks_alone(here):
    edit(texts(lambda text: "[Music]"), lambda row: row == 9)
    assert "4 hypotheses hold nothing else" in found()["marks"][0].cause


def test_ids_left_in_the_hypotheses(here):
    edit(lambda nbest: texts(lambda text: f"{nbest.utt} {text}")(nbest))
    assert found()["first word"][0].place == "n.jsonl:1"
    assert "40 utterances begin with the utterance id" in found()["first word"][0].cause


@pytest.mark.parametrize("share, level", [(4, HINT), (1, HINT), (0, ERROR)])
def test_words_that_the_text_does_not_have(here, share, level):
    """Those of hypotheses alone may be what the model has to reject."""
    new = {"king": "queen", "the": "thee", "men": "man", "go": "went", "take": "took"}

    def renew(text):
        return " ".join(new.get(word, word) for word in text.split())

    edit(
        lambda nbest: dataclasses.replace(
            texts(renew)(nbest), ref=nbest.ref if share else renew(nbest.ref)
        ),
        lambda row: row % (share or 1) == 0,
    )
    only(
        "vocabulary",
        level,
        "n.jsonl",
        "words of the hypotheses",
        "text of the same kind",
        text="text",
    )
    assert all(f"'{word}'" in found(text="text")["vocabulary"][0].cause for word in new.values())


@pytest.mark.parametrize("model", ["word", "bpe", "ngram", "arpa"])
def test_words_that_the_language_model_does_not_know(here, model):
    rewrite("text", lambda text: text.replace("king", "men").upper())
    if model in ("word", "bpe"):
        size = ["--vocab-size", "60"] if model == "bpe" else []
        assert (
            main(
                [
                    *split("subword --text text --type"),
                    model,
                    *split("--case lower --out lm"),
                    *size,
                ]
            )
            == 0
        )
    else:
        rewrite("text", str.lower)
        assert main(["ngram", "--text", "text", "--order", "2", "--out", "lm"]) == 0
    lm = str(next(Path("lm").glob("*.arpa"))) if model == "arpa" else "lm"
    edit(texts(lambda text: text.replace("old", "ölð")))
    (finding,) = found(lm=lm)["vocabulary"]
    both = " and 11 of 274 (4.0%) words of the references" * (model != "bpe")
    assert finding.level == HINT and f"words of the hypotheses{both} are not in" in finding.cause
    assert f" {lm}: 'ölð'" in finding.cause
    assert ("'king'" in finding.cause) == (model != "bpe")


def test_the_models_normaliser_is_applied(here):
    rewrite("text", lambda text: text.upper().replace("\n", " .\n"))
    options = ["--case", "lower", "--punctuation", "strip"]
    assert main(["subword", "--text", "text", "--type", "word", *options, "--out", "lm"]) == 0
    assert "writing" in found(text="text") and found(text="text", lm="lm") == {}


def test_a_hugging_face_model_is_not_looked_into(here):
    Path("hf").mkdir()
    Path("hf/config.json").write_text("{}")
    for lm in ("hf", "hf:hf"):
        only("vocabulary", HINT, lm, "not looked into", lm=lm)


def test_a_model_that_is_none(here):
    Path("lm").mkdir()
    assert found(lm="lm").keys() == {"read"}


def test_references_in_the_text(here):
    long = [nbest for nbest in lists() if len(nbest.ref.split()) >= 8]
    with open("text", "a") as out:
        out.write(f"{long[0].ref}\n")
    cause = f"1 of {len(long)} ({100 / len(long):.1f}%) references of 8 words or more stand in text"
    only("leak", HINT, f"n.jsonl:{int(long[0].utt[1:]) + 1}", cause, text="text")


@pytest.mark.parametrize("value", [-1e30, -1e10, 1e308, -9.9e7])
def test_sentinels(here, value):
    edit(scores(lambda s, h: {**s, "lm": value}), lambda row: row in (4, 30))
    count = sum(len(one.hyps) for row, one in enumerate(lists()) if row in (4, 30))
    only("sentinels", ERROR, "n.jsonl:5", f"{count} of ", remedy="tune --fix lm=0")
    (finding,) = found()["sentinels"]
    assert f"values of 'lm' are {value:g}, far outside the others (-" in finding.cause


@pytest.mark.parametrize(
    "odd",
    [
        [0.0] * 99 + [-1e30],
        [0.0, 1.0] * 50,
        [-5.0] * 90 + [-900.0] * 10,
        [-1e12, -1.1e12] * 50,
        [3.0],
    ],
)
def test_what_is_far_outside(odd):
    assert find_outliers(np.array(odd)).tolist() == [abs(value) == 1e30 for value in odd]


def test_lists_without_scores(here):
    jsonl.write([strip_scores(nbest) for nbest in lists()], "n.jsonl")
    only("scores", HINT, "n.jsonl", "no scores in the lists", remedy="recogniser's scores")
    jsonl.write([strip_scores(nbest, depth=1) for nbest in lists()], "n.jsonl")
    assert "scores" not in found()


def strip_scores(nbest, depth=None):
    hyps = tuple(hyp.with_scores({}) for hyp in nbest.hyps[:depth])
    return dataclasses.replace(nbest, hyps=hyps)


def test_lists_pooled_from_systems(here):
    """Indicators are no log-probabilities, votes no repetitions to merge."""
    for name, seed in (("a-lm", 1), ("b", 2), ("c", 3)):
        rng = np.random.default_rng(seed)
        lines = [
            one.ref if rng.random() < 0.5 else f"{one.ref} {rng.choice(WORDS)}" for one in lists()
        ]
        Path(f"{name}.txt").write_text("\n".join(lines) + "\n")
    Path("lines").write_text("".join(f"{one.ref}\n" for one in lists()))
    assert (
        main(split("convert a-lm.txt,b.txt,c.txt n.jsonl --format systems --ref-lines lines")) == 0
    )
    assert found(text="text") == {}


def test_unknown_words_that_another_case_makes_known(here):
    rewrite("text", str.lower)
    assert main(["ngram", "--text", "text", "--order", "2", "--out", "lm"]) == 0
    edit(lambda n: dataclasses.replace(texts(str.upper)(n), ref=n.ref.upper()))
    (finding,) = found(lm="lm")["vocabulary"]
    assert finding.level == ERROR and "(most of them are known in lower case)" in finding.cause
    assert finding.remedy == "lmtools convert --normaliser none --case lower"


def test_costs(here):
    negate = scores(lambda s, _: {name: -value for name, value in s.items()})
    edit(negate)
    findings = found()["signs"]
    assert [finding.level for finding in findings] == [ERROR, ERROR]
    assert "all values of 'am' are positive" in findings[0].cause
    edit(lambda nbest: dataclasses.replace(negate(nbest), ref=None))  # nothing to choose by
    assert [finding.level for finding in found()["signs"]] == [ERROR, ERROR]


def test_features_of_a_translator(here):
    """Distortions do not grow with length; lists are sorted by the later total."""

    def features(nbest):
        sizes = [len(hyp.text) for hyp in nbest.hyps]
        scores = [
            {"d0": -1.0 - rank % 2, "d1": -1.0 - rank % 3, "am": -9.0 * size}
            for rank, size in enumerate(sizes)
        ]
        hyps = [Hypothesis(hyp.text, one) for hyp, one in zip(nbest.hyps, scores, strict=True)]
        return dataclasses.replace(
            nbest, hyps=tuple(sorted(hyps, key=lambda hyp: -hyp.scores["am"]))
        )

    edit(features)
    assert found() == {}


@pytest.mark.parametrize("name", ["dev", "test"])
def test_lists_of_the_readme(name):
    """Whisper's own order stands: nothing is advised that raises the error rate."""
    place = Path(__file__).parents[3] / f"egs/librispeech/mini-real/{name}.nbest.jsonl.xz"
    (writing,), (finding,) = examine(read_inputs(str(place))).values()
    assert writing.level == WARNING and "errors are writing alone" in writing.cause
    assert finding.level == HINT and "digits" in finding.cause
    assert "leave the lists as they are: lmtools evaluate --normaliser" in finding.remedy


@pytest.mark.parametrize("change", [str.upper, "wav/{}".format, "{}.wav".format, "spk_{}".format])
@pytest.mark.parametrize("side", ["lists", "references"])
def test_ids_are_joined_by_one_rule(here, change, side):
    if side == "lists":
        edit(lambda nbest: dataclasses.replace(nbest, utt=change(nbest.utt)))
    else:
        rewrite("ref", lambda text: "".join(map(relabel(change), text.splitlines(True))))
    assert found(ref="ref") == {}


def relabel(change):
    return lambda line: " ".join([change(line.split()[0]), *line.split(" ")[1:]])


def test_ids_that_do_not_match(here):
    rewrite("ref", lambda text: text.replace("u7 ", "u7x "))
    cause = "1 of 40 (2.5%) utterances have no reference in ref (first 'u7', there 'u7x')"
    only("ids", ERROR, "n.jsonl:8", cause, "the same on both sides", ref="ref")
    Path("ref").write_text("".join(f"{nbest.ref}\n" for nbest in lists()))  # words repeat
    assert any("a second time" in problem.cause for problem in found(ref="ref")["read"])


def test_the_first_is_not_the_best_by_score(here):
    """Told where references say that the best by score is better: Whisper's own order is left."""
    total = scores(lambda s, _: {"am": s["am"] + 5 * s["lm"]})
    edit(total)
    assert found() == {}
    edit(lambda n: total(dataclasses.replace(n, hyps=n.hyps[:: 1 if int(n.utt[1:]) % 4 else -1])))
    only("order", HINT, "n.jsonl", "in 10 of 40 (25.0%) lists the first has not the highest 'am'")
    assert main(split("tune --nbest n.jsonl --set lengths= --out w")) == 0
    assert main(split("rescore --nbest n.jsonl --weights w --out t --nbest-out n.jsonl")) == 0
    assert found() == {}


def test_empty_lists_and_hypotheses(here):
    edit(lambda nbest: dataclasses.replace(nbest, hyps=()), lambda row: row == 2)
    only("empty", HINT, "n.jsonl:3", "1 of 40 (2.5%) lists are empty: 'u2'")
    edit(
        lambda nbest: dataclasses.replace(
            nbest, hyps=(*nbest.hyps, Hypothesis(" ", {"am": -9e3, "lm": -9.0}))
        ),
        lambda row: row == 2,
    )
    cause = "1 hypothesis without words, 0 of them first in their lists ('u2')"
    only("empty", HINT, "n.jsonl:3", cause, "word bonus")


def test_places_without_lines(here):
    Path("d/1best_recog").mkdir(parents=True)
    Path("d/1best_recog/text").write_text(
        "".join(f"{nbest.utt} {nbest.ref.upper()}\n" for nbest in lists())
    )
    inputs = read_inputs("d", ref="ref")
    ((finding,),) = examine(inputs).values()
    assert (finding.level, finding.place) == (ERROR, "ref:1")  # case


def test_the_verb(here, capsys):
    assert main(["doctor", "--nbest", "n.jsonl", "--text", "text", "--ref", "ref"]) == 0
    count = sum(len(n.hyps) for n in lists())
    last = f"n.jsonl: 40 lists with {count} hypotheses, WER 0.00, oracle 0.00: 0 errors, 0 hints\n"
    assert capsys.readouterr().out == last
    edit(lambda nbest: dataclasses.replace(nbest, hyps=()), lambda row: row == 2)
    assert main(["doctor", "--nbest", "n.jsonl"]) == 0
    assert capsys.readouterr().out.startswith("hint: n.jsonl:3: ")
    edit(texts(str.upper))
    assert main(["doctor", "--nbest", "n.jsonl"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("error: n.jsonl:1: the references in n.jsonl have lower case")
    assert lines[1].endswith(": 1 error, 0 hints")


def test_a_damaged_list_is_said_like_everything_else(here, capsys):
    Path("n.jsonl").write_text(json.dumps({"utt": "a", "hyps": 3}) + "\n")
    assert main(["doctor", "--nbest", "n.jsonl", "--text", "text"]) == 1
    assert (
        capsys.readouterr().out.splitlines()[0] == "error: n.jsonl:1: 'hyps' is 3; expected a list"
    )


def test_the_recognisers_own_order_is_left(here):
    """Lists in the order of a mean, and lists whose sorting would make more errors."""
    edit(lambda n: scores(lambda s, h: {"am": -len(h.text), "avg": s["am"] + 5 * s["lm"]})(n))
    assert "order" not in found()
    edit(lambda n: scores(lambda s, h: {"am": 0.0 if h.text == n.hyps[-1].text else -1.0})(n))
    assert "order" not in found()
