"""egs/gbw/run.sh from end to end, on a small cut of its mini corpus with tiny models; what its
grids come to.
"""

import importlib.util
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sentencepiece
import torch
import yaml

from lmtools.cli import main
from lmtools.config import build, from_yaml, read_layers
from lmtools.corpus import Corpus
from lmtools.files import read_lines
from lmtools.models.gcnn import Gcnn, GcnnConfig
from lmtools.settings import Settings
from lmtools.subword import load_subword

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "egs/gbw"
GRIDS = ("context", "gates", "output", "pieces", "residual", "table1", "training")
LINES = {"train.txt": 800, "valid.txt": 40}
COMMON = {
    "batch": {"sentences": 16, "tokens": None},
    "steps": 12,
    "valid_every": 6,
    "precision": "float32",
}
TINY = {
    "lstm": {"arch": {"layers": 1, "dim": 8, "units": 12}},
    "gcnn": {"arch": {"dim": 8, "blocks": ["[3, 12] x 2"]}},
    "elmo": {
        "arch": {
            "piece_dim": 4,
            "filters": [[1, 4], [2, 8]],
            "highway": 1,
            "dim": 8,
            "units": 12,
            "layers": 2,
        }
    },
}
GRID = {
    "title": "Two",
    "figure": "line",
    "x": "words",
    "match": True,
    "runs": {
        5: {
            "kernel": 5,
            "depth": 1,
            "settings": ["batch.sentences=100", "keep_epochs=[1]"],  # the first of 12 / 8 epochs
        },
        "its base": {},
    },
}
LMS = ("kn3", "gcnn", "elmo-bpe-80")
OPTIONS = ("--mini", "small", "--conf", "tiny", "--lms", "kn3 gcnn elmo@bpe-80", "--timed", "gcnn")
BENCH = ("--bench-opts=--repeats 1 --seconds 0 --batch 4 --contiguous 30",)


def local(name: str):
    """A module of egs/gbw/local, which finds those beside it when it runs, too."""
    if str(SOURCE / "local") not in sys.path:
        sys.path.append(str(SOURCE / "local"))
    spec = importlib.util.spec_from_file_location(f"gbw_{name}", SOURCE / f"local/{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def cut(home: Path) -> None:
    """A small corpus and tiny settings for the recipe in `home`."""
    text = [line for _, line in read_lines(REPOSITORY / "egs/librispeech/mini/train.txt.xz")]
    for name, count in LINES.items():
        (home / "small" / name).write_text("".join(f"{line}\n" for line in text[:count]))
        del text[:count]
    (home / "tiny/grids").mkdir(parents=True)
    for name, changes in TINY.items():
        base = read_layers(SOURCE / f"conf/{name}.yaml")
        tree = {**base, **COMMON, **changes, "output": {"cutoffs": [20, 100]}}
        (home / f"tiny/{name}.yaml").write_text(yaml.safe_dump(tree))
    (home / "tiny/grids/two.yaml").write_text(yaml.safe_dump(GRID))


@pytest.fixture(scope="module")
def tree(copied):
    """A repository with egs/gbw, a small corpus and tiny settings in it."""
    home = copied("gbw")
    cut(home)
    return home


@pytest.fixture(scope="module")
def whole(tree, make_recipe, shell):
    """The recipe after an uninterrupted run."""
    recipe = make_recipe(tree, shell)
    recipe.done = recipe(*OPTIONS, *BENCH, "--grids", "two")
    return recipe


def weights(recipe) -> dict[str, tuple]:
    """Each model's weights and when they were written."""
    return {
        path.parent.name: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in recipe.home.glob("exp/lm/*/model.safetensors")
    }


def test_all_stages(whole):
    exp = whole.home / "exp"
    for stage in range(7):
        manifest = json.loads((exp / f"stages/{stage}.json").read_text())
        assert (
            manifest["finished"]
            and manifest["options"]["corpus"] == "mini"
            and manifest["options"]["grids"] == "two"
        )
    assert set(weights(whole)) == {*LMS[1:], "two-5"}
    for name in (*LMS, "two-5"):
        for part in ("valid", "test"):
            count = len((whole.home / f"data/{part}/text").read_text().splitlines())
            figures = json.loads((exp / f"ppl/{name}/{part}.json").read_text())
            assert figures["sentences"] == count and 1 < figures["word_ppl"] < 5000, name
            assert (figures["kind"] == "two-way perplexity") == name.startswith("elmo")
    first, last = (
        json.loads((exp / f"ppl/two-5/{name}.json").read_text())
        for name in ("test-epoch-1", "test")
    )
    assert first["words"] == last["words"] and first["word_ppl"] >= last["word_ppl"]
    assert yaml.safe_load((exp / "grids/two.yaml").read_text()) == {
        "title": "Two", "figure": "line", "x": "words", "runs": {"5": "two-5", "its base": "gcnn"},
        "own": ["two-5"], "at": {"5": 5.0},
    }  # fmt: skip
    rows = {row["name"]: row for row in json.loads((exp / "bench/lm.json").read_text())["rows"]}
    assert set(rows) == {"gcnn"}
    assert "gcnn" in (exp / "report/RESULTS.md").read_text().lower()


def test_figures_of_all_lms_compare(whole):
    """The same words, sentences and unknown words for every LM."""
    for part in ("valid", "test"):
        figures = [
            json.loads((whole.home / f"exp/ppl/{name}/{part}.json").read_text()) for name in LMS
        ]
        assert len({(one["words"], one["sentences"], one["oov"]) for one in figures}) == 1, figures
        assert figures[0]["oov"] > 0


def test_a_grid_called_again_trains_nothing(whole):
    before = weights(whole)
    done = whole(*OPTIONS, *BENCH, "--grids", "two", "--skip-done", "true")
    assert done.stdout.count("is done already: skipped") == 7, done.stdout
    done = whole(*OPTIONS, "--lms", "none", "--grids", "two", "--stage", 3, "--stop-stage", 3)
    assert (
        "starting" not in done.stdout
        and done.stdout.count(" steps, ") == 2
        and weights(whole) == before
    )


def test_a_stage_starts_from_what_is_there(whole):
    before = (whole.home / "exp/ppl/kn3/test.json").read_bytes()
    done = whole(*OPTIONS, "--lms", "kn3", "--stage", 4, "--stop-stage", 4)
    assert [f"== stage {n}" in done.stdout for n in range(7)] == [n == 4 for n in range(7)]
    assert (whole.home / "exp/ppl/kn3/test.json").read_bytes() == before
    assert "changed since" not in done.stdout + done.stderr


def test_missing_input_says_where_to_start(tree, make_recipe, shell):
    recipe = make_recipe(tree, shell)
    some = ("--mini", "small", "--lms", "kn3", "--datadir", "none", "--expdir", "elsewhere")
    done = recipe(*some, "--stage", 4, status=1)
    remedy = f"run ./run.sh {' '.join(some)} --stage 0 --stop-stage 3"
    assert (
        done.stderr
        == f"./run.sh: stage 4 needs elsewhere/lm/kn3/config.yaml, which stage 3 writes; {remedy}\n"
    )


@pytest.mark.parametrize(
    "options, message",
    [
        (("--corpus", "mega"), "it takes mini, text, gbw, wikitext103 or wikitext2"),
        (("--corpus", "text"), "--corpus text needs --text-dir DIR with train.txt, valid.txt and"),
        (("--line", "article"), "--line is 'article'; it takes paragraph, and article with wiki"),
        (("--lms", "gcnm"), "no gcnm.yaml in conf and ../../conf"),
        (
            ("--lms", "elmo@bpe"),
            "'bpe' is no vocabulary; it is words, char, bpe-SIZE or unigram-SIZE",
        ),
        (("--lms", "none"), "no LMs to train"),
    ],
)
def test_wrong_options(tree, make_recipe, shell, options, message):
    done = make_recipe(tree, shell)(*options, "--expdir", "wrong", status=2)
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_a_text_of_one_s_own(tree, make_recipe, shell):
    """Stages 0 and 1 of --corpus text."""
    recipe = make_recipe(tree, shell)
    (tree / "mine").mkdir()
    for part in ("train", "valid", "test"):
        (tree / f"mine/{part}.txt").write_text(f"{part} of mine\n")
    own = ("--corpus", "text", "--text-dir", "mine", "--datadir", "own", "--expdir", "own/exp")
    recipe(*own, "--lms", "kn3", "--stop-stage", 1)
    assert (tree / "own/test/text").read_text() == "test of mine\n"


def test_text_in_shards(tree, make_recipe, shell):
    """Each vocabulary's training corpus; valid.bin stays one file."""
    recipe = make_recipe(tree, shell)
    lms = ("--lms", "gcnn elmo@bpe-80", "--shard-size", "30K", "--expdir", "shards")
    recipe(*OPTIONS, *lms, "--stop-stage", "3")
    size = (recipe.home / "data/train/text").stat().st_size
    for name in ("words", "bpe-80"):
        home = recipe.home / "shards/corpus" / name
        corpora = [Corpus.open(home / f"{part}.bin") for part in ("train", "valid")]
        assert [len(corpus.shards) for corpus in corpora] == [-(-size // 30720), 1]
        assert len(corpora[0]) == sum(map(len, corpora[0].shards)) > 0.9 * LINES["train.txt"]
    assert len(list(recipe.home.glob("shards/lm/*/model.safetensors"))) == 2


def test_wrong_grid(tree, make_recipe, shell):
    done = make_recipe(tree, shell)("--grids", "gatez", "--expdir", "wrong", status=2)
    assert done.stderr == f"conf/grids/gatez.yaml: not there; known: {', '.join(GRIDS)}\n"


def test_several_processes(tree, make_recipe, stub):
    """Each training is one torchrun with that many processes, and gets all settings as they are."""
    torchrun = "torch.distributed.run"
    stubs = {
        "nproc": "echo 8",
        "python3": f'[ "$2" != {torchrun} ] || {{ printf "<%s>" "$@"; echo; exit; }}\n'
        f'exec "{sys.executable}" "$@"',
    }
    for name, does in stubs.items():
        path = Path(stub["PATH"].split(":")[0]) / name
        path.write_text(f"#!/bin/sh\n{does}\n")
        path.chmod(0o755)
    recipe = make_recipe(tree, stub)
    for path in (
        "data/train/text",
        *(f"many/corpus/words/{part}.bin" for part in ("train", "valid")),
        "many/vocabulary/words/x",
    ):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).touch()
    options = shlex.split("--conf tiny --lms none --grids two --processes 4 --nj 1 --expdir many")
    # the stub trains nothing
    done = recipe(
        *options, "--stage", 3, "--stop-stage", 3, "--train-opts", "steps=5 seed=2", status=1
    )
    run, base = (line for line in done.stdout.splitlines() if line.startswith("<"))
    start = f"<-m><{torchrun}><--standalone><--nproc-per-node><4><-m><lmtools><train><--conf>"
    start += "<tiny/gcnn.yaml>"
    assert run.startswith(start) and run.endswith("<arch.blocks=['[5, 12]']><steps=5><seed=2>")
    assert base.startswith(start) and base.endswith("<many/lm/gcnn><steps=5><seed=2>")


def test_a_copy_runs_at_once(tree, make_recipe, shell):
    """utils/new_recipe.sh, whose page is this recipe's."""
    root = tree.parents[1] / "copied"
    shutil.copytree(REPOSITORY / "utils", root / "utils")
    for folder in ("local", "conf"):
        shutil.copytree(SOURCE / folder, root / "egs/gbw" / folder)
    shutil.copy(SOURCE / "run.sh", root / "egs/gbw")
    subprocess.run(
        [root / "utils/new_recipe.sh", "gbw", "mine"], check=True, capture_output=True, env=shell
    )
    home = root / "egs/mine"
    page = (home / "README.md").read_text()
    assert (
        page.startswith("# mine\n\nCopied from egs/gbw.")
        and "train.txt" in page
        and "@" not in page
    )
    # where the mini corpus lies: not beside the copy
    shutil.copytree(tree / "small", root / "egs/librispeech/mini")
    recipe = make_recipe(home, shell)
    recipe("--lms", "kn3 gcnn", "--stop-stage", 1)
    assert "mine, copied from gbw: train n-gram" in recipe("--help", "--grids", "gates").stdout
    assert (home / "data/valid/text").read_text() == (tree / "small/valid.txt").read_text()


# Grids


@pytest.mark.parametrize("corpus", [None, "wikitext2", "wikitext103", "gbw"])
@pytest.mark.parametrize("grid", GRIDS)
def test_runs_are_settings(corpus, grid, monkeypatch):
    """Every run of every grid is a valid training on every corpus; where weights are matched,
    models have them.
    """
    monkeypatch.chdir(SOURCE)
    module, conf = local("grids"), Path("conf") / (corpus or "")
    loaded, sizes = module.load(conf, grid)[0], {}
    for label, run, _, base, _, chosen in module.planned(conf, grid):
        settings = from_yaml(Settings, module.find(base, conf, module.SHARED), chosen)
        settings.architecture, settings.output_layer  # noqa: B018
        if settings.model == "gcnn":
            sizes[label] = trunk_weights(settings.architecture)
            assert settings.architecture.shapes[-1][-1][1] == base_width(conf)
        if grid == "context":
            assert settings.architecture.receptive_field == int(run.of)
    if loaded.match:
        goal = trunk_weights(
            build(GcnnConfig, read_layers(module.find("gcnn", conf, module.SHARED))["arch"])
        )
        assert all(0.97 * goal <= size <= goal for size in sizes.values()), (goal, sizes)


def test_groups_and_places_are_written(monkeypatch, tmp_path):
    """What the report has to know of runs of which the best is drawn."""
    monkeypatch.chdir(SOURCE)
    local("grids").write(Path("conf"), "context", "gates", str(tmp_path))
    context, gates = (
        yaml.safe_load((tmp_path / f"{name}.yaml").read_text()) for name in ("context", "gates")
    )
    assert set(context["of"].values()) == {"4", "7", "13", "25", "31", "40", "49"}
    assert all(context["at"][label] == float(group) for label, group in context["of"].items())
    counts = {group: list(context["of"].values()).count(group) for group in context["of"].values()}
    assert min(counts.values()) >= 2
    assert context["runs"]["13, kernel 4"] == "gcnn" == gates["runs"]["GLU, lr 1"]
    assert gates["of"].keys() == gates["runs"].keys()
    assert "at" not in gates


def test_overlap_of_vocabularies(tmp_path, capsys):
    """Of each size that there is of both, as sets of SentencePiece's own lists have it."""
    text = tmp_path / "text"
    lines = [line for _, line in read_lines(REPOSITORY / "egs/librispeech/mini/valid.txt.xz")]
    text.write_text("".join(f"{line}\n" for line in lines[:200]))

    def learn(name: str, *options: str):
        directory = tmp_path / "vocabulary" / name
        assert main(["subword", "--text", str(text), *options, "--out", str(directory)]) == 0
        return directory

    words = learn("words", "--type", "word")
    for name in ("bpe-80", "bpe-60", "unigram-80", "unigram-70"):
        scheme, size = name.split("-")
        learn(name, "--type", scheme, "--vocab-size", size, "--words", str(words))
    listed = {}
    for scheme in ("bpe", "unigram"):
        pieces = load_subword(tmp_path / f"vocabulary/{scheme}-80").pieces_model
        processor = sentencepiece.SentencePieceProcessor(model_proto=pieces.content)
        ids = [i for i in range(processor.get_piece_size()) if not processor.is_unknown(i)]
        listed[scheme] = {processor.id_to_piece(i) for i in ids if not processor.is_control(i)}
        assert len(listed[scheme]) >= 75
    shared = listed["bpe"] & listed["unigram"]
    share = 100 * len(shared) / min(map(len, listed.values()))
    capsys.readouterr()
    local("overlap").main(tmp_path / "vocabulary")
    said = capsys.readouterr().out
    assert said.startswith(f"80 pieces: BPE and unigram share {share:.1f} % ({len(shared)} pieces)")
    assert said.count("\n") == 1 and 0 < share < 100


def trunk_weights(config: GcnnConfig) -> int:
    """The elements of all matrices of a model but its lookup, counted on the model itself; scales
    and biases are vectors.
    """
    with torch.device("meta"):
        model = Gcnn(config, 1)
    return sum(p.numel() for p in model.parameters() if p.dim() == 3)


def base_width(conf: Path) -> int:
    """What the output layer sees of the base's states."""
    return from_yaml(
        Settings, local("grids").find("gcnn", conf, local("grids").SHARED)
    ).architecture.shapes[-1][-1][1]
