"""`lmtools lattice`, as users call it: what it prints and writes, and what it says of their
mistakes.
"""

import dataclasses
import json
import math
import re
from pathlib import Path
from shlex import split

import pytest
from lattices import all_paths, named_sums, path_score, random_lattice, sentences, words_of
from needs import needs
from toys import WORDS

from lmtools.cli import main
from lmtools.evaluate.edits import align
from lmtools.formats import jsonl, kaldi_text, lattices, read
from lmtools.ngram import build
from lmtools.rescoring.weights import Dev, Weights
from lmtools.text import NORMALISERS, Normaliser
from lmtools.types import Arc, Final, Lattice

WEIGHTS = {"am": 1.0, "lm": 0.5, "words": -0.25}
SPELLED = "am=1,lm=0.5,words=-0.25"


@pytest.fixture(scope="module")
def lm(trained, tiny, tmp_path_factory):
    """Language models by name: those that are trained, and two n-grams."""
    home = tmp_path_factory.mktemp("ngrams")
    for name, order in (("ngram", 3), ("bigram", 2)):
        build([tiny / "train.txt"], order, home / name, Normaliser(), kenlm="none")
    english = NORMALISERS["whisper-english"]
    build([tiny / "train.txt"], 2, home / "english", english, kenlm="none")
    return {
        "english": f"{home}/english",
        **{name: str(path) for name, path in trained.items()},
        "ngram": f"{home}/ngram",
        "bigram": f"{home}/bigram",
    }


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Five lattices as SLF (`l`), references (`ref`), and Kaldi's words.txt."""
    monkeypatch.chdir(tmp_path)
    made = [
        dataclasses.replace(random_lattice(seed, words=WORDS[:4]), utt=f"u{seed}")
        for seed in range(20, 25)
    ]
    lattices.write(made, "l", "slf")
    read = lattices.read("l")
    kaldi_text.write({lattice.utt: " ".join(max(all_paths(lattice))[0]) for lattice in read}, "ref")
    (tmp_path / "words.txt").write_text(
        "".join(f"{word} {i}\n" for i, word in enumerate(["<eps>", *WORDS]))
    )
    return tmp_path


def run(capsys, *arguments):
    """The exit status and what was printed."""
    status = main(["lattice", *map(str, arguments)])
    return status, capsys.readouterr()


def refused(capsys, *arguments) -> str:
    """The one line that a mistake gets."""
    status, printed = run(capsys, *arguments)
    assert (
        status == 1 and printed.err.count("\n") == 1 and printed.err.startswith("lmtools lattice: ")
    ), printed.err
    return printed.err.removeprefix("lmtools lattice: ").rstrip("\n")


LINES = {
    "info": ("info", "l", "--each"),
    "nbest": ("nbest", "l", "--weights", SPELLED, "--depth", 4, "--out", "o"),
    "oracle": ("oracle", "l", "--weights", SPELLED, "--out", "o"),
    "rescore": ("rescore", "l", "--weights", "am=1,new=2", "--lm", "new=LM", "--nbest-out", "o"),
}


@pytest.mark.parametrize("action", LINES)
def test_references_by_line_are_those_by_id(here, capsys, lm, action):
    refs = kaldi_text.read("ref")
    (here / "lines").write_text("".join(f"{refs[lattice.utt]}\n" for lattice in lattices.read("l")))
    asked = [str(word).replace("LM", lm["bigram"]) for word in LINES[action]]
    made = []
    for option in ("--ref", "--ref-lines"):
        status, printed = run(capsys, *asked, option, "ref" if option == "--ref" else "lines")
        assert status == 0
        made.append((printed.out, (here / "o").read_bytes() if (here / "o").exists() else b""))
    assert made[0] == made[1] and (action in ("info", "oracle") or b'"ref"' in made[0][1])
    for some, told in (
        ("a\n" * 4, "lines: 4 lines for 5 utterances or more in l"),
        ("a\n" * 6, "lines: 6 lines for 5 utterances in l"),
    ):
        (here / "lines").write_text(some)
        (here / "o").unlink(missing_ok=True)
        assert (
            told in run(capsys, *asked, "--ref-lines", "lines")[1].err and not (here / "o").exists()
        )


def test_nbest_is_the_best_sequences_in_order(here, capsys):
    asked = ("nbest", "l", "--weights", SPELLED, "--depth", 4, "--out", "n.jsonl", "--ref")
    status, said = run(capsys, *asked, "ref")
    refs = kaldi_text.read("ref")
    assert status == 0 and "alike" not in said.err
    kaldi_text.write({n.utt: n.hyps[0].text.upper() for n in jsonl.read("n.jsonl")}, "upper")
    assert "make both sides alike: lmtools convert --normaliser none --case lower" in (
        run(capsys, *asked, "upper")[1].err
    )
    run(capsys, *asked, "ref")
    for lattice, nbest in zip(lattices.read("l"), jsonl.read("n.jsonl"), strict=True):
        expected = sorted(sentences(lattice, WEIGHTS).items(), key=lambda item: -item[1])[:4]
        assert (nbest.utt, nbest.ref) == (lattice.utt, refs[lattice.utt]) and len(
            nbest.hyps
        ) == len(expected)
        for hyp, (_, score) in zip(nbest.hyps, expected, strict=True):
            found = hyp.scores["am"] + 0.5 * hyp.scores["lm"] - 0.25 * len(hyp.text.split())
            assert (
                found
                == pytest.approx(score)
                == pytest.approx(sentences(lattice, WEIGHTS)[tuple(hyp.text.split())])
            )


@pytest.mark.parametrize("scale", [1.0, 0.25, 0.0])
def test_posteriors_are_shares_of_all_paths(here, capsys, scale):
    for form in ("slf", "openfst"):
        asked = ("--weights", SPELLED, "--scale", scale, "--to", form, "--out", f"p-{form}")
        assert run(capsys, "posteriors", "l", *asked)[0] == 0
    several = zip(
        lattices.read("l"), lattices.read("p-slf"), lattices.read("p-openfst"), strict=True
    )
    for lattice, slf, openfst in several:
        mass = [0.0] * len(lattice.words)
        ways = all_paths(lattice)
        shares = [math.exp(scale * path_score(lattice, WEIGHTS, *way[1:])) for way in ways]
        for (_, arcs, _), share in zip(ways, shares, strict=True):
            for arc in arcs:
                mass[arc] += share / sum(shares)
        assert list(map(float, slf.extra["p"])) == pytest.approx(mass, rel=1e-5)
        assert slf.words == lattice.words and slf.scores.keys() == lattice.scores.keys()
        written = {(a.source, a.target, a.word): a.scores["am"] for a in openfst.arcs()}
        for arc, value in zip(lattice.arcs(), mass, strict=True):
            if sum(other.source == arc.source for other in lattice.arcs()) == 1 and value:
                found = written[arc.source, arc.target, arc.word]
                assert found == pytest.approx(math.log(value), abs=1e-5)


def test_oracle_and_best_path(here, capsys):
    status, printed = run(
        capsys, "oracle", "l", "--weights", SPELLED, "--ref", "ref", "--out", "o.txt"
    )
    # the references are paths
    assert status == 0 and kaldi_text.read("o.txt") == kaldi_text.read("ref")
    low = high = total = 0
    for lattice in lattices.read("l"):
        ref, scores = kaldi_text.read("ref")[lattice.utt].split(), sentences(lattice, WEIGHTS)
        ties = [
            align(ref, list(words)).counts.errors
            for words, score in scores.items()
            if score > max(scores.values()) - 1e-9
        ]
        low, high, total = low + min(ties), high + max(ties), total + len(ref)
    first, least = printed.out.splitlines()
    rate = float(re.match(r"best path: WER ([0-9.]+)%", first)[1])
    assert 0 < 100 * low / total - 0.01 < rate < 100 * high / total + 0.01 and least.startswith(
        "oracle: WER 0.00%"
    )


def test_info_counts(here, capsys):
    status, printed = run(capsys, "info", "l", "--each")
    read = lattices.read("l")
    states = sum(lattice.states for lattice in read)
    arcs = sum(len(lattice.words) for lattice in read)
    assert status == 0 and f"l: 5 lattices, {states} states, {arcs} arcs (" in printed.out
    assert [line.partition(":")[0] for line in printed.out.splitlines()[:5]] == [
        lattice.utt for lattice in read
    ]


def test_broken_lattices_are_told_and_repaired(here, capsys):
    cyclic = "UTTERANCE=u\nstart=0 end=2\nN=4 L=5\nI=0\nI=1 W=a\nI=2 W=!NULL\nI=3 W=b\n" + "".join(
        f"J={j} S={s} E={e} a={a}\n"
        for j, (s, e, a) in enumerate(
            [(0, 1, -1), (1, 3, -2), (3, 1, -3), (3, 2, -4), (1, 2, "nan")]
        )
    )
    (here / "c.slf").write_text(cyclic)
    status, printed = run(capsys, "info", "c.slf", "--repair", "r.slf")
    assert (
        status == 0
        and "error: cycle: 1 in 1 lattices, first closed by arc 2 (3 -> 1, 'a') of 'u'"
        in printed.out
    )
    assert (
        "error: NaN score: 1 in 1 lattices" in printed.out
        and "u: cut 1 arc that closed cycles" in printed.err
    )
    (repaired,) = lattices.read("r.slf")
    assert [words for words, _, _ in all_paths(repaired)] == [("a", "b")]
    status, printed = run(capsys, "info", "r.slf")
    assert status == 0 and "error" not in printed.out
    for action in (
        ("nbest", "--out", "-"),
        ("oracle", "--ref", "cref"),
        ("rescore", "--lm", "x=x", "--weights", "am=1,x=1"),
    ):
        kaldi_text.write({"u": "a b"}, "cref")
        if action[0] != "rescore":
            status, printed = run(capsys, action[0], "c.slf", *action[1:])
            assert (
                status == 0
                and "u: dropped 1 arc with impossible scores, cut 1 arc that closed cycles"
                in printed.err
            )


def test_rescore_two_models_and_their_mixture(here, lm, capsys):
    """All that can be asked for in one pass belongs together, and scores are the models'."""
    mixture = f"m=mix:{lm['ngram']}=0.25,{lm['bigram']}=0.75"
    models = ("--lm", f"c={lm['causal']}", "--lm", mixture)
    weights = {**WEIGHTS, "m": 2.0, "c": 1.5}
    spelled = ",".join(f"{name}={weight}" for name, weight in weights.items())
    out = (
        *split("--out o --nbest-out n.jsonl --depth"),
        3,
        *split("--text-out t --ref ref --report r.json"),
    )
    status, printed = run(
        capsys, "rescore", "l", *models, "--weights", spelled, "--max-ngram-order", 0, *out
    )
    tree = json.loads((here / "r.json").read_text())
    assert (
        status == 0
        and printed.err.startswith("5 lattices, ")
        and tree["lattices"] == 5
        and tree["weights"] == weights
    )
    assert (
        tree["arcs"] == sum(len(lattice.words) for lattice in lattices.read("l"))
        and tree["approximation"] == {}
    )
    assert tree["signatures"]["c"]["lm"] == "causal" and list(tree["signatures"]) == ["c", "m"]
    assert main(["tune", "--nbest", "n.jsonl", "--out", "w.json"]) == 0
    capsys.readouterr()
    system = Weights.load("w.json").system
    assert system.lists == "lattices" and [one.name for one in system.lms] == ["c", "m", "lm"]
    assert {one.name: one.signature for one in system.lms if one.signature} == tree["signatures"]
    texts, refs = kaldi_text.read("t"), kaldi_text.read("ref")
    for lattice, nbest in zip(lattices.read("o"), jsonl.read("n.jsonl"), strict=True):
        assert {"am", "lm", "m", "c"} <= lattice.scores.keys()
        assert texts[lattice.utt] == nbest.hyps[0].text and nbest.ref == refs[lattice.utt]
        best = sentences(lattice, weights)
        assert sorted(best.values(), reverse=True)[:3] == pytest.approx(
            [best[tuple(hyp.text.split())] for hyp in nbest.hyps]
        )
    lists = {name: scored(here, capsys, lm[name]) for name in ("ngram", "bigram", "causal")}
    for nbest in jsonl.read("n.jsonl"):
        for rank, hyp in enumerate(nbest.hyps, 1):
            assert hyp.scores["c"] == pytest.approx(
                lists["causal"][f"{nbest.utt}#{rank}"], abs=1e-4
            )
            parts = sorted(lists[name][f"{nbest.utt}#{rank}"] for name in ("ngram", "bigram"))
            assert parts[0] - 3 < hyp.scores["m"] < parts[1] + 3


def scored(here, capsys, path, *options) -> dict[str, float]:
    """What `lmtools score` gives n.jsonl."""
    assert (
        main(
            ["score", "--lm", path, "--nbest", "n.jsonl", "--out", "s", "--cache", "none", *options]
        )
        == 0
    )
    capsys.readouterr()
    rows = [
        line.split("\t")
        for line in (here / "s").read_text().splitlines()
        if not line.startswith("#")
    ]
    return {row[0]: float(row[1]) for row in rows if row[0].partition("#")[0].startswith("u")}


def test_rescoring_without_normalisers_and_with_a_penalty(here, lm, capsys):
    """The scores of the best path are those that `lmtools score` gives it with the same options."""
    vocabulary = {"the": "THEE", "king": "king"}  # so that a word of every lattice is unknown
    for lattice in (made := lattices.read("l")):
        assert vocabulary.keys() & {*lattice.words}
    lattices.write(
        [dataclasses.replace(x, words=tuple(vocabulary.get(w, w) for w in x.words)) for x in made],
        "k",
        "slf",
    )
    penalty, without = "oov_penalty=2.5", "normalise=none"
    specs = {"c": f"{lm['causal']},{without},{penalty}", "g": f"{lm['ngram']},{penalty}"}
    models = [word for name, spec in specs.items() for word in ("--lm", f"{name}={spec}")]
    status, _ = run(
        capsys,
        "rescore",
        "k",
        *models,
        *("--weights", "am=1,c=1,g=1"),
        "--max-ngram-order",
        0,
        *split("--nbest-out n.jsonl --report r.json"),
    )
    tree = json.loads((here / "r.json").read_text())
    assert status == 0 and tree["lms"] == specs
    expected = {"c": scored(here, capsys, specs["c"]), "g": scored(here, capsys, specs["g"])}
    plain = scored(here, capsys, lm["causal"])
    for nbest in jsonl.read("n.jsonl"):
        for rank, hyp in enumerate(nbest.hyps, 1):
            for name, scores in expected.items():
                assert hyp.scores[name] == pytest.approx(scores[f"{nbest.utt}#{rank}"], abs=1e-3)
            assert hyp.scores["c"] != pytest.approx(plain[f"{nbest.utt}#{rank}"], abs=0.1)


@pytest.mark.parametrize("name", ["tta", "masked"])
def test_a_model_of_both_sides_reports_its_approximation(here, lm, capsys, name):
    status, _ = run(
        capsys,
        *split("rescore l --lm"),
        f"x={lm[name]}",
        *split("--weights am=1,x=1 --exact"),
        4,
        *split("--text-out t --report r.json"),
    )
    off = json.loads((here / "r.json").read_text())["approximation"]
    assert (
        status == 0
        and off["word_mean"] >= 0
        and off["sentence_max"] >= off["sentence_mean"] >= 0
        and 0 <= off["agrees"] <= 1
    )


def test_bounds_make_lattices_smaller(here, lm, capsys):
    sizes = {}
    for bounds in (
        "--set tokens=1",
        "--beam 0",
        "--max-ngram-order 1",
        "--set prune_beam=0",
        "--max-ngram-order 0",
    ):
        common = (
            "--lm",
            f"c={lm['causal']}",
            "--weights",
            f"{SPELLED},c=1",
            *split("--out o --text-out t"),
        )
        status, _ = run(capsys, "rescore", "l", *common, *bounds.split())
        sizes[bounds] = sum(len(lattice.words) for lattice in lattices.read("o"))
        assert status == 0 and len(kaldi_text.read("t")) == 5
    whole = sizes.pop("--max-ngram-order 0")
    assert all(size < whole for size in sizes.values()), (sizes, whole)


def test_the_old_model_is_taken_out_of_a_kaldi_lattice(here, lm, capsys):
    """What `lm` gains `graph` loses, and the new model takes its place, in Kaldi's form."""
    arcs = [Arc(0, 1, "the", {"graph": -5.0, "am": -1.0}),
    Arc(1, 2, "king", {"graph": -6.0, "am": -2.0}),
            Arc(0, 2, "queen", {"graph": -4.0, "am": -3.0})]  # fmt: skip
    lattices.write(
        [Lattice.of("k", 3, 0, arcs, [Final(2, {"graph": -0.5, "am": 0.0})])],
        "ark,t:k.ark",
        "kaldi",
    )
    models = ("--old-lm", lm["bigram"], "--lm", f"new={lm['ngram']}")
    # compare by the plain sum
    status, _ = run(
        capsys,
        "rescore",
        "k.ark",
        *models,
        *split("--weights am=1,graph=1,new=1 --out o.slf --to slf"),
    )
    (rescored,) = lattices.read("o.slf")
    assert status == 0
    sums = {words: named_sums(rescored, way, final) for words, way, final in all_paths(rescored)}
    for words, graph, am in ((("the", "king"), -11.5, -3.0), (("queen",), -4.5, -3.0)):
        assert sums[words]["graph"] + sums[words]["lm"] == pytest.approx(graph, abs=1e-4) and sums[
            words
        ]["am"] == pytest.approx(am)
    status, _ = run(
        capsys,
        "rescore",
        "k.ark",
        *models,
        *split("--weights am=1,graph=1,new=1 --out ark,t:o.ark"),
    )
    (folded,) = lattices.read("o.ark")
    totals = {
        words_of(folded, way): sum(named_sums(folded, way, final).values())
        for _, way, final in all_paths(folded)
    }
    expected = {words: each["graph"] + each["am"] + each["new"] for words, each in sums.items()}
    assert (
        status == 0
        and folded.scores.keys() == {"graph", "am"}
        and totals == pytest.approx(expected, abs=1e-4)
    )


@pytest.mark.parametrize(
    ("to", "out", "unit"), [("openfst", "o", 1), ("plf", "o", 1), ("kaldi", "o.ark", 0.5)]
)
def test_formats_of_one_or_two_scores_get_their_sum(here, lm, capsys, to, out, unit):
    models = ("--lm", f"new={lm['bigram']}", "--weights", "am=0.5,lm=0.5,new=2,words=-1")
    assert run(capsys, "rescore", "l", *models, "--out", "whole")[0] == 0
    assert run(capsys, "rescore", "l", *models, "--out", out, "--to", to)[0] == 0
    for whole, folded in zip(lattices.read("whole"), lattices.read(out, to), strict=True):
        expected = sentences(whole, {"am": 0.5, "lm": 0.5, "new": 2.0, "words": -1.0})
        found = sentences(folded, dict.fromkeys(folded.scores, 1.0))
        assert found == pytest.approx(
            {words: score / unit for words, score in expected.items()}, abs=2e-3
        )


def test_weights_from_tuning(here, lm, capsys):
    weights = {"am": 1.0, "lm": 0.5, "new": 2.0}
    Weights("wer", weights, "am", Dev("d", "0", 1, 2.0, 1.0)).save("w=1.json")
    outputs = []
    for weights in ("w=1.json", "am=1,lm=0.5,new=2"):
        status, printed = run(
            capsys,
            *split("rescore l --lm"),
            f"new={lm['bigram']}",
            "--weights",
            weights,
            "--nbest-out",
            "-",
        )
        outputs.append((status, printed.out))
    assert outputs[0] == outputs[1] and outputs[0][0] == 0 and outputs[0][1].count("\n") == 5


MISTAKES = [
    ("", "nothing to write; give --out, --nbest-out or --text-out"),
    (
        "--text-out - --nbest-out -",
        "two results on standard output; give all but one the name of a file",
    ),
    (
        "--text-out - --out ark,t:-",
        "two results on standard output; give all but one the name of a file",
    ),
    ("--text-out o", "no weights of the scores; give --weights, as in"),
    (
        "--text-out o --weights am=1,new=1 --lm LM",
        "--lm LM: not NAME=DIR; give a name and what it means",
    ),
    (
        "--text-out o --weights am=1,new=1 --lm new=LM --lm new=x",
        "--lm new=x: a second one called 'new'; give each its own name",
    ),
    ("--text-out o --weights am=1,new=1", "no language model to rescore lattices with; name one"),
    ("--text-out o --weights am=1,new=1 --lm new=none", "none: no such language model"),
    (
        "--text-out o --weights am=1 --lm new=LM",
        "no weight for 'new'; give all language models one",
    ),
    (
        "--text-out o --weights am=1,x=1,new=1 --lm new=LM",
        "u20: no score 'x' in the lattice; give weights to some of: am, lm, words",
    ),
    ("--text-out o --weights am=1,lm=1 --lm lm=LM", "u20: "),
    (
        "--text-out o --weights am=1,new=1,am=2 --lm new=LM",
        "--weights am=2: a second one called 'am'; give each its own name",
    ),
    (
        "--text-out o --weights am=1,new=much --lm new=LM",
        "the weight of 'new' is 'much'; expected a finite number",
    ),
    (
        "--text-out o --weights am=1,new=nan --lm new=LM",
        "the weight of 'new' is 'nan'; expected a finite number",
    ),
    ("--text-out o --weights am=1,,new=1 --lm new=LM", "--weights : not NAME=NUMBER; write"),
    ("--text-out o --weights none --lm new=LM", "none: cannot read"),
    ("--text-out o --weights am=1,new=1 --lm new=LM --old-lm LM", "u20: "),
    (
        "--out o --to nix --weights am=1,new=1 --lm new=LM",
        "nix: no format is called 'nix'; known are kaldi, slf",
    ),
    ("--out o --to slf:x=1 --weights am=1,new=1 --lm new=LM", "format 'slf' takes no option 'x'"),
    (
        "--out o --to jsonl --weights am=1,new=1 --lm new=LM",
        "jsonl: no format is called 'jsonl'; known are kaldi, slf",
    ),
    (
        "--text-out o --nbest-out o --nbest-to nix --weights am=1,new=1 --lm new=LM",
        "nix: no format is called 'nix'; known are jsonl",
    ),
    (
        "--out o.slf --weights am=1,new=1 --lm new=LM",
        "o.slf: holds one lattice, and there are more; give the name of a directory",
    ),
    pytest.param(
        "--out o --to wcn --weights am=1,new=1 --lm new=LM",
        "is no confusion network",
        marks=needs("networks"),
    ),
    (
        "--out o.ark --to kaldi --weights am=-1,new=1 --lm new=LM",
        "u20: scores can be folded into 'graph' only where 'am' stays apart",
    ),
    (
        "--text-out o --weights am=1,new=1 --lm new=ENGLISH",
        "its normaliser whisper-english reads whole sentences, and lattices and live decoders give",
    ),
    (
        "--nbest-out o --ref short --weights am=1,new=1 --lm new=LM",
        "short: no reference for lattice 'u20'; make the ids the same",
    ),
    ("--text-out ref/o --weights am=1,new=1 --lm new=LM", "ref/o: cannot write"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_mistakes_of_rescoring_are_one_line_and_write_nothing(here, lm, capsys, arguments, message):
    (here / "short").write_text("u99 a\n")
    before = sorted(here.iterdir())
    names = {"LM": lm["bigram"], "ENGLISH": lm["english"]}
    for name, path in names.items():
        arguments = arguments.replace(name, path)
    found = refused(capsys, "rescore", "l", *arguments.split())
    assert message.replace("LM", lm["bigram"]) in found and not re.search("Traceback|Error", found)
    assert sorted(here.iterdir()) == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "x.slf: cannot read: No such file or directory; check the path"),
        ("", "x.slf"),
        ("VERSION=1.0\nN=2 L=1\nI=0\nI=1\nJ=0 S=0 E=7 W=a\n", "x.slf:5"),
    ],
)
@pytest.mark.parametrize(
    "action",
    [
        "info",
        "nbest --out o",
        "oracle --ref ref --out o",
        "rescore --lm x=LM --weights am=1,x=1 --text-out o",
    ],
)
def test_inputs_that_cannot_be_read(here, lm, capsys, content, message, action):
    if content is not None:
        (here / "x.slf").write_text(content)
    name, *more = action.replace("LM", lm["bigram"]).split()
    assert message in refused(capsys, name, "x.slf", "--format", "slf", *more)
    assert not (here / "o").exists()


@pytest.mark.parametrize(
    "action", ["info", "nbest --out o", "oracle --ref ref --out o", "info --repair o"]
)
def test_nothing_at_all_is_a_mistake(here, capsys, action):
    (here / "none.plf").write_text("")
    name, *more = action.split()
    assert (
        refused(capsys, name, "none.plf", "--format", "plf", *more)
        == "none.plf: no lattices; give the recogniser's"
    )
    assert not (here / "o").exists()


def test_lists_for_formats_with_one_score_have_the_total(here, capsys):
    weights = {"am": 1.0, "lm": 2.0, "words": -0.5}
    asked = ("--weights", "am=1,lm=2,words=-0.5", "--depth", 3, "--out")
    assert (
        run(capsys, "nbest", "l", *asked, "e", "--to", "espnet2")[0]
        == 0
        == run(capsys, "nbest", "l", *asked, "j")[0]
    )
    parts, totals = (
        list(read(here / name, kind)) for name, kind in (("j", "jsonl"), ("e", "espnet2"))
    )
    for nbest, scored in zip(parts, totals, strict=True):
        sums = [
            sum(
                weights[name] * value
                for name, value in {**hyp.scores, "words": len(hyp.text.split())}.items()
            )
            for hyp in nbest.hyps
        ]
        assert [hyp.scores["am"] for hyp in scored.hyps] == pytest.approx(sums) and sums == sorted(
            sums, reverse=True
        )


def test_other_mistakes(here, capsys):
    assert "l: could be" not in refused(capsys, "nbest", "l", "--format", "nix", "--out", "o")
    assert refused(capsys, "nbest", "ref", "--out", "o").startswith(
        "ref: could be anything; name its format: kaldi, slf"
    )
    assert refused(capsys, "nbest", "-", "--out", "o").startswith(
        "standard input is not looked into; name its format: kaldi, slf"
    )
    assert "short" in refused(capsys, "oracle", "l", "--ref", "short")
    for wrong in (*split("--beam=-1 --beam=nan --max-ngram-order=-1"),):
        with pytest.raises(SystemExit) as stop:
            main(["lattice", "rescore", "l", "--weights", "am=1", wrong])
        assert stop.value.code == 2 and wrong.partition("=")[0] in capsys.readouterr().err
    rescore = (*split("rescore l --lm n=lm --weights am=1,n=1 --text-out o --set"),)
    for wrong, message in {
        "prune_beam=x": "prune_beam=x: is no number",
        "tokens=0": "tokens: 0 (int) is not a whole number from 1",
        "token=1": "--set token: no such option; known: prune_beam, cover_beam, tokens",
    }.items():
        assert message in refused(capsys, *rescore, wrong)
    assert not (here / "o").exists()


def test_rescore_tells_of_a_closed_vocabulary(here, capsys):
    Path("lm.arpa").write_text(
        "\\data\\\nngram 1=3\nngram 2=0\n\n\\1-grams:\n-1\t</s>\n-99\t<s>\n"
        f"-0.7\t{WORDS[0]}\n\n\\2-grams:\n\n\\end\\\n"
    )
    call = *split("rescore l --lm new=lm.arpa --weights am=1,new=2 --nbest-out n.jsonl"), "--report"
    status, printed = run(capsys, *call, "r.json")
    assert status == 0
    assert printed.err.startswith("lm.arpa: of a language model without <unk>"), printed.err
    assert json.loads(Path("r.json").read_text())["signatures"]["new"]["unk"] == "1e-07"
