"""egs/librispeech/studies/phrases.sh on toy lists: glossaries, tuning, tables."""

import json

import pytest

RARE = ["kubernetes", "makan", "ephraim", "manasseh"]
COMMON = ["the", "man", "went", "to", "a", "house"]


@pytest.fixture(scope="module")
def recipe(librispeech):
    """The recipe with text and lists in which rare words are second to ordinary ones."""
    recipe = librispeech("phrases")
    books = recipe.home / "books"
    for case, name in (
        ("native", "dev"), ("native", "test"), ("non-native", "dev"), ("non-native", "test"),
        ("vosk", "dev"),
    ):  # fmt: skip
        (books / case / name).mkdir(parents=True)
        with (books / case / name / "nbest.jsonl").open("w") as out:
            for row in range(12):
                ref = f"the man {RARE[row % 4]} went"
                hyps = [("the man house went", -1.0), (ref, -1.2), ("the man went", -2.5)]
                more = {} if case == "vosk" else {"avg": -0.1}
                scored = [{"text": text, "scores": {"am": am, **more}} for text, am in hyps]
                entry = {"utt": f"{row % 3}-{case}-{row}", "ref": ref, "hyps": scored}
                out.write(json.dumps(entry) + "\n")
    lines = [" ".join(COMMON)] * 300 + [" ".join([*RARE, f"other{i % 50}"]) for i in range(200)]
    (books / "train.txt").write_text("\n".join(lines) + "\n")
    return recipe


def test_whole(recipe):
    (recipe.home / "lm").mkdir()
    more = ("--systems", "first", "--common", "6", "--books", "books", "--lm", "lm")
    recipe(*more, script="studies/phrases.sh")
    exp = recipe.home / "exp/phrases"
    rows = (exp / "glossary/100/native/test.jsonl").read_text().splitlines()
    phrases = json.loads(rows[0])["phrases"]
    assert phrases[0] == "kubernetes" and len(phrases) > 40
    assert not {*phrases[1:]} & {"kubernetes", *COMMON}
    words = json.loads((exp / "words/first/native.0.json").read_text())["words"]
    assert words["counts"]["found"] == 12 and words["against"]["counts"]["found"] == 0
    drugs = [exp / f"text/{case}.txt" for case in ("first/native.drugs", "first/native.none")]
    assert drugs[0].read_text() == drugs[1].read_text()
    table = (exp / "RESULTS.md").read_text()
    assert "| native | first pass | 0 | 0.00 → 100.00 |" in table
    assert "| vosk | default:phrases | 1000 | 0.00 → 100.00 |" in table
    assert "| native | 12 | 12 | 0 | 0 |" in table
    # 5 sets of 12 utterances, 2 glossaries: each utterance has one error, in its rare word
    assert "| 0 | 120 | 0 | 0 |" in table and "| 4 | 0 | 0 | 0 |" in table
    assert "| native | first pass | near | 100.00 → 100.00 |" in table
    assert "| native, near words | 12 | 12 | 0 | 0 |" in table


def test_lattices(recipe):
    """Names that are the second of two words in each lattice win, with phrases alone."""
    for part in ("dev", "test"):
        home = recipe.home / "plf" / part
        home.mkdir(parents=True)
        with (home / "text").open("w") as refs, (home / "lattices").open("w") as out:
            for row in range(12):
                name = RARE[row % 4]
                refs.write(f"{row + 1} the man {name} went\n")
                arcs = f"(('the',0,1),),(('man',0,1),),(('house',-1,1),('{name}',-1.2,1),),"
                out.write(f"({arcs}(('went',0,1),),)\n")
    options = "--data plf --format plf --text books/train.txt --common 6 --expdir exp/lattices"
    recipe(*options.split(), script="studies/phrases_lattices.sh")
    for name in ("lattices.0", "lattices.100", "most"):
        file = recipe.home / f"exp/lattices/words/{name}.json"
        words = json.loads(file.read_text())["words"]
        assert words["counts"]["found"] == 12 and words["against"]["counts"]["found"] == 0
        assert words["false alarms"] == 0
