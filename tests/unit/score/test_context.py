"""Texts scored behind a context, against the model's own scores of both as one sentence."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from scoring import CPU, ask
from toys import sentences, settings

import lmtools
from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.cli import main
from lmtools.formats import jsonl, scores
from lmtools.formats.lists import find_sessions, join_texts
from lmtools.models.checkpoint import prepare_directory, save_weights
from lmtools.models.lm import LanguageModel
from lmtools.rescoring.asking import SessionContext, score_in_context
from lmtools.rescoring.weights import Weights
from lmtools.score import load, score_texts
from lmtools.score.ppl import perplexity
from lmtools.score.prompts import ContextScorer, list_contexts
from lmtools.text import Normaliser
from lmtools.text.subword import train
from lmtools.types import Hypothesis, NBest

LINES = sentences(40, 7)
KINDS = {
    "causal": {"layers": 1, "dim": 8, "heads": 2, "ffn": 16, "positions": 64},
    "masked": {"layers": 1, "dim": 8, "heads": 2, "ffn": 16, "positions": 64},
    "tta": {"layers": 1, "dim": 8, "heads": 2, "ffn": 16, "positions": 64},
    "lstm": {"layers": 1, "dim": 8, "units": 12},
}


def make_lm(kind, home):
    vocabulary = train("word", LINES[:20], None, Normaliser(), home / f"{kind}.words", min_count=1)
    how = settings(kind, arch=KINDS[kind])
    torch.manual_seed(6)
    prepare_directory(home / kind, how, vocabulary)
    save_weights(home / kind, LanguageModel(how, vocabulary.size))
    return str(home / kind)


@pytest.fixture(scope="module")
def lms(tmp_path_factory):
    home = tmp_path_factory.mktemp("lms")
    made = {kind: make_lm(kind, home) for kind in KINDS}
    (home / "text").write_text("\n".join(LINES) + "\n")
    files = ["--text", str(home / "text"), "--out", str(home / "ngram")]
    assert main(["ngram", *files, "--order", "3"]) == 0
    return made | {"ngram": str(home / "ngram")}


@pytest.mark.parametrize("kind", [*KINDS, "ngram"])
def test_scores_are_those_of_one_sentence_without_its_context(lms, kind):
    spec, computing = ask(lms[kind], device="cpu")
    plain = load(spec, computing)
    pairs = [*zip(LINES[:8], LINES[8:16], strict=True), ("", LINES[3])]
    found = score_texts(pairs, ContextScorer(plain), computing)
    for (context, text), value, tokens in zip(pairs, found.log_prob, found.tokens, strict=True):
        (joined,) = plain.log_probs(plain.prepare([f"{context} {text}".strip()]))
        assert value == pytest.approx(joined[len(context.split()) :].sum(), rel=1e-5)
        assert tokens == len(text.split()) + 1
    alone = score_texts([LINES[3]], plain, computing).log_prob
    assert found.log_prob[-1] == pytest.approx(alone[0], rel=1e-6)


def test_contexts_are_whole_words_of_their_session(lms):
    scorer = ContextScorer(load(*ask(lms["causal"], device="cpu")))
    texts = ["a b c", "d e", "f", "g h"]
    assert list_contexts(texts, [[0, 1, 3], [2]], scorer, 4) == ["", "a b c", "", "b c d e"]


def make_lists(lines, sessions=4):
    lists = []
    for number, (text, other) in enumerate(itertools.pairwise(lines)):
        texts = (text, other, text.rpartition(" ")[0])
        hyps = [Hypothesis(one, {"am": am}) for one, am in zip(texts, (0.1, 0, -0.1), strict=True)]
        lists.append(NBest(f"s{number % sessions}-{number:03d}", tuple(hyps), text))
    return lists


def in_context(lists, lm, context):
    return score_in_context(lists, load(LMSpec(lm), CPU), CPU, context)


@pytest.mark.parametrize("origin", ["first", "ref"])
def test_lists_behind_their_sessions(lms, origin):
    lists = make_lists(LINES[:13])
    lists = [NBest(n.utt, n.hyps[::-1], n.ref) for n in lists]
    found, sessions = in_context(lists, lms["causal"], SessionContext(6, origin))
    assert sessions == 4
    texts = [n.ref if origin == "ref" else n.hyps[0].text for n in lists]
    scorer = ContextScorer(load(LMSpec(lms["causal"]), CPU))
    expected = []
    for place, nbest in enumerate(lists):
        before = [texts[i] for i in range(place) if i % 4 == place % 4]
        context = " ".join(" ".join(before).split()[-6:])
        pairs = [(context, hyp.text) for hyp in nbest.hyps]
        expected += score_texts(pairs, scorer, CPU).log_prob.tolist()
    np.testing.assert_allclose(found.log_prob, expected, rtol=1e-5)
    assert found.signature["context"] == "6 tokens" and found.signature["context_from"] == origin


@pytest.fixture
def work(tmp_path, monkeypatch, lms):
    monkeypatch.chdir(tmp_path)
    jsonl.write(make_lists(LINES[:20]), "dev.jsonl")
    jsonl.write(make_lists(LINES[20:]), "test.jsonl")
    return lms["causal"]


def run(*arguments):
    assert main(list(map(str, arguments))) == 0


def test_by_weights_one_utterance_after_the_other(work):
    score = ["score", "--lm", work, "--device", "cpu", "--context", 5]
    run(*score, "--nbest", "dev.jsonl", "--out", "dev.scores")
    run("tune", "--nbest", "dev.jsonl", "--scores", "lm=dev.scores", "--out", "w.json")
    test = [*score, "--nbest", "test.jsonl", "--context-from", "w.json"]
    run(*test, "--out", "test.scores")
    run("rescore", "--nbest", "test.jsonl", "--scores", "lm=test.scores", "--weights", "w.json",
        "--out", "test.txt")  # fmt: skip
    chosen = dict(line.split(" ", 1) for line in Path("test.txt").read_text().splitlines())
    lists = list(jsonl.read("test.jsonl"))
    table = scores.read("test.scores")
    scorer = ContextScorer(load(LMSpec(work), CPU))
    for place, nbest in enumerate(lists):
        before = " ".join(chosen[lists[i].utt] for i in range(place) if i % 4 == place % 4)
        context = " ".join(before.split()[-5:])
        pairs = [(context, hyp.text) for hyp in nbest.hyps]
        expected = score_texts(pairs, scorer, CPU).log_prob
        np.testing.assert_allclose(table.log_prob[nbest.utt], expected, rtol=1e-5)
    assert Weights.load("w.json").signatures["lm"]["context_from"] == "first"


def test_killed_and_run_again_gives_the_same_bytes(work, monkeypatch):
    """A run that breaks off after some utterances leaves what it computed in the cache."""
    score = ["score", "--lm", work, "--device", "cpu", "--context", 5]
    run(*score, "--nbest", "dev.jsonl", "--out", "dev.scores")
    run("tune", "--nbest", "dev.jsonl", "--scores", "lm=dev.scores", "--out", "w.json")
    test = [*score, "--nbest", "test.jsonl", "--context-from", "w.json"]
    run(*test, "--cache", "none", "--out", "whole.scores")
    from lmtools.rescoring import asking as module

    calls, whole = [], module.score_texts

    def break_off(*arguments):
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return whole(*arguments)

    monkeypatch.setattr(module, "score_texts", break_off)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        if main(list(map(str, [*test, "--cache", "cache", "--out", "again.scores"]))):
            raise SystemExit
    monkeypatch.setattr(module, "score_texts", whole)
    run(*test, "--cache", "cache", "--out", "again.scores")
    assert Path("again.scores").read_bytes() == Path("whole.scores").read_bytes()


@pytest.mark.parametrize("origin", ["first", "ref", "w.json"])
def test_python_scores_as_the_command_line(work, origin):
    score = ["score", "--lm", work, "--device", "cpu", "--context", 5]
    run(*score, "--nbest", "dev.jsonl", "--out", "dev.scores")
    run("tune", "--nbest", "dev.jsonl", "--scores", "lm=dev.scores", "--out", "w.json")
    run(*score, "--nbest", "test.jsonl", "--context-from", origin, "--out", "test.scores")
    lists, lm = lmtools.read("test.jsonl"), lmtools.load(work, device="cpu")
    given = lmtools.Weights.load(origin) if origin == "w.json" else origin
    found, wanted = lm.score_in_context(lists, 5, given), scores.read("test.scores")
    assert found.signature == wanted.signature
    for utt, values in wanted.log_prob.items():
        np.testing.assert_allclose(found.log_prob[utt], values, rtol=1e-5)
        assert found.tokens[utt].tolist() == wanted.tokens[utt].tolist()


def test_sessions_of_a_field_and_of_a_directory(tmp_path):
    lists = [
        NBest(utt, (), extra={"session": name}) for utt, name in zip("abc", "xyx", strict=True)
    ]
    jsonl.write(lists, tmp_path / "l.jsonl")
    assert find_sessions(list(jsonl.read(tmp_path / "l.jsonl"))) == [[0, 2], [1]]
    with pytest.raises(UserError, match="holds neither segments nor utt2spk"):
        find_sessions(lists, str(tmp_path))
    (tmp_path / "utt2spk").write_text("a s\nb s\nc t\n")
    assert find_sessions(lists, str(tmp_path)) == [[0, 1], [2]]
    (tmp_path / "segments").write_text("a r 5 6\nb r 1 2\nc r 3 4\n")
    assert find_sessions(lists, str(tmp_path)) == [[1, 2, 0]]


@pytest.mark.parametrize(
    ("field", "cause"),
    [
        ('"session": 3', "'session' is 3; expected a text"),
        ('"session": "a", "extra": {"session": "b"}', "'session' differs from that in 'extra'"),
    ],
)
def test_what_is_no_session(tmp_path, field, cause):
    path = tmp_path / "l.jsonl"
    path.write_text('{"utt": "u", ' + field + ', "hyps": []}\n')
    with pytest.raises(UserError, match=cause):
        list(jsonl.read(path))


@pytest.mark.parametrize("kind", ["causal", "ngram", "tta"])
def test_perplexity_of_lines_in_a_row(lms, kind):
    options = ask(lms[kind], device="cpu")
    figures = perplexity(LINES, *options, context=5)
    scorer = ContextScorer(load(*options))
    words = [line.split() for line in LINES]
    before = [" ".join(list(itertools.chain(*words[:i]))[-5:]) for i in range(len(LINES))]
    expected = score_texts(list(zip(before, LINES, strict=True)), scorer, CPU).log_prob.sum()
    assert figures["log_prob"] == pytest.approx(expected, rel=1e-6)
    assert figures["rules"].endswith("a line is read behind the lines before it")
    assert figures["signature"]["context"] == "5 tokens"


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        ("--context 0", "0"),
        ("--context 5 --written", "--context: reads the texts of lists"),
        ("--context 5 --context-from nowhere.json", "nowhere.json"),
        ("--context 5 --sessions none", "none"),
    ],
)
def test_what_is_no_context(work, capsys, more, cause):
    arguments = ["score", "--lm", work, "--nbest", "dev.jsonl", "--out", "x", *more.split()]
    try:
        assert main(arguments) == 1
    except SystemExit as stop:
        assert stop.code == 2
    assert cause in capsys.readouterr().err


def test_sessions(tmp_path):
    def of(*utts, **extra):
        return [NBest(utt, (), extra=extra) for utt in utts]

    assert find_sessions(of("1-2-0", "1-3-0", "1-2-1", "x")) == [[0, 2], [1], [3]]
    assert find_sessions([*of("a", "b", session="s"), *of("c", session="t")]) == [[0, 1], [2]]
    (tmp_path / "segments").write_text("b rec 0.5 1.0\na rec 2 3.5\nc other 0 1\n")
    assert find_sessions(of("a", "b", "c"), str(tmp_path / "segments")) == [[1, 0], [2]]
    (tmp_path / "utt2spk").write_text("a s\nb t\nc s\n")
    assert find_sessions(of("a", "b", "c"), str(tmp_path / "utt2spk")) == [[0, 2], [1]]
    for lists, path, cause in (
        ([*of("a", session="s"), *of("b")], None, "'b' has no session"),
        (of("d"), str(tmp_path / "utt2spk"), "utt2spk: has no session of 'd'"),
    ):
        with pytest.raises(UserError, match=cause):
            find_sessions(lists, path)


def timed(*starts):
    """Lists of a session with these starts, u0, u1 .., in the order given."""
    return [
        NBest(f"u{place}", (), extra={"session": "s", **({"start": start} if start else {})})
        for place, start in enumerate(starts)
    ]


@pytest.mark.parametrize(
    ("lists", "order"),
    [
        (timed("6.20", "0.00", "10.5", "3.4"), [1, 3, 0, 2]),
        (timed("12", "9.5", "100"), [1, 0, 2]),  # seconds, not text
        (timed("5", "", "3"), [0, 1, 2]),  # one without: the names, which are in order
        ([NBest(utt, ()) for utt in ("tea-b", "tea-a")], [0, 1]),  # no times
    ],
)
def test_times_decide_the_order(lists, order):
    assert find_sessions(lists) == [order]
    texts = {one.utt: one.utt for one in lists}
    (joined,) = join_texts(texts, lists).values()
    assert joined.split() == [lists[place].utt for place in order]


def test_ids_sorted_as_text_go_by_their_numbers():
    """Kaldi sorts m1-10 before m1-9; an order that is not that of text stays."""
    for ids, expected in (
        (["m1-10", "m1-11", "m1-8", "m1-9"], ["m1-8", "m1-9", "m1-10", "m1-11"]),
        (["m1-9", "m1-10", "m1-8"], ["m1-9", "m1-10", "m1-8"]),
    ):
        (session,) = find_sessions([NBest(utt, (Hypothesis("a"),)) for utt in ids])
        assert [ids[place] for place in session] == expected
