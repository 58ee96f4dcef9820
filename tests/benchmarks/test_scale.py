"""benchmarks/scale.py: what one core does, on many workers."""

import importlib.util
import math
from pathlib import Path

import pytest

HOME = Path(__file__).parents[2] / "benchmarks/scale.py"
spec = importlib.util.spec_from_file_location("scale", HOME)
scale = importlib.util.module_from_spec(spec)
spec.loader.exec_module(scale)
Cluster, Rates, simulate = scale.Cluster, scale.Rates, scale.simulate


def test_without_failures_it_is_the_formula():
    rates = Rates(start=5, work=0.01, serial=0.001)
    assert simulate(rates, 1000, 1, Cluster()) == pytest.approx(5 + 10 + 1)
    assert simulate(rates, 1000, 4, Cluster(queue=30)) == pytest.approx(5 + 1 + 30 + 5 + 2.5)
    # three shards of two workers: one has two, each of which starts
    assert simulate(rates, 900, 2, Cluster(shards=3)) == pytest.approx(5 + 0.9 + 2 * (5 + 3))


def test_failures_cost_what_was_lost_and_the_start():
    rates = Rates(start=10, work=1, serial=0)
    whole = simulate(rates, 36000, 1, Cluster(shards=1))
    failing = simulate(rates, 36000, 1, Cluster(shards=1, failures=1, lost=60, queue=50))
    # about ten failures of two minutes each
    assert 5 * 120 < failing - whole < 20 * 120
    assert math.isfinite(failing)


def test_processes_of_a_training_exchange_gradients():
    rates = Rates(start=10, work=4, serial=0, sync=0.5)
    assert simulate(rates, 100, 1, Cluster()) == pytest.approx(10 + 400)
    assert simulate(rates, 100, 2, Cluster()) == pytest.approx(10 + 250)
    assert simulate(rates, 100, 8, Cluster(queue=60)) == pytest.approx(70 + 50 + 87.5)
    failing = simulate(rates, 36000, 8, Cluster(failures=0.05, lost=100))
    assert failing > simulate(rates, 36000, 8, Cluster()) + 60
