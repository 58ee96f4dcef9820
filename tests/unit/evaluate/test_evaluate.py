import json
from pathlib import Path
from shlex import split

import pytest

from lmtools.cli import main
from lmtools.evaluate.metrics import METRICS
from lmtools.formats import jsonl, kaldi_text
from lmtools.formats.nbest import trn
from lmtools.formats.texts import write_sentences
from lmtools.types import Hypothesis, NBest

REFS = {"s_a": "one two three four", "s_b": "", "s_c": "five six seven eight nine ten"}
GOOD = {"s_a": "one two three", "s_b": "", "s_c": "five six seven eight nine ten"}
WORSE = {"s_a": "one", "s_b": "oh", "s_c": "five six seven"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, texts in {"ref": REFS, "good": GOOD, "worse": WORSE}.items():
        kaldi_text.write(texts, name)
        trn.write(texts, f"{name}.trn")
        write_sentences(texts.values(), f"{name}.txt")
    hyps = {utt: tuple(map(Hypothesis, dict.fromkeys([WORSE[utt], GOOD[utt]]))) for utt in REFS}
    jsonl.write([NBest(utt, hyps[utt], ref) for utt, ref in REFS.items()], "n.jsonl")
    return tmp_path


def output(capsys, *arguments):
    assert main(["evaluate", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--ref", "ref", "--hyp", "worse"],
        ["--ref", "n.jsonl", "--hyp", "worse"],
        ["--ref", "ref.trn", "--hyp", "worse.trn"],
        ["--hyp", "n.jsonl"],
        ["--ref", "ref", "--hyp", "n.jsonl"],
        ["--ref", "ref.txt", "--hyp", "worse.txt", "--plain"],
    ],
)
def test_one_readable_line_whatever_the_format(here, capsys, arguments):
    (line,) = output(capsys, *arguments)
    assert line.startswith("WER 70.00% [95% CI ")
    assert (
        "(0 sub, 6 del, 1 ins; 10 words, 3 utterances) metric:wer|case:mixed|norm:none|nrefs:1"
        in line
    )


def test_missing_hypotheses_are_said(here, capsys):
    (here / "part").write_text("s_c five six seven eight nine ten\n")
    lines = output(capsys, "--ref", "ref", "--hyp", "part")
    assert lines[0].startswith("WER 40.00%")
    assert lines[1] == "2 of 3 utterances have no hypothesis and count as empty (first 's_a')"


@pytest.mark.parametrize(
    ("options", "score", "said"),
    [
        ("", 150, "norm:none"),
        ("--normaliser librispeech", 50, "norm:librispeech"),
        ("--normaliser none:case=lower,punctuation=strip", 50, "norm:none:case=lower,punctu"),
        ("--normaliser librispeech --map-words map", 0, "norm:librispeech+map:da189555"),
        ("--map-words map", 150, "norm:none+map:da189555"),
        ("--normaliser whisper-english", 0, "norm:whisper-english(whisper-normalizer-0"),
    ],
)
@pytest.mark.parametrize("hyp", ["n.jsonl", "written", "n.jsonl --ref ref --against written"])
def test_normalised_on_both_sides(tmp_path, monkeypatch, capsys, options, score, said, hyp):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "map").write_text("mr mister\n")
    hyps = (Hypothesis("Mr. Smith,"), Hypothesis("MR SMITH"))
    jsonl.write([NBest("u1", hyps, "mister smith")], "n.jsonl")
    kaldi_text.write({"u1": "mister smith"}, "ref")
    kaldi_text.write({"u1": hyps[0].text}, "written")
    words = split(f"--hyp {hyp} {options} --oracle")
    if "--ref" not in words:
        words += ["--ref", "n.jsonl"]
    lines = output(capsys, *words)
    assert lines[0].startswith(f"WER {min(score, 100):.2f}%") and f"|{said}" in lines[0]
    if "--against" in words:
        assert f"WER {min(score, 100):.2f}%" in lines[2] and f"|{said}" in lines[2]
    assert lines[1] == f"oracle WER by list depth: 1: {min(score, 100):.2f}, 2: " + (
        f"{min(score, 100):.2f}"
    )


def test_the_normaliser_stands_in_sacrebleu_s_signature(here, capsys):
    (line,) = output(
        capsys, *split("--ref ref --hyp good --metric bleu --normaliser whisper-basic --out o.json")
    )
    assert "|norm:whisper-basic(whisper-normalizer-" in line
    assert json.loads((here / "o.json").read_text())["signature"] in line


def test_a_normaliser_that_there_is_not(here, capsys):
    assert main(split("evaluate --ref ref --hyp good --normaliser whispers")) == 1
    assert "normaliser whispers: none is called 'whispers'; known" in capsys.readouterr().err


def test_against_and_json(here, capsys):
    lines = output(capsys, *split("--ref ref --hyp good --against worse --out out.json --seed 7"))
    assert lines[0].startswith("WER 10.00%") and lines[1].startswith("against worse: WER 70.00%")
    assert lines[2].startswith("difference -60.00 [95% CI ") and "(seed 7)" in lines[2]
    assert lines[3].startswith("matched pairs (MAPSSWE): 3 segments, -2.000 errors a segment")
    tree = json.loads((here / "out.json").read_text())
    assert (tree["score"], tree["deletions"], tree["length"], tree["utterances"]) == (10, 1, 10, 3)
    assert tree["against"]["score"] == 70
    assert tree["bootstrap"]["difference"] == -60 and tree["matched_pairs"]["segments"] == 3
    output(capsys, *split("--ref ref --hyp good --against worse --out again.json --seed 7"))
    assert (here / "again.json").read_text() == (here / "out.json").read_text()


def test_whole_speakers_as_units(here, capsys):
    rows = (here / "ref").read_text().splitlines()
    utt2spk = "".join(f"{row.split()[0]} s{n % 2}\n" for n, row in enumerate(rows))
    (here / "utt2spk").write_text(utt2spk)
    words = split("--ref ref --hyp good --against worse --by speaker=utt2spk length --out o.json")
    (line,) = (line for line in output(capsys, *words) if line.startswith("by whole "))
    assert line.startswith("by whole speakers (2: 2 better, 0 worse): bootstrap p = ")
    assert line.endswith("sign flips p = 0.5")
    assert json.loads((here / "o.json").read_text())["groups"]["speaker"]["flips_p"] == 0.5


def test_who_gains(here, capsys):
    """Better and worse utterances and speakers, sentence errors, thirds by the mean of both."""
    old = ["a b c d", "a b c x", "x x x x", "a b x x", "a x x x", "a b c d e"]
    new = ["a b c d", "a b c d", "a b c x", "a x x x", "a b x x", "a b c d"]
    for name, texts in (("old", old), ("new", new), ("true", ["a b c d"] * 6)):
        kaldi_text.write({f"s{n // 2}-{n}": text for n, text in enumerate(texts)}, name)
    words = split("--ref true --hyp new --against old --out o.json")
    *_, told = output(capsys, *words)
    assert told == (
        "6 utterances: 4 better, 1 worse, with errors 5 -> 3; WER of thirds by the mean of both"
        " (descriptive): 12.50 -> 0.00, 62.50 -> 12.50, 62.50 -> 62.50"
    )
    (here / "utt2spk").write_text("".join(f"s{n // 2}-{n} s{n // 2}\n" for n in range(6)))
    *_, told = output(capsys, *words, "--by", "speaker=utt2spk")
    assert told == (
        "3 speakers: 3 better, 0 worse; WER of thirds by the mean of both (descriptive):"
        " 12.50 -> 0.00, 50.00 -> 25.00, 75.00 -> 50.00"
    )
    tree = json.loads((here / "o.json").read_text())
    assert tree["gains"]["wrong"] == [5, 3] and tree["groups"]["speaker"]["gains"]["better"] == 3
    *_, told = output(capsys, *split("--ref true --hyp old --against old"))
    assert told.startswith("6 utterances: 0 better, 0 worse, with errors 5 -> 5; ")


@pytest.mark.parametrize(
    "arguments", [["--hyp", "n.jsonl"], ["--ref", "n.jsonl", "--hyp", "worse"]]
)
def test_oracle(here, capsys, arguments):
    lines = output(capsys, *arguments, "--oracle", "--out", "out.json")
    assert lines[1] == "oracle WER by list depth: 1: 70.00, 2: 10.00"
    assert json.loads((here / "out.json").read_text())["oracle"] == [70, 10]


@pytest.mark.parametrize("metric", METRICS)
def test_the_oracles_texts_have_the_oracles_score(here, capsys, metric):
    (here / "short.jsonl").write_text(
        (here / "n.jsonl").read_text() + '{"utt": "s_d", "ref": "gone", "hyps": []}\n'
    )
    output(
        capsys,
        *split("--hyp short.jsonl --metric"),
        metric,
        *split("--oracle-out best --out out.json"),
    )
    output(
        capsys, "--ref", "short.jsonl", "--hyp", "best", "--metric", metric, "--out", "again.json"
    )
    trees = [json.loads((here / name).read_text()) for name in ("out.json", "again.json")]
    assert trees[0]["oracle"][-1] == trees[1]["score"] != trees[0]["score"]
    # against an empty reference BLEU and chrF have no better
    assert kaldi_text.read("best") | {"s_b": ""} == GOOD | {"s_d": ""}


def test_an_utterance_without_list_is_deleted_in_the_oracle_too(here, capsys):
    jsonl.write(
        [NBest("s_a", (Hypothesis("one two"), Hypothesis("one two three four")))], "part.jsonl"
    )
    lines = output(capsys, "--ref", "ref", "--hyp", "part.jsonl", "--oracle")
    assert lines[0].startswith("WER 80.00%") and "2 of 3" in lines[1]
    assert lines[2] == "oracle WER by list depth: 1: 80.00, 2: 60.00"


@pytest.mark.parametrize(
    ("metric", "start"), [("cer", "CER "), ("bleu", "BLEU "), ("chrf", "chrF "), ("ter", "TER ")]
)
def test_other_metrics(here, capsys, metric, start):
    lines = output(
        capsys, "--ref", "ref", "--hyp", "good", "--against", "worse", "--metric", metric
    )
    assert lines[0].startswith(start) and f"metric:{metric}" in lines[0]
    assert len(lines) == 3 + (metric == "cer")


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["--hyp", "good"], "good: holds no references"),
        (["--hyp", "good.txt", "--plain"], "good.txt: plain text holds no references"),
        (
            ["--ref", "ref", "--hyp", "other"],
            "other: 1 of 1 hypotheses have no reference in ref (first 'x', there 's_a'); make",
        ),
        (["--ref", "other", "--hyp", "good"], "good: 3 of 3 hypotheses"),
        (["--ref", "empty", "--hyp", "good"], "good: no references"),
        (["--ref", "ref", "--hyp", "none"], "none: cannot read"),
        (["--ref", "ref.txt", "--hyp", "other", "--plain"], "other: 1 lines against 3 in ref.txt"),
        (["--ref", "ref", "--hyp", "good", "--oracle"], "good: holds no N-best lists"),
        (["--hyp", "noref.jsonl"], "noref.jsonl: utterance 'x' has no reference"),
    ],
)
def test_mistakes_are_one_line(here, capsys, arguments, cause):
    (here / "other").write_text("x y\n")
    (here / "empty").write_text("")
    jsonl.write([NBest("x", ())], "noref.jsonl")
    assert main(["evaluate", *arguments, "--out", "out.json"]) == 1
    captured = capsys.readouterr().err
    assert cause in captured and captured.count("\n") == 1
    assert not (here / "out.json").exists()


@pytest.mark.parametrize(
    ("left", "line", "z", "p"),
    [
        (0, "-1.000 errors a segment, z undefined (the same difference in all)", None, 2**-9),
        (1, "-0.900 errors a segment, z = -9.00, p = 0.002", -9, 2**-9),
    ],
)
def test_what_the_matched_pairs_test_cannot_say(tmp_path, capsys, left, line, z, p):
    """All errors mended: no variance; one left: too few segments for the normal."""
    wrong = {f"u{i}": "a x c" for i in range(10)}
    refs = dict.fromkeys(wrong, "a b c")
    for name, texts in (
        ("ref", refs),
        ("old", wrong),
        ("new", refs | dict(list(wrong.items())[:left])),
    ):
        kaldi_text.write(texts, tmp_path / name)
    paths = {name: str(tmp_path / name) for name in ("ref", "old", "new", "out.json")}
    files = ["--ref", paths["ref"], "--hyp", paths["new"], "--against", paths["old"]]
    said = output(capsys, *files, "--out", paths["out.json"])[-2]
    sides = f"{10 - left} better, 0 worse, p = {2.0 ** (left - 9):.2g}"
    assert said == (
        f"matched pairs (MAPSSWE): 10 segments, {line}; exact sign test of segments: {sides}"
    )
    tree = json.loads(Path(paths["out.json"]).read_text())["matched_pairs"]
    assert tree["z"] == z and tree["p"] == pytest.approx(p, rel=0.01)
    assert (tree["better"], tree["worse"]) == (10 - left, 0)


def test_rates_of_no_words_are_undefined(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    kaldi_text.write({"ann-1": "a b", "bob-1": "", "bob-2": ""}, "ref")
    kaldi_text.write({"ann-1": "a", "bob-1": "", "bob-2": "x"}, "hyp")
    lines = output(capsys, *split("--ref ref --hyp hyp --by speaker --out o.json"))
    assert "  bob      2 utterances  WER -  0 sub, 0 del, 1 ins; 0 words" in lines
    assert [part["score"] for part in json.loads(Path("o.json").read_text())["by speaker"]] == [
        50,
        None,
    ]
    kaldi_text.write({"bob-1": "", "bob-2": ""}, "ref")
    kaldi_text.write({"bob-1": "", "bob-2": "x"}, "hyp")
    for metric in ("wer", "cer", "ter", "chrf"):
        files = split("--ref ref --hyp hyp --against ref --out o.json --metric")
        lines = output(capsys, *files, metric)
        assert lines[0].split()[1] == "-" and "95%" not in "".join(lines) and len(lines) == 2
        tree = json.loads(Path("o.json").read_text())
        assert tree["score"] is tree["interval"] is tree["against"]["score"] is None


@pytest.mark.parametrize(
    ("metric", "unit", "confusions"),
    [
        ("wer", "words", {("我想", "想"): 1, ("mat,", "bat,"): 1}),
        ("cer", "characters", {("m", "b"): 1}),
        ("cer:blanks=no", "characters", {("m", "b"): 1}),
        ("mer", "words and characters", {("mat,", "bat,"): 1}),
        ("bleu", "tokens", {("我想", "想"): 1, ("mat", "bat"): 1}),
        ("bleu:tokenize=zh", "tokens", {("mat", "bat"): 1}),
        ("chrf", "characters", {("m", "b"): 1}),
        ("ter", "tokens", {("我想", "想"): 1, ("mat,", "bat,"): 1}),
    ],
)
def test_tables_count_the_units_of_the_metric(
    tmp_path, monkeypatch, capsys, metric, unit, confusions
):
    monkeypatch.chdir(tmp_path)
    kaldi_text.write({"a-1": "我想 the mat,", "a-2": "one"}, "ref")
    kaldi_text.write({"a-1": "我 想 the bat,", "a-2": "one"}, "hyp")
    by = split("--ref ref --hyp hyp --by words length --out o.json --metric")
    lines = output(capsys, *by, metric)
    tree = json.loads(Path("o.json").read_text())
    table = tree["by words"]
    assert table["unit"] == unit
    assert f"{unit} with most errors, of how many times they are spoken:" in lines
    assert f"by length{'' if metric == 'wer' else f', in {unit}'}:" in lines
    assert {(ref, hyp): times for ref, hyp, times in table["confusions"]} == confusions
    if "substitutions" in tree:
        sums = [sum(row[-1] for row in table[k]) for k in ("confusions", "deletions", "insertions")]
        assert sums == [tree[k] for k in ("substitutions", "deletions", "insertions")]
    if metric == "cer":
        assert table["insertions"] == [[" ", 1]] and "      1  ' '" in lines
    assert sum(part["utterances"] for part in tree["by length"]) == 2


def test_mixed_error_rate(tmp_path, capsys):
    (tmp_path / "ref").write_text("a 我们 go to 北京\n")
    (tmp_path / "hyp").write_text("a 我 们 go 北 海\n")
    files = ["--ref", str(tmp_path / "ref"), "--hyp", str(tmp_path / "hyp")]
    assert output(capsys, *files, "--metric", "mer")[0].startswith("MER 33.33% ")


def test_segments_are_joined_before_they_are_compared(here, capsys):
    """Where segments are cut costs nothing; their order is that of time, or of their numbers."""
    words = [f"w{n}" for n in range(33)]
    cut = [" ".join(words[at : at + 3]) for at in range(0, 33, 3)]  # eleven: -9 before -10
    kaldi_text.write({"r1": " ".join(words), "r2": "a b"}, "whole")
    texts = {f"r1-{n}": text for n, text in enumerate(cut)} | {"r2-0": "a", "r2-1": ""}
    kaldi_text.write(dict(sorted(texts.items())), "cut")
    (line,) = output(capsys, "--ref", "whole", "--hyp", "cut", "--session")
    assert "(0 sub, 1 del, 0 ins; 35 words, 2 utterances)" in line
    Path("times").write_text("".join(f"{utt} {utt[:2]} {10 - int(utt[3:])} 20\n" for utt in texts))
    (line,) = output(capsys, "--ref", "whole", "--hyp", "cut", "--session", "times")
    assert "(30 sub, 1 del, 0 ins; 35 words, 2 utterances)" in line
    lists = [
        NBest(utt, (Hypothesis(text), Hypothesis("x")), extra={"session": utt[:2]})
        for utt, text in texts.items()
    ]
    jsonl.write(lists, "cut.jsonl")
    first, second, *_ = output(
        capsys, "--ref", "whole", "--hyp", "cut.jsonl", "--against", "cut", "--session"
    )
    assert first.startswith("WER 2.86%") and "WER 2.86%" in second
    kaldi_text.write({"r1": " ".join(words), "r2": "a b", "r-3": "c"}, "whole")
    short = NBest("r-3", (Hypothesis("c"),), ref="c", extra={"session": "r-3"})  # is a recording
    jsonl.write([*lists, short], "cut.jsonl")
    (line,) = output(capsys, "--ref", "whole", "--hyp", "cut.jsonl", "--session")
    assert "(0 sub, 1 del, 0 ins; 36 words, 3 utterances)" in line
    assert main(["evaluate", "--ref", "n.jsonl", "--hyp", "n.jsonl", "--session"]) == 1
    assert "'s_a' has a reference of its own; leave out --session" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ref", "hyp", "writing"),
    [
        # DSTC2's and ATIS's
        ("okay good bye", "okay goodbye", 2),
        ("im looking", "i'm looking", 1),
        ("i dont care now", "i don't care now", 1),
        ("a non stop flight", "a nonstop flight", 2),
        ("to d c please", "to dc please", 2),
        ("five p m or so", "fivepm or so", 3),
        # others: hyphens of two kinds, a mark by itself, several words, digits
        ("a well known man", "a well‑known man", 2),
        ("some one one day", "someone one day", 2),
        ("a t - shirt", "a t shirt", 1),
        ("twenty one days", "21 days", 2),
        ("room 1999", "room nineteen ninety nine", 3),
        # beside errors of hearing; other letters and cases are no writing
        ("good bye thanks", "goodbye tanks", 2),
        ("i am here", "im here", 0),
        ("Yes", "yes", 0),
        ("twenty two days", "21 days", 0),
        ("", "oh", 0),
    ],
)
def test_errors_of_writing(here, capsys, ref, hyp, writing):
    kaldi_text.write({"u": ref}, "r")
    kaldi_text.write({"u": hyp}, "h")
    lines = output(capsys, *split("--ref r --hyp h --out o.json"))
    said = [line for line in lines if line.startswith(f"of these {writing} are writing (blanks, ")]
    assert len(said) == bool(writing) and len(lines) == 1 + bool(writing)
    assert json.loads((here / "o.json").read_text())["writing"] == writing


HINTS = {  # reference, hypothesis, options of convert, of evaluate, what is said
    "case": (
        "WELL {}",
        "well {}",
        "none --case lower",
        "none:case=lower",
        "50.00 as written, 0.00",
    ),
    "marks": (
        "well {}",
        "Well {}!",
        "lower --punctuation strip",
        "punctuation=strip",
        "100 of 100",
    ),
    "form": ("caf\u00e9 {}", "cafe\u0301 {}", "--unify nfc", "--unify nfc", "50 of 50 (100.0%)"),
    "words": ("bye bye {}", "byebye {}", "--map-words F", "--map-words F", "`byebye bye bye`"),
    "both": ("GOOD BYE {}", "goodbye {}", "--map-words F", "case=lower --map", "`goodbye good"),
}


@pytest.mark.parametrize("name", HINTS)
def test_case_punctuation_and_writing_are_told(tmp_path, monkeypatch, capsys, name):
    """By evaluate, tune and doctor; right words are no cause."""
    monkeypatch.chdir(tmp_path)
    ref, hyp, convert, evaluate, said = HINTS[name]
    lists = []
    for row in range(50):
        texts = [text.format(("abel", "bert", "carl", "dora")[row % 4]) for text in (hyp, ref)]
        hyps = [Hypothesis(texts[0] + end, {"am": -float(row % 3)}) for end in ("", " x")]
        lists.append(NBest(f"u{row}", tuple(hyps), texts[1]))
    jsonl.write(lists, "n.jsonl")
    for verb, option in (("evaluate --hyp", evaluate), ("tune --out w --nbest", convert)):
        assert main(split(f"{verb} n.jsonl")) == 0
        told = "".join(capsys.readouterr())
        assert said in told and option in told and "make both sides alike" in told, told
    main(split("doctor --nbest n.jsonl"))
    assert convert in capsys.readouterr().out
    jsonl.write([NBest(n.utt, n.hyps, n.hyps[0].text + " z") for n in lists], "n.jsonl")
    assert main(split("evaluate --hyp n.jsonl")) == 0
    assert "sides alike" not in "".join(capsys.readouterr())
