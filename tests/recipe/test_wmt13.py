"""egs/wmt13/run.sh from end to end, both pairs, on a made-up mini corpus with tiny models; what
--corpus full fetches and prepares.
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
from recipe import test_fetch
from toys import sentences

from lmtools.cli import main
from lmtools.formats import kaldi_text
from lmtools.rescoring import read_systems

REPOSITORY = Path(__file__).parents[2]
LOCAL = REPOSITORY / "egs/wmt13/local"
TINY = (
    "arch.layers=1 arch.dim=16 arch.heads=2 arch.ffn=32 batch.sentences=16 batch.tokens=null"
    " optim.warmup=2 steps=3 precision=float32"
)
SMALL = shlex.split("--mini small --vocab-size 80 --order 3 --precision float32 --nj 1")
OPTIONS = (*SMALL, "--train-opts", TINY)
MAKE = ("--lms", "ngram tta", "--stop-stage", 4)
USE = ("--lms", "tta", "--combinations", "tta-mean+mbr", "--stage", 5)
SYSTEMS = {
    "first-pass": {"am", "norm", "words"},
    "mbr": {"am", "norm", "words", "mbr"},
    "tta": {"am", "norm", "words", "tta"},
    "tta-mean": {"am", "norm", "words", "tta/token"},
    "tta-mean+mbr": {"am", "norm", "words", "tta/token", "mbr"},
}
NAMES = {
    "first pass, tuned": "first-pass",
    "MBR (no LM)": "mbr",
    "T-TA": "tta",
    "T-TA, mean over tokens": "tta-mean",
    "T-TA, mean + MBR": "tta-mean+mbr",
}
NO_LM = shlex.split("--lms '' --mbr 'chrf --scale 0.5' --lengths none --metric chrf --stage 5")
SHARED = ("subword/*", "*.bin", "lm/*/*", "text/*")
server, run, sha256 = test_fetch.server, test_fetch.run, test_fetch.sha256


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
    """20 lists of 6."""
    rng = random.Random(seed)
    lines = []
    for number, ref in enumerate(sentences(20, seed), 1):
        hyps = sorted(
            (translated(ref, rng) for _ in range(6)), key=lambda hyp: -hyp["scores"]["norm"]
        )
        lines.append(json.dumps({"utt": f"s{number:02}", "ref": cased(ref), "hyps": hyps}) + "\n")
    return "".join(lines)


def corpus(home: Path) -> None:
    """A mini corpus."""
    for seed, (name, count) in enumerate({"train": 300, "valid": 40}.items()):
        (home / f"{name}.txt").write_text(
            "".join(f"{cased(line)}\n" for line in sentences(count, seed))
        )
    for seed, name in enumerate(("de-en.dev", "de-en.test", "fr-en.dev", "fr-en.test"), 10):
        (home / f"{name}.nbest.jsonl").write_text(nbest(seed))


@pytest.fixture(scope="module")
def whole(copied, make_recipe, shell):
    """The recipe after a run of the first pair that trains two LMs and scores with one, since each
    call that loads one takes seconds.
    """
    recipe = make_recipe(copied("wmt13"), shell)
    corpus(recipe.home / "small")
    recipe(*OPTIONS, *MAKE)
    recipe(*OPTIONS, *USE)
    return recipe


def models(recipe) -> dict[str, tuple]:
    """What the pairs share, and when it was written."""
    found = [
        path
        for pattern in SHARED
        for path in (recipe.home / "exp/english").glob(pattern)
        if path.is_file()
    ]
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in found}


def table(text: str) -> dict[str, list[str]]:
    """The cells of a table in Markdown, by the first of each row."""
    rows = [
        [cell.strip(" *") for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ")
    ]
    return {first: cells for first, *cells in rows if not set(first) <= set("-")}


def features(recipe, pair: str) -> dict[str, set]:
    """The features of each system."""
    exp = recipe.home / "exp" / pair
    return {
        path.parent.name: set(json.loads(path.read_text())["features"])
        for path in exp.glob("tune/*/weights.json")
    }


def test_all_stages(whole):
    exp = whole.home / "exp/de-en"
    for stage in range(8):
        manifest = json.loads((exp / f"stages/{stage}.json").read_text())
        assert (
            manifest["finished"]
            and manifest["options"]["expdir"] == "exp/de-en"
            and manifest["options"]["datadir"] == "data/de-en"
        )
    assert features(whole, "de-en") == SYSTEMS
    assert {path.name for path in (exp / "score").iterdir()} == {"mbr", "tta"}
    assert {path.name for path in exp.glob("ppl/*/*.json")} == {"valid.json", "test.json"}
    assert (
        os.readlink(exp / "lm") == "../english/lm"
        and (exp / "train.bin").resolve() == (whole.home / "exp/english/train.bin").resolve()
    )
    results = (exp / "report/RESULTS.md").read_text()
    for words in (
        "wmt13 (mini, de-en)",
        "| MBR (no LM) |",
        "| oracle",
        "depth",
        "LM text: 300 sentences",
    ):
        assert words in results, words
    made = [path.name for path in (whole.home / "exp").rglob("*")]
    assert not [name for name in made if ".tmp" in name or ".part" in name]


def test_figures_are_sacrebleu_s(whole):
    """Of the texts that were chosen, in the report and in the table of all metrics."""
    exp = whole.home / "exp/de-en"
    refs = kaldi_text.read(whole.home / "data/de-en/test/text")
    shown = table((exp / "report/metrics.md").read_text())
    main = table((exp / "report/RESULTS.md").read_text().split("\n## ")[1])
    assert shown.keys() == {"system", *NAMES} and main.keys() == {
        "system",
        *NAMES,
        "first pass",
        "oracle",
    }
    for printed, system in NAMES.items():
        texts = kaldi_text.read(exp / f"rescore/{system}/test.txt")
        args = [texts[utt] for utt in refs], [list(refs.values())]
        figures = [
            f"{measure(*args).score:.2f}"
            for measure in (sacrebleu.corpus_bleu, sacrebleu.corpus_chrf, sacrebleu.corpus_ter)
        ]
        assert shown[printed] == figures and main[printed][1] == figures[0]
    assert len(set(map(tuple, shown.values()))) > 3


def test_second_pair_takes_what_the_first_made(whole):
    """It trains nothing and changes no byte; here it needs no LM, and is tuned for another
    metric.
    """
    before = models(whole)
    done = whole(*OPTIONS, *MAKE, "--pair", "fr-en")
    assert (
        done.stdout.count("made before, by the same command of the same files") == 5
        and "starting" not in done.stdout
    )
    whole(*OPTIONS, *NO_LM, "--pair", "fr-en")
    assert models(whole) == before and len(before) > 8
    assert features(whole, "fr-en") == {"first-pass": {"am", "norm"}, "mbr": {"am", "norm", "mbr"}}
    assert (
        json.loads((whole.home / "exp/fr-en/tune/mbr/weights.json").read_text())["metric"] == "chrf"
    )
    results = (whole.home / "exp/fr-en/report/RESULTS.md").read_text()
    assert "wmt13 (mini, fr-en)" in results and "test chrF" in results
    for options, stages in ((MAKE, 5), (USE, 3)):
        later = whole(*OPTIONS, *options, "--skip-done", "true")
        assert later.stdout.count("is done already: skipped") == stages, later.stdout


def test_help(whole):
    """Paths and options; systems by sum and mean unless told otherwise."""
    said = whole("--help", "--pair", "fr-en").stdout
    assert "data/fr-en/test/nbest.jsonl" in said
    assert "writes exp/fr-en/tune exp/fr-en/rescore\n" in said
    assert '--expdir ""\n        for scores and results; empty: exp/PAIR' in said
    file = REPOSITORY / "egs/wmt13/conf/systems.yaml"
    assert list(read_systems(file, ["lms=ngram causal tta", "others=mbr"])) == [
        "first-pass",
        "mbr",
        *(name + end for name in ("ngram", "causal", "tta") for end in ("", "-mean")),
        "causal+ngram",
        "tta+ngram",
        "all",
    ]


def test_the_paper_s_interpolation():
    """A sum goes with the translator's sum, a mean with its mean."""
    file = REPOSITORY / "egs/wmt13/conf/paper.yaml"
    lms = ("ngram", "causal", "masked", "tta")
    settings = [f"lms={' '.join(lms)}", "others=mbr direct channel"]
    settings += ["first_pass=am", "first_pass_mean=norm"]
    found = read_systems(file, settings)
    plain = read_systems(file.with_name("systems.yaml"), settings)
    assert {name: found[name] for name in plain} == plain
    assert {name: plan.first_pass for name, plan in found.items() if name not in plain} == {
        name + end: {"norm" if "mean" in end else "am": 1.0}
        for name in lms
        for end in ("-interpolated", "-mean-interpolated")
    }
    run = (file.parents[1] / "run.sh").read_text()
    assert 'first_pass:+"first_pass=' in run and 'first_pass_mean:+"first_pass_mean=' in run


@pytest.mark.parametrize(
    "options, message",
    [
        (("--pair", "en-de"), "--pair is 'en-de'; it takes de-en or fr-en"),
        (("--corpus", "mega"), "--corpus is 'mega'; it takes mini or full"),
        (("--corpus", "full"), "name their directory with --nbest-dir, or a translator with --nmt"),
        (("--corpus", "full", "--nmt", "a", "--nbest-dir", "b"), "give one of them"),
        (("--nbest-dir", "b"), "--corpus mini has lists of its own"),
        (
            ("--mini", "small", "--translators", "channel"),
            "channel is trained on pairs; give their",
        ),
        (("--mini", "small", "--nmt", "direct"), "--translator-dirs direct=DIR"),
        (
            ("--translators", "reverse"),
            "--translators is 'reverse'; it takes direct, channel, both",
        ),
        (("--translator-dirs", "hf:x"), "has 'hf:x'; it takes direct=DIR and channel=DIR"),
        (
            ("--translator-dirs", "direct=x", "--lm-dirs", "direct=y"),
            "an LM is called direct, as a translator is; rename the LM",
        ),
        (("--bert", "x"), "--bert is a row of --paper true; give both"),
        (("--averages", "median"), "--averages is 'median'; it takes sum, mean or both"),
        (("--metric", "blue"), "--metric is 'blue'"),
        (("--expdir", "exp/english"), "--expdir and --shared are both exp/english"),
    ],
)
def test_wrong_options(whole, options, message):
    done = whole("--expdir", "wrong", *options, status=2)
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_a_copy_runs_at_once(whole, make_recipe, shell, tmp_path):
    """utils/new_recipe.sh, whose page is this recipe's."""
    shutil.copytree(REPOSITORY / "utils", tmp_path / "utils")
    shutil.copytree(whole.home, tmp_path / "egs/wmt13", symlinks=True)
    (tmp_path / "egs/wmt13/small").rename(tmp_path / "egs/wmt13/mini")
    subprocess.run(
        [tmp_path / "utils/new_recipe.sh", "wmt13", "mine"],
        check=True,
        capture_output=True,
        env=shell,
    )
    home = tmp_path / "egs/mine"
    page = (home / "README.md").read_text()
    assert page.startswith("# mine\n\nCopied from egs/wmt13.") and "@" not in page
    assert not {"make_mini.sh", "mini_pairs.py"} & set(os.listdir(home / "local"))
    make_recipe(home, shell)("--pair", "fr-en", "--stop-stage", 2)
    assert (home / "exp/english/text/train.txt").read_text() == (
        tmp_path / "egs/wmt13/mini/train.txt"
    ).read_text()
    assert (home / "data/fr-en/dev/nbest.jsonl").exists()


# Translators

BOTH = ("--translators", "direct channel", "--lms", "ngram", "--mbr", "none")


def foreign(line: str) -> str:
    """The sentence in another language: each word backwards."""
    return " ".join(word[::-1] for word in line.split())


def bilingual(home: Path) -> None:
    """The mini corpus with bilingual text, one side's sentences partly those of the LMs' text, and
    the source in each list.
    """
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


@pytest.fixture(scope="module")
def noisy(copied, make_recipe, shell):
    """The recipe after all stages with a direct and a channel model of the pairs."""
    recipe = make_recipe(copied("wmt13", "noisy"), shell)
    bilingual(recipe.home / "small")
    recipe(*OPTIONS, *BOTH, "--averages", "sum")
    return recipe


def column(path: Path) -> dict[str, float]:
    """The log-probability of each hypothesis in a file of scores."""
    _, *rows = path.read_text().splitlines()
    return {row.split()[0]: float(row.split()[1]) for row in rows}


def test_translators_are_columns(noisy):
    """By the package's own verbs: the scores are those of `lmtools score` of the models."""
    exp, data = noisy.home / "exp/de-en", noisy.home / "data/de-en"
    assert kaldi_text.read(data / "test/source") == {
        utt: foreign(ref) for utt, ref in kaldi_text.read(data / "test/text").items()
    }
    assert (data / "bilingual/train.de").read_text().splitlines() == [
        foreign(line) for line in (noisy.home / "small/train.txt").read_text().splitlines()[:60]
    ]
    for name, way in (("direct", []), ("channel", ["--reverse"])):
        out = noisy.home / f"again.{name}"
        lm, lists = exp / f"translator/{name}", data / "test/nbest.jsonl"
        argv = ["score", "--lm", lm, "--source", data / "test/source", *way, "--nbest", lists]
        assert main(list(map(str, [*argv, "--cache", "none", "--out", out]))) == 0
        assert column(out) == pytest.approx(column(exp / f"score/{name}/test.scores"))
    directions = [
        '"direction": "reverse"' in (exp / f"score/{name}/dev.scores").read_text()
        for name in ("direct", "channel")
    ]
    assert directions == [False, True]


def test_systems_with_translators(noisy):
    own = {"am", "norm", "words"}
    assert features(noisy, "de-en") == {
        "first-pass": own,
        "direct": own | {"direct"},
        "channel": own | {"channel"},
        "ngram": own | {"ngram"},
        "all": own | {"ngram"},
        "channel+ngram": own | {"channel", "ngram"},
        "channel+all": own | {"channel", "ngram"},
        "direct+channel": own | {"direct", "channel"},
        "direct+channel+all": own | {"direct", "channel", "ngram"},
    }
    report = noisy.home / "exp/de-en/report"
    shown = table((report / "RESULTS.md").read_text().split("\n## ")[1])
    assert list(shown) == [
        "system",
        "first pass",
        "oracle",
        "first pass, tuned",
        "direct (hypothesis given source)",
        "channel (source given hypothesis)",
        "n-gram",
        "channel + n-gram",
        "direct + channel",
        "all LMs",
        "channel + all LMs",
        "direct + channel + all LMs",
    ]
    assert table((report / "metrics.md").read_text()).keys() == shown.keys() - {
        "first pass",
        "oracle",
    }
    overlap = (report / "overlap.md").read_text()
    assert overlap.startswith("- Of the LM text's 300 sentences ") and overlap.count("\n") == 2


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
    """And its score of them is what they say: `am`."""
    made = ("--nmt", "direct", "--datadir", "data/made", "--expdir", "exp/made", "--depth", 4)
    ready = ("--translator-dirs", "direct=exp/de-en/translator/direct", "--mbr", "none")
    options = (*OPTIONS, *made, *ready, "--lms", "")
    noisy(*options, "--stage", 2, "--stop-stage", 2)
    noisy(*options, "--stage", 5, "--stop-stage", 5)
    data = noisy.home / "data/made/test"
    lists = [json.loads(line) for line in (data / "nbest.jsonl").read_text().splitlines()]
    given = kaldi_text.read(noisy.home / "data/de-en/test/text")
    assert [one["ref"] for one in lists] == list(given.values())
    assert list(kaldi_text.read(data / "source").values()) == [*map(foreign, given.values())]
    assert all(1 <= len(one["hyps"]) <= 4 for one in lists)
    scores = column(noisy.home / "exp/made/score/direct/test.scores")
    said = [hyp["scores"]["am"] for one in lists for hyp in one["hyps"]]
    near = [abs(a - b) < 1e-3 for a, b in zip(said, scores.values(), strict=True)]
    assert sum(near) > len(near) / 2  # texts that have no other pieces
    again = noisy(*options, "--stage", 2, "--stop-stage", 2)
    assert again.stdout.count("made before, by the same command of the same files") == 3


def test_full_takes_lists_without_scores(noisy):
    """What several systems say of the same sentences: the first pass is the first of each list."""
    home, firsts = noisy.home, {}
    for folder in ("exp/news/local/full", "pool"):
        (home / folder).mkdir(parents=True)
    for part in ("dev", "test"):
        lists = [
            json.loads(line)
            for line in (home / f"small/de-en.{part}.nbest.jsonl").read_text().splitlines()
        ]
        texts = {
            "de": [one["extra"]["source"] for one in lists],
            "en": [one["ref"] for one in lists],
        }
        for side, some in texts.items():
            raw = home / f"exp/news/local/full/{part}.{side}"
            raw.write_text("".join(f"{text}\n" for text in some))
        bare = [
            {"utt": one["utt"], "hyps": [{"text": hyp["text"]} for hyp in one["hyps"]]}
            for one in lists
        ]
        (home / f"pool/{part}.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in bare))
        firsts[part] = [one["hyps"][0]["text"] for one in lists], [texts["en"]]
    news = "".join(f"{line}\n" for line in NEWS[:9])
    (home / "exp/news/local/full/news.gz").write_bytes(gzip.compress(news.encode()))
    models = [f"{name}=exp/de-en/translator/{name}" for name in ("direct", "channel")]
    options = (
        *("--corpus", "full", "--nbest-dir", "pool", "--news-files", "news.gz", "--nj", 1),
        *("--translator-dirs", " ".join(models), "--lms", "", "--averages", "sum"),
        *("--lm-dirs", "ngram=exp/english/lm/ngram", "--shared", "exp/news"),
        *("--datadir", "data/pool", "--expdir", "exp/pool"),
    )
    noisy(*options, "--stage", 2, "--stop-stage", 2)
    noisy(*options, "--stage", 5)
    for part, (_, (refs,)) in firsts.items():
        sources = kaldi_text.read(home / f"data/pool/{part}/source")
        assert list(sources.values()) == [*map(foreign, refs)]
    assert features(noisy, "pool") == {
        name: {"rank", "words", *(part for part in columns.split("+") if part)}
        for name, columns in {
            "first-pass": "",
            "all": "ngram",
            "channel+all": "channel+ngram",
            "direct+channel+all": "direct+channel+ngram",
            **{name: name for name in ("mbr", "direct", "channel", "ngram")},
            **{name: name for name in ("channel+ngram", "direct+channel")},
        }.items()
    }
    shown = table((home / "exp/pool/report/RESULTS.md").read_text().split("\n## ")[1])
    bleu = [f"{sacrebleu.corpus_bleu(*firsts[part]).score:.2f}" for part in ("dev", "test")]
    assert shown["first pass"][:2] == bleu


def test_what_is_no_pair(noisy):
    """One line, naming the user's own file."""
    shutil.copytree(noisy.home / "small", noisy.home / "bad")
    (noisy.home / "bad/de-en.train.tsv.gz").unlink()
    (noisy.home / "bad/de-en.train.tsv").write_text("nie\tOne.\nkein Tab\n")
    where = ("--mini", "bad", "--expdir", "exp/bad", "--datadir", "data/bad", "--shared", "exp/b")
    done = noisy(*OPTIONS, *where, "--stop-stage", 1, status=1)
    cause = "not a foreign sentence, a tab and an English one; write it so"
    assert f"bad/de-en.train.tsv:2: {cause}\n" in done.stdout + done.stderr
    assert not (noisy.home / "exp/bad/translator").exists()
    (noisy.home / "bad/de-en.train.tsv").unlink()
    done = noisy(*OPTIONS, *where, "--pairs", "bad", "--stage", 1, "--stop-stage", 1, status=1)
    assert "stage 1 needs bad/de-en.train.tsv, which no earlier stage writes" in done.stderr


def test_lists_without_a_source(noisy):
    """Need one where a translator scores them."""
    shutil.copytree(noisy.home / "small", noisy.home / "sourceless")
    corpus(noisy.home / "sourceless")
    where = ("--mini", "sourceless", "--expdir", "exp/sourceless", "--datadir", "data/sourceless")
    ready = ("--translator-dirs", "channel=exp/de-en/translator/channel")
    options = (*OPTIONS, *where, *ready, "--shared", "exp/sourceless-english", "--stop-stage", 2)
    done = noisy(*options, status=1)
    assert "utterance 's01' has no source, which translators score by; add" in done.stdout
    noisy(*options, "--translators", "none")


# --corpus full

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
        run(LOCAL / "get_full.sh", raw, "de", "", url, "news.gz")
        assert len(asked) == 2  # the second continues the first
        run(LOCAL / "get_full.sh", raw, "de", "", url, "news.gz")
        assert len(asked) == 2
    kept = "dev.de dev.en news.gz news.gz.sha256 test.de test.en"
    assert sorted(os.listdir(raw)) == kept.split()
    assert {part: (raw / f"{part}.en").read_text().splitlines() for part in REFS} == REFS
    assert (raw / "dev.de").read_text() == "Ein Satz .\nNoch einer .\n"
    files = [raw / "dev.en", raw / "test.en", raw / "news.gz"]
    run(sys.executable, LOCAL / "prepare.py", "split", text, *files)
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
    run(LOCAL / "get_full.sh", raw, "de", mine, "http://nowhere.invalid")
    assert (raw / "train.txt").read_text() == "My train .\n" and (raw / "test.en").exists()
    (raw / "cut.gz").write_bytes((tmp_path / "www/news.gz").read_bytes()[:-50])
    files = [raw / "dev.en", raw / "test.en", raw / "cut.gz"]
    command = [LOCAL / "prepare.py", "split", tmp_path / "text", *files]
    done = run(sys.executable, *command, status=1)
    assert (
        "cut.gz: damaged archive" in done.stderr
        and done.stderr.count("\n") == 1
        and not os.listdir(tmp_path / "text")
    )


def test_full_takes_lists_of_a_translator(copied, make_recipe, shell):
    """Moses's lists, tokenised, in the order of the test set, and news: stage 2 alone."""
    home = copied("wmt13")
    raw = home / "exp/english/local/full"
    raw.mkdir(parents=True)
    for part, refs in REFS.items():
        for language in ("de", "en"):
            (raw / f"{part}.{language}").write_text("".join(f"{line}\n" for line in refs))
        (home / f"moses/{part}.nbest").parent.mkdir(exist_ok=True)
        rows = [
            f"{i} ||| it &apos;s {text} ||| LM0= -4 TM0= -1 ||| -{rank}"
            for i in (0, 1)
            for rank, text in enumerate(("a .", "b ."), 1)
        ]
        (home / f"moses/{part}.nbest").write_text("\n".join(rows) + "\n")
    (raw / "news.gz").write_bytes(gzip.compress("".join(f"{line}\n" for line in NEWS[:9]).encode()))
    recipe = make_recipe(home, shell)
    moses = "--corpus full --nbest-dir moses --nbest-format moses --news-files news.gz --depth 1"
    recipe(*moses.split(), "--stage", 2, "--stop-stage", 2)
    lists = [
        json.loads(line) for line in (home / "data/de-en/test/nbest.jsonl").read_text().splitlines()
    ]
    assert [one["ref"] for one in lists] == REFS["test"] and [
        len(one["hyps"]) for one in lists
    ] == [1, 1]
    assert list(kaldi_text.read(home / "data/de-en/test/text").values()) == REFS["test"]
    assert len((home / "exp/english/text/train.txt").read_text().splitlines()) == 6
