"""n-gram models in other toolkits' forms, read by KenLM and by OpenFst: our sums."""

import math
import shutil

import kenlm
import numpy as np
import pytest
import sentencepiece
from toys import sentences

from lmtools.bridges.export.ngrams import read_ngrams, token_ids
from lmtools.cli import main
from lmtools.ngram import NgramModel

TEXTS = [*sentences(40, seed=5), "the", "king zebra queen", "zebra"]
LN10 = math.log(10)
KINDS = {  # how a model's vocabulary and order are made
    "words": (None, "", 3),
    "closed": ("word --vocab-size 20", "--unk", 3),
    "bpe": ("bpe --vocab-size 48", "", 4),
    "bigram": ("bpe --vocab-size 48", "", 2),
    "theirs": (None, "", 3),  # pieces of a model with other ids than ours
    "unigram": ("unigram --vocab-size 40", "--unk", 1),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The directory of an n-gram model of each of KINDS."""
    home = tmp_path_factory.mktemp("models")
    text = home / "text"
    text.write_text("\n".join(sentences(300, seed=1)) + "\n")

    def make(kind: str) -> str:
        scheme, more, order = KINDS[kind]
        lm = home / kind
        if not lm.exists():
            if kind == "theirs":
                more += f" --subword {adopt_pieces(text, home)}"
            if scheme:
                made = f"subword --text {text} --type {scheme} --out {home}/s-{kind}"
                assert main(made.split()) == 0
                more += f" --subword {home}/s-{kind}"
            made = f"ngram --text {text} --order {order} --kenlm none --out {lm} {more}"
            assert main(made.split()) == 0
        return str(lm)

    return make


def adopt_pieces(text, home) -> str:
    """A subword model of SentencePiece's own making, whose <unk> has id 0 and first piece id 3."""
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=f"{home}/sp", vocab_size=40, minloglevel=2, model_type="bpe"
    )
    assert main(f"subword --model {home}/sp.model --out {home}/s-theirs".split()) == 0
    return f"{home}/s-theirs"


def export(lm: str, form: str, out) -> int:
    return main(f"export --lm {lm} --to {form} --out {out}".split())


def known(lm: str) -> list[str]:
    """TEXTS; of a model whose vocabulary is open, those of words that it can know."""
    return TEXTS if NgramModel.load(lm).unknown else [t for t in TEXTS if "zebra" not in t]


def ids(model: NgramModel, text: str) -> list[int]:
    """The ids of a text, the id of <unk> for what the vocabulary lacks."""
    numbers = token_ids(model.subword)
    return [numbers.get(token, numbers["<unk>"]) for token in model.tokens(text)]


@pytest.mark.parametrize("kind", ["words", "closed", "bpe", "unigram"])
def test_kenlm_gives_our_sums(kind, models, tmp_path):
    lm = models(kind)
    assert export(lm, "arpa", tmp_path / "out") == 0
    theirs, ours = kenlm.Model(f"{tmp_path}/out/lm.arpa"), NgramModel.load(lm)
    assert theirs.order == max(2, ours.order)
    texts = known(lm)
    for text, expected in zip(texts, ours.score(texts)[0], strict=True):
        tokens = ours.subword.pieces(text)
        assert theirs.score(" ".join(tokens)) * LN10 == pytest.approx(expected, abs=1e-4)


def compile_graph(place):
    """What OpenFst makes of an exported graph, and the label of #0."""
    kaldifst = pytest.importorskip("kaldifst", reason="kaldifst is not installed")
    symbols = dict(line.split() for line in (place / "symbols.txt").read_text().splitlines())
    assert symbols["<eps>"] == "0" and len(set(symbols.values())) == len(symbols)
    backoff = int(symbols["#0"])
    assert backoff == max(map(int, symbols.values()))
    return kaldifst, kaldifst.compile((place / "G.fst.txt").read_text(), acceptor=False), backoff


def walk(kaldifst, graph, labels: list[int], backoff: int) -> float:
    """The cost of a sentence; a back-off arc is taken where no other fits."""
    state, cost = graph.start, 0.0
    for label in [*labels, None]:
        while True:
            arcs = {arc.ilabel: arc for arc in kaldifst.ArcIterator(graph, state)}
            end = graph.final(state).value
            if label is None and end < math.inf:
                return cost + end
            arc = arcs.get(label) or arcs[backoff]
            state, cost = arc.nextstate, cost + arc.weight.value
            if arc.ilabel == label:
                break
    return cost


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "theirs"])
def test_paths_of_openfst_cost_our_sums(kind, models, tmp_path):
    lm = models(kind)
    assert export(lm, "fst", tmp_path / "out") == 0
    kaldifst, graph, backoff = compile_graph(tmp_path / "out")
    model, texts = NgramModel.load(lm), known(lm)
    costs = [walk(kaldifst, graph, ids(model, text), backoff) for text in texts]
    np.testing.assert_allclose(costs, -model.score(texts)[0], rtol=0, atol=1e-4)


def test_the_shortest_path_through_a_bigram_is_its_sum(models, tmp_path):
    lm = models("bigram")
    assert export(lm, "fst", tmp_path / "out") == 0
    kaldifst, graph, backoff = compile_graph(tmp_path / "out")
    model = NgramModel.load(lm)
    for text in known(lm):
        labels = ids(model, text)
        loops = [f"{i} {i} {backoff} {backoff}" for i in range(len(labels) + 1)]
        steps = [f"{i} {i + 1} {label} {label}" for i, label in enumerate(labels)]
        line = kaldifst.compile("\n".join([*steps, *loops, str(len(labels))]), acceptor=False)
        kaldifst.arcsort(line, "olabel")
        best = kaldifst.shortest_path(kaldifst.compose(line, graph))
        cost = kaldifst.get_linear_symbol_sequence(best)[-1].value
        assert cost == pytest.approx(-model.score([text])[0][0], abs=1e-4)


def test_tokens_that_have_no_id_are_left_out_and_said(tmp_path, capsys):
    """Characters that the pieces lack are tokens of an open model, as they are written."""
    for name, lines in (("pieces", sentences(300, seed=1)), ("text", [*sentences(60, 2), "the é"])):
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    made = f"--text {tmp_path}/pieces --type bpe --vocab-size 48 --out {tmp_path}/s"
    assert main(f"subword {made}".split()) == 0
    made = f"--text {tmp_path}/text --order 2 --kenlm none --subword {tmp_path}/s"
    assert main(f"ngram {made} --out {tmp_path}/lm".split()) == 0
    assert export(str(tmp_path / "lm"), "fst", tmp_path / "fst") == 0
    assert "left out" in capsys.readouterr().out
    orders = read_ngrams(tmp_path / "lm")
    symbols = (tmp_path / "fst/symbols.txt").read_text()
    assert "é" in {token for tokens in orders[0] for token in tokens} and "é " not in symbols


@pytest.mark.parametrize("form", ["arpa", "fst"])
def test_what_cannot_be_is_refused(form, models, tmp_path, capsys):
    (tmp_path / "neural").mkdir()
    (tmp_path / "neural/config.yaml").write_text("model: causal\n")
    cases = {f"{tmp_path}/neural": "describes no n-gram model"}
    if form == "fst":
        cases[models("theirs")] = "id of <unk> is 0"
    for lm, cause in cases.items():
        assert export(lm, form, tmp_path / "out") == 1
        assert cause in capsys.readouterr().err
        assert not (tmp_path / "out").exists()


def test_a_binary_alone_lists_no_ngrams(models, tmp_path, capsys):
    lm = shutil.copytree(models("bpe"), tmp_path / "lm")
    (lm / "lm.arpa").unlink()
    assert export(str(lm), "fst", tmp_path / "out") == 1
    assert "KenLM's binary file lists no n-grams" in capsys.readouterr().err
