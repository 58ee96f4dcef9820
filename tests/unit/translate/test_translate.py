"""Beam search of translations against plain loops and brute force; `lmtools translate` from file to
file.
"""

import itertools
import random
from shlex import split

import pytest
import torch
from scoring import load_scorer
from toys import ARCH, WORDS, sentences, settings
from translators import random_translator

from lmtools.cli import main
from lmtools.formats import jsonl, kaldi_text, scores
from lmtools.formats.texts import write_sentences
from lmtools.models.objectives import Translation
from lmtools.models.seq2seq import Decoding
from lmtools.text import Normaliser
from lmtools.text.corpus import binarise_pairs
from lmtools.text.subword import BOS, EOS, SPECIALS, UNK, train
from lmtools.train import train as train_lm
from lmtools.translate import verb
from lmtools.translate.search import Beam, Finished, search

LINES = sentences(9, 3, longest=6)


@pytest.fixture(
    scope="module",
    params=[("softmax", "post"), ("softmax", "pre"), ("ce-is", "post"), ("bce", "post")],
)
def directory(request, tmp_path_factory):
    criterion, norm = request.param
    return random_translator(tmp_path_factory.mktemp("lm"), criterion=criterion, norm=norm)


@pytest.fixture(scope="module")
def copier(tmp_path_factory):
    """A model that learned a little of copying."""
    home = tmp_path_factory.mktemp("trained")
    vocabulary = train("bpe", sentences(200, 1), 60, Normaliser(), home / "words")
    for name, seed in (("train", 1), ("valid", 2)):
        lines = sentences(200, seed, longest=4)
        write_sentences(lines, home / name)
        binarise_pairs([home / name], [home / name], vocabulary, home / f"{name}.bin")
    arch = {**ARCH["seq2seq"], "positions": 40}
    train_lm(
        settings("seq2seq", arch=arch), home / "train.bin", home / "valid.bin", home / "lm", "cpu"
    )
    return home / "lm"


@pytest.fixture
def files(tmp_path):
    write_sentences(LINES, tmp_path / "lines")
    write_sentences(map(str.upper, LINES), tmp_path / "refs")
    return tmp_path


def load(directory):
    return load_scorer(str(directory), device="cpu", pairs=True)


def ids_of(scorer, lines):
    return [scorer.subword.encode(line) for line in lines]


def translate(files, directory, *more, source="lines", out="o.jsonl") -> int:
    command = f"translate --lm {directory} --source {files}/{source} --out {files}/{out} --beam 6"
    return main([*split(command), "--device", "cpu", *more])


def texts(path) -> dict[str, list[str]]:
    return {nbest.utt: [hyp.text for hyp in nbest.hyps] for nbest in jsonl.read(path)}


@torch.no_grad()
def next_log_p(scorer, source, prefix) -> torch.Tensor:
    """log p of each id behind a prefix, of the whole model at once."""
    examples = Translation.examples([(*source, EOS, *prefix)])
    states = scorer.lm.trunk.head(scorer.lm.trunk.hidden(*examples.read)[0])
    return scorer.lm.output.distribution(states)[-1].double()


def greedy(scorer, source) -> tuple[tuple[int, ...], float]:
    ids, total = [], 0.0
    longest = min(scorer.lm.longest + 1, 2 * len(source) + 10)
    while True:
        log_p = next_log_p(scorer, source, ids)
        log_p[[i for i in range(len(SPECIALS)) if i != EOS]] = -torch.inf
        best = EOS if len(ids) + 1 == longest else int(log_p.argmax())
        total += float(log_p[best])
        if best == EOS:
            return tuple(ids), total
        ids.append(best)


def test_a_beam_of_one_is_greedy_search(directory):
    scorer = load(directory)
    sources = ids_of(scorer, LINES)
    ends = set()
    for source, found in zip(sources, search(scorer, sources, 1), strict=True):
        ids, total = greedy(scorer, source)
        assert [one.ids for one in found] == [ids]
        assert found[0].log_prob == pytest.approx(total, abs=1e-4)
        assert found[0].norm == pytest.approx(total / (len(ids) + 1), abs=1e-4)
        ends.add(len(ids))
    assert min(ends) < scorer.lm.longest


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 2.0])
def test_a_wide_beam_finds_the_best_of_all(tmp_path, penalty):
    scorer = load(random_translator(tmp_path, WORDS[:3], positions=3, factor=3))
    pieces = range(len(SPECIALS), scorer.lm.size)
    everything = [ids for n in range(3) for ids in itertools.product(pieces, repeat=n)]
    for source in ([pieces[0]], [pieces[2], pieces[1]]):
        exact = {}
        for ids in everything:
            steps = enumerate([*ids, EOS])
            total = sum(float(next_log_p(scorer, source, ids[:n])[token]) for n, token in steps)
            exact[ids] = total / (len(ids) + 1) ** penalty
        wanted = sorted(everything, key=lambda ids: -exact[ids])
        (found,) = search(scorer, [source], len(everything) + 1, penalty)
        assert [one.ids for one in found] == wanted
        assert [one.norm for one in found] == pytest.approx([exact[ids] for ids in wanted])
        (found,) = search(scorer, [source], len(pieces) + 1, penalty)
        assert found[0].ids == wanted[0]


def test_a_beam_ends_when_nothing_can_come_among_its_best():
    beam = Beam(2, 1.0, longest=10)
    beam.finish([7], -4.0)
    assert not beam.is_done(-50.0) and beam.is_done(-torch.inf)
    beam.finish([7, 8], -3.0)
    beam.finish([9, 9], -9.0)  # a third, worse than both
    assert [one.ids for one in beam.ranked()] == [(7, 8), (7,)]
    assert not beam.is_done(-19.0) and beam.is_done(-20.0)


def test_to_stop_early_loses_nothing(copier, monkeypatch):
    scorer, steps = load(copier), []
    step = Decoding.step
    monkeypatch.setattr(
        Decoding, "step", lambda self, *given: steps.append(len(given[0])) or step(self, *given)
    )
    sources = ids_of(scorer, LINES)
    stopped = search(scorer, sources, 5, 0.5)
    early = sum(steps)
    monkeypatch.setattr(Beam, "is_done", lambda self, log_prob: log_prob == -torch.inf)
    whole = search(scorer, sources, 5, 0.5)
    assert sum(steps) - early > early
    assert [[one.ids for one in found] for found in whole] == [
        [one.ids for one in found] for found in stopped
    ]


def test_lists_hold_what_was_searched(directory, files):
    assert translate(files, directory, "--ref", f"{files}/refs", "--prefix", "s") == 0
    lists = list(jsonl.read(files / "o.jsonl"))
    assert [nbest.utt for nbest in lists] == [f"s{n}" for n in range(1, 10)]
    assert [nbest.ref for nbest in lists] == [line.upper() for line in LINES]
    assert [nbest.extra for nbest in lists] == [{"source": line} for line in LINES]
    for nbest in lists:
        norms = [hyp.scores["norm"] for hyp in nbest.hyps]
        assert norms == sorted(norms, reverse=True) and len(norms) > 1
        assert len({hyp.text for hyp in nbest.hyps}) == len(nbest.hyps)
        assert "<unk>" not in " ".join(hyp.text for hyp in nbest.hyps)
        for hyp in nbest.hyps:
            tokens = len(hyp.text.split()) + 1
            assert hyp.scores["norm"] == pytest.approx(hyp.scores["am"] / tokens, abs=1e-5)


@pytest.mark.parametrize("kind", ["words", "pieces"])
def test_scores_are_those_of_lmtools_score(kind, directory, copier, files):
    lm = directory if kind == "words" else copier
    assert translate(files, lm) == 0
    command = f"score --lm {lm} --nbest {files}/o.jsonl --source-lines {files}/lines --out"
    assert main([*split(command), f"{files}/s", *split("--device cpu --cache none")]) == 0
    table, scorer, same = scores.read(files / "s"), load(lm), 0
    for line, nbest in zip(LINES, jsonl.read(files / "o.jsonl"), strict=True):
        (found,) = search(scorer, [scorer.subword.encode(line)], 6)
        own = {scorer.subword.decode(one.ids): list(one.ids) for one in reversed(found)}
        for hyp, log_prob in zip(nbest.hyps, table.log_prob[nbest.utt], strict=True):
            if own.get(hyp.text) == scorer.subword.encode(hyp.text):
                assert hyp.scores["am"] == pytest.approx(log_prob, abs=1e-4)
                same += 1
    assert same > 10


def test_hypotheses_of_equal_text_are_one(copier):
    scorer = load(copier)
    subword = scorer.subword
    ids = subword.encode("the")
    letters = [subword.vocabulary.index(piece) for piece in ("▁", *"the")]
    assert subword.decode(letters) == subword.decode(ids) == "the" and letters != ids
    found = [Finished(-1.0, -2.0, tuple(letters)), Finished(-1.5, -4.0, tuple(ids))]
    (hyp,) = verb.merge_texts(subword, found)
    assert hyp.text == "the" and hyp.scores == {"am": -2.0, "norm": -1.0}


def test_neither_batch_nor_order_changes_a_text(directory, files):
    assert translate(files, directory) == 0
    whole = texts(files / "o.jsonl")
    for batch in ("1", "4"):
        assert translate(files, directory, "--set", f"batch={batch}", out=f"o{batch}.jsonl") == 0
        assert texts(files / f"o{batch}.jsonl") == whole
    order = list(range(len(LINES)))
    random.Random(5).shuffle(order)
    kaldi_text.write({str(n + 1): LINES[n] for n in order}, files / "kaldi")
    kaldi_text.write({str(n + 1): LINES[n] for n in range(9)}, files / "kaldi.ref")
    more = ["--kaldi", "--ref", f"{files}/kaldi.ref"]
    assert translate(files, directory, *more, source="kaldi", out="k.jsonl") == 0
    assert texts(files / "k.jsonl") == whole
    assert list(texts(files / "k.jsonl")) == [str(n + 1) for n in order]
    assert all(nbest.ref == nbest.extra["source"] for nbest in jsonl.read(files / "k.jsonl"))


def test_unknown_and_special_ids_are_never_produced(directory):
    scorer = load(directory)
    for found in search(scorer, [[UNK, UNK], [UNK]], 30):
        assert len(found) == 30
        assert all(min(one.ids, default=UNK + len(SPECIALS)) >= len(SPECIALS) for one in found)
        assert BOS not in {i for one in found for i in one.ids}


def journal(files):
    (found,) = files.glob(".o.jsonl.*.journal")
    return found


@pytest.mark.parametrize("kept", [0, 1, 4, 5, 8, 9])
def test_a_cut_journal_is_gone_on_from(files, kept, tmp_path_factory, monkeypatch):
    lm = random_translator(tmp_path_factory.mktemp("lm"))
    assert translate(files, lm, "--set", "batch=4") == 0
    whole = (files / "o.jsonl").read_bytes()
    lines = journal(files).read_bytes().splitlines(keepends=True)
    assert len(lines) == 9
    torn = lines[kept][:-9] if kept < 9 else b""
    journal(files).write_bytes(b"".join([*lines[:kept], torn]))
    (files / "o.jsonl").unlink()
    searched = []

    def counting(scorer, ids, *how):
        searched.extend(ids)
        return search(scorer, ids, *how)

    monkeypatch.setattr("lmtools.translate.search.search", counting)
    assert translate(files, lm, "--set", "batch=4", "--ref", f"{files}/lines") == 0
    assert len(searched) == 9 - kept // 4 * 4 - (kept == 9)
    again = list(jsonl.read(files / "o.jsonl"))
    assert [nbest.ref for nbest in again] == LINES
    assert translate(files, lm, "--set", "batch=4") == 0
    assert (files / "o.jsonl").read_bytes() == whole


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--ref {0}/few", "few: 3 lines for 9 sentences in {0}/lines; give one line each"),
        ("--ref {0}/none", "none: "),
        ("--source {0}/none", "none: "),
        ("--source {0}/empty", "empty: no sentences; give"),
        ("--source {0}/gap", "gap:2: an empty sentence; leave it out"),
        ("--source {0}/wide", "wide:1: 'the the"),
        ("--source {0}/kaldi --kaldi --ref {0}/other", "other: no reference of 1 of 2 sentences"),
        ("--lm {0}/none", "none: no such language model"),
        ("--prefix a!b", "holds white space"),
        ("--out -", "-: lists of translations are resumed by the name of their file"),
    ],
)
def test_what_does_not_fit_is_refused(copier, files, capsys, more, message):
    write_sentences(LINES[:3], files / "few")
    write_sentences([], files / "empty")
    write_sentences(["the", "", "king"], files / "gap")
    write_sentences(["the " * 60], files / "wide")
    kaldi_text.write({"a": "the", "b": "king"}, files / "kaldi")
    kaldi_text.write({"a": "the"}, files / "other")
    words = [word.replace("!", " ") for word in split(more.format(files))]
    model, words = (words[1], []) if words[0] == "--lm" else (copier, words)
    assert translate(files, model, *words) == 1
    err = capsys.readouterr().err
    assert message.format(files) in err and err.count("\n") == 1, err
    assert not (files / "o.jsonl").exists()


def test_a_left_to_right_model_is_refused(trained, files, capsys):
    assert translate(files, trained["causal"]) == 1
    assert "causal: no translation model; give what lmtools train" in capsys.readouterr().err
