"""Our side of the ESPnet plug-in, without ESPnet; tests/interop/test_espnet.py has the other."""

import dataclasses
import math

import numpy as np
import pytest
import torch
import yaml
from scoring import load_scorer
from toys import WORDS, settings

from lmtools.base.errors import UserError
from lmtools.bridges.espnet.__main__ import main
from lmtools.bridges.espnet.export import (
    CONFIG,
    NEVER,
    WEIGHTS,
    export_model,
    match_tokens,
    read_tokens,
)
from lmtools.bridges.espnet.model import IMPOSSIBLE, TokenLM
from lmtools.models.checkpoint import load_model, prepare_directory, save_weights
from lmtools.models.lm import LanguageModel
from lmtools.text import Normaliser
from lmtools.text.subword import EOS, UNK, train

# in another order than ours, with a word that we lack
TOKENS = ["<blank>", "<unk>", *WORDS, "elephant", "<sos/eos>"]
ARCH = {
    "causal": {"layers": 2, "dim": 16, "heads": 2, "ffn": 32, "positions": 12},
    "lstm": {"layers": 2, "dim": 8, "units": 16},
    "gcnn": {"dim": 12, "blocks": ["[3, 16]", "[1, 8; 3, 8; 1, 16]"]},
}  # fmt: skip
OUTPUT = {
    "softmax": {},
    "bce-nce": {"samples": 8, "noise": "unigram"},
    "adaptive": {"cutoffs": [6, 12], "divide": 2.0},
}
KINDS = [
    ("causal", "softmax"),
    ("lstm", "softmax"),
    ("causal", "bce-nce"),
    ("lstm", "adaptive"),
    ("gcnn", "adaptive"),
]


def make_model(folder, model: str, criterion: str, subword):
    """A model directory with random weights, large enough for scores to differ."""
    torch.manual_seed(5)
    made = dataclasses.replace(
        settings("causal"),
        model=model,
        arch=ARCH[model],
        criterion=criterion,
        output=OUTPUT[criterion],
    )
    lm = LanguageModel(made, subword.size, np.arange(subword.size)[::-1] ** 2)
    with torch.no_grad():
        for tensor in lm.parameters():
            tensor.add_(0.3 * torch.randn_like(tensor))
    prepare_directory(folder, made, subword)
    save_weights(folder, lm)
    return folder


def load(folder) -> TokenLM:
    """What ESPnet makes of an exported directory: the class from lm_conf, then the weights."""
    config = yaml.safe_load((folder / CONFIG).read_text(encoding="utf-8"))
    lm = TokenLM(vocab_size=len(config["token_list"]), **config["lm_conf"])
    state = torch.load(folder / WEIGHTS)
    lm.load_state_dict(
        {name.removeprefix("lm."): tensor for name, tensor in state.items()}, strict=False
    )
    return lm.eval()


@pytest.fixture(scope="module", params=KINDS, ids="-".join)
def both(request, tmp_path_factory):
    """Our scorer and ESPnet's view of the same model."""
    root = tmp_path_factory.mktemp("espnet")
    subword = train("word", [" ".join(WORDS)], None, Normaliser(), root / "sw")
    folder = make_model(root / "lm", *request.param, subword)
    assert export_model(folder, TOKENS, "tokens.txt", root / "out") == ["elephant"]
    (root / "out").rename(root / "moved")
    folder.rename(root / "gone")  # the export stands alone
    return load_scorer(str(root / "gone"), "cpu"), load(root / "moved")


def expected(scorer, prefix: list[int]) -> np.ndarray:
    """log p of every ESPnet token after `prefix`, each by a pass over a sentence."""
    vocabulary = {word: i for i, word in enumerate(scorer.subword.vocabulary)}
    ids = [vocabulary.get(TOKENS[i], UNK) for i in prefix]
    follow = [vocabulary.get(token, UNK) for token in TOKENS[1:-1]]
    scores = [values[len(ids)] for values in scorer.compute([(*ids, i) for i in follow])]
    return np.array([IMPOSSIBLE, *scores, scorer.compute([tuple(ids)])[0][-1]])


def test_incremental_scores_are_those_of_whole_sentences(both):
    """Scores after every prefix of three branches are ours, one by one and batched."""
    scorer, lm = both
    sos = len(TOKENS) - 1
    ys, states = torch.tensor([[sos]]), [None]
    rng = np.random.default_rng(3)
    for _ in range(8):
        scores, states = lm.batch_score(ys, states, None)
        one, _ = lm.score(ys[0], None, None)
        assert torch.equal(one, scores[0]) or torch.allclose(one, scores[0], atol=1e-5)
        for y, values in zip(ys.tolist(), scores, strict=True):
            assert values.tolist() == pytest.approx(expected(scorer, y[1:]), abs=1e-4)
        whole, _ = lm(ys, None)
        assert torch.allclose(whole[:, -1], scores, atol=1e-4)
        chosen = torch.from_numpy(rng.integers(0, len(ys), 3))  # branches die and split
        states = [states[i] for i in chosen]
        ys = torch.cat([ys[chosen], torch.from_numpy(rng.integers(1, sos, (3, 1)))], dim=1)


def test_probabilities_sum_to_one_over_what_we_can_write(both):
    scorer, lm = both
    scores, _ = lm.score(torch.tensor([len(TOKENS) - 1, 3, 4]), None, None)
    once = [i for i, token in enumerate(TOKENS) if token not in ("<blank>", "elephant")]
    unwritten = [0, 3, 4]  # our pad, beginning, mask
    states = scorer.lm.trunk.hidden(
        torch.tensor([[3, *(scorer.subword.encode(" ".join(TOKENS[3:5])))]]), torch.tensor([3])
    )[0, -1:]
    rest = (
        scorer.lm.output.log_prob(
            scorer.lm.trunk.head(states).expand(3, -1), torch.tensor(unwritten)
        )
        .exp()
        .sum()
    )
    assert scores[once].exp().sum().item() + rest.item() == pytest.approx(1, abs=1e-4)
    assert scores[TOKENS.index("elephant")] == scores[1]


def test_long_prefixes_forget_their_older_half(both):
    scorer, lm = both
    sos = len(TOKENS) - 1
    y, state = [sos], None
    for token in np.random.default_rng(4).integers(2, sos - 1, 40).tolist():
        scores, state = lm.score(torch.tensor(y), state, None)
        assert math.isfinite(scores[1:].sum())
        y.append(token)
    prefix = y[1:-1]
    longest = min(scorer.lm.longest, len(prefix))
    close = [
        n
        for n in range(1, longest + 1)
        if torch.allclose(
            lm(torch.tensor([[sos, *prefix[-n:]]]), None)[0][0, -1], scores, atol=1e-4
        )
    ]
    if scorer.lm.settings.model in ("lstm", "gcnn"):
        assert len(prefix) in close
    else:  # it is the score after the last n tokens
        assert len(close) == 1
        assert longest // 2 < close[0] <= longest


def test_weights_have_to_be_there_and_to_fit(both, tmp_path):
    _, lm = both
    ids = [NEVER, *[UNK] * (len(TOKENS) - 2), EOS]
    fresh = TokenLM(
        len(TOKENS), {"model": "lstm", "objective": "causal", "arch": ARCH["lstm"]}, 30, ids
    )
    with pytest.raises(UserError, match="give --lm_file"):
        fresh.score(torch.tensor([len(TOKENS) - 1]), None, None)
    with pytest.raises(UserError, match="does not fit --lm_train_config"):
        fresh.load_state_dict(
            {name + "x": tensor for name, tensor in lm.state_dict().items()}, strict=False
        )
    with pytest.raises(UserError, match="export the model again"):
        TokenLM(3, {"model": "lstm", "objective": "causal"}, 30, [0, 1])


def subword_of(tmp_path, scheme, lines, size=None):
    return train(scheme, lines, size, Normaliser(), tmp_path / "sw")


def test_characters(tmp_path):
    ids, lacking = match_tokens(
        ["<blank>", "<unk>", "<space>", "b", "a", "<sos/eos>"],
        subword_of(tmp_path, "char", ["a a b"]),
        "t",
        "lm",
    )
    assert (ids, lacking) == ([NEVER, UNK, 5, 7, 6, EOS], [])


def test_a_word_list_may_be_larger_a_set_of_pieces_may_not(tmp_path):
    lines = [" ".join(WORDS)]
    some = ["<blank>", "<unk>", *WORDS[:10], "<sos/eos>"]
    assert match_tokens(some, subword_of(tmp_path, "word", lines), "t", "lm")[1] == []
    pieces = subword_of(tmp_path, "bpe", lines * 3, 60)
    letters = [piece for piece in pieces.vocabulary[5:] if len(piece) == 1]
    with pytest.raises(
        UserError,
        match=(
            rf"t: holds only {len(letters)} of the {pieces.size - 5} pieces of lm.*lmtools subword"
            r" --model"
        ),
    ):
        match_tokens(["<blank>", "<unk>", *letters, "<sos/eos>"], pieces, "t", "lm")
    upper = [piece.upper() for piece in pieces.vocabulary[5:]]
    with pytest.raises(UserError, match="tokens are not in the vocabulary of lm"):
        match_tokens(["<blank>", "<unk>", *upper, "<sos/eos>"], pieces, "t", "lm")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.yaml", "token_list: [a, b]\n"),
        ("config.yaml", "lr: 1\n"),
        ("tokens.txt", "a\nb\n"),
        ("tokens.txt", ""),
    ],
)
def test_what_is_no_token_list(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=r"no token list that ends in <sos/eos>"):
        read_tokens(tmp_path / name)


def test_token_list_by_value_or_path(tmp_path):
    tokens = ["<blank>", "<unk>", "▁a", "1", "<sos/eos>"]
    (tmp_path / "tokens.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    (tmp_path / "by_path.yaml").write_text(
        yaml.safe_dump({"token_list": str(tmp_path / "tokens.txt")})
    )
    (tmp_path / "by_value.yaml").write_text(yaml.safe_dump({"token_list": tokens}))
    assert all(
        read_tokens(tmp_path / name) == tokens
        for name in ("tokens.txt", "by_path.yaml", "by_value.yaml")
    )


def test_command(trained, tmp_path, capsys):
    words = load_model(trained["causal"])[1].vocabulary[5:]
    (tmp_path / "tokens.txt").write_text("\n".join(["<blank>", "<unk>", *words, "<sos/eos>"]))
    options = ["--token-list", str(tmp_path / "tokens.txt"), "--out", str(tmp_path / "out")]
    assert main(["export", "--lm", str(trained["causal"]), *options]) == 0
    assert f"{len(words) + 3} tokens\n" in capsys.readouterr().out
    assert load(tmp_path / "out").loaded
    assert main(["export", "--lm", str(trained["tta"]), *options]) == 1
    assert "reads both sides of a word" in capsys.readouterr().err
    assert main(["asr_inference", "--help"]) == 1
    assert "ESPnet is not installed here" in capsys.readouterr().err
