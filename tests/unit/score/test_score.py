"""A hypothesis's score is its own: not that of its batch, its neighbours, the cache or the number
of workers.
"""

import os
import subprocess
import sys
import threading
from dataclasses import replace
from shlex import split
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scoring import ask, load_scorer
from toys import OBJECTIVE, sentences

import lmtools
from lmtools.base import workers
from lmtools.base.batching import cut_windows
from lmtools.base.errors import UserError
from lmtools.cli import main
from lmtools.formats import jsonl, write
from lmtools.score import ListParts, lists, load, score_lists, score_texts, texts
from lmtools.score.ppl import perplexity
from lmtools.score.texts import count_processes
from lmtools.text.subword import BOS, EOS, MASK
from lmtools.types import Hypothesis, NBest

TEXTS = [*sentences(60, 5), "", "king", "xylophone king", "the the", " ".join(sentences(12, 6))]
TEXTS += ["a" * 300]


def scores(options, lines=TEXTS):
    return score_texts(lines, load(*options), options.computing).log_prob


@pytest.fixture(params=OBJECTIVE)
def options(request, trained):
    return ask(str(trained[request.param]), cache="none")


def test_scores_equal_a_plain_pass_one_sentence_at_a_time(options):
    """A second computation: whole logits, log_softmax, a pass a masked token."""
    scorer = load(*options)
    lm = scorer.lm
    for text, score in zip(TEXTS, scores(options), strict=True):
        ids = scorer.subword.encode(text)
        if len(ids) > lm.longest:
            continue
        whole = torch.tensor([BOS, *ids, EOS])
        total = 0.0
        with torch.inference_mode():
            for position in range(1, len(whole)):
                tokens, row = whole[None].clone(), position
                if lm.settings.model == "masked":
                    tokens[0, position] = MASK
                if lm.settings.objective == "causal":
                    tokens, row = tokens[:, :position], position - 1
                state = lm.trunk.hidden(tokens, torch.tensor([tokens.shape[1]]))[0, row]
                logits = lm.trunk.head(state[None]) @ lm.output.weight.T + lm.output.bias
                total += float(logits.log_softmax(-1)[0, whole[position]])
        assert score == pytest.approx(total, abs=1e-4)


@pytest.mark.parametrize("rows", [1, 50, 333, 4096])
def test_score_does_not_depend_on_the_batch(options, rows):
    np.testing.assert_allclose(
        scores(options.change(rows=rows)), scores(options), rtol=0, atol=1e-4
    )


def test_score_does_not_depend_on_order_or_duplicates(options):
    once = scores(options)
    order = np.random.default_rng(0).permutation(len(TEXTS))
    again = scores(options, [TEXTS[i] for i in order] + TEXTS)
    # left-to-right models compute once what texts near each other share: equal but for rounding
    bound = 1e-5 if load(*options).kind == "perplexity" else 0
    np.testing.assert_allclose(again[len(TEXTS) :], once, rtol=0, atol=bound)
    np.testing.assert_allclose(again[: len(TEXTS)], once[order], rtol=0, atol=bound)


def test_cache_gives_the_same_and_computes_nothing_again(options, tmp_path, monkeypatch):
    cached = options.change(cache=str(tmp_path))
    first = scores(cached)
    np.testing.assert_array_equal(first, scores(options))
    monkeypatch.setattr(texts, "run_batches", lambda *_: pytest.fail("computed again"))
    np.testing.assert_array_equal(scores(cached), first)


def test_cache_of_another_model_is_not_used(trained, tmp_path):
    tta, causal = (ask(str(trained[m]), cache=str(tmp_path)) for m in ("tta", "causal"))
    assert not np.allclose(scores(tta), scores(causal))


# passes a token and passes a sentence; processes start slowly
@pytest.mark.parametrize("options", ["masked", "lstm"], indirect=True)
@pytest.mark.parametrize("forks", [True, False])
def test_workers_give_the_same(options, monkeypatch, forks):
    """Forks, which have the model of this process, and processes that load it."""
    here, spread = options.change(rows=200), options.change(nj=2, rows=200)
    scorer = load(*here)
    monkeypatch.setattr(type(scorer.lm.trunk), "tree_tokens", 200)  # several trees
    expected = score_texts(TEXTS, scorer, here.computing).log_prob
    monkeypatch.setattr(texts, "WORTH_A_PROCESS", 100)
    monkeypatch.setattr(texts, "WORTH_A_FORK", 100)
    monkeypatch.setattr(workers, "can_fork", lambda: forks and sys.platform == "linux")
    monkeypatch.setattr(texts, "can_fork", workers.can_fork)
    scorer.reload = None if forks else scorer.reload  # which would fail in a fork
    process, run = os.getpid(), texts.run_batches

    def by_others(*work):
        return run(*work) if os.getpid() != process else pytest.fail("computed here")

    monkeypatch.setattr(texts, "run_batches", by_others)
    found = score_texts(TEXTS, scorer, spread.computing).log_prob
    np.testing.assert_array_equal(found, expected)


# a program of its own: a thread that any other test has left would keep it from being forked
FORKS = """
import os
import sys
import torch
from lmtools.cli import main
from lmtools.score import texts

here, run = os.getpid(), texts.run_batches

def by_forks(*work):
    return run(*work) if os.getpid() != here else sys.exit("by threads")

lm, nbest, out = sys.argv[1:]
command = ["score", "--lm", lm, "--nbest", nbest, "--cache", "none", "--device", "cpu", "--out"]
texts.WORTH_A_FORK = 100
for threads in (1, 2):
    torch.set_num_threads(threads)
    assert main([*command, f"{out}{threads}"]) == 0
    texts.run_batches = by_forks
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only")
def test_a_verb_forks_in_the_place_of_threads(trained, tmp_path):
    jsonl.write([NBest(f"u{i}", (Hypothesis(t),)) for i, t in enumerate(TEXTS)], tmp_path / "n")
    call = [sys.executable, "-c", FORKS, trained["tta"], tmp_path / "n", tmp_path / "of"]
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "of1").read_bytes() == (tmp_path / "of2").read_bytes()


def test_only_a_process_of_one_thread_is_forked():
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    assert not workers.can_fork()
    done.set()
    other.join()
    assert workers.can_fork() == (sys.platform == "linux" and threading.active_count() == 1)


def test_out_of_memory_halves_the_batch(options, monkeypatch):
    expected = scores(options)
    scorer = load(*options)
    original = scorer.log_probs

    def small(batch):
        if len(batch) > 3:
            raise torch.OutOfMemoryError("no room")
        return original(batch)

    monkeypatch.setattr(scorer, "log_probs", small)
    np.testing.assert_allclose(
        score_texts(TEXTS, scorer, options.computing).log_prob, expected, rtol=0, atol=1e-4
    )
    monkeypatch.setattr(
        scorer, "log_probs", lambda batch: (_ for _ in ()).throw(torch.OutOfMemoryError("no room"))
    )
    with pytest.raises(UserError, match="does not fit into memory"):
        score_texts(["king"], scorer, options.computing)


def test_nan_is_refused(options, monkeypatch):
    scorer = load(*options)
    monkeypatch.setattr(scorer, "log_probs", lambda batch: [np.array([np.nan])] * len(batch))
    with pytest.raises(UserError, match="scores nan"):
        score_texts(["king"], scorer, options.computing)


@given(length=st.integers(0, 300), longest=st.integers(2, 40))
@settings(max_examples=200)
def test_windows_score_every_token_once_with_context(length, longest):
    cuts = cut_windows(length, longest)
    covered = [begin + i for begin, end, first, last in cuts for i in range(first, last)]
    assert covered == list(range(length + 1))
    for begin, end, first, last in cuts:
        assert 0 <= begin <= end <= length and end - begin <= longest
        assert 0 <= first < last <= end - begin + 1
        assert last <= end - begin or end == length, "only the true end of sentence is scored"
        if begin and longest >= 4:
            assert first >= longest // 4, "a token in the middle has context on its left"


def test_an_overlong_hypothesis_is_never_better_for_it(trained):
    """Known elsewhere: over-long hypotheses score 0 and so win."""
    for model in OBJECTIVE:
        line = " ".join(sentences(20, 9))
        long, short = scores(ask(str(trained[model]), cache="none"), [line + " king" * 30, line])
        assert long < short < -10


def test_empty_list_and_precision(options):
    assert scores(options, []).shape == (0,)
    half = scores(options.change(precision="bfloat16"))
    np.testing.assert_allclose(half, scores(options), rtol=0.05, atol=0.5)


def test_intact_masked_model_is_one_pass(trained):
    scorer = load_scorer(str(trained["masked"]), intact=True)
    assert scorer.signature["lm"] == "masked-intact"
    sentence = scorer.prepare(["the king came"])[0]
    whole = torch.tensor([[BOS, *sentence, EOS]])
    state = scorer.lm.trunk.hidden(whole, torch.tensor([5]))[0, 1:]
    logits = scorer.lm.trunk.head(state) @ scorer.lm.output.weight.T + scorer.lm.output.bias
    expected = logits.log_softmax(-1)[torch.arange(4), whole[0, 1:]].detach().numpy()
    np.testing.assert_allclose(scorer.log_probs([sentence])[0], expected, atol=1e-5)


def test_perplexity_figures_agree_with_the_scores(options):
    lines = [line for line in TEXTS if line]
    figures = perplexity(lines, *options)
    flat = score_texts(lines, load(*options), options.computing)
    words = sum(len(line.split()) for line in lines)
    assert figures["word_ppl"] == pytest.approx(np.exp(-flat.log_prob.sum() / (words + len(lines))))
    assert figures["subword_ppl"] == pytest.approx(np.exp(-flat.log_prob.sum() / flat.tokens.sum()))
    assert figures["bits_per_char"] == pytest.approx(
        -flat.log_prob.sum() / sum(len(x) + 1 for x in lines) / np.log(2)
    )
    assert figures["sentence_ppl_median"] == pytest.approx(
        np.median(np.exp(-flat.log_prob / flat.tokens))
    )
    assert figures["oov"] == 2 and figures["tokens"] == words + len(lines)


def test_unknown_language_models_are_refused(tmp_path, capsys):
    nbest = tmp_path / "n.jsonl"
    nbest.write_text('{"utt": "u", "hyps": [{"text": "a", "scores": {"am": 1.0}}]}\n')
    for lm in (str(tmp_path / "none"), str(tmp_path), "hf:" + str(tmp_path)):
        assert main(["score", "--lm", lm, "--nbest", str(nbest), "--out", str(tmp_path / "o")]) == 1
        assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "o").exists()


def test_score_verb_writes_in_input_order(trained, tmp_path):
    from lmtools.formats import scores as score_files

    nbest = tmp_path / "n.jsonl"
    rows = {"b": ["the king", "", "the king"], "a": [], "c": ["a queen"]}
    jsonl.write([NBest(utt, tuple(map(Hypothesis, texts))) for utt, texts in rows.items()], nbest)
    out = tmp_path / "o.scores"
    assert main(split(f"score --lm {trained['tta']} --nbest {nbest} --out {out} --cache none")) == 0
    firsts = [line.split("\t")[0] for line in out.read_text().splitlines()[1:-1]]
    assert firsts == ["b#1", "b#2", "b#3", "c#1"]
    table = score_files.read(out)
    assert table.log_prob["b"][0] == table.log_prob["b"][2] != table.log_prob["b"][1]
    assert table.tokens["b"].tolist() == [3, 1, 3] and table.signature["lm"] == "tta"


def test_a_file_in_parts_gives_the_same_and_holds_one_part(options, tmp_path, monkeypatch):
    nbests = [
        NBest(f"u{i}", tuple(Hypothesis(text) for text in TEXTS[i : i + 3]))
        for i in range(0, 60, 3)
    ]
    write(nbests, tmp_path / "lists.jsonl", "jsonl")
    held, tables = [], {}
    count = lists.score_texts

    def counted(texts, *more, **options):
        held.append(len(texts))
        return count(texts, *more, **options)

    monkeypatch.setattr(lists, "score_texts", counted)
    for together in (1000, 8, 1):
        monkeypatch.setattr(lists, "TOGETHER", together)
        out = tmp_path / f"{together}.scores"
        totals = score_lists(ListParts(str(tmp_path / "lists.jsonl"), None), str(out), *options)
        assert (totals.utterances, totals.hypotheses) == (20, 60)
        tables[together] = out.read_text().splitlines()
    assert held == [60, *[9] * 6, 6, *[3] * 20]
    values = [[float(row.split("\t")[1]) for row in rows[1:-1]] for rows in tables.values()]
    if load(*options).lm.settings.objective == "causal":  # a part's beginnings are shared
        np.testing.assert_allclose(values[1:], [values[0]] * 2, atol=1e-4)
    else:
        assert values[0] == values[1] == values[2]
    (tmp_path / "none.jsonl").write_text("\n")
    with pytest.raises(UserError, match="no utterances"):
        score_lists(ListParts(str(tmp_path / "none.jsonl"), None), str(tmp_path / "none"), *options)


def test_what_the_recogniser_wrote_is_scored(tmp_path, monkeypatch, capsys):
    """As lists of this writing are, beside the lists of their own, and in Python."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text("The king, he said .\nthe king he said\nthe king\n" * 9)
    assert main(["ngram", "--text", "text", "--order", "2", "--out", "lm"]) == 0
    score = {"am": -1.0}
    hyps = (Hypothesis("the king", score, {}, "The king,"), Hypothesis("he said", score))
    lists = [NBest("u", hyps, "the king")]
    jsonl.write(lists, "n.jsonl")
    shown = [replace(lists[0], hyps=tuple(replace(h, text=h.display, written=None) for h in hyps))]
    jsonl.write(shown, "shown.jsonl")
    for name, more in (("n", []), ("n", ["--written"]), ("shown", [])):
        out = f"{name}{len(more)}.scores"
        assert main(["score", "--lm", "lm", "--nbest", f"{name}.jsonl", *more, "--out", out]) == 0
    values = {
        name: [line.split("\t")[1] for line in (tmp_path / name).read_text().splitlines()[1:-1]]
        for name in ("n0.scores", "n1.scores", "shown0.scores")
    }
    assert values["n1.scores"] == values["shown0.scores"] != values["n0.scores"]
    made = lmtools.load("lm").score_lists(lists, written=True)
    assert [f"{value}" for value in made.log_prob["u"]] == values["n1.scores"]
    tune = ["tune", "--nbest", "n.jsonl", "--metric", "wer", "--out", "w.json"]
    assert main([*tune, "--scores", "new=n1.scores"]) == 0
    rescore = ["rescore", "--nbest", "n.jsonl", "--weights", "w.json", "--out", "o.txt"]
    assert main([*rescore, "--scores", "new=n1.scores"]) == 0
    capsys.readouterr()
    assert main([*rescore, "--scores", "new=n0.scores"]) == 1
    assert "text nothing for 'written'" in capsys.readouterr().err


def test_work_that_is_worth_no_process_is_done_here():
    assert count_processes([["a b"]], SimpleNamespace(cost=len), 2, forks=True) == 1
