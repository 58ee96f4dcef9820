"""Damage of any artifact, at any byte, is refused in one line or changes nothing."""

import importlib.util
import sys
from pathlib import Path

import pytest


def loaded(name: str):
    """A module that lies beside this one."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


artifacts = loaded("artifacts")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Where the undamaged artifacts are."""
    return tmp_path_factory.mktemp("whole")


@pytest.mark.parametrize("kind", artifacts.KINDS)
def test_no_damage_is_silent(home, kind):
    count = 300 if kind == "vectors" else 60  # a zip file has many ways of being wrong
    outcomes = artifacts.damage_campaign(kind, count, 2, home)
    assert len(outcomes) == count and not [outcome for outcome in outcomes if outcome.became in artifacts.BAD]
    assert sum(outcome.became == artifacts.REFUSED for outcome in outcomes) > 30
