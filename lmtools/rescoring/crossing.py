"""Tuning by folds: the weights of a whole set, and of it without each fold."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from lmtools.evaluate import METRICS
from lmtools.rescoring.features import Features, best, combine
from lmtools.rescoring.folds import Fold, Folds, assign_folds
from lmtools.rescoring.tuning import DevSet, tune_features
from lmtools.rescoring.tuning_options import TuningOptions
from lmtools.rescoring.weights import Weights
from lmtools.types import NBest


class Crossing:
    """Folds of a set of lists read from `path`, for options that have some: see `assign_folds`."""

    def __init__(
        self,
        nbests: Sequence[NBest],
        options: TuningOptions,
        speakers: Mapping[str, str] | None,
        path,
    ):
        plan = options.fold_plan
        utterances = [nbest.utt for nbest in nbests]
        self.by, self.places = plan.by, {utt: place for place, utt in enumerate(utterances)}
        self.utterances = assign_folds(utterances, plan, options.seed, speakers=speakers, path=path)

    def tune(self, features: Features, dev_set: DevSet, options: TuningOptions) -> Weights:
        """Tune as `tune_features` does, and add the weights of each fold, tuned without it in the
        same way.
        """
        whole = tune_features(features, dev_set, options)
        statistics, everyone = dev_set.statistics, np.arange(len(dev_set.statistics))
        chosen, parts = np.zeros(len(everyone), int), []
        for name, utterances in self.utterances.items():
            rows = np.array([self.places[utt] for utt in utterances])
            rest = np.delete(everyone, rows)
            tuned = tune_features(features.take(rest), dev_set.take(rest), options).features
            held_out = features.take(rows)
            chosen[rows] = best(combine(tuned.values(), held_out.values), held_out.valid)
            parts.append(Fold(name, utterances, tuned))
        score = float(METRICS[options.metric].score(statistics[everyone, chosen].sum(0)))
        return replace(whole, folds=Folds(self.by, score, tuple(parts)))
