"""Parts of an experiment's systems: by the facts in their weights, in files of older versions by
features and signatures.
"""

from collections.abc import Collection, Mapping

from lmtools.report.names import LmPart, SystemParts
from lmtools.rescoring import SystemFacts, SystemLM, Weights, describe_lm
from lmtools.rescoring.tuning import INTERPOLATION
from lmtools.rescoring.weights import FIRST_PASS, LATTICES, SCORES


def find_makeups(
    weights: Mapping[str, Weights], models: Mapping[str, str], lists: Collection[str]
) -> dict[str, SystemParts]:
    """Return the parts of each system, by its weights; `models` are the hashes of language models,
    `lists` those of the experiment's own lists.
    """
    tuned_here = any(tuned.dev.sha256 in lists for tuned in weights.values())
    return {
        name: find_makeup(
            tuned.system
            or guess_facts(tuned, models, tuned_here and tuned.dev.sha256 not in lists),
            models,
        )._replace(interpolated=tuned.search.get("form") == INTERPOLATION)
        for name, tuned in weights.items()
    }


def find_makeup(facts: SystemFacts, models: Mapping[str, str]) -> SystemParts:
    """Return the parts of the system that `facts` describe, without the first pass's own scores."""
    parts = (
        LmPart(resolve_lm(lm, models), lm.score, lm.normalised)
        for lm in facts.lms
        if lm.source == SCORES or lm.signature
    )
    return SystemParts(tuple(parts), facts.lists == LATTICES)


def guess_facts(weights: Weights, models: Collection[str], lattices: bool) -> SystemFacts:
    """Guess the facts of a system from weights that lack them: columns with signatures or curves,
    and those with the name of a language model, are language models.
    """
    known = {*weights.signatures, *(weights.search.get("curves") or {}), *models} - {"lm"}
    lms = (
        describe_lm(name, weights.signatures.get(name, {}), SCORES)
        for name in weights.features
        if name in known
    )
    return SystemFacts(tuple(lms), LATTICES if lattices else FIRST_PASS)


def find_lattice_makeup(report: Mapping, models: Mapping[str, str]) -> SystemParts:
    """Return the language models rescored into lattices, by the report of `lmtools lattice rescore
    --report`.
    """
    signatures = report.get("signatures") or {
        name: {"normalise": report.get("normalise", "full")} for name in report.get("lms") or {}
    }
    lms = (describe_lm(*item, SCORES) for item in signatures.items())
    return find_makeup(SystemFacts(tuple(lms), LATTICES), models)


def resolve_lm(lm: SystemLM, models: Mapping[str, str]) -> str:
    """Return the name of a language model; of scores without normalisation, that of the model of
    the same hash.
    """
    value = lm.signature.get("model", "")
    same = [name for name, hashes in models.items() if value in hashes.split("/")]
    return same[0] if same and not lm.normalised else lm.name
