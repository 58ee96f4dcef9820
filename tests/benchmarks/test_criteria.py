"""What the benchmark of criteria counts, shares and writes (never how fast it was)."""

import json

import pytest
import torch
from bench import main
from measures.criteria import REFERENCE, Bench, Job, measure_memory

from lmtools.models.lm import LanguageModel
from lmtools.models.outputs import CRITERIA
from lmtools.models.outputs.sampled import SAMPLED
from lmtools.text.subword import EOS, SPECIALS

SMALL = {"layers": 1, "dim": 16, "heads": 2, "ffn": 32, "dropout": 0.0}
ARCH = {"causal": SMALL, "lstm": {"layers": 1, "dim": 16, "units": 24}}


def job(model="causal", size=300, **changes) -> Job:
    settings = {
        "model": model,
        "objective": "causal",
        "arch": ARCH[model],
        "optim": {"name": "sgd", "lr": 0.1, **changes.pop("optim", {})},
    }
    return Job(
        settings,
        changes.pop("output", {"samples": 20, "cutoffs": [30, 90, 5_000]}),
        size,
        sentences=3,
        tokens=5,
        **changes,
    )


def test_rows_cover_sizes_batches_and_criteria(tmp_path, monkeypatch, capsys):
    """Without the processes that measure memory: dozens of them are started in vain here."""
    peaks = iter([None, *range(1_000_000, 56_000_000, 1_000_000)])
    monkeypatch.setattr(
        "measures.criteria.measure_memory", lambda job, criterion: {"peak": next(peaks), "state": 7}
    )
    out = tmp_path / "criteria.json"
    small = [f"arch.{name}={value}" for name, value in SMALL.items()]
    sizes = f"--batch 2,4 --length 3 --repeats 2 --seconds 0 --out {out}".split()
    settings = [*small, "output.samples=20", "optim.lr=0.1"]
    assert main(["criteria", "--vocab-size", "60,300", *sizes, *settings]) == 0
    figures = json.loads(out.read_text())
    keys = [(row["size"], row["sentences"], row["criterion"]) for row in figures["rows"]]
    assert keys == [
        (size, batch, criterion) for size in (60, 300) for batch in (2, 4) for criterion in CRITERIA
    ]
    for row in figures["rows"]:
        assert row["targets"] == row["sentences"] * 4  # three tokens and the end of sentence
        assert len(row["seconds"]) == 2 and min(row["seconds"]) <= row["seconds_median"] <= max(
            row["seconds"]
        )
        assert (
            row["sparse"] == (row["criterion"] in SAMPLED)
            and ("samples" in row["output"]) == row["sparse"]
        )
        assert row["criterion"] != REFERENCE or row["ratio"] == 1
    assert (
        figures["versions"]["torch"] == torch.__version__
        and figures["settings"]["optim"]["name"] == "sgd"
    )
    assert [row["peak_bytes"] for row in figures["rows"]][:3] == [None, 1_000_000, 2_000_000]
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed if line.startswith(("softmax", "bce-nce"))] == [
        "softmax",
        "bce-nce",
    ] * 4
    assert (
        printed[2].endswith(" -")
        and printed[3].endswith(" 1")
        and printed[0].startswith("60 ids, 2 sentences of 3 tokens, 8 targets")
        and "; trunk: causal, 1 layers of 16, 0.0 million parameters" in printed[0]
    )


@pytest.mark.parametrize("criterion", ["bce", "mse", "bce-nce", "ce-is", "adaptive"])
@pytest.mark.parametrize("model", ["causal", "lstm"])
def test_a_changed_criterion_is_that_of_a_model_made_for_it(model, criterion):
    """One step of the shared model against loss and gradients of one made alone."""
    work = job(model, optim={"lr": 0.0, "clip": 0.0})
    bench = Bench(work)
    bench.use(criterion)
    settings = work.of(criterion)
    if criterion == "adaptive":
        settings = type(settings)(**{**vars(settings), "arch": {**settings.arch, "tied": False}})
    alone = LanguageModel(settings, work.size, work.counts)
    alone.load_state_dict(bench.lm.state_dict())
    torch.manual_seed(5)
    bench.step(bench.batches[1])
    torch.manual_seed(5)
    loss, count = alone(bench.batches[1])
    (loss / count).backward()
    gradients = {name: p.grad for name, p in bench.lm.named_parameters()}
    for name, parameter in alone.named_parameters():
        ours, theirs = gradients[name], parameter.grad
        if criterion == "adaptive" and ours is theirs is None:  # no target is in that cluster
            continue
        assert (
            ours.is_sparse
            == theirs.is_sparse
            == (criterion in SAMPLED and name in {"output.weight", *tables(alone)})
        )
        torch.testing.assert_close(ours.to_dense(), theirs.to_dense(), msg=name)


def tables(lm) -> set[str]:
    """The names of the input embedding."""
    return {
        name for name, parameter in lm.named_parameters() if parameter is lm.trunk.lookup.weight
    }


def test_batches_are_zipfian_words_and_do_not_depend_on_the_criterion():
    work = job(size=1_000)
    examples = Job(work.settings, {}, 1_000, 200, 50).batch(3)
    ids = examples.targets[examples.targets != EOS]
    assert ids.min() >= len(SPECIALS) and len(ids) == 200 * 50
    # half of the mass of log-uniform ranks lies below the root of their number
    half = (ids < len(SPECIALS) + 31).double().mean()
    assert abs(half - 0.5) < 0.03
    first, second = Bench(work), Bench(work)
    second.use("bce-is")
    assert all(
        torch.equal(a.targets, b.targets)
        for a, b in zip(first.batches, second.batches, strict=True)
    )


def test_memory_of_a_step_has_no_part_of_batch_x_vocabulary():
    """In its own process: 240 targets by 50,000 ids would be 48 MB an array."""
    work = Job(
        {**job().settings, "optim": {"name": "adam"}},
        {"samples": 20},
        50_000,
        sentences=40,
        tokens=5,
    )
    figures = measure_memory(work, "bce-nce")
    assert figures["peak"] < 24e6
    assert figures["state"] > 2 * 4 * 50_000 * 16  # Adam's moments of the matrix


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--criteria", "nce"], "'criteria' is 'nce', not one of softmax, bce"),
        (
            ["output.sample=9"],
            "output.sample: no option of these criteria; known: compensate, cutoffs",
        ),
        (
            ["output.samples=9", "--criteria", "bce"],
            "output.samples: no option of these criteria; known: rival",
        ),
    ],
)
def test_what_is_refused(words, message, capsys):
    assert main(["criteria", "--vocab-size", "60", *words]) == 1
    assert message in capsys.readouterr().err


def test_sizes_are_numbers(capsys):
    with pytest.raises(SystemExit):
        main(["criteria", "--vocab-size", "30k"])
    assert "'30k' is not a whole number from 1" in capsys.readouterr().err
