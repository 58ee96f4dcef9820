"""An unknown token costs the penalty more, once each, whatever scores it and wherever."""

import json

import numpy as np
import pytest
from scoring import ask, load_scorer, walk

from lmtools.base.errors import UserError
from lmtools.base.specs import LMSpec
from lmtools.cli import main
from lmtools.formats import scores as score_files
from lmtools.lattice.paths import nbest
from lmtools.ngram import build
from lmtools.score import load, score_texts
from lmtools.score.lattices import LatticeOptions
from lmtools.score.ppl import perplexity
from lmtools.text import Normaliser
from lmtools.types import Arc, Final, Lattice

TEXTS = ["the king", "xylophone king zebra", "", "the zebra", "zebra zebra zebra"]
TEXTS += ["a queen went to the zoo"]
UNKNOWN = np.array([0, 2, 0, 1, 3, 1])
P = 3.25


@pytest.fixture(scope="module")
def lms(trained, tiny, tmp_path_factory):
    out = tmp_path_factory.mktemp("ngram") / "lm"
    build([tiny / "train.txt"], 3, out, Normaliser(), kenlm="none")
    return {"ngram": str(out), **{name: str(path) for name, path in trained.items()}}


@pytest.fixture(params=["ngram", "causal", "lstm", "masked", "tta"])
def lm(request, lms):
    return lms[request.param]


def scored(lm: str, penalty: float):
    options = ask(lm, device="cpu", cache="none", oov_penalty=penalty)
    return score_texts(TEXTS, load(*options), options.computing)


def test_each_unknown_token_costs_it(lm):
    free, dear = scored(lm, 0.0), scored(lm, P)
    np.testing.assert_array_equal(free.unknown, UNKNOWN)
    np.testing.assert_allclose(dear.log_prob, free.log_prob - P * UNKNOWN, rtol=1e-12, atol=1e-9)
    assert dear.signature == free.signature | {"oov": "3.25"} and "oov" not in free.signature


def test_the_token_itself_has_it(lm):
    free = load_scorer(lm, "cpu")
    dear = free.with_oov_penalty(P)
    sentences = free.prepare(["xylophone king zebra"])
    np.testing.assert_allclose(
        free.log_probs(sentences)[0] - dear.log_probs(sentences)[0], [P, 0, P, 0], atol=1e-9
    )
    assert free.with_oov_penalty(0.0) is free


@pytest.mark.parametrize("penalty", [-1.0, np.nan, np.inf])
def test_what_is_no_penalty(lms, penalty):
    with pytest.raises(UserError, match=r"oov_penalty: .* is not a finite number from 0"):
        load(*ask(lms["ngram"], oov_penalty=penalty))


@pytest.mark.parametrize("kind", ["ngram", "causal", "lstm"])
def test_prefixes_cost_it_word_by_word(lms, kind):
    free = load_scorer(lms[kind], "cpu")
    words = ["zebra", "king", "zebra", ""]
    drawn = [walk(scorer.prefixes(), words) for scorer in (free, free.with_oov_penalty(P))]
    np.testing.assert_allclose(np.subtract(*drawn), [P, 0, P, 0, 0], atol=1e-9)


def test_lattices_cost_it_but_not_their_old_model(lms):
    """Left to right, mixed, on both sides."""
    named = {name: lms[name] for name in ("ngram", "lstm", "tta")}
    named["mix"] = f"mix:{lms['causal']}=0.5,{lms['ngram']}=0.5"
    weights = {"graph": 1.0, "lm": 1.0} | dict.fromkeys(named, 1.0)
    words = [("the", "zebra"), ("king", "zebra"), ("zoo",)]
    arcs = [Arc(i, i + 1, word, {"graph": 0.0}) for i, some in enumerate(words) for word in some]
    lattice, found = Lattice.of("u", 4, 0, arcs, [Final(3, {"graph": 0.0})]), {}
    for penalty in (0.0, P):
        specs = {name: LMSpec(lm, oov_penalty=penalty) for name, lm in named.items()}
        done, _ = LatticeOptions(specs, weights, old=LMSpec(lms["ngram"])).load().rescore(lattice)
        paths = nbest(done, weights, 10)
        found[penalty] = {
            p.words: {name: column[list(p.arcs)] for name, column in done.scores.items()}
            for p in paths
        }
    assert len(found[P]) == 4
    for line, dear in found[P].items():
        unknown = np.array([word in ("zebra", "zoo") for word in line])
        for name in ("ngram", "lstm", "mix", "lm"):
            expected = 0 * unknown if name == "lm" else P * unknown
            np.testing.assert_allclose(
                found[0.0][line][name] - dear[name], expected, atol=1e-5, err_msg=name
            )
    # under all weights the first of the list has its own sentence's scores, about
    best = next(iter(found[P]))
    scorer = load_scorer(lms["tta"], "cpu").with_oov_penalty(P)
    (exact,) = scorer.log_probs(scorer.prepare([" ".join(best)]))
    assert np.abs(found[P][best]["tta"] - exact[:-1]).max() < P / 2


def test_one_order_is_not_for_penalised_ngrams(lms):
    named = {"g": LMSpec(lms["ngram"], oov_penalty=1.0), "n": LMSpec(lms["lstm"], oov_penalty=1.0)}
    assert LatticeOptions(named, {"g": 1.0, "n": 1.0}, order=3).load().order == {"n": 3}


def test_score_verb_says_how_many_and_what_they_cost(lms, tmp_path, capsys):
    hyps = ", ".join(json.dumps({"text": text}) for text in TEXTS)
    (tmp_path / "n.jsonl").write_text(f'{{"utt": "u", "hyps": [{hyps}]}}\n')
    arguments = f"score --nbest {tmp_path}/n.jsonl --out {tmp_path}/o --cache none --lm".split()
    assert main([*arguments, lms["tta"]]) == 0
    assert capsys.readouterr().err.endswith("22 tokens, 7 unknown (31.82%)\n")
    free = score_files.read(tmp_path / "o").log_prob["u"]
    assert main([*arguments, f"{lms['tta']},oov_penalty=3.25"]) == 0
    assert capsys.readouterr().err.endswith(
        "22 tokens, 7 unknown (31.82%) at a penalty of 22.8 nats in all\n"
    )
    table = score_files.read(tmp_path / "o")
    np.testing.assert_allclose(free - table.log_prob["u"], P * UNKNOWN, atol=1e-9)
    assert table.signature["oov"] == "3.25"


def test_perplexity_states_it(lm):
    texts = [text for text in TEXTS if text]
    free, dear = (
        perplexity(texts, *ask(lm, device="cpu", cache="none", oov_penalty=p)) for p in (0.0, P)
    )
    assert free["log_prob"] - dear["log_prob"] == pytest.approx(P * 7)
    assert "unknown-token probability less 3.25 nats;" in dear["rules"]
    assert "less" not in free["rules"]
    assert dear.get("log_normaliser") == free.get("log_normaliser")


CLOSED = (
    "\\data\\\nngram 1={}\nngram 2=2\n\n\\1-grams:\n-1\t</s>\n-99\t<s>\t-0.5\n-0.7\tthe\t-0.2\n"
)
CLOSED += "-0.9\tking\t-0.1\n-0.9\tking\u00a0!\t-0.1\n{}\n\\2-grams:\n-0.3\t<s> the\n"
CLOSED += "-0.4\tthe king\n\n\\end\\\n"
SAID = "has no probability of unknown words (no <unk>, a closed vocabulary): each has 1e-07"


@pytest.mark.parametrize("unk", ["", "-99\t<unk>\n", "-inf\t<unk>\n"])
def test_without_unk_one_unknown_word_decides_no_list(tmp_path, capfd, unk):
    """Each verb says what it has: score and ppl in a line, score files in their header."""
    lm, rows = tmp_path / "lm.arpa", tmp_path / "n.jsonl"
    lm.write_text(CLOSED.format(5 + bool(unk), unk))
    hyps = [{"text": "the zebra", "scores": {"am": -1.0}}, {"text": "king", "scores": {"am": -2.0}}]
    rows.write_text(json.dumps({"utt": "u", "hyps": hyps, "ref": "king"}) + "\n")
    out = str(tmp_path / "c.scores")
    call = ["score", "--nbest", str(rows), "--out", out, "--cache", "none", "--lm"]
    for penalty in (0, 2):
        assert main([*call, f"{lm},oov_penalty={penalty}"]) == 0
        told = capfd.readouterr().err
        assert told.count(SAID) == 1 and "KenLM" not in told and "Substituting" not in told
        table = score_files.read(out)
        assert table.signature["unk"] == "1e-07" and table.signature["spaces"] == "kenlm"
        given = np.array([-0.3 - 7 - (0.2 if unk != "-inf\t<unk>\n" else 0) - 1, -0.5 - 0.9 - 1.1])
        expected = given * np.log(10) - [penalty, 0]
        np.testing.assert_allclose(table.log_prob["u"], expected, atol=1e-4)
    weights = str(tmp_path / "w.json")
    assert main(["tune", "--nbest", str(rows), "--scores", f"c={out}", "--out", weights]) == 0
    assert capfd.readouterr().err.count(f"{out}: of a language model without <unk>") == 1
    figures = perplexity(["the zebra"], *ask(str(lm), device="cpu", cache="none"))
    assert "count with 1e-07, as the model has none" in figures["rules"]
    assert "as KenLM has it" in figures["rules"] and SAID in figures["notes"][0]
    assert "notes" not in perplexity(["the king\u00a0!"], *ask(str(lm), cache="none"))
    main(["doctor", "--nbest", str(rows), "--lm", str(lm)])
    assert f"hint: {lm}: {SAID}; --lm LM,oov_penalty=P" in capfd.readouterr().out


def test_prefixes_of_a_closed_vocabulary(tmp_path):
    (tmp_path / "lm.arpa").write_text(CLOSED.format(5, ""))
    scorer = load_scorer(str(tmp_path / "lm.arpa"))
    words = ["the", "zebra", "king", "king\u00a0!"]
    whole = scorer.log_probs(scorer.prepare([" ".join(words)]))[0]
    assert sum(walk(scorer.prefixes(), words)) == pytest.approx(whole.sum())
    assert len(whole) == 5 and whole.min() > -40


def test_a_model_of_ours_says_nothing_of_it(lms):
    scorer = load_scorer(lms["ngram"])
    assert not scorer.notes and not {"unk", "spaces"} & scorer.signature.keys()
