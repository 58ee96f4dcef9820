"""egs/stsb/run.sh from end to end on made-up pairs with tiny models; which systems suit which LM;
what is fetched for stsb and sick.
"""

import gzip
import io
import json
import os
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
from toys import sentences

REPOSITORY = Path(__file__).parents[2]
LOCAL = REPOSITORY / "egs/stsb/local"
TINY = (
    "arch.layers=1 arch.dim=16 arch.heads=2 arch.ffn=32 batch.sentences=16 batch.tokens=null"
    " optim.warmup=2 steps=20 precision=float32"
)
SMALL = shlex.split("--mini small --vocab-size 60 --dim 8 --precision float32 --nj 1")
OPTIONS = (*SMALL, "--train-opts", TINY)
LMS = ("--lms", "masked tta")
# layers of each
SYSTEMS = {
    "masked": [0, 1],
    "masked-masked": [1],
    "tta": [0, 1],
    "tta-eos": [1],
    "words": [0],
    "tfidf": [0],
}
server, run, sha256 = test_fetch.server, test_fetch.run, test_fetch.sha256


def graded(count: int, seed: int) -> list[tuple[str, str, float]]:
    """Pairs of which the second sentence keeps 1 to 4 quarters of the first one's words, which is
    their similarity.
    """
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


def corpus(home: Path) -> None:
    """A mini corpus."""
    home.mkdir(exist_ok=True)
    for seed, (name, count) in enumerate({"train": 300, "valid": 40}.items()):
        (home / f"{name}.txt").write_text("".join(f"{line}\n" for line in sentences(count, seed)))
    for seed, (name, count) in enumerate({"dev": 24, "test": 40}.items(), 10):
        lines = ["\t".join(map(str, pair)) + "\n" for pair in graded(count, seed)]
        (home / f"{name}.tsv.gz").write_bytes(gzip.compress("".join(lines).encode()))


@pytest.fixture(scope="module")
def whole(copied, make_recipe, shell):
    """The recipe after a run with two LMs."""
    recipe = make_recipe(copied("stsb"), shell)
    corpus(recipe.home / "small")
    recipe(*OPTIONS, *LMS)
    return recipe


def systems(recipe, *args) -> list[str]:
    """The systems of these options, by --help."""
    said = recipe("--help", "--statics", "tfidf", *args).stdout
    written = next(
        line for line in said.splitlines() if line.strip().startswith("writes exp/embed")
    )
    return [Path(path).stem for path in written.split()[1:-1]]


def test_all_stages(whole):
    exp = whole.home / "exp"
    for stage in range(7):
        assert json.loads((exp / f"stages/{stage}.json").read_text())["finished"]
    assert (
        {path.parent.name for path in exp.glob("sts/*/test.json")}
        == {path.stem for path in exp.glob("embed/*.npz")}
        == set(SYSTEMS)
    )
    assert {path.name for path in exp.glob("sts/*/*.json")} == {"dev.json", "test.json"}
    results = (exp / "report/RESULTS.md").read_text()
    assert "stsb (mini)" in results and (exp / "report/index.html").exists()
    assert not [path for path in exp.rglob("*") if ".tmp" in path.name]


def test_pairs_and_sentences(whole):
    """Both sets are as they were given; sentences hold each text once."""
    data, texts = whole.home / "data", set()
    for seed, (name, count) in enumerate({"dev": 24, "test": 40}.items(), 10):
        rows = [line.split("\t") for line in (data / name / "pairs.tsv").read_text().splitlines()]
        assert [(left, right, float(score)) for left, right, score in rows] == graded(count, seed)
        texts |= {text for left, right, _ in rows for text in (left, right)}
    lines = (data / "sentences.txt").read_text().splitlines()
    assert len(lines) == len(texts) and set(lines) == texts
    assert (data / "train.txt").read_bytes() == (whole.home / "small/train.txt").read_bytes()


@pytest.mark.parametrize("system", SYSTEMS)
def test_figures_are_those_of_the_vectors(whole, system):
    """Cosine and Pearson, computed here, of what stage 4 wrote."""
    with np.load(whole.home / f"exp/embed/{system}.npz") as stored:
        texts = stored["texts"].tolist()
        layers = stored["layers"].tolist()
        vectors = stored["vectors"].astype(np.float64)
    vectors = vectors.reshape(len(texts), len(layers), -1)
    place = {text: number for number, text in enumerate(texts)}
    for seed, (name, count) in enumerate({"dev": 24, "test": 40}.items(), 10):
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


def test_again(whole):
    """What is done is skipped; another choice of systems runs from stage 4, and trains nothing."""
    before = {
        path: path.stat().st_mtime_ns for path in (whole.home / "exp/lm").rglob("*.safetensors")
    }
    done = whole(*OPTIONS, *LMS, "--skip-done", "true")
    assert done.stdout.count("is done already: skipped") == 7, done.stdout
    other = shlex.split(
        "--systems tta-max --statics tfidf --skip-done true --expdir exp --stop-stage 5"
    )
    done = whole(*OPTIONS, *LMS, *other)
    assert (whole.home / "exp/sts/tta-max/test.json").exists() and "starting" not in done.stdout
    assert (
        before
        == {
            path: path.stat().st_mtime_ns for path in (whole.home / "exp/lm").rglob("*.safetensors")
        }
        and before
    )


def test_which_systems_suit_which_lm(whole):
    def lm(name: str, file: str, content: str) -> str:
        (whole.home / "lms" / name).mkdir(parents=True, exist_ok=True)
        (whole.home / "lms" / name / file).write_text(content)
        return f"lms/{name}"

    elmo = lm("elmo", "config.yaml", "model: elmo\nobjective: bidirectional\n")
    bert = lm("bert", "config.json", '{"architectures": ["BertForMaskedLM"]}')
    gpt = lm("gpt", "config.json", '{"architectures": ["GPT2LMHeadModel"]}')
    own = f"e={elmo} b=hf:{bert} g=hf:{gpt} m=exp/lm/masked"
    assert systems(whole) == ["causal", "causal-eos", "masked", "masked-masked", "tta", "tta-eos"]
    assert systems(whole, "--conf", "../../conf", "--lms", "tta") == ["tta", "tta-eos"]
    found = shlex.split("e b b-masked b-cls b-boundaries g m m-masked")
    assert systems(whole, "--lms", "", "--lm-dirs", own) == found
    assert systems(whole, "--systems", "causal-max tta masked-boundaries") == [
        "causal-max",
        "tta",
        "masked-boundaries",
    ]


def test_paper_adds_bert(whole):
    """One that is trained, one that is given, or the one that is named already."""
    given = whole.home / "lms/given"
    given.mkdir(parents=True)
    (given / "config.json").write_text('{"architectures": ["BertForMaskedLM"]}')
    rows = ["bert", "bert-masked", "bert-cls"]
    both = ["masked", "masked-masked", *rows]
    assert systems(whole, "--paper", "--lms", "masked") == both
    own = ("--bert", "lms/given")
    assert systems(whole, "--paper", "--lms", "masked", *own) == [*both, "bert-boundaries"]
    own = ("--lm-dirs", "bert=hf:lms/given")
    assert systems(whole, "--paper", "--lms", "", *own) == [*rows, "bert-boundaries"]


@pytest.mark.parametrize(
    "options, message",
    [
        (("--bert", "x"), "--bert is a row of --paper true; give both"),
        (("--corpus", "mega"), "--corpus is 'mega'; it takes mini, stsb or sick"),
        (("--pairs-dir", "x"), "--corpus mini has pairs of its own"),
        (
            ("--systems", "tta-best"),
            (
                "'tta-best' is no system; give an LM (causal masked tta), alone or with -masked,"
                " -eos, -cls ..."
            ),
        ),
        (("--systems", "bert"), "'bert' is no system"),
        (("--lm-dirs", "words=hf:x"), "an LM is called words, as the static vectors are"),
        (
            ("--lms", "", "--statics", ""),
            "no system: name LMs with --lms or --lm-dirs, or vectors with --statics",
        ),
    ],
)
def test_wrong_options(whole, options, message):
    done = whole("--expdir", "wrong", *options, status=2)
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_bert_and_word_vectors_of_one_s_own(whole):
    """No LM is trained, and GloVe's vectors take the place of those of the text."""
    transformers = pytest.importorskip(
        "transformers", reason="transformers is not installed; pip install 'lmtools[hf]'"
    )
    bert = whole.home / "bert"
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *sorted({*" ".join(sentences(50, 0)).split()}),
    ]
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 40,
    }
    transformers.BertForMaskedLM(
        transformers.BertConfig(vocab_size=len(words), **sizes)
    ).save_pretrained(bert)
    (bert / "vocab.txt").write_text("\n".join(words) + "\n")
    transformers.BertTokenizerFast(str(bert / "vocab.txt")).save_pretrained(bert)
    (whole.home / "glove.txt").write_text(
        "".join(f"{word} {rank} {-rank + 3} 1\n" for rank, word in enumerate(words[5:]))
    )
    chosen = shlex.split("--lm-dirs bert=hf:bert --vectors glove.txt --statics words --expdir exp2")
    whole(*OPTIONS, "--lms", "", *chosen, "--stage", 2, "--stop-stage", 5)
    layers = {
        path.parent.name: [row["layer"] for row in json.loads(path.read_text())["rows"]]
        for path in whole.home.glob("exp2/sts/*/dev.json")
    }
    assert layers == {
        "bert": [0, 1, 2],
        "bert-masked": [2],
        "bert-cls": [2],
        "bert-boundaries": [2],
        "words": [0],
    }
    assert not (whole.home / "exp2/words.txt").exists()


def test_a_copy_runs_at_once(whole, make_recipe, shell, tmp_path):
    """utils/new_recipe.sh, whose page is this recipe's."""
    shutil.copytree(REPOSITORY / "utils", tmp_path / "utils")
    shutil.copytree(whole.home, tmp_path / "egs/stsb", symlinks=True)
    (tmp_path / "egs/stsb/small").rename(tmp_path / "egs/stsb/mini")
    subprocess.run(
        [tmp_path / "utils/new_recipe.sh", "stsb", "mine"],
        check=True,
        capture_output=True,
        env=shell,
    )
    home = tmp_path / "egs/mine"
    page = (home / "README.md").read_text()
    assert page.startswith("# mine\n\nCopied from egs/stsb.") and "@" not in page
    assert not [name for name in os.listdir(home / "local") if "mini" in name]
    make_recipe(home, shell)("--stop-stage", 1)
    assert (home / "data/test/pairs.tsv").read_text() == (
        whole.home / "data/test/pairs.tsv"
    ).read_text()


# --corpus stsb and sick

STSB = {
    name: f"main\tMSR\t2012\t{n}\t4.5\tA {name}.\tThe {name}.\n".encode() * 5
    for n, name in enumerate(("sts-dev.csv", "sts-test.csv"))
}
HEADER = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\r\n"
SICK = {
    name: f"{HEADER}7\tA {name}\tThe {name}\t3.5\tNEUTRAL\r\n".encode()
    for name in ("SICK_trial.txt", "SICK_test_annotated.txt")
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
    """An archive with one file."""
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
    corpus(recipe.home / "mini")
    for name, files in FILES.items():
        (recipe.home / f"local/{name}.sha256").write_text(
            "".join(f"{sha256(content)}  {file}\n" for file, content in files.items())
        )
    (tmp_path / "www/Stsbenchmark.tar.gz").write_bytes(tar(STSB))
    for file, content in SICK.items():
        (tmp_path / "www" / f"{file[:-4].lower()}.zip").write_bytes(zipped(file, content))
    return recipe


@pytest.mark.parametrize("name", FILES)
def test_fetches_and_prepares(published, server, name):
    with server(cut=100) as (url, asked):
        options = ("--corpus", name, f"--{name}-url", url, "--stop-stage", 1)
        done = published(*options)
        count = len(asked)
        assert (
            f"warning: LMs see the mini corpus's text, not text like {name}"
            in done.stdout + done.stderr
        )
        published(*options)
        assert len(asked) == count == {"stsb": 2, "sick": 3}[name]  # one was cut, and went on
    raw = published.home / "data/local" / name
    assert {file: (raw / file).read_bytes() for file in FILES[name]} == FILES[name]
    tests = published.home / "data/test/pairs.tsv"
    assert tests.read_text().splitlines()[0].split("\t")[:2] == {
        "stsb": ["A sts-test.csv.", "The sts-test.csv."],
        "sick": ["A SICK_test_annotated.txt", "The SICK_test_annotated.txt"],
    }[name]  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_what_is_not_the_published_file(published, server, tmp_path, name):
    """Archives with another content, damaged or without the file; nothing is left that a later run
    would take.
    """
    www, raw = tmp_path / "www", published.home / "data/local" / name
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
def test_files_of_one_s_own(published, name, tmp_path):
    """They may be packed; text may be one's own; what is not as published is said; what lacks is
    named.
    """
    mine, text = tmp_path / "mine", tmp_path / "text"
    mine.mkdir()
    text.mkdir()
    first, second = FILES[name]
    (mine / f"{first}.gz").write_bytes(gzip.compress(FILES[name][first]))
    for part in ("train", "valid"):
        (text / f"{part}.txt").write_text(f"My {part}.\n")
    options = ("--corpus", name, "--pairs-dir", mine, "--lm-text", text, "--stop-stage", 1)
    done = published(*options, status=1)
    assert f"{mine / second}: neither it nor" in done.stdout + done.stderr
    (mine / second).write_bytes(FILES[name][second].replace(b".5", b".25"))
    said = published(*options)
    assert (
        f"{second}: not the file that is published under this name" in said.stdout
        and first not in said.stdout
    )
    assert "warning" not in said.stdout + said.stderr
    assert (published.home / "data/train.txt").read_text() == "My train.\n"
    assert (published.home / "data/test/pairs.tsv").read_text().splitlines()[0].endswith(".25")


def test_sick_in_one_file(published, tmp_path):
    header = "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tSemEval_set\n"
    rows = [
        f"{n}\tA {part}\tThe {part}\tNEUTRAL\t{n}\t{part}\n"
        for n, part in enumerate(("TRAIN", "TRIAL", "TEST", "TRIAL"), 1)
    ]
    (tmp_path / "SICK.txt").write_text(header + "".join(rows))
    published("--corpus", "sick", "--pairs-dir", tmp_path, "--stop-stage", 1)
    found = {
        part: (published.home / f"data/{part}/pairs.tsv").read_text().splitlines()
        for part in ("dev", "test")
    }
    assert [[float(line.split("\t")[2]) for line in lines] for lines in found.values()] == [
        [2, 4],
        [3],
    ]
    (tmp_path / "SICK.txt").write_text(header.replace("SemEval_set", "set") + "".join(rows))
    done = published("--corpus", "sick", "--pairs-dir", tmp_path, "--stop-stage", 1, status=1)
    assert "SICK.txt:1: set=trial, but there is no column SemEval_set" in done.stdout + done.stderr
