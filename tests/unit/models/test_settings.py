"""One setting for the forms that the papers print."""

import dataclasses
from pathlib import Path

import pytest

from lmtools.base.config import PRINTED, build, dump, from_yaml
from lmtools.base.errors import UserError
from lmtools.models import MODELS
from lmtools.models.outputs import CRITERIA
from lmtools.models.settings import Settings

CONF = Path(__file__).parents[3] / "egs/librispeech/conf"
STUDIES = CONF.parent / "studies/conf"
CASES = [  # model, criterion, what it becomes, arch and output
    ("tta", "softmax", "softmax", {"query": "position"}, {}),
    ("lstm", "ce-mcs", "ce-mcs", {}, {"target_in_sum": False}),
    ("lstm", "ce-is", "ce-is", {}, {"target_in_sum": False}),
    ("tta", "ce-cps", "ce-cps", {"query": "position"}, {"target_in_sum": False}),
    ("lstm", "ce-nce", "ce-nce-paper", {}, {}),
    ("lstm", "ce-nce-paper", "ce-nce-paper", {}, {}),
    ("causal", "bce-nce", "bce-nce", {}, {}),
    ("gcnn", "softmax", "softmax", {}, {}),
]


def tree(model, criterion, **more):
    return {"model": model, "objective": MODELS[model].objective, "criterion": criterion, **more}


@pytest.mark.parametrize(("model", "criterion", "becomes", "arch", "output"), CASES)
def test_as_printed_is_the_same_as_the_settings_one_by_one(model, criterion, becomes, arch, output):
    printed = build(Settings, tree(model, criterion, as_printed=True))
    plain = build(Settings, tree(model, becomes, arch=arch, output=output))
    assert printed == plain and dump(printed) == dump(plain)
    assert build(Settings, tree(model, criterion, as_printed=True, arch=arch)) == plain
    assert dataclasses.replace(printed, seed=1) == plain
    assert build(Settings, tree(model, criterion, as_printed=False)).criterion == criterion


def test_every_printed_form_is_in_the_table():
    """A field declared later needs a row above."""
    kinds = [*(kind.Config for kind in MODELS.values()), *(c.Config for c in CRITERIA.values())]
    declared = {
        field.name
        for kind in kinds
        for field in dataclasses.fields(kind)
        if field.metadata.get(PRINTED, field.default) != field.default
    }
    assert declared == {name for *_, arch, output in CASES for name in (*arch, *output)}


@pytest.mark.parametrize(
    ("model", "criterion", "group", "given", "message"),
    [
        ("tta", "softmax", "arch", {"query": "mask"}, "arch.query is mask, printed is position"),
        ("lstm", "ce-is", "output", {"target_in_sum": True}, "target_in_sum is true, printed is"),
        ("lstm", "ce-nce", "output", {"target_in_sum": True}, "target_in_sum is true, printed is"),
        ("lstm", "ce-cps", "output", {"compensate": "noise"}, "compensate is noise, printed is"),
        ("gcnn", "softmax", "arch", {"dropout": 0.1}, "arch.dropout is 0.1, printed is 0.0"),
        ("tta", "softmax", "arch", {"qery": "mask"}, "unknown setting 'arch.qery'"),
    ],
)
def test_a_setting_that_contradicts_it_is_refused(model, criterion, group, given, message):
    with pytest.raises(UserError, match=message):
        build(Settings, tree(model, criterion, as_printed=True, **{group: given}))


def test_it_is_a_setting_of_the_command_line_and_of_a_conf():
    conf = CONF / "tta.yaml"
    printed = from_yaml(Settings, conf, ["as_printed=true"])
    assert printed == from_yaml(Settings, conf, ["arch.query=position"])
    with pytest.raises(UserError, match=r"tta\.yaml: as_printed: arch\.query is mask"):
        from_yaml(Settings, conf, ["as_printed=true", "arch.query=mask"])
    with pytest.raises(UserError, match="'as_printed' is 2; expected bool"):
        from_yaml(Settings, conf, ["as_printed=2"])


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("lstm-ce-mcs-printed", ["criterion=ce-mcs", "output.target_in_sum=false"]),
        ("lstm-ce-is-printed", ["criterion=ce-is", "output.target_in_sum=false"]),
        ("lstm-ce-nce-paper", ["criterion=ce-nce-paper"]),
    ],
)
def test_confs_as_printed_are_the_trainings_that_they_were(name, same):
    """To the byte of config.yaml, of which the fingerprint of a training is made."""
    noise = ["output.noise=log-uniform", "output.samples=1024"]
    plain = from_yaml(Settings, STUDIES / "word/lstm.yaml", [same[0], *noise, *same[1:]])
    assert dump(from_yaml(Settings, STUDIES / f"words_printed/{name}.yaml")) == dump(plain)
