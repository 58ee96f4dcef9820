"""egs/gbw: run.sh from end to end, on a small cut of its mini corpus with tiny models, the scripts
beside it, and what its grids come to.
"""

import importlib.util
import itertools
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

from lmtools.base.config import build, from_yaml, read_layers
from lmtools.base.files import read_lines
from lmtools.cli import main
from lmtools.models.gcnn import Gcnn, GcnnConfig
from lmtools.models.settings import Settings
from lmtools.text.corpus import Corpus
from lmtools.text.subword import load_subword

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "egs/gbw"
GRIDS = ("context", "cuts", "gates", "output", "pieces", "residual", "table1", "training")
LINES = {"train": 800, "valid": 40}
UTTERANCES = {"dev": 24, "test": 12}
COMMON = {
    "batch": {"sentences": 16, "tokens": None},
    "steps": 12,
    "valid_every": 6,
    "precision": "float32",
}
ELMO = {"piece_dim": 4, "filters": [[1, 4], [2, 8]], "highway": 1, "dim": 8, "units": 12}
TINY = {
    "lstm": {"arch": {"layers": 1, "dim": 8, "units": 12}},
    "gcnn": {"arch": {"dim": 8, "blocks": ["[3, 12] x 2"]}},
    "elmo": {"arch": {**ELMO, "layers": 2}},
    "esulmo": {"arch": {**ELMO, "layers": 2}},
}
EPOCHS = ["batch.sentences=100", "steps=80", "keep_epochs=[10]"]  # ten epochs of 8 steps
GRID = {
    "title": "Two",
    "figure": "line",
    "x": "words",
    "match": True,
    "runs": {5: {"kernel": 5, "depth": 1, "settings": EPOCHS}, "its base": {}},
}
LMS = ("kn5", "lstm", "gcnn", "elmo-char", "esulmo-bpe-500")
SYSTEMS = ("first-pass", *LMS, "lstm+kn5", "gcnn+kn5", "all")
OPTIONS = ("--corpus", "small", "--nbest-dir", "lists", "--conf", "tiny")
PUBLISHED = ("gbw", "wikitext103", "wikitext2")


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
    """A small corpus, lists and tiny settings for the recipe in `home`."""
    text = [line for _, line in read_lines(REPOSITORY / "egs/librispeech/mini/train.txt.xz")]
    for name, count in LINES.items():
        (home / f"small/{name}.txt").write_text("".join(f"{line}\n" for line in text[:count]))
        del text[:count]
    (home / "lists").mkdir()
    for name, count in UTTERANCES.items():
        whole = REPOSITORY / f"egs/librispeech/mini-real/{name}.nbest.jsonl.xz"
        some = [line for _, line in read_lines(whole)][:count]
        (home / f"lists/{name}.nbest.jsonl").write_text("".join(f"{line}\n" for line in some))
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
    recipe.done = recipe(*OPTIONS)
    return recipe


def weights(recipe) -> dict[str, tuple]:
    """Each model's weights and when they were written."""
    return {
        path.parent.name: (path.read_bytes(), path.stat().st_mtime_ns)
        for path in recipe.home.glob("exp/lm/*/model.safetensors")
    }


def read_ppl(recipe, name: str, part: str) -> dict:
    return json.loads((recipe.home / f"exp/ppl/{name}/{part}.json").read_text())


def test_all_stages(whole):
    exp = whole.home / "exp"
    for stage in range(7):
        manifest = json.loads((exp / f"stages/{stage}.json").read_text())
        assert manifest["finished"] and manifest["options"]["corpus"] == "small"
    assert set(weights(whole)) == set(LMS[1:])
    for name in LMS:
        for part in ("valid", "test", "asr-dev", "asr-test"):
            count = len((whole.home / f"data/{part}/text").read_text().splitlines())
            figures = read_ppl(whole, name, part)
            assert figures["sentences"] == count and 1 < figures["word_ppl"] < 5000, name
            assert (figures["kind"] == "two-way perplexity") == ("elmo" in name or "esulmo" in name)
    for name in SYSTEMS:
        for part, count in UTTERANCES.items():
            chosen = (exp / f"rescore/{name}/asr-{part}.txt").read_text().splitlines()
            assert len(chosen) == count


def test_report_has_perplexities_beside_scores(whole):
    page = (whole.home / "exp/report/RESULTS.md").read_text()
    for title in ("Perplexity: gbw (small)", "WER after rescoring: asr-test", "Perplexity beside"):
        assert f"\n## {title}" in page
    assert "![WER % on asr-test after rescoring with one language model" in page
    png = (whole.home / "exp/report/ppl-asr-test.png").read_bytes()
    assert png.startswith(b"\x89PNG")
    main_table = page.partition("\n## Perplexity: gbw")[2].partition("\n## ")[0]
    assert "test ppl" in main_table and "asr-test" not in main_table


def test_figures_of_all_lms_compare(whole):
    """The same words, sentences and unknown words for every LM, of text and of lists."""
    for part in ("valid", "test", "asr-test"):
        figures = [read_ppl(whole, name, part) for name in LMS]
        assert len({(one["words"], one["sentences"], one["oov"]) for one in figures}) == 1, figures
        assert figures[0]["oov"] > 0


def test_commands_of_a_dry_run_give_the_same(whole):
    """Stages 4 to 6, pasted."""
    done = whole(*OPTIONS, "--stage", 4, "--dry-run")
    made = ("ppl", "score", "tune", "rescore")
    exp = whole.home / "exp"
    paths = [path for kind in made for path in sorted(exp.glob(f"{kind}/*/*")) if path.is_file()]
    before = {path: path.read_bytes() for path in paths if path.name != "weights.json"}
    for kind in made:
        shutil.rmtree(exp / kind)
    subprocess.run(
        ["bash", "-e"], input=done.stdout, env=whole.env, cwd=whole.home, text=True, check=True
    )
    assert len(before) > 40 and all(path.read_bytes() == kept for path, kept in before.items())


def test_a_dry_run_of_training_has_every_setting(tree, make_recipe, shell):
    """By several processes, each training is one torchrun; nothing is written."""
    several = ("--processes", 4, "--nj", 1, "--expdir", "many", "--train-opts", "steps=5 seed=2")
    done = make_recipe(tree, shell)(
        *OPTIONS, *several, "--dry-run", "--stage", 3, "--stop-stage", 3
    )
    heading, ngram, *trainings = done.stdout.splitlines()
    assert heading == "# stage 3: train LMs" and shlex.split(ngram)[:2] == ["lmtools", "ngram"]
    start = "python3 -m torch.distributed.run --standalone --nproc-per-node 4 -m lmtools train"
    assert [line.partition(" ")[2] for line in trainings] == [
        f"{start} --conf tiny/{conf}.yaml --train many/corpus/{read}/train.bin"
        f" --valid many/corpus/{read}/valid.bin --out many/lm/{name} steps=5 seed=2"
        for name, conf, read in (
            ("lstm", "lstm", "words"),
            ("gcnn", "gcnn", "words"),
            ("elmo-char", "elmo", "char"),
            ("esulmo-bpe-500", "esulmo", "bpe-500"),
        )
    ]
    assert not (tree / "many").exists()


def test_a_text_of_one_s_own_in_shards(tree, make_recipe, shell):
    """The test set is as it is; training corpora are in shards, valid.bin one file."""
    (tree / "mine").mkdir()
    for part in LINES:
        shutil.copy(tree / f"small/{part}.txt", tree / "mine")
    (tree / "mine/test.txt").write_text("a test of mine\n")
    own = ("--corpus", "mine", "--nbest-dir", "lists", "--datadir", "own", "--expdir", "shards")
    make_recipe(tree, shell)(*own, "--shard-size", "30K", "--stop-stage", 2)
    assert (tree / "own/test/text").read_text() == "a test of mine\n"
    size = (tree / "own/train/text").stat().st_size
    for name in ("words", "bpe-500"):
        corpora = [Corpus.open(tree / f"shards/corpus/{name}/{part}.bin") for part in LINES]
        assert [len(corpus.shards) for corpus in corpora] == [-(-size // 30720), 1]
        assert len(corpora[0]) == sum(map(len, corpora[0].shards)) == LINES["train"]


@pytest.mark.parametrize("corpus", PUBLISHED)
def test_published_corpora(tree, make_recipe, shell, corpus):
    """Each training has its settings, each LM its perplexities."""
    done = make_recipe(tree, shell).beside(f"run_{corpus}.sh", "--dry-run")
    commands = [shlex.split(line) for line in done.stdout.splitlines() if line[0] != "#"]
    named = {
        verb: [dict(itertools.pairwise(words)) for words in commands if verb in words]
        for verb in ("ngram", "train", "ppl")
    }
    assert all((tree / one["--conf"]).exists() for one in named["train"]) and named["train"]
    trained = [one["--out"] for verb in ("ngram", "train") for one in named[verb]]
    assert [one["--lm"] for one in named["ppl"]] == [lm for lm in trained for _ in range(2)]
    assert (
        f"local/get_{corpus}.sh" in commands[0]
        and "Stages:" in make_recipe(tree, shell).beside(f"run_{corpus}.sh", "--help").stdout
    )


def test_speed(whole):
    options = "--repeats 1 --seconds 0 --batch 4 --contiguous 30"
    whole.beside("run_speed.sh", f"--bench-opts={options}")
    rows = json.loads((whole.home / "exp/bench/lm.json").read_text())["rows"]
    assert {row["name"] for row in rows} == set(LMS)
    page = (whole.home / "exp/report/RESULTS.md").read_text()
    assert "## Throughput and responsiveness" in page and "## WER after rescoring" in page


# Grids


@pytest.fixture(scope="module")
def compared(whole):
    """The recipe after run_grids.sh."""
    whole.grids = whole.beside("run_grids.sh", "--grids", "two", "--conf", "tiny")
    return whole


def test_a_grid(compared):
    """Its base is what run.sh trained already; an epoch's weights are measured too."""
    assert "starting" in compared.grids.stdout and set(weights(compared)) == {*LMS[1:], "two-5"}
    first, last = (read_ppl(compared, "two-5", part) for part in ("test-epoch-10", "test"))
    assert first["words"] == last["words"] and first["word_ppl"] >= last["word_ppl"]
    assert yaml.safe_load((compared.home / "exp/grids/two.yaml").read_text()) == {
        "title": "Two", "figure": "line", "x": "words", "runs": {"5": "two-5", "its base": "gcnn"},
        "own": ["two-5"], "at": {"5": 5.0},
    }  # fmt: skip
    page = (compared.home / "exp/report/RESULTS.md").read_text()
    assert "## Two" in page and "## WER after rescoring" in page


def test_a_grid_called_again_trains_nothing(compared):
    before = weights(compared)
    again = ("--grids", "two", "--conf", "tiny", "--stage", 3, "--stop-stage", 3)
    done = compared.beside("run_grids.sh", *again)
    assert (
        "starting" not in done.stdout
        and done.stdout.count(" steps, ") == 2
        and weights(compared) == before
    )


def test_vocabularies_of_a_grid(tree, make_recipe, shell):
    done = make_recipe(tree, shell).beside("run_grids.sh", "--grids", "pieces", "--dry-run")
    assert done.stdout.count("lmtools subword ") == 7 and done.stdout.count("lmtools train ") == 8
    assert "--type unigram --vocab-size 2000 --words exp/vocabulary/words" in done.stdout
    assert "--train exp/corpus/char/train.bin --valid exp/corpus/char/valid.bin" in done.stdout


def test_wrong_grid(tree, make_recipe, shell):
    done = make_recipe(tree, shell).beside("run_grids.sh", "--grids", "gatez", status=2)
    assert done.stderr == f"conf/grids/gatez.yaml: not there; known: {', '.join(GRIDS)}\n"


@pytest.mark.parametrize("corpus", [None, "wikitext2", "wikitext103", "gbw"])
@pytest.mark.parametrize("grid", GRIDS)
def test_runs_are_settings(corpus, grid, monkeypatch):
    """Every run of every grid is a valid training; matched models have matched weights."""
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
    """The elements of a model's matrices but its lookup, counted on the model."""
    with torch.device("meta"):
        model = Gcnn(config, 1)
    return sum(p.numel() for p in model.parameters() if p.dim() == 3)


def base_width(conf: Path) -> int:
    """What the output layer sees of the base's states."""
    return from_yaml(
        Settings, local("grids").find("gcnn", conf, local("grids").SHARED)
    ).architecture.shapes[-1][-1][1]
