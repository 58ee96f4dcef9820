"""Scores of hypotheses given their sources, and of sources given hypotheses."""

import contextlib
from shlex import split

import numpy as np
import pytest
import torch
from needs import needs
from scoring import CPU, ask, score_sentences
from toys import WORDS, sentences
from translators import random_translator

from lmtools.cli import main
from lmtools.formats import jsonl, kaldi_text, scores
from lmtools.formats.texts import write_sentences
from lmtools.models.checkpoint import load_model
from lmtools.score import ListParts, Sources, lists, load, score_lists, score_texts, texts
from lmtools.score.cache import Cache
from lmtools.score.trees import TreeBatch, plan_pairs
from lmtools.text.subword import BOS, EOS, UNK
from lmtools.types import Hypothesis, NBest

SOURCES = {f"u{n}": text for n, text in enumerate(sentences(12, 3, longest=12))}
LISTS = [
    NBest(utt, tuple(map(Hypothesis, [*sentences(5, n), SOURCES[utt], "", "the zyx king"])))
    for n, utt in enumerate(SOURCES)
]


@pytest.fixture(scope="module", params=[("softmax", "post"), ("softmax", "pre"), ("ce-is", "post")])
def directory(request, tmp_path_factory):
    criterion, norm = request.param
    return random_translator(tmp_path_factory.mktemp("seq2seq"), criterion=criterion, norm=norm)


@pytest.fixture
def files(tmp_path):
    """Paths of lists and their sources, as Kaldi text and as lines."""
    jsonl.write(LISTS, tmp_path / "nbest.jsonl")
    kaldi_text.write(SOURCES, tmp_path / "source")
    write_sentences(SOURCES.values(), tmp_path / "lines")
    return tmp_path


def options(directory, **how):
    return ask(str(directory), device="cpu", **{"cache": "none", "pairs": True, **how})


@torch.no_grad()
def by_hand(directory, source: str, target: str) -> float:
    """log p(target | source), teacher forced, by itself."""
    lm, vocabulary = load_model(directory, pairs=True)
    ids, read = vocabulary.encode(target), torch.tensor([[*vocabulary.encode(source), EOS]])
    given = torch.tensor([[BOS, *ids]])
    lengths = (torch.tensor([tensor.shape[1]]) for tensor in (given, read))
    states = lm.trunk.hidden(given, next(lengths), read, next(lengths))[0]
    log_p = lm.output.distribution(lm.trunk.head(states))
    if lm.settings.criterion == "softmax":
        logits = lm.trunk.head(states) @ lm.trunk.lookup.weight.T + lm.output.bias
        excluded = torch.isinf(log_p[0]) | (log_p[0] < -1e4)
        torch.testing.assert_close(log_p, logits.masked_fill(excluded, -torch.inf).log_softmax(1))
    return sum(float(log_p[place, token]) for place, token in enumerate([*ids, EOS]))


def score(files, directory, *more, out="out") -> int:
    """The exit status of lmtools score of the lists of `files`."""
    command = f"score --lm {directory} --nbest {files}/nbest.jsonl --device cpu --cache none --out"
    return main([*split(command), str(files / out), *more])


@pytest.mark.parametrize("reverse", [False, True])
def test_scores_are_those_of_a_plain_loop(directory, files, reverse):
    more = ["--source", str(files / "source"), *["--reverse"] * reverse]
    assert score(files, directory, *more) == 0
    table = scores.read(files / "out")
    for nbest in LISTS:
        sides = [(SOURCES[nbest.utt], hyp.text)[:: -1 if reverse else 1] for hyp in nbest.hyps]
        expected = [by_hand(directory, *pair) for pair in sides]
        np.testing.assert_allclose(table.log_prob[nbest.utt], expected, atol=1e-4)
        assert table.tokens[nbest.utt].tolist() == [len(to.split()) + 1 for _, to in sides]
    assert table.signature.get("direction") == ("reverse" if reverse else None)
    assert table.signature["lm"] == "seq2seq"


@pytest.mark.parametrize("reverse", [False, True])
def test_batch_order_processes_and_cache_change_no_score(directory, monkeypatch, tmp_path, reverse):
    pairs = Sources("s", SOURCES, reverse).pair(LISTS, 0, "lists")
    how = options(directory, cache=str(tmp_path / "cache"))
    whole = score_texts(pairs, (scorer := load(*how)), how.computing).log_prob
    order = np.random.default_rng(2).permutation(len(pairs))
    shuffled = [pairs[i] for i in order]
    fresh = options(directory)
    np.testing.assert_array_equal(
        score_texts(shuffled, scorer, fresh.computing).log_prob, whole[order]
    )
    np.testing.assert_array_equal(
        score_texts(pairs[16:32], scorer, fresh.computing).log_prob, whole[16:32]
    )
    # of parts of lists, whose hypotheses go through together, to rounding
    some = score_texts(pairs[7:11], scorer, fresh.computing).log_prob
    np.testing.assert_allclose(some, whole[7:11], rtol=0, atol=1e-5)
    with contextlib.closing(Cache(tmp_path / "torn", scorer.signature)) as torn:
        prepared = list(dict.fromkeys(scorer.prepare(pairs)))
        place = {sentence: i for i, sentence in reversed(list(enumerate(scorer.prepare(pairs))))}
        torn.put((one, float(whole[place[one]])) for one in prepared[::3])
    half = fresh.change(cache=str(tmp_path / "torn"))
    np.testing.assert_array_equal(score_texts(pairs, scorer, half.computing).log_prob, whole)
    with monkeypatch.context() as patch:
        patch.setattr(type(scorer), "log_probs", None)  # all of it is known
        np.testing.assert_array_equal(score_texts(pairs, scorer, how.computing).log_prob, whole)
    monkeypatch.setattr(texts, "WORTH_A_FORK", 100)
    spread = fresh.change(nj=2)
    np.testing.assert_array_equal(score_texts(pairs, scorer, spread.computing).log_prob, whole)
    for rows in (1, 4096):
        other = fresh.change(rows=rows)
        found = score_texts(pairs, load(*other), other.computing).log_prob
        np.testing.assert_allclose(found, whole, atol=1e-4)


def test_a_source_is_encoded_once_beside_the_tree_of_its_hypotheses(directory, monkeypatch):
    scorer = load(*options(directory))
    pairs = Sources("s", SOURCES).pair(LISTS, 0, "lists")
    sentences = list(dict.fromkeys(scorer.prepare(pairs)))
    alone = [scorer.log_probs([sentence])[0].sum() for sentence in sentences]
    encoded, trunk = [], type(scorer.lm.trunk)
    encode = trunk.encode
    monkeypatch.setattr(trunk, "encode", lambda *given: encoded.append(given[1]) or encode(*given))
    plan = scorer.plan_trees(sentences)
    assert sorted(i for tree in plan for i in tree) == list(range(len(sentences)))
    whole = score_sentences(sentences, scorer, CPU, Cache(None, {}))
    assert len(encoded) == len(plan) == len(SOURCES)
    np.testing.assert_allclose(whole, alone, rtol=0, atol=1e-4)


def test_sources_of_one_target_go_through_together(directory, monkeypatch):
    scorer = load(*options(directory))
    pairs = Sources("s", SOURCES, reverse=True).pair(LISTS, 0, "lists")
    sentences = list(dict.fromkeys(scorer.prepare(pairs)))
    alone = [scorer.log_probs([sentence])[0] for sentence in sentences]
    plan = scorer.plan_trees(sentences)
    assert len(plan) == len(SOURCES) and sum(map(len, plan)) == len(sentences)
    monkeypatch.setattr(scorer, "token_log_probs", None)
    for tree in plan:
        found = scorer.log_probs(TreeBatch(sentences[i] for i in tree))
        for i, values in zip(tree, found, strict=True):
            np.testing.assert_allclose(values, alone[i], rtol=0, atol=1e-5)


def test_many_sources_of_a_target_are_several_parts():
    sources = {(n % 7,) * (n % 11) for n in range(99)}
    pairs = [(source, target) for target in ((50, 51), (52,)) for source in sorted(sources)]
    pairs += [((99,), (98,)), ((1, 2), (50,) * 60)]  # nothing in common; too long
    plan = plan_pairs(pairs, 40, longest=50)
    assert len({i for part in plan for i in part}) == sum(map(len, plan)) > len(pairs) - 9
    for part in plan:
        some, targets = zip(*(pairs[i] for i in part), strict=True)
        assert len(part) > 1 and len(set(targets)) == 1
        assert sum(len(s) + 1 for s in some) + len(part) * (len(targets[0]) + 1) <= 40
        assert sorted(map(len, some)) == [*map(len, some)]
    order = np.random.default_rng(0).permutation(len(pairs))
    other = plan_pairs([pairs[i] for i in order], 40, longest=50)
    assert {tuple(order[part]) for part in other} == {tuple(part) for part in plan}


def test_many_hypotheses_are_several_trees():
    targets = [(n % 7, *range(n % 20)) for n in range(300)]
    pairs = [((1, 2), target) for target in dict.fromkeys(targets)]
    more = ((3,), (4,)), ((1, 2), tuple(range(99)))  # of a source alone, and too long
    plan = plan_pairs([*pairs, *more], 1024, longest=50)
    assert sorted(i for tree in plan for i in tree) == list(range(len(pairs)))
    assert len(plan) == 2 and all(sum(len(pairs[i][1]) + 1 for i in t) <= 1024 for t in plan)


def test_a_source_is_read(directory):
    target = WORDS[:3]
    pairs = [(" ".join(source), " ".join(target)) for source in (WORDS[:3], WORDS[3:6], [])]
    found = score_texts(pairs, load(*options(directory)), CPU).log_prob
    assert len(set(found.round(3).tolist())) == 3


def test_lines_stand_for_utterances_in_their_order(directory, files, monkeypatch):
    monkeypatch.setattr(lists, "TOGETHER", 20)  # in several parts
    assert score(files, directory, "--source", str(files / "source")) == 0
    assert score(files, directory, "--source-lines", str(files / "lines"), out="other") == 0
    assert (files / "out").read_text() == (files / "other").read_text()


def test_unknown_words_are_those_of_what_is_predicted(directory, files, capsys):
    scorer = load(*options(directory))
    sentence = scorer.prepare([("zyx a", "the zyx king")])[0]
    assert sentence.index(UNK) == 0 and scorer.unknown(sentence).tolist() == [False, True, False]
    assert scorer.token_names(sentence) == ["the", "<unk>", "king"]
    assert scorer.with_oov_penalty(2.0).log_probs([sentence])[0] == pytest.approx(
        scorer.log_probs([sentence])[0] - np.array([0, 2, 0, 0])
    )
    assert scorer.knows("king") and not scorer.knows("zyx")
    assert score(files, directory, "--source", str(files / "source")) == 0
    assert f"{len(LISTS)} unknown" in capsys.readouterr().err


def test_long_targets_are_scored_in_windows_each_with_its_source(directory):
    scorer = load(*options(directory))
    target = " ".join(WORDS * 2)
    values = scorer.log_probs(scorer.prepare([("the king", target)]))[0]
    assert len(values) == len(target.split()) + 1 > scorer.lm.longest
    first = " ".join(target.split()[: scorer.lm.longest])
    alone = scorer.log_probs(scorer.prepare([("the king", first)]))[0]
    np.testing.assert_allclose(values[:4], alone[:4], atol=1e-5)
    other = scorer.log_probs(scorer.prepare([("a house", target)]))[0]
    assert (np.abs(values - other) > 1e-4).all()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("", "lm: a translation model, which reads a source beside each sentence; use it with"),
        ("--reverse", "--reverse: of which source? give --source or --source-lines"),
        ("--source {0}/source --source-lines {0}/lines", "--source: --source-lines is given too"),
        ("--source {0}/few", "few: no source for utterance 'u2' of {0}/nbest.jsonl; make the ids"),
        ("--source-lines {0}/short", "short: 3 lines for 12 utterances or more in {0}/nbest.jsonl"),
        ("--source-lines {0}/long", "long: 13 lines for 12 utterances in {0}/nbest.jsonl"),
        ("--source {0}/wide", ": a source of 20 tokens, the model reads at most 15; leave it out"),
        (
            "--source {0}/source --lm {1}",
            "causal: no translation model, so it reads no source; leave",
        ),
    ],
)
def test_what_does_not_fit_is_refused(trained, directory, files, capsys, more, message):
    few = {utt: SOURCES[utt] for utt in ("u0", "u1")}
    kaldi_text.write(few, files / "few")
    kaldi_text.write({**SOURCES, "u3": " ".join(WORDS[:10] * 2)}, files / "wide")
    write_sentences([*few.values(), "x"], files / "short")
    write_sentences([*SOURCES.values(), "x"], files / "long")
    words = split(more.format(files, trained["causal"]))
    directory = words.pop() if "--lm" in words else directory
    assert score(files, directory, *(word for word in words if word != "--lm")) == 1
    err = capsys.readouterr().err
    assert message.format(files) in err and err.count("\n") == 1, err
    assert not (files / "out").exists()


@pytest.mark.parametrize(
    "command",
    [
        "ppl --lm {lm} --text {files}/lines",
        pytest.param(
            "embed --lm {lm} --text {files}/lines --out {files}/v.npz", marks=needs("vectors")
        ),
        "score --lm mix:{lm}=0.5,{lm}=0.5 --nbest {files}/nbest.jsonl --out {files}/v.scores",
        pytest.param("export --to onnx --lm {lm} --out {files}/v.onnx", marks=needs("bridges")),
    ],
)
def test_whoever_gives_no_source_is_told_so(tmp_path, files, capsys, command):
    lm = random_translator(tmp_path)
    assert main(split(command.format(lm=lm, files=files))) == 1
    err = capsys.readouterr().err
    assert f"{lm}: a translation model" in err and err.count("\n") == 1, err
    assert not list(files.glob("v.*"))


def test_lists_of_a_pipe_take_their_sources_one_by_one(directory, files, monkeypatch):
    monkeypatch.setattr(lists, "parse_specifier", lambda path: path.endswith(".jsonl"))
    where = str(files / "nbest.jsonl")
    for sources in (Sources("s", SOURCES), Sources("l", list(SOURCES.values()))):
        parts = ListParts(where, "jsonl")
        totals = score_lists(parts, str(files / "o"), *options(directory), sources)
        assert (totals.utterances, totals.hypotheses) == (12, 96)
    found = scores.read(files / "o").log_prob["u11"]
    pairs = Sources("s", SOURCES).pair(LISTS[11:], 11, "lists")
    alone = score_texts(pairs, load(*options(directory)), CPU).log_prob
    np.testing.assert_array_equal(found, alone)
