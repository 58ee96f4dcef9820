"""What systems are made of: by the facts in their weights, or by signatures."""

from lmtools.report.lists import find_lattice_makeup, find_makeups
from lmtools.report.style import LmPart, SystemParts
from lmtools.rescoring.weights import Dev, SystemFacts, SystemLM, Weights

MODELS = {"ngram": "n1", "lstm": "a1/b2", "tta": "t1"}
RAW = {"model": "b2", "normalise": "none"}


def weights(features: str, system=None, signatures=(), sha256="own") -> Weights:
    dev = Dev("dev.jsonl", sha256, 1, 2.0, 1.0)
    values = dict.fromkeys(features.split(), 1.0)
    return Weights("wer", values, "am", dev, signatures=dict(signatures), system=system)


def found(models=MODELS, **every) -> dict[str, SystemParts]:
    return find_makeups(every, models)


def test_facts_say_all():
    facts = SystemFacts(
        (
            SystemLM("lattice-x", "lattice-x/token", "token"),
            SystemLM("raw", "raw", normalised=False, signature=RAW),
            SystemLM("other", "other", normalised=False, signature={"model": "?"}),
            SystemLM("lm", "lm", source="lists"),  # of the first pass
        ),
        "lattices",
    )
    parts = (
        LmPart("lattice-x", "token"),
        LmPart("lstm", "sum", False),
        LmPart("other", "sum", False),
    )
    assert found(a=weights("am", facts)) == {"a": SystemParts(parts, True)}


def test_weights_without_facts_say_it_by_signatures():
    said = {"tta/token": {"model": "t1"}, "raw": RAW}
    old = found(a=weights("am lm tta/token raw words", signatures=said), c=weights("am lm words"))
    assert old["a"] == SystemParts((LmPart("tta", "token"), LmPart("lstm", "sum", False)))
    assert old["c"] == SystemParts()


def test_reports_of_lattices_say_what_was_rescored():
    signatures = {"tta": {"model": "t1"}, "raw": RAW}
    made = find_lattice_makeup({"signatures": signatures}, MODELS)
    assert made == SystemParts((LmPart("tta"), LmPart("lstm", "sum", False)), True)
