"""egs/stsb from end to end on made-up pairs and lists with tiny models; what is fetched of the STS
Benchmark and SICK.
"""

import gzip
import io
import json
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from recipe import test_fetch
from safetensors.numpy import load_file
from toys import sentences

from lmtools import Hypothesis, NBest
from lmtools.formats import jsonl

REPOSITORY = Path(__file__).parents[2]
TINY = (
    "arch.layers=1 arch.dim=16 arch.heads=2 arch.ffn=32 batch.sentences=16 batch.tokens=null"
    " optim.warmup=2 steps=20 precision=float32"
)
SMALL = shlex.split("--corpus small --nbest-dir small --vocab-size 60 --dim 8 --precision float32")
OPTIONS = (*SMALL, "--train-opts", TINY, "--nj", 1)
LMS = ("causal", "masked", "tta")
# layers of each
SYSTEMS = {
    **{name: [0, 1] for name in LMS},
    **{name: [1] for name in ("causal-eos", "masked-masked", "tta-eos")},
    **{name: [0] for name in ("words", "tfidf")},
}
SETS = {"dev": 24, "test": 40}
server, run, sha256 = test_fetch.server, test_fetch.run, test_fetch.sha256


def graded(count: int, seed: int) -> list[tuple[str, str, float]]:
    """Pairs whose second sentence keeps 1 to 4 quarters of the first: the similarity."""
    pairs = []
    for number, (left, other) in enumerate(
        zip(sentences(count, seed, 12), sentences(count, seed + 1, 12), strict=True)
    ):
        grade = number % 4 + 1
        words = left.split()
        right = [
            word if 4 * place < grade * len(words) else "river" for place, word in enumerate(words)
        ]
        pairs.append(
            (f"{left.capitalize()}.", " ".join([*right, *other.split()[: 4 - grade]]), float(grade))
        )
    return pairs


def heard(name: str, count: int, seed: int) -> list[NBest]:
    """Lists of three hypotheses, of which the second is right."""
    return [
        NBest(
            f"{name}-{number}",
            tuple(
                Hypothesis(text, {"am": -number % 7 - rank})
                for rank, text in enumerate((f"river {ref}", ref, f"{ref} river house"))
            ),
            ref,
        )
        for number, ref in enumerate(f"{line} finch" for line in sentences(count, seed, 6))
    ]


def corpus(home: Path) -> None:
    """A mini corpus; the text has the first reference of dev."""
    home.mkdir(exist_ok=True)
    for seed, (name, count) in enumerate({"train": 300, "valid": 40}.items()):
        (home / f"{name}.txt").write_text("".join(f"{line}\n" for line in sentences(count, seed)))
    for seed, (name, count) in enumerate(SETS.items(), 10):
        lines = ["\t".join(map(str, pair)) + "\n" for pair in graded(count, seed)]
        (home / f"{name}.tsv.gz").write_bytes(gzip.compress("".join(lines).encode()))
        jsonl.write(heard(name, count, seed), home / f"{name}.nbest.jsonl")
    with open(home / "train.txt", "a") as stream:
        stream.write(f"And, {heard('dev', 1, 10)[0].ref.upper()}!\n")


@pytest.fixture(scope="module")
def whole(copied, make_recipe, shell):
    recipe = make_recipe(copied("stsb"), shell)
    corpus(recipe.home / "small")
    recipe(*OPTIONS)
    return recipe


def results(exp: Path) -> dict[str, bytes]:
    """What a run leaves that does not name the time."""
    kinds = ("lm/*/model.safetensors", "sts/*/*.json", "score/*/*", "rescore/*/*", "tune/*/*")
    paths = [path for kind in kinds for path in sorted(exp.glob(kind))]
    return {str(path.relative_to(exp)): path.read_bytes() for path in paths}


def test_all_stages(whole):
    exp = whole.home / "exp"
    for stage in range(7):
        assert json.loads((exp / f"stages/{stage}.json").read_text())["finished"]
    assert {path.parent.name for path in exp.glob("sts/*/test.json")} == set(SYSTEMS)
    assert {path.parent.name for path in exp.glob("rescore/*/test.txt")} == {"first-pass", *LMS}
    report = (exp / "report/RESULTS.md").read_text()
    assert "# Results: stsb (small)" in report
    table = report.partition("## Similarity against reranking")[2].partition("\n## ")[0]
    assert all(f"| {lm} " in table for lm in ("uniLM", "biLM", "T-TA"))
    assert not [path for path in exp.rglob("*") if ".tmp" in path.name]


def test_data_is_as_it_was_given(whole):
    """Pairs of both sets; each text once; lists but those that the text has."""
    data, texts = whole.home / "data", set()
    for seed, (name, count) in enumerate(SETS.items(), 10):
        rows = [line.split("\t") for line in (data / name / "pairs.tsv").read_text().splitlines()]
        assert [(left, right, float(score)) for left, right, score in rows] == graded(count, seed)
        texts |= {text for left, right, _ in rows for text in (left, right)}
        read = heard("dev", 1, 10)[0].ref
        kept = [nbest for nbest in heard(name, count, seed) if nbest.ref != read]
        assert list(jsonl.read(data / name / "nbest.jsonl")) == kept
    lines = (data / "sentences.txt").read_text().splitlines()
    assert len(lines) == len(texts) and set(lines) == texts
    assert (data / "train/text").read_bytes() == (whole.home / "small/train.txt").read_bytes()


@pytest.mark.parametrize("system", SYSTEMS)
def test_figures_are_those_of_the_vectors(whole, system):
    """Cosine and Pearson, computed here, of what stage 4 wrote."""
    with np.load(whole.home / f"exp/embed/{system}.npz") as stored:
        texts = stored["texts"].tolist()
        layers = stored["layers"].tolist()
        vectors = stored["vectors"].astype(np.float64)
    vectors = vectors.reshape(len(texts), len(layers), -1)
    place = {text: number for number, text in enumerate(texts)}
    for seed, (name, count) in enumerate(SETS.items(), 10):
        said = json.loads((whole.home / f"exp/sts/{system}/{name}.json").read_text())
        pairs = graded(count, seed)
        assert said["count"] == count and said["similarity"] == [score for *_, score in pairs]
        assert [row["layer"] for row in said["rows"]] == layers == SYSTEMS[system]
        left, right = (vectors[[place[pair[side]] for pair in pairs]] for side in (0, 1))
        norms = np.linalg.norm(left, axis=2) * np.linalg.norm(right, axis=2)
        cosines = (left * right).sum(axis=2) / np.where(norms, norms, 1)
        for number, row in enumerate(said["rows"]):
            np.testing.assert_allclose(row["cosine"], cosines[:, number], atol=1e-5)
            assert row["pearson"][0] == pytest.approx(
                np.corrcoef(said["similarity"], cosines[:, number])[0, 1], abs=1e-4
            )


def test_a_dry_run_pasted_gives_the_same_files(whole, copied, make_recipe, shell):
    other = make_recipe(copied("stsb"), shell)
    corpus(other.home / "small")
    printed = other("--dry-run", *OPTIONS, "--stop-stage", 5).stdout
    assert not (other.home / "exp").exists()
    subprocess.run(["bash", "-e"], input=printed, env=shell, cwd=other.home, text=True, check=True)
    assert results(other.home / "exp") == results(whole.home / "exp")


def test_again(whole):
    done = whole(*OPTIONS, "--skip-done", "true")
    assert done.stdout.count("is done already: skipped") == 7, done.stdout


def test_scripts_beside_run_sh(whole):
    """BERT's rows come into the report of run.sh."""
    options = ("--train-opts", TINY, "--precision", "float32", "--nj", 1, "--corpus", "small")
    whole.beside("run_paper.sh", *options)
    layers = {
        path.parent.name: [row["layer"] for row in json.loads(path.read_text())["rows"]]
        for path in whole.home.glob("exp/sts/bert*/test.json")
    }
    assert layers == {"bert": [0, 1], "bert-masked": [1], "bert-cls": [1]}
    report = (whole.home / "exp/report/RESULTS.md").read_text()
    table = report.partition("## Similarity against reranking")[2].partition("\n## ")[0]
    assert "| BERT " in table and "./run_paper.sh" in report
    done = whole(*OPTIONS, "--skip-done", "true", "--stop-stage", 5)
    assert done.stdout.count("is done already: skipped") == 6, done.stdout
    printed = whole.beside("run_speed.sh", "--dry-run", "--lengths", "5,9").stdout
    assert " --representation --length 5\\,9 --repeats 15 " in printed


def test_controls(whole):
    """Weights are the seed's, the table has means and p, surface rows are of words."""
    data, exp = whole.home / "data", whole.home / "exp/controls"
    (data / "own/test").mkdir(parents=True)
    shutil.copy(data / "test/pairs.tsv", data / "own/test/pairs.tsv")
    shutil.copy(data / "sentences.txt", data / "own/sentences.txt")
    options = ("--train-opts", TINY, "--precision", "float32", "--nj", 1, "--pairs", "own")
    whole.beside("run_controls.sh", *options)
    first, second = (load_file(exp / f"lm/tta-{n}/model.safetensors") for n in (1, 2))
    valid, out = whole.home / "exp/valid.bin", whole.home / "exp/again"
    settings = [*TINY.split(), "seed=2", "batch.sentences=4", "steps=1", "optim.lr=0"]
    corpora = ("--train", valid, "--valid", valid, "--out", out)
    command = ["lmtools", "train", "--conf", whole.home / "conf/tta.yaml", *corpora, *settings]
    subprocess.run(command, env=whole.env, check=True, capture_output=True)
    other = load_file(out / "model.safetensors")  # other batches, equal weights
    assert all((other[name] == value).all() for name, value in second.items())
    assert not all((other[name] == value).all() for name, value in first.items())
    read = {
        path.parent.name: json.loads(path.read_text())["rows"] for path in exp.glob("sts/*/*.json")
    }
    table = [line.split(" | ") for line in (exp / "controls.md").read_text().splitlines()]
    cells = {row[0].strip("| "): row[1:] for row in table}
    for lm, label in (("causal", "uniLM"), ("tta", "T-TA")):
        values = [100 * read[f"{lm}-{seed}"][-1]["pearson"][0] for seed in "123"]
        shown = f"{np.mean(values):.2f} [{min(values):.2f}, {max(values):.2f}]"
        assert cells[f"{label}, untrained"][0] == shown
        assert cells[label][0] == f"{100 * read[lm][-1]['pearson'][0]:.2f}"
        assert 0 < float(cells[label][3].strip("<|")) <= 1
    left, right, _ = zip(*graded(SETS["test"], 11), strict=True)
    words = [
        [len(text.replace(".", "").split()) for text in pair]
        for pair in zip(left, right, strict=True)
    ]
    assert read["length"][0]["cosine"] == [min(pair) / max(pair) for pair in words]
    assert read["overlap"][0]["pearson"][0] > 0.5  # pairs are graded by their words


def test_lists_that_the_text_has_are_left_out(whole, tmp_path):
    script = [sys.executable, REPOSITORY / "egs/stsb/local/prepare_lists.py"]
    refs = {
        "run": "O one two three four five six seven eight nine",
        "seven": "zero one two three four five six seven",
        "short": "Eight, NINE",
        "apart": "eight ten",
        "empty": "",
    }
    (tmp_path / "text").write_text("one two three four five six seven eight nine\n\n")
    jsonl.write((NBest(u, (Hypothesis(r),) * 3, r) for u, r in refs.items()), tmp_path / "in.jsonl")
    lists = (tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    how = ("--text", tmp_path / "text", "--depth", 2)
    run(*script, *how, *lists)
    kept = list(jsonl.read(tmp_path / "out.jsonl"))
    assert [(nbest.utt, len(nbest.hyps)) for nbest in kept] == [
        ("seven", 2),
        ("apart", 2),
        ("empty", 2),
    ]
    for ref, message in ((None, "a has no reference"), ("eight nine", "has all of its references")):
        jsonl.write([NBest("a", (Hypothesis("x"),), ref)], tmp_path / "in.jsonl")
        done = run(*script, *how, *lists, status=1)
        assert message in done.stderr and done.stderr.count("\n") == 1


# Pairs that are fetched

PAIRS = {"dev": graded(6, 30), "test": graded(8, 40)}
STSB = {
    f"sts-{part}.csv": "".join(
        f"main\tMSR\t2012\t{n}\t{score + 0.5}\t{left}\t{right}\n"
        for n, (left, right, score) in enumerate(pairs)
    ).encode()
    for part, pairs in PAIRS.items()
}
HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\r\n"
SICK = {
    f"SICK_{part}.txt": HEADER.encode()
    + "".join(
        f"{n}\t{left}\t{right}\t{score + 0.5}\tNEUTRAL\r\n"
        for n, (left, right, score) in enumerate(pairs, 1)
    ).encode()
    for part, pairs in zip(("trial", "test_annotated"), PAIRS.values(), strict=True)
}
FILES = {"stsb": STSB, "sick": SICK}


def tar(files: dict[str, bytes]) -> bytes:
    """An archive with the files in a folder, and beside each what macOS adds."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in files.items():
            for path, body in ((f"stsbenchmark/._{name}", b"x"), (f"stsbenchmark/{name}", content)):
                member = tarfile.TarInfo(path)
                member.size = len(body)
                archive.addfile(member, io.BytesIO(body))
    return stream.getvalue()


def zipped(name: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, content)
        archive.writestr("readme.txt", "x")
    return stream.getvalue()


@pytest.fixture
def published(server, tmp_path, copied, make_recipe, shell):
    """The recipe, with the checksums of made-up files, and their archives on the server."""
    recipe = make_recipe(
        copied("stsb"),
        {name: value for name, value in shell.items() if not name.lower().endswith("_proxy")},
    )
    for name, files in FILES.items():
        (recipe.home / f"local/{name}.sha256").write_text(
            "".join(f"{sha256(content)}  {file}\n" for file, content in files.items())
        )
    (tmp_path / "www/Stsbenchmark.tar.gz").write_bytes(tar(STSB))
    for file, content in SICK.items():
        (tmp_path / "www" / f"{file[:-4].lower()}.zip").write_bytes(zipped(file, content))
    return recipe


def pairs_of(recipe, name: str, part: str) -> list[list[str]]:
    lines = (recipe.home / f"data/{name}/{part}/pairs.tsv").read_text().splitlines()
    return [line.split("\t") for line in lines]


@pytest.mark.parametrize("name", FILES)
def test_fetches_and_prepares(published, server, name):
    with server(cut=100) as (url, asked):
        command = (f"run_{name}.sh", "--url", url, "--stop-stage", 1)
        published.beside(*command)
        count = len(asked)
        published.beside(*command)
        assert len(asked) == count == {"stsb": 2, "sick": 3}[name]  # one was cut, and went on
    raw = published.home / f"data/{name}/local"
    assert {file: (raw / file).read_bytes() for file in FILES[name]} == FILES[name]
    for part, pairs in PAIRS.items():
        rows = [[left, right, score + 0.5] for left, right, score in pairs]
        found = pairs_of(published, name, part)
        assert [[*row[:2], float(row[2])] for row in found] == rows


@pytest.mark.parametrize("name", FILES)
def test_what_is_not_the_published_file(published, server, tmp_path, name):
    """Other archives, damaged or without the file; nothing stays for a later run."""
    www, raw = tmp_path / "www", published.home / f"data/{name}/local"
    archive = {"stsb": "Stsbenchmark.tar.gz", "sick": "sick_test_annotated.zip"}[name]
    file = list(FILES[name])[-1]
    pack = {"stsb": tar, "sick": lambda files: zipped(*files.popitem())}[name]
    for content, message in (
        (pack({**FILES[name], file: b"other"}), f"its {file} is not the published one"),
        ((www / archive).read_bytes()[:60], archive),
        (pack({"x": b"y"}), f"has no {file}"),
    ):
        (www / archive).write_bytes(content)
        with server() as (url, _):
            done = run(
                sys.executable, published.home / "local/get_pairs.py", name, raw, url, "", status=1
            )
        assert (
            message in done.stderr
            and done.stderr.count("\n") == 1
            and "removed: run again, or name a directory" in done.stderr
        )
        assert not (raw / file).exists() and not list(raw.glob(f"{archive}*"))


@pytest.mark.parametrize("name", FILES)
def test_files_of_one_s_own(published, whole, name, tmp_path):
    """Files may be packed; what differs is said, what lacks named; LMs make vectors."""
    first, second = FILES[name]
    (tmp_path / f"{first}.gz").write_bytes(gzip.compress(FILES[name][first]))
    script = f"run_{name}.sh"
    done = published.beside(script, "--pairs-dir", tmp_path, status=1)
    assert f"{tmp_path / second}: neither it nor" in done.stdout + done.stderr
    (tmp_path / second).write_bytes(FILES[name][second].replace(b".5", b".25"))
    models = ("--models", whole.home / "exp", "--text", whole.home / "data/train/text")
    done = published.beside(script, "--pairs-dir", tmp_path, *models, "--stop-stage", 4)
    assert f"{second}: not the file that is published under this name" in done.stdout
    assert first not in done.stdout
    assert pairs_of(published, name, "test")[0][2].endswith(".25")
    found = {path.parent.name for path in published.home.glob(f"exp/{name}/sts/*/test.json")}
    assert found == set(SYSTEMS)


def test_sick_in_one_file(published, tmp_path):
    header = "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tSemEval_set\n"
    rows = [
        f"{n}\tA {part}\tThe {part}\tNEUTRAL\t{n}\t{part}\n"
        for n, part in enumerate(("TRAIN", "TRIAL", "TEST", "TRIAL"), 1)
    ]
    command = ("run_sick.sh", "--pairs-dir", tmp_path, "--stop-stage", 1)
    (tmp_path / "SICK.txt").write_text(header + "".join(rows))
    published.beside(*command)
    found = [[float(row[2]) for row in pairs_of(published, "sick", part)] for part in SETS]
    assert found == [[2, 4], [3]]
    (tmp_path / "SICK.txt").write_text(header.replace("SemEval_set", "set") + "".join(rows))
    done = published.beside(*command, status=1)
    assert "SICK.txt:1: set=trial, but there is no column SemEval_set" in done.stdout + done.stderr
