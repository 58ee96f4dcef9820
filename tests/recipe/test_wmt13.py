"""egs/wmt13 from end to end on a made-up mini corpus with tiny models: run.sh for both pairs, the
scripts beside it; what run_full.sh fetches and prepares.
"""

import gzip
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu
import yaml
from recipe import test_fetch
from toys import sentences

from lmtools.cli import main
from lmtools.formats import kaldi_text

REPOSITORY = Path(__file__).parents[2]
LOCAL = REPOSITORY / "egs/wmt13/local"
TINY = (
    "arch.layers=1 arch.dim=16 arch.heads=2 arch.ffn=32 batch.sentences=16 batch.tokens=null"
    " optim.warmup=2 steps=3 precision=float32"
)
SMALL = ("--corpus", "small", "--vocab-size", 80, "--train-opts", TINY)
PLAIN = ("--precision", "float32", "--nj", 1)
OPTIONS = (*SMALL, *PLAIN, "--lms", "tta", "--experiment", "small.yaml")
COLUMNS = {
    "ngram": {},
    "tta": {},
    "bert": {},
    "mbr": {"utility": "bleu"},
    "direct": {"source": True},
    "channel": {"source": True, "reverse": True},
}
SYSTEMS = {  # of the run, with the features that each has beside the lists' own
    "first-pass": [],
    "mbr": ["mbr"],
    "ngram": ["ngram"],
    "tta": ["tta"],
    "tta-mean": ["tta/token"],
    "tta-mean+mbr": ["tta/token", "mbr"],
}
NAMES = {
    "tuned without LM": "first-pass", "MBR (no LM)": "mbr", "n-gram": "ngram", "T-TA": "tta",
    "T-TA, mean over tokens": "tta-mean", "T-TA, mean + MBR": "tta-mean+mbr",
}  # fmt: skip
NOISY = {
    "first-pass": [],
    "ngram": ["ngram"],
    "channel": ["channel"],
    "channel+ngram": ["channel", "ngram"],
    "direct": ["direct"],
    "direct+channel+all": ["direct", "channel", "ngram"],
}
PAPER = {
    "bert-mean": ["bert/token"],
    "ngram-interpolated": {"columns": ["ngram"], "form": "interpolation", "first_pass": {"am": 1}},
}
CHRF = {"first-pass": [], "mbr": ["mbr"], "ngram": ["ngram"]}
OWN = {"am", "norm", "words"}
server, run, sha256 = test_fetch.server, test_fetch.run, test_fetch.sha256


def experiment(systems: dict, **settings) -> str:
    """A YAML file of an experiment with these systems and the columns that they name."""
    named = str(systems)
    columns = {name: one for name, one in COLUMNS.items() if f"'{name}" in named}
    tree = {"metric": "bleu", "lengths": ["words"], **settings}
    return yaml.safe_dump({**tree, "columns": columns, "systems": systems}, sort_keys=False)


def cased(words: str) -> str:
    """A sentence as people write it."""
    return f"{words.capitalize()}."


def translated(ref: str, rng: random.Random) -> dict:
    """A hypothesis: the reference with a word changed, often in another order."""
    words = ref.split()
    words[rng.randrange(len(words))] = rng.choice(["the", "king", "house"])
    if rng.random() < 0.5:
        rng.shuffle(words)
    total = -round(6 * rng.random(), 4)
    return {
        "text": cased(" ".join(words)),
        "scores": {"am": total, "norm": round(total / len(words), 4)},
    }


def nbest(seed: int) -> str:
    rng = random.Random(seed)
    lines = []
    for number, ref in enumerate(sentences(20, seed), 1):
        hyps = sorted(
            (translated(ref, rng) for _ in range(6)), key=lambda hyp: -hyp["scores"]["norm"]
        )
        lines.append(json.dumps({"utt": f"s{number:02}", "ref": cased(ref), "hyps": hyps}) + "\n")
    return "".join(lines)


def corpus(home: Path) -> None:
    for seed, (name, count) in enumerate({"train": 300, "valid": 40}.items()):
        (home / f"{name}.txt").write_text(
            "".join(f"{cased(line)}\n" for line in sentences(count, seed))
        )
    for seed, name in enumerate(("de-en.dev", "de-en.test", "fr-en.dev", "fr-en.test"), 10):
        (home / f"{name}.nbest.jsonl").write_text(nbest(seed))


def foreign(line: str) -> str:
    """The sentence in another language: each word backwards."""
    return " ".join(word[::-1] for word in line.split())


def bilingual(home: Path) -> None:
    """The mini corpus with bilingual text, partly the LMs', and sources in the lists."""
    corpus(home)
    for part, count in (("train", 60), ("valid", 8)):
        lines = (home / f"{part}.txt").read_text().splitlines()[:count]
        rows = [f"{foreign(line)}\t{line}\n" for line in lines]
        (home / f"de-en.{part}.tsv.gz").write_bytes(gzip.compress("".join(rows).encode()))
    for path in home.glob("*.jsonl"):
        lists = [json.loads(line) for line in path.read_text().splitlines()]
        for one in lists:
            one["extra"] = {"source": foreign(one["ref"])}
        path.write_text("".join(f"{json.dumps(one)}\n" for one in lists))


def prepare(home: Path) -> None:
    """The mini corpus, and experiments of few LMs."""
    bilingual(home / "small")
    for name, text in {
        "small": experiment(SYSTEMS),
        "noisy": experiment(NOISY),
        "paper": experiment(PAPER),
        "chrf": experiment(CHRF, metric="chrf", lengths=[]),
    }.items():
        (home / f"{name}.yaml").write_text(text)


@pytest.fixture(scope="module")
def whole(copied, make_recipe, shell):
    """The recipe after a run of the first pair with two LMs."""
    recipe = make_recipe(copied("wmt13"), shell)
    prepare(recipe.home)
    recipe(*OPTIONS)
    return recipe


def made(home: Path, *folders: str) -> dict[str, bytes]:
    """What the files of these folders hold, but for times and caches."""
    paths = [path for folder in folders for path in sorted((home / folder).rglob("*"))]
    kept = {"report", "cache", "stages", "log"}
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in paths
        if path.is_file() and not kept & set(path.parts) and not path.name.startswith(".")
    }


def table(text: str) -> dict[str, list[str]]:
    """The cells of a table in Markdown, by the first of each row."""
    rows = [
        [cell.strip(" *") for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    return {first: cells for first, *cells in rows if not set(first) <= set("-")}


def features(recipe, pair: str) -> dict[str, set]:
    exp = recipe.home / "exp" / pair
    return {
        path.parent.name: set(json.loads(path.read_text())["features"])
        for path in exp.glob("tune/*/weights.json")
    }


def expected(systems: dict, own=frozenset(OWN)) -> dict[str, set]:
    return {name: {*own, *columns} for name, columns in systems.items()}


def test_all_stages(whole):
    for stage in range(7):
        manifest = json.loads((whole.home / f"exp/stages/{stage}.json").read_text())
        assert manifest["finished"] and manifest["options"]["pair"] == "de-en"
    exp = whole.home / "exp/de-en"
    assert features(whole, "de-en") == expected(SYSTEMS)
    assert {path.name for path in (exp / "score").iterdir()} == {"mbr", "ngram", "tta"}
    assert {path.name for path in exp.glob("ppl/*/*.json")} == {"valid.json", "test.json"}
    results = (exp / "report/RESULTS.md").read_text()
    for words in (
        "wmt13 (small, de-en)",
        "| MBR (no LM) |",
        "| oracle",
        "depth",
        "LM text: 300 sentences",
        "| train LMs",
    ):
        assert words in results, words
    names = [path.name for path in (whole.home / "exp").rglob("*")]
    assert not [name for name in names if ".tmp" in name or ".part" in name]
    done = whole(*OPTIONS, "--skip-done", "true")
    assert done.stdout.count("is done already: skipped") == 7, done.stdout


def test_figures_are_sacrebleu_s(whole):
    """Of the texts that were chosen, in the report and in the table of all metrics."""
    exp = whole.home / "exp/de-en"
    refs = kaldi_text.read(whole.home / "data/de-en/test/text")
    shown = table((exp / "report/metrics.md").read_text())
    main = table((exp / "report/RESULTS.md").read_text().split("\n## ")[1])
    assert list(shown) == ["system", *NAMES]
    assert list(main) == ["system", "first pass", "oracle", *NAMES]
    for printed, system in NAMES.items():
        texts = kaldi_text.read(exp / f"rescore/{system}/test.txt")
        args = [texts[utt] for utt in refs], [list(refs.values())]
        figures = [
            f"{measure(*args).score:.2f}"
            for measure in (sacrebleu.corpus_bleu, sacrebleu.corpus_chrf, sacrebleu.corpus_ter)
        ]
        assert shown[printed] == figures and main[printed][1] == figures[0]
    assert len(set(map(tuple, shown.values()))) > 3


def test_printed_commands_make_the_same_files(whole):
    """`--dry-run`, pasted into a shell, after which all but the trained LMs is made anew."""
    before = made(whole.home, "exp", "data")
    printed = whole(*OPTIONS, "--dry-run").stdout
    assert made(whole.home, "exp", "data") == before and printed.count("\n") > 25
    for folder in ("data", "exp/de-en", "exp/english/subword"):
        shutil.rmtree(whole.home / folder)
    done = subprocess.run(
        ["bash", "-e"], input=printed, cwd=whole.home, env=whole.env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert made(whole.home, "exp", "data") == before


def test_second_pair_takes_what_the_first_made(whole):
    """It trains nothing and changes no byte; here it is tuned for another metric."""
    before = made(whole.home, "exp/english", "exp/de-en")
    options = (*SMALL, *PLAIN, "--lms", "tta", "--experiment", "chrf.yaml", "--pair", "fr-en")
    done = whole(*options)
    assert "starting" not in done.stdout
    assert made(whole.home, "exp/english", "exp/de-en") == before and len(before) > 20
    assert features(whole, "fr-en") == expected(CHRF, {"am", "norm"})
    weights = json.loads((whole.home / "exp/fr-en/tune/mbr/weights.json").read_text())
    assert weights["metric"] == "chrf"
    results = (whole.home / "exp/fr-en/report/RESULTS.md").read_text()
    assert "wmt13 (small, fr-en)" in results and "test chrF" in results


def test_rows_of_the_paper(whole):
    """run_paper.sh trains BERT beside the LMs that are there, and changes nothing of theirs."""
    before = made(whole.home, "exp/de-en")
    options = ("--train-opts", TINY, *PLAIN, "--experiment", "paper.yaml")
    whole.beside("run_paper.sh", *options, "--stage", 3)
    assert made(whole.home, "exp/de-en") == before
    exp = whole.home / "exp/de-en-paper"
    assert features(whole, "de-en-paper")["bert-mean"] == {*OWN, "bert/token"}
    weights = json.loads((exp / "tune/ngram-interpolated/weights.json").read_text())
    assert {name for name, weight in weights["features"].items() if weight} == {"am", "ngram"}
    assert "| n-gram, interpolated" in (exp / "report/RESULTS.md").read_text()
    assert {path.name for path in (whole.home / "exp/stages").glob("paper-*")} == {
        f"paper-{stage}.json" for stage in range(3, 7)
    }


# Translators


@pytest.fixture(scope="module")
def noisy(whole):
    """The recipe after all stages with a direct and a channel model of the pairs."""
    whole.beside("run_translators.sh", *SMALL, *PLAIN, "--experiment", "noisy.yaml")
    return whole


def column(path: Path) -> dict[str, float]:
    """The log-probability of each hypothesis in a file of scores."""
    _, *rows, _ = path.read_text().splitlines()
    return {row.split()[0]: float(row.split()[1]) for row in rows}


def test_translators_are_columns(noisy):
    """By the package's own verbs: the scores are those of `lmtools score` of the models."""
    exp, data = noisy.home / "exp/de-en-translators", noisy.home / "data/de-en"
    assert kaldi_text.read(data / "test/source") == {
        utt: foreign(ref) for utt, ref in kaldi_text.read(data / "test/text").items()
    }
    assert (data / "bilingual/train.foreign").read_text().splitlines() == [
        foreign(line) for line in (noisy.home / "small/train.txt").read_text().splitlines()[:60]
    ]
    for name, way in (("direct", []), ("channel", ["--reverse"])):
        out = noisy.home / f"again.{name}"
        lm, lists = exp / f"models/{name}", data / "test/nbest.jsonl"
        argv = ["score", "--lm", lm, "--source", data / "test/source", *way, "--nbest", lists]
        assert main(list(map(str, [*argv, "--cache", "none", "--out", out]))) == 0
        assert column(out) == pytest.approx(column(exp / f"score/{name}/test.scores"))
    directions = [
        '"direction": "reverse"' in (exp / f"score/{name}/dev.scores").read_text()
        for name in ("direct", "channel")
    ]
    assert directions == [False, True]


def test_systems_with_translators(noisy):
    assert features(noisy, "de-en-translators") == expected(NOISY)
    home = noisy.home / "exp/de-en-translators"
    text = (home / "report/RESULTS.md").read_text()
    assert "run_translators.sh --corpus small" in text
    shown = table(text.split("\n## ")[1])
    assert list(shown) == [
        "system",
        "first pass",
        "oracle",
        "tuned without LM",
        "n-gram",
        "channel (source given hypothesis)",
        "channel + n-gram",
        "direct (hypothesis given source)",
        "direct + channel + all LMs",
    ]
    rows = table((home / "report/metrics.md").read_text())
    assert rows.keys() == shown.keys() - {"first pass", "oracle"}
    overlap = (home / "overlap.md").read_text()
    assert overlap.startswith("- Of the LM text's 300 sentences ") and overlap.count("\n") == 2
    assert features(noisy, "de-en") == expected(SYSTEMS)


def test_overlap_counts_sentences_and_runs(tmp_path):
    row = "one two three four five six seven eight nine"
    (tmp_path / "text").write_text(f"A cat\n{row}\n{row} ten\nA  cat\n")
    (tmp_path / "english").write_text(f"A cat\na dog\n{row.upper()}\n")
    paths = [tmp_path / name for name in ("text", "english", "out")]
    done = run(sys.executable, LOCAL / "overlap.py", *paths)
    assert done.stdout == (tmp_path / "out").read_text()
    assert done.stdout.splitlines() == [
        "- Of the LM text's 4 sentences 50.0% are in the translators' English side.",
        "- Of the LM text's 5 runs of 8 words 80.0% are in the translators' English side.",
    ]


def test_a_translator_of_the_recipe_makes_the_lists(noisy):
    """And its score of them is what they say: `am`; the LMs that are there score them."""
    noisy.beside("run_nmt.sh", "--depth", 4, "--precision", "float32")
    data = noisy.home / "data/de-en-nmt/test"
    lists = [json.loads(line) for line in (data / "nbest.jsonl").read_text().splitlines()]
    given = kaldi_text.read(noisy.home / "data/de-en/test/text")
    assert {one["utt"]: one["ref"] for one in lists} == given
    assert list(kaldi_text.read(data / "source").values()) == [*map(foreign, given.values())]
    assert all(1 <= len(one["hyps"]) <= 4 for one in lists)
    out = noisy.home / "nmt.scores"
    argv = ["score", "--lm", noisy.home / "exp/de-en-translators/models/direct", "--source"]
    argv += [data / "source", "--nbest", data / "nbest.jsonl", "--cache", "none", "--out", out]
    assert main(list(map(str, argv))) == 0
    totals = [hyp["scores"]["am"] for one in lists for hyp in one["hyps"]]
    near = [abs(a - b) < 1e-3 for a, b in zip(totals, column(out).values(), strict=True)]
    assert sum(near) > len(near) / 2  # texts that have no other pieces
    options = (*SMALL, *PLAIN, "--lms", "tta", "--experiment", "chrf.yaml", "--stage", 4)
    noisy(*options, "--pair", "de-en-nmt", "--stop-stage", 5)
    assert features(noisy, "de-en-nmt").keys() == CHRF.keys()


@pytest.mark.parametrize(
    "name, lines, message",
    [
        ("pair", "nie\tOne.\nkein Tab\n", "bad/de-en.train.tsv:2: not a foreign sentence, a tab"),
        ("none", None, "bad/de-en.train.tsv: neither it nor de-en.train.tsv.gz or"),
    ],
)
def test_what_is_no_pair(whole, name, lines, message):
    """One line, naming the user's own file."""
    home = whole.home / "bad"
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(whole.home / "small", home)
    (home / "de-en.train.tsv.gz").unlink()
    if lines:
        (home / "de-en.train.tsv").write_text(lines)
    where = ("--corpus", "bad", "--expdir", "exp/bad", "--datadir", "bad/data")
    shutil.copytree(whole.home / "data/english", home / "data/english")
    done = whole.beside("run_translators.sh", *where, "--stop-stage", 1, status=1)
    assert message.replace("bad/de", "bad/data/local/de" if lines else "bad/de") in (
        done.stdout + done.stderr
    )
    assert not (whole.home / "exp/bad/de-en-translators").exists()


def test_lists_without_a_source(noisy):
    """Do for LMs, and need one where a translator scores them."""
    home = noisy.home / "sourceless"
    shutil.copytree(noisy.home / "small", home)
    corpus(home)
    noisy("--corpus", "sourceless", "--stop-stage", 1, "--datadir", "sourceless/data")
    assert (home / "data/de-en/test/source").read_text() == ""
    where = ("--datadir", "sourceless/data", "--translators", "", "--stage", 4)
    options = (*where, *PLAIN, "--experiment", "noisy.yaml", "--stop-stage", 4)
    done = noisy.beside("run_translators.sh", *options, status=1)
    assert "source" in done.stdout + done.stderr and "'s01'" in done.stdout + done.stderr


# run_full.sh

NEWS = [f"News number {n} ." for n in range(5003)]
REFS = {"dev": ["News number 3 .", "A sentence ."], "test": ["Another one .", "News number 4 ."]}
SETS = {"dev": "wmt12", "test": "wmt13"}


@pytest.fixture
def published(server, tmp_path, monkeypatch):
    """News on the server, and sacreBLEU's own directory as it is after its downloads."""
    monkeypatch.setenv("SACREBLEU", str(tmp_path / "sacrebleu"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for part, name in SETS.items():
        (tmp_path / "sacrebleu" / name).mkdir(parents=True)
        fields = {key: ["x", "x"] for key in ("docid", "genre", "origlang")} | {
            "src": ["Ein Satz .", "Noch einer ."],
            "ref": REFS[part],
        }
        for side, lines in fields.items():
            (tmp_path / f"sacrebleu/{name}/{name}.de-en.{side}").write_text(
                "".join(f"{line}\n" for line in lines)
            )
    text = "".join(f"{line}\n" for line in [*NEWS[:2], "", *NEWS[2:]]).encode()
    (tmp_path / "www/news.gz").write_bytes(gzip.compress(text))
    return tmp_path


def test_full_fetches_and_prepares(server, published):
    raw, text = published / "raw", published / "text"
    with server(cut=5000) as (url, asked):
        run(LOCAL / "get_full.sh", raw, "de-en", "", url, "news.gz")
        assert len(asked) == 2  # the second continues the first
        run(LOCAL / "get_full.sh", raw, "de-en", "", url, "news.gz")
        assert len(asked) == 2
    kept = {f"de-en.{part}.{side}" for part in REFS for side in ("foreign", "english")}
    assert set(os.listdir(raw)) == {*kept, "news.gz", "news.gz.sha256"}
    english = {part: (raw / f"de-en.{part}.english").read_text().splitlines() for part in REFS}
    assert english == REFS
    assert (raw / "de-en.dev.foreign").read_text() == "Ein Satz .\nNoch einer .\n"
    run(sys.executable, LOCAL / "prepare.py", "split", text, raw, "de-en", "news.gz")
    kept = [line for line in NEWS if line not in (*REFS["dev"], *REFS["test"])]
    assert (text / "valid.txt").read_text().splitlines() == [kept[0], kept[5000]]
    assert (text / "train.txt").read_text().splitlines() == [*kept[1:5000], *kept[5001:]]


def test_text_that_changed_since_it_was_first_fetched(server, published):
    """Its checksum is kept, since nobody publishes one."""
    raw, fetch = published / "raw", REPOSITORY / "utils/fetch.py"
    content = (published / "www/news.gz").read_bytes()
    with server() as (url, _):
        run(sys.executable, fetch, f"{url}/news.gz", raw / "news.gz")
        assert (raw / "news.gz.sha256").read_text() == f"{sha256(content)}  news.gz\n"
        (raw / "news.gz").unlink()
        (published / "www/news.gz").write_bytes(gzip.compress(b"other\n"))
        done = run(sys.executable, fetch, f"{url}/news.gz", raw / "news.gz", status=1)
    assert f"expected {sha256(content)}; removed" in done.stderr and not (raw / "news.gz").exists()


def test_text_of_one_s_own_and_damaged_news(published, tmp_path):
    mine, raw = tmp_path / "mine", tmp_path / "raw"
    mine.mkdir()
    for part in ("train", "valid"):
        (mine / f"{part}.txt.gz").write_bytes(gzip.compress(f"My {part} .\n".encode()))
    run(LOCAL / "get_full.sh", raw, "de-en", mine, "http://nowhere.invalid")
    assert (raw / "train.txt").read_text() == "My train .\n"
    assert (raw / "de-en.test.english").exists()
    (raw / "cut.gz").write_bytes((tmp_path / "www/news.gz").read_bytes()[:-50])
    command = [LOCAL / "prepare.py", "split", tmp_path / "text", raw, "de-en", "cut.gz"]
    done = run(sys.executable, *command, status=1)
    assert (
        "cut.gz: damaged archive" in done.stderr
        and done.stderr.count("\n") == 1
        and not os.listdir(tmp_path / "text")
    )


@pytest.mark.parametrize("lists", [True, False], ids=["moses", "none"])
def test_full_prepares_what_run_sh_goes_on_with(copied, make_recipe, shell, lists):
    """Moses's lists, tokenised, in the order of the test set, or sources alone; and news."""
    home = copied("wmt13")
    raw = home / "data/full/local"
    (home / "moses").mkdir()
    raw.mkdir(parents=True)
    for part, refs in REFS.items():
        for side in ("foreign", "english"):
            (raw / f"de-en.{part}.{side}").write_text("".join(f"{line}\n" for line in refs))
        rows = [
            f"{i} ||| it &apos;s {text} ||| LM0= -4 TM0= -1 ||| -{rank}"
            for i in (0, 1)
            for rank, text in enumerate(("a .", "b ."), 1)
        ]
        (home / f"moses/{part}").write_text("\n".join(rows) + "\n")
    (raw / "news.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in NEWS[:9]).encode()))
    recipe = make_recipe(home, shell)
    options = shlex.split("--nbest-dir moses --nbest-format moses --depth 1") if lists else []
    recipe.beside("run_full.sh", "--news-files", "news.gz", "--stage", 1, *options)
    data = home / "data/full/de-en/test"
    if lists:
        rows = [json.loads(line) for line in (data / "nbest.jsonl").read_text().splitlines()]
        assert [(one["ref"], len(one["hyps"])) for one in rows] == [
            (ref, 1) for ref in REFS["test"]
        ]
    for name in ("text", "source"):
        assert list(kaldi_text.read(data / name).values()) == REFS["test"]
    assert len((home / "data/full/english/train.txt").read_text().splitlines()) == 6
