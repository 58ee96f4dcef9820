"""What is read from an experiment, what is said of what is absent, and what is refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from makeups import names_of
from unit.report.conftest import collect_rescoring

from lmtools.base.errors import UserError
from lmtools.base.seal import write_json
from lmtools.formats import jsonl, kaldi_text
from lmtools.formats.scores import hash_lists
from lmtools.report.artifacts import read_stages
from lmtools.report.experiment import trained_on
from lmtools.report.measure import set_name
from lmtools.report.style import FIRST, ORACLE, LmPart, Names, SystemParts, load_style
from lmtools.rescoring.experiment import read_experiment
from lmtools.text import Normaliser, corpus, subword
from lmtools.types import NBest


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("rescore", "no rescored systems"),
        ("ppl", "no table of perplexities"),
        ("lm", "nothing to say of trainings"),
        ("stages", "not known how the time divides"),
        ("score", "no model hashes"),
    ],
)
def test_absent_part_is_named(fresh, part, said):
    shutil.rmtree(fresh / part)
    (line,) = collect_rescoring(fresh).absent
    assert said in line
    assert line.startswith(f"{fresh}/{part}/")


def test_lists_alone_are_enough(fresh):
    for part in fresh.iterdir():
        shutil.rmtree(part)
    found = collect_rescoring(fresh)
    assert len(found.absent) == 5
    assert [(sample.name, sample.tuned) for sample in found.lists.samples] == [
        ("dev", True),
        ("test", False),
    ]
    assert found.title == "made-up"


def test_explicit_lists_and_title(exp):
    path = exp.parent / "data/test/nbest.jsonl.gz"
    found = collect_rescoring(exp, [path], "a title")
    assert found.title == "a title"
    assert [(sample.name, sample.tuned) for sample in found.lists.samples] == [("test", False)]
    assert all(set(system.texts) == {"test"} for system in found.lists.systems.values())


def test_references_from_the_text_beside(fresh):
    path = fresh.parent / "data/test/nbest.jsonl.gz"
    complete = list(jsonl.read(path))
    jsonl.write([NBest(nbest.utt, nbest.hyps) for nbest in complete], path)
    assert collect_rescoring(fresh).lists.samples[1].nbests == tuple(complete)
    (path.parent / "text").unlink()
    found = collect_rescoring(fresh)
    assert [sample.name for sample in found.lists.samples] == ["dev"]
    assert found.absent == (
        f"{path}: no references in it or in {path.parent}/text, so set 'test' is left out",
    )


def test_tuned_set_is_known_by_its_hash(fresh):
    test = list(jsonl.read(fresh.parent / "data/test/nbest.jsonl.gz"))
    for path in fresh.glob("tune/*/weights.json"):
        tree = json.loads(path.read_text())
        tree["dev"] |= {"path": "elsewhere/tuning.jsonl", "sha256": hash_lists(test)}
        write_json(tree, path)
    assert [sample.name for sample in collect_rescoring(fresh).lists.samples if sample.tuned] == [
        "test"
    ]


def test_parts_of_the_tuned_set_are_tuned(fresh):
    data = fresh.parent / "data"
    dev, test = (list(jsonl.read(data / name / "nbest.jsonl.gz")) for name in ("dev", "test"))
    jsonl.write(dev[:5], data / "dev-a/nbest.jsonl")
    jsonl.write(
        [NBest(d.utt, t.hyps, t.ref) for d, t in zip(dev, test, strict=False)],
        data / "same-ids/nbest.jsonl",
    )
    shutil.rmtree(fresh / "rescore")
    for name in ("dev", "test"):
        kaldi_text.write({}, fresh / f"rescore/tta/{name}.txt")
    assert {sample.name: sample.tuned for sample in collect_rescoring(fresh).lists.samples} == {
        "dev": True,
        "dev-a": True,
        "test": False,
        "same-ids": False,
    }


def test_cut_last_line_of_metrics_is_dropped(fresh):
    path = fresh / "lm/tta/metrics.jsonl"
    whole = collect_rescoring(fresh).learning["tta"]
    path.write_text(path.read_text() + '{"step": 9')
    assert collect_rescoring(fresh).learning["tta"] == whole


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("exp/tune/tta/weights.json", "{", "weights.json: not JSON"),
        ("exp/lm/tta/metrics.jsonl", '{"step": 1}\nx}\n', "metrics.jsonl:2: not JSON"),
        ("exp/score/tta/test.scores", "a#1\t-1\t2\n", "test.scores:1: no header"),
        ("exp/stages/3.json", "[]", "3.json: expected a JSON object"),
        ("exp/lattice/ngram/dev.json", "{}", r"ngram/dev\.json: key 'lattices' is missing; write"),
        (
            "data/dev/nbest.jsonl",
            '{"utt": "a", "ref": "", "hyps": []}',
            "a second N-best list of set 'dev'",
        ),
    ],
)
def test_refused(fresh, path, content, message):
    (fresh.parent / path).parent.mkdir(parents=True, exist_ok=True)
    (fresh.parent / path).write_text(content)
    with pytest.raises(UserError, match=message):
        collect_rescoring(fresh)


def test_what_is_not_there_is_refused(fresh):
    with pytest.raises(UserError, match="no such directory"):
        collect_rescoring(fresh / "other")
    (fresh.parent / "data").rename(fresh.parent / "elsewhere")
    with pytest.raises(UserError, match="no N-best lists"):
        collect_rescoring(fresh)


def test_no_references_at_all(tmp_path):
    kaldi_text.write({"a": "x"}, tmp_path / "exp/rescore/s/test.txt")
    jsonl.write([NBest("a", ())], tmp_path / "data/test/nbest.jsonl")
    with pytest.raises(UserError, match="lmtools convert --ref"):
        collect_rescoring(tmp_path / "exp")


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("mine", "mine"),
        ("tta+ngram", "T-TA + n-gram"),
        ("causal+mine", "uniLM + mine"),
        ("tta-mean", "T-TA, mean over tokens"),
        ("causal-mean", "uniLM (causal), mean over tokens"),
        ("tta-mean+ngram-mean", "T-TA, mean + n-gram, mean"),
        ("lattice-tta-mean", "T-TA, mean, lattice"),
        ("lattice-causal", "uniLM, lattice"),
        ("lattice-tta+ngram", "T-TA + n-gram, lattice"),
    ],
)
def test_names(name, label):
    names = names_of(name)
    assert names.label(name) == label
    assert names.looks([name]).keys() == {name, FIRST, ORACLE}


def test_a_name_says_nothing_of_what_a_system_is():
    """A user's language model may be called as another system would be."""
    called = {
        "foo-mean": SystemParts((LmPart("foo-mean"),)),
        "lattice-x": SystemParts((LmPart("lattice-x"),)),
        "a+b": SystemParts((LmPart("a+b"),)),
        "raw-unnormalised": SystemParts((LmPart("raw-unnormalised"),)),
        "lstm-bce": SystemParts((LmPart("lstm-bce"),)),
        "mine": SystemParts((LmPart("tta", "token"), LmPart("ngram", "word", False)), True),
    }
    names = Names(systems=called)
    labels = {name: names.label(name) for name in called}
    assert labels.pop("mine") == "T-TA, mean + n-gram, unnormalised, mean, lattice"
    assert labels == {name: name for name in labels}
    assert [name for name in called if names.is_mean(name)] == ["mine"]
    assert not any(look.hollow for name, look in names.looks(called).items() if name != "mine")
    assert names.ordered(called)[-1] == "mine"


def test_systems_made_of_the_same_are_told_apart():
    made = SystemParts((LmPart("tta"),))
    names = Names(systems={"tta": made, "again": made, "ngram": SystemParts((LmPart("ngram"),))})
    assert [names.label(one) for one in names.systems] == ["T-TA (tta)", "T-TA (again)", "n-gram"]


def test_the_experiment_s_file_has_order_labels_and_looks(tmp_path):
    (tmp_path / "e.yaml").write_text(
        "columns: {tta: {}, mine: {}, ngram: {}}\n"
        "systems:\n"
        "  tta+ngram: [tta, ngram]\n"
        "  tta-mean: {columns: [tta/token], label: ours}\n"
        "  mine: {columns: [mine], look: {light: '#000001', dark: '#ffffff'}}\n"
    )
    style = load_style(None, read_experiment(tmp_path / "e.yaml"))
    own = ["@first", "tta+ngram", "tta-mean", "mine", "ngram", "causal+tta", "lattice-ngram"]
    names = replace(names_of(*own[1:]), style=style)
    assert names.ordered(sorted(own)) == names.ordered(reversed(own)) == own
    assert names.lms.ordered(["causal", "ngram", "zeta", "mine", "tta"]) == [
        *("tta", "mine", "ngram", "causal", "zeta")
    ]
    assert names.label("tta-mean") == "ours" and names.label("tta+ngram") == "T-TA + n-gram"
    looks = names.looks([*own, "tta"])
    assert looks["mine"].light == "#000001" and looks["tta-mean"].light == looks["tta"].light
    (tmp_path / "e.yaml").write_text("systems:\n  a: {columns: [], look: {light: red}}\n")
    with pytest.raises(UserError, match=r"e\.yaml:2: .*'dark' is missing"):
        load_style(None, read_experiment(tmp_path / "e.yaml"))


@pytest.mark.parametrize(
    "order",
    [
        "@first @oracle tta all alpha first-pass zeta causal+masked tta+ngram",
        "@first ngram ngram-mean tta tta-mean mine mine-mean ngram+tta tta+ngram mine+tta"
        " ngram+masked+tta",
        "@first ngram all lattice-ngram lattice-causal lattice-mine lattice-tta+ngram",
    ],
)
def test_what_stands_in_no_file_stands_by_its_language_models(order):
    """Those on lattices after those on lists."""
    systems = order.split()
    names = names_of(*systems)
    assert names.ordered(sorted(systems)) == names.ordered(reversed(systems)) == systems


def test_means_look_like_their_sums_but_hollow_and_with_another_line():
    sums = ["mine", "tta", "yours", "tta+ngram"]
    means = ["mine-mean", "tta-mean", "yours-mean", "tta-mean+ngram-mean"]
    names = names_of(*sums, *means)
    without, styles = names.looks(sums), names.looks(["mine", *means])
    assert {name: styles[name] for name in ("mine", FIRST, ORACLE)} == {
        name: without[name] for name in ("mine", FIRST, ORACLE)
    }
    for name in ("mine", "tta", "yours", "tta+ngram"):
        look, mean = without[name], styles["tta-mean+ngram-mean" if "+" in name else f"{name}-mean"]
        assert (mean.light, mean.dark, mean.marker) == (look.light, look.dark, look.marker)
        assert mean.hollow and not look.hollow and mean.line != look.line


def test_a_link_to_shared_models(fresh):
    """Experiments that share their language models have links to them."""
    whole = collect_rescoring(fresh)
    (fresh.parent / "shared").mkdir()
    (fresh / "lm").rename(fresh.parent / "shared/lm")
    (fresh / "lm").symlink_to("../shared/lm")
    vocabulary = subword.train(
        "word", ["a b", "c"], None, Normaliser(), fresh.parent / "shared/subword"
    )
    (fresh.parent / "shared/text").write_text("a b\nc\n")
    corpus.binarise([fresh.parent / "shared/text"], vocabulary, fresh.parent / "shared/train.bin")
    (fresh / "train.bin").symlink_to("../shared/train.bin")
    found = collect_rescoring(fresh)
    assert (found.learning, found.configs, found.absent) == (whole.learning, whole.configs, ())
    assert found.training.sentences == 2 and whole.training is None


def test_where_models_were_trained_is_told_once():
    facts = {
        "processor": "AMD EPYC",
        "capability": "AVX512",
        "threads": 2,
        "torch": "2.13.0",
        "device": "cpu",
    }
    assert (
        trained_on([{"machine": facts}, {"machine": facts}, {}])
        == "trained on AMD EPYC (AVX512), threads 2, torch 2.13.0, cpu"
    )
    assert trained_on([{}]) == ""


def write_stage(home: Path, name: str, started: str, command: str) -> None:
    path = home / f"stages/{name}.json"
    path.parent.mkdir(exist_ok=True)
    number = int(name.rpartition("-")[2])
    path.write_text(json.dumps({"stage": number, "started": started, "command": command}))


def test_stages_of_all_scripts_in_the_order_in_which_they_were_started(tmp_path):
    assert read_stages(tmp_path) == []
    for number in (3, 4, 10):
        write_stage(tmp_path, str(number), f"2026-01-01T10:{number:02}", "./run.sh")
    write_stage(tmp_path, "translators-4", "2026-01-01T11:00", "./run_translators.sh")
    write_stage(tmp_path, "paper-4", "2026-01-01T11:01", "./run_paper.sh")
    (tmp_path / "stages/hashes.json").write_text("{}")
    found = [(one["stage"], one["command"]) for one in read_stages(tmp_path)]
    assert found == [
        *((number, "./run.sh") for number in (3, 4, 10)),
        ("translators-4", "./run_translators.sh"),
        ("paper-4", "./run_paper.sh"),
    ]
    write_stage(tmp_path, "4", "2026-01-01T12:00", "./run.sh --pair fr-en")  # begun anew
    assert [one["stage"] for one in read_stages(tmp_path)] == [3, 10, "translators-4", "paper-4", 4]


def test_manifests_without_times_go_by_number(tmp_path):
    for number in (10, 2):
        write_stage(tmp_path, str(number), "", "./run.sh")
    assert [one["stage"] for one in read_stages(tmp_path)] == [2, 10]


def test_set_names(tmp_path):
    assert set_name(tmp_path / "dev-clean/nbest.jsonl.gz") == "dev-clean"
    assert set_name(tmp_path / "x/dev-clean.jsonl") == "dev-clean"
