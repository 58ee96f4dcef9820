"""lmtools rescue: what people have, equal to the commands in its log, refusals, repeated runs."""

import gzip
import json
import random
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from toys import WORDS, sentences

import lmtools
from lmtools.cli import main
from lmtools.formats import FORMATS, jsonl, kaldi_text
from lmtools.rescoring.weights import Dev, Weights
from lmtools.types import Hypothesis, NBest
from lmtools.verbs import rescue_job
from lmtools.verbs.rescue import draw_table, list_weights

CALL = "rescue --dev dev.jsonl --test test.jsonl --out out --cache none"


def noisy_lists(count: int, seed: int) -> list[NBest]:
    """Lists of three hypotheses, of which the first often has wrong words."""
    rng, nbests = random.Random(seed), []
    for number, line in enumerate(sentences(count, seed)):
        wrong = [
            " ".join(rng.choice(WORDS) if rng.random() < share else word for word in line.split())
            for share in (0.3, 0.6)
        ]
        texts = [line, *wrong] if rng.random() < 0.3 else [*wrong, line]
        hyps = [Hypothesis(text, {"am": -rank + rng.random()}) for rank, text in enumerate(texts)]
        nbests.append(NBest(f"u{seed}-{number}", tuple(hyps), line))
    return nbests


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Lists and text, in the working directory."""
    monkeypatch.chdir(tmp_path)
    for name, seed in (("dev", 1), ("test", 2)):
        jsonl.write(noisy_lists(40, seed), tmp_path / f"{name}.jsonl")
    (tmp_path / "my text").write_text("\n".join(sentences(500, 3)) + "\n")
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    """The bytes of every file in a directory."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def commands() -> list[list[str]]:
    lines = re.findall(r"^lmtools (.*)", Path("out/rescue.log").read_text(), re.MULTILINE)
    return [shlex.split(line) for line in lines]


@pytest.mark.parametrize(
    ("more", "best"),
    [
        ("--text 'my text' --normaliser librispeech", "wer"),
        ("--text 'my text' --lm two=two --metric cer --max-line 1M", "cer"),
        ("--lm one=one --lm 'two=mix:one=0.5,two=0.5'", "wer"),
    ],
)
def test_equal_to_the_commands_in_its_log(home, capsys, more, best):
    for name, order in (("one", 3), ("two", 1)):
        assert main(["ngram", "--text", "my text", "--order", f"{order}", "--out", name]) == 0
    capsys.readouterr()
    assert main([*shlex.split(CALL), *shlex.split(more)]) == 0
    printed = capsys.readouterr().out
    words, made = commands(), contents(home / "out")
    made.pop("rescue.log")
    assert {"weights.json", "test.txt", "test.json", "no-lm.weights.json"} <= made.keys()
    (home / "out").rename(home / "first")
    (home / "out").mkdir()
    assert all(main(line) == 0 for line in words)
    assert contents(home / "out") == made
    verbs = [line[0] for line in words]
    assert verbs.count("score") == 2 * (more.count("--text") + more.count("--lm"))
    did, table, where = printed.split("\n\n")
    assert re.findall("(?m)^[a-zA-Z]+", did) == ["dev", "test", "writing", "LM"]
    head, *rows = table.splitlines()
    assert best.upper() in head and "weights" in head
    scores = [float(re.search(r"  +([\d.]+)", line)[1]) for line in rows]
    assert scores[0] > scores[2] >= scores[3] and "am 1, " in rows[2] and "metric:" not in printed
    assert 0 < float(rows[2].split("  am ")[0].split()[-1]) < 1 and "test.txt: the chosen" in where
    assert re.search(r"^\d+ hints?: out/rescue.log$", where, re.MULTILINE)


def test_lists_without_references_are_rescored(home, capsys):
    bare = [replace(nbest, ref=None) for nbest in jsonl.read("test.jsonl")]
    jsonl.write(bare, home / "test.jsonl")
    assert main([*CALL.split(), "--text", "my text", "--verbose"]) == 0
    said = capsys.readouterr()
    assert "test.jsonl has no references (--test-ref F)" in said.out and "metric:" in said.err
    assert kaldi_text.read("out/test.txt").keys() == {nbest.utt for nbest in bare}


def write_kaldi(nbests, part):
    """Kaldi's, in upper case, with the references in data/."""
    place = f"exp/tri5/decode_{part}/nbest"
    for job, some in enumerate((nbests[:20], nbests[20:]), 1):
        lists = [replace(n, hyps=tuple(map(in_upper, n.hyps))) for n in some]
        FORMATS.write(lists, f"{place}/archives.{job}", "kaldi-nbest")
        Path(place, f"archives.{job}/acwt").rename(f"{place}/archives.{job}/ac_cost")
    Path(f"data/{part}").mkdir(parents=True)
    kaldi_text.write({n.utt: n.ref.upper() for n in nbests}, f"data/{part}/text")
    return f"exp/tri5/decode_{part}", ""


def write_lattices(nbests, part, graph="graph_tg", words="", lang="exp/tri5/{}/words.txt"):
    """Kaldi's lattices in jobs; costs of which the graph's have to be scaled by 9 or more, which
    mends two in three.
    """
    place, table = Path(f"exp/tri5/decode_tg_{part}"), Path(lang.format(graph))
    for folder in (place, table.parent, Path(f"data/{part}")):
        folder.mkdir(parents=True, exist_ok=True)
    every = [n for name in ("dev", "test") for n in jsonl.read(f"{name}.jsonl")]
    ids = sorted({word for n in every for h in n.hyps for word in h.text.split()})
    table.write_text("<eps> 0\n" + "".join(f"{word} {n}\n" for n, word in enumerate(ids, 1)))
    for job, some in enumerate((nbests[:20], nbests[20:]), 1):
        blocks = []
        for row, n in enumerate(some):
            rows, state = [f"{n.utt} "], 1
            for rank, hyp in enumerate(n.hyps):
                wrong = hyp.text != n.ref
                weight = f"{2.0 + 5 * wrong * (row % 3 > 0)},{300.0 + rank - 40 * wrong},"
                path = [0, *range(state, state + len(hyp.text.split()))]
                labels = [ids.index(word) + 1 for word in hyp.text.split()]
                arcs = zip(path, path[1:], labels, strict=False)
                rows += [f"{a}\t{b}\t{label}\t0,0," for a, b, label in arcs]
                rows.append(f"{path[-1]}\t{weight}")
                state = path[-1] + 1
            blocks.append("\n".join([*rows, "", ""]))
        with gzip.open(place / f"lat.{job}.gz", "wt") as out:
            out.writelines(blocks)
    (place / "num_jobs").write_text("2\n")
    kaldi_text.write({n.utt: n.ref for n in nbests}, f"data/{part}/text")
    return str(place), words


def write_lattices_elsewhere(nbests, part):
    """The same, with words.txt in a place of its own."""
    table = "lang/words.txt"
    return write_lattices(nbests, part, words=f"--words {table}" * (part == "dev"), lang=table)


def in_upper(hyp):
    return replace(hyp, text=hyp.text.upper())


def write_flat(nbests, part):
    """Kaldi's without archives, with the references as `text` beside them."""
    FORMATS.write(nbests, f"nbest_{part}", "kaldi-nbest")
    kaldi_text.write({n.utt: n.ref for n in nbests}, f"nbest_{part}/text")
    return f"nbest_{part}", ""


def write_espnet(nbests, part):
    """ESPnet's with a trn whose ids begin with speakers; `text` is the recogniser's own."""
    for job, some in enumerate((nbests[:20], nbests[20:]), 1):
        FORMATS.write(some, f"asr/{part}/logdir/output.{job}", "espnet2")
    kaldi_text.write({n.utt: n.hyps[0].text for n in nbests}, f"asr/{part}/text")
    Path(f"asr/{part}/score_wer").mkdir()
    rows = (f"{n.ref}\t(spk_{n.utt.partition('-')[0]}-{n.utt})\n" for n in nbests)
    Path(f"asr/{part}/score_wer/ref.trn").write_text("".join(rows))
    return f"asr/{part}", ""


def write_moses(nbests, part):
    """Moses's, with plain references."""
    scored = (tuple(h.with_scores({**h.scores, "LM0": -2.0}) for h in n.hyps) for n in nbests)
    numbered = [NBest(str(row), hyps) for row, hyps in enumerate(scored)]
    FORMATS.write(numbered, f"{part}.nbest", "moses")
    Path(f"{part}.en").write_text("".join(f"{n.ref}\n" for n in nbests))
    return f"{part}.nbest", f"--{part}-ref {part}.en"


def write_whisper(nbests, part):
    """Whisper's lists, cased and with punctuation, and a NeMo manifest."""
    texts = [[f"{h.text.capitalize()}." for h in n.hyps] for n in nbests]
    rows = ({"utt": n.utt, "ref": None, "hyps": [{"text": t, "scores": dict(h.scores)}
             for t, h in zip(some, n.hyps, strict=True)]}
            for n, some in zip(nbests, texts, strict=True))  # fmt: skip
    Path(f"{part}.raw").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows = ({"audio_filepath": f"wav/{n.utt}.wav", "duration": 1.0, "text": n.ref}
            for n in nbests)  # fmt: skip
    Path(f"{part}.manifest").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"{part}.raw", f"--{part}-ref {part}.manifest"


def write_costs(nbests, part):
    """Lists whose scores are costs, a CSV of references whose ids are files."""
    turned = [[replace(h, scores={"am": 50 - h.scores["am"]}) for h in n.hyps] for n in nbests]
    turned = [NBest(n.utt, tuple(hyps)) for n, hyps in zip(nbests, turned, strict=True)]
    jsonl.write(turned, f"{part}.costs.jsonl")
    rows = (f"{n.utt}.wav,{n.ref}\n" for n in nbests)
    Path(f"{part}.csv").write_text("path,sentence\n" + "".join(rows))
    return f"{part}.costs.jsonl", f"--{part}-ref {part}.csv"


@pytest.mark.parametrize(
    ("write", "said", "more"),
    [
        (write_kaldi, r"decode_dev/nbest \(kaldi-nbest\), references in data/dev/text\n(.|\n)*upper"
         r" case \(hypotheses, references\), lower case \(text\).*--normaliser librispeech", ""),
        (write_flat, r"nbest_dev \(kaldi-nbest\), references in nbest_dev/text", ""),
        (write_espnet, r"\(espnet2\), references in asr/dev/score_wer/ref.trn, ids joined without"
         " what stands before", ""),
        (write_lattices, r"lattices of exp/tri5/decode_tg_test \(kaldi\), lists of their best paths"
         r" by am=1,graph=9\ndev: 40 lists .*, references in data/dev/text", ""),
        (write_lattices_elsewhere, r"lattices of exp/tri5/decode_tg_test \(kaldi:words=lang/words"
         r".txt\), lists of their best paths by am=1,graph=9\n", ""),
        (write_moses, r"\(moses\), references in dev.en", "--metric bleu"),
        (write_whisper, r"references in dev.manifest\n(.|\n)*lists and references are rewritten by"
         " --normaliser librispeech", ""),
        (write_costs, r"(.|\n)*costs: the lowest am is best; tuned by --fix am=-1", ""),
    ],
)  # fmt: skip
def test_what_people_have(home, capsys, write, said, more):
    """One command each, which finds out the rest."""
    call, before = "rescue --text 'my text' --out out --cache none", []
    for part in ("dev", "test"):
        path, refs = write(list(jsonl.read(f"{part}.jsonl")), part)
        call += f" --{part} {path} {refs}"
    if write is not write_costs:
        for part in ("dev", "test"):
            Path(f"{part}.jsonl").unlink()
    assert main(shlex.split(f"{call} {more}")) == 0
    printed = capsys.readouterr()
    assert re.search(said, printed.out) and not printed.err, printed
    first, *_, best, oracle = re.findall(r"(?m)^[a-zA-Z ]+?  +([\d.]+)  ", printed.out)
    assert abs(float(best) - float(oracle)) < abs(float(first) - float(oracle)), before
    assert len(kaldi_text.read("out/test.txt")) == 40


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda: shutil.rmtree("data"),
            "decode_tg_dev: no references found; give them by --dev-ref",
        ),
        (
            lambda: Path("data/dev/text").write_text("x y\n"),
            "decode_tg_dev: no references found; give them by --dev-ref F",
        ),
        (
            lambda: Path("exp/tri5/graph_b/words.txt").write_text("<eps> 0\n"),
            "exp/tri5/decode_tg_dev: exp/tri5/graph_a/words.txt and exp/tri5/graph_b/words.txt"
            " differ; name one: kaldi:words=FILE",
        ),
        (lambda: shutil.rmtree("exp/tri5/graph_b"), ""),
        (lambda: Path("exp/tri5/decode_tg_test/num_jobs").write_text("3"), "let all jobs finish"),
    ],
)
def test_lattices_that_lack_something(home, capsys, change, said):
    for part in ("dev", "test"):
        for graph in "ab":
            write_lattices(list(jsonl.read(f"{part}.jsonl")), part, f"graph_{graph}")
    Path("exp/tri5/graph_tg").mkdir()
    shutil.copy("exp/tri5/graph_a/words.txt", "exp/tri5/graph_tg/words.txt")
    change()
    if said.startswith("exp"):
        shutil.rmtree("exp/tri5/graph_tg")
    call = "rescue --dev exp/tri5/decode_tg_dev --test exp/tri5/decode_tg_test --out out --text"
    assert main([*call.split(), "my text"]) == int(bool(said))
    assert said in (told := capsys.readouterr().err) and told.count("\n") == int(bool(said))


def test_whisper_without_dev(home, capsys):
    """Default weights, where the scores are Whisper's."""
    lists = list(jsonl.read("test.jsonl"))
    call = "rescue --test w.jsonl --text 'my text' --out out --cache none"
    jsonl.write(lists, home / "w.jsonl")
    assert main(shlex.split(call)) == 1
    assert "--dev: no lists to tune weights on" in capsys.readouterr().err
    more = [[h.with_scores({**h.scores, "avg": h.scores["am"] / 9}) for h in n.hyps] for n in lists]
    scored = [replace(n, hyps=tuple(hyps)) for n, hyps in zip(lists, more, strict=True)]
    jsonl.write(scored, home / "w.jsonl")
    assert main(shlex.split(call)) == 0
    table = capsys.readouterr().out.split("\n\n")[1].splitlines()
    assert [row.split("  ")[0] for row in table[1:]] == ["first pass", "with LM", "oracle"]
    assert table[2].endswith("am 1, ngram 0.15, words 1.3")
    assert main(shlex.split(f"{call} --lm two=out/lm")) == 1
    assert "without it one language model is weighed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("write", "said"),
    [
        # CTranslate2 and Hugging Face tell means: their program writes tokens beside them
        (lambda h: {"text": h.text, "score": h.scores["am"] / 5, "tokens": [7] * 5}, ""),
        (lambda h: {"text": h.text, "score": h.scores["am"] / 5, "tokens": 5}, ""),
        (lambda h: {"text": h.text, "avg_logprob": h.scores["am"] / 5, "tokens": [7] * 5}, ""),
        (lambda h: {"text": h.text}, "w.json: no score 'am', the sum of the log-probabilities of"),
    ],
)
def test_beams_of_the_users_program_without_dev(home, capsys, write, said):
    lists = list(jsonl.read("test.jsonl"))
    trees = [{"utt": one.utt, "hypotheses": [*map(write, one.hyps)]} for one in lists]
    (home / "w.json").write_text(json.dumps(trees))
    (home / "ref").write_text("".join(f"{one.utt} {one.ref}\n" for one in lists))
    call = (
        "rescue --test w.json --test-ref ref --text 'my text' --out out --weights default:whisper"
    )
    assert main(shlex.split(call)) == bool(said)
    printed = capsys.readouterr()
    if said:
        assert said in printed.err and printed.err.count("\n") == 1
        return
    assert printed.out.split("\n\n")[1].splitlines()[2].endswith("am 1, ngram 0.15, words 1.3")
    assert main([*shlex.split(call), "--dev", "dev.jsonl"]) == 1
    assert "--weights: weights are tuned on --dev; leave one" in capsys.readouterr().err


def test_recordings_are_decoded(home, capsys, monkeypatch):
    """Those of test; dev has lists already."""
    bare = [NBest(n.utt, n.hyps) for n in jsonl.read("test.jsonl")]

    def run(words):
        if words[0] == "decode":
            assert words[1:5] == ["--asr", "whisper:base", "--audio", "recordings"]
            jsonl.write(bare, words[6])
        else:
            run_command(words)

    run_command = rescue_job.run_command
    monkeypatch.setattr(rescue_job, "run_command", run)
    kaldi_text.write({n.utt: n.ref for n in jsonl.read("test.jsonl")}, "transcripts")
    (home / "recordings").mkdir()
    (home / "recordings/a.wav").write_text("RIFF")
    call = "rescue --dev dev.jsonl --test recordings --asr whisper:base --test-ref transcripts"
    assert main(shlex.split(f"{call} --text 'my text' --out out --cache none")) == 0
    said = capsys.readouterr().out
    assert "test: recordings decoded by whisper:base\n" in said
    assert "40 lists of out/test.decoded.jsonl (jsonl), references in transcripts" in said


def test_weights_in_the_table(tmp_path):
    dev = Dev("dev", sha256="", utterances=9, first_pass=2.0, score=1.0)
    Weights("wer", {"am": 1.0, "lm": 0.0, "words": 1.2345}, "am", dev).save(tmp_path / "w")
    assert list_weights(tmp_path / "w", ["lm"]) == "am 1, lm 0 (no use), words 1.23"


def test_a_killed_run_goes_on(home):
    call = [*CALL.split(), "--text", "my text"]
    script = (
        "import os, sys; from lmtools.verbs import score; score.run = lambda args:"
        " os.kill(os.getpid(), 9)\nfrom lmtools.cli import main; main(sys.argv[1:])"
    )
    done = subprocess.run([sys.executable, "-c", script, *call], capture_output=True)
    assert done.returncode == -9
    assert {"no-lm.test.txt", "lm"} <= {path.name for path in (home / "out").iterdir()}
    assert main(call) == 0
    again = contents(home / "out")
    (home / "out").rename(home / "first")
    assert main(call) == 0 and contents(home / "out") == again


def test_a_model_of_another_case(home, capsys):
    """Lists are written as the words of a model that cannot write them itself."""
    text = home / "my text"
    text.write_text(text.read_text().upper())
    assert main(["ngram", "--text", "my text", "--order", "2", "--out", "lm"]) == 0
    assert main([*CALL.split(), "--lm", "two=lm"]) == 0
    assert "rewritten by --normaliser none --case upper" in capsys.readouterr().out
    assert next(jsonl.read("out/test.nbest.jsonl")).ref.isupper()
    assert main([*CALL.split(), "--lm", "two=lm", "--normaliser", "none"]) == 0
    assert "are not in lm" in capsys.readouterr().out.split("\n\n")[-1]  # under the table


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "no language model; give --text F"),
        ("--lm one", "--lm one: not NAME=LM"),
        ("--lm a/b=one", "cannot name a directory"),
        ("--lm a=x --lm a=y", "a second one called 'a'"),
        ("--lm 'ngram=my text' --text 'my text'", "--lm ngram: "),
        ("--lm a=x", "--lm a=x: no such language model"),
        ("--lm a=hf:x", "--lm a=hf:x: no such language model"),
        ("--lm 'am=my text'", "--lm am: dev.jsonl has a score of this name"),
        ("--lm 'words=my text'", "--lm words: dev.jsonl has a score of this name"),
        ("--text none", "none"),
        ("--text 'my text' --dev -", "--dev -: is read several times"),
        ("--text 'my text' --dev 'ark:x |'", "is read several times"),
        ("--text 'my text' --dev none", "none: "),
        (
            "--text 'my text' --dev bare",
            "utterance 'u1-0' has no reference; give them by --dev-ref F",
        ),
        ("--text 'my text' --test some", "some: utterance 'u1-0' has no reference"),
        ("--text 'my text' --test empty", "empty"),
        ("--text 'my text' --out 'my text'", "my text: cannot write"),
        ("--text 'my text' --dev-ref far", "no reference in far (first 'u1-0', there 'u9')"),
        ("--text 'my text' --test-ref -", "--test-ref -: is read several times"),
    ],
)
def test_bad_input_is_refused_in_one_line(home, capsys, more, said):
    nbests = noisy_lists(3, 1)
    bare = [replace(nbest, ref=None) for nbest in nbests]
    jsonl.write(bare, home / "bare")
    jsonl.write([*bare[:1], *nbests[1:]], home / "some")
    (home / "far").write_text("u9 zed\n")
    (home / "empty").write_text("")
    before = contents(home)
    words = shlex.split(more)
    usual = dict(zip(*[iter(CALL.split()[1:])] * 2, strict=True))  # but for what is given anew
    usual = [word for pair in usual.items() if pair[0] not in words for word in pair]
    assert main(["rescue", *usual, *words]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert errors[-1].startswith("lmtools rescue: ") and said in errors[-1]
    assert len(errors[-1]) <= 500
    assert contents(home) == before


@pytest.mark.parametrize(
    ("more", "package"),
    [("--text 'my text'", "kenlm"), ("--lm old=out.lm", "kenlm"), ("--lm new=hf:m", "transformers"),
     ("--lm mixed=mix:out.lm=0.5,out.lm=0.5", "kenlm")],
)  # fmt: skip
def test_a_missing_package_is_told_before_the_first_step(home, capsys, monkeypatch, more, package):
    monkeypatch.setitem(sys.modules, package, None)
    (home / "m").mkdir()
    (home / "out.lm").write_text("")
    assert main([*shlex.split(CALL), *shlex.split(more)]) == 1
    said = capsys.readouterr()
    assert re.search(rf": needs the package {package}; .*pip install", said.err)
    assert said.err.count("\n") == 1 and not said.out and not (home / "out").exists()


def test_dev_is_not_test_and_references_are_not_text(home, capsys):
    """Lines of the text that references have are left out, unless that is all of it."""
    call = "rescue --dev dev.jsonl --test dev.jsonl --text 'my text' --out out --cache none"
    assert main(shlex.split(call)) == 1
    assert "--test dev.jsonl: has the lists of --dev" in capsys.readouterr().err
    texts = [nbest.ref for nbest in jsonl.read("test.jsonl")]
    long = [f"{text} {other} {text}" for text, other in zip(texts, texts[::-1], strict=True)]
    long = [text for text in long if len(text.split()) >= 8]
    lists = [NBest(f"l{i}", (Hypothesis(t, {"am": -1.0}),), t) for i, t in enumerate(long)]
    jsonl.write(lists, home / "test.jsonl")
    (home / "leaky").write_text("\n".join(long * 9) + "\n")
    assert main(shlex.split(f"{CALL} --text leaky")) == 1
    assert "the LM has seen them: lmtools corpus --text leaky --ref" in (
        said := capsys.readouterr().err
    )
    assert said.endswith("no line is left, give other text\n")
    (home / "leaky").write_text("\n".join([*long * 2, *sentences(500, 3)]) + "\n")
    assert main(shlex.split(f"{CALL} --text leaky")) == 0
    notes = capsys.readouterr().out.split("\n\n")[-1]
    assert "(100.0%) references of 8 words or more stand in leaky: the LM was est" in notes
    left = Path("out/text.txt").read_text().splitlines()
    assert {*long}.isdisjoint(left) and len(left) > 400
    assert f" without {2 * len(long) + 500 - len(left)} lines, of out/text.txt" in notes
    shared = [*jsonl.read("test.jsonl"), next(jsonl.read("dev.jsonl"))]
    jsonl.write(shared, home / "test.jsonl")
    assert main(shlex.split(f"{CALL} --text 'my text'")) == 0
    assert f"1 of {len(shared)} lists of test are in dev, too: " in capsys.readouterr().out


def test_unknown_words_are_told_by_every_way(home, capsys):
    assert main(shlex.split("ngram --text 'my text' --order 2 --out lm")) == 0
    upper = [
        replace(nbest, hyps=tuple(replace(h, text=h.text.upper()) for h in nbest.hyps))
        for nbest in jsonl.read("test.jsonl")
    ]
    jsonl.write(upper, home / "upper.jsonl")
    capsys.readouterr()
    for call in (
        "score --nbest upper.jsonl --lm lm --out s",
        "rescore --nbest upper.jsonl --lm new=lm --weights default:whisper --out t",
    ):
        assert main(shlex.split(call)) == 0
        assert "tokens are unknown to lm" in capsys.readouterr().err
    with pytest.warns(UserWarning, match="tokens are unknown to lm"):
        lmtools.load("lm").rescore(upper, "default:whisper")


def test_the_table_says_which_test_and_what_is_undefined(home):
    """Ten mended errors: the matched pairs test is undefined; no words at all: so is the score."""
    wrong = {f"u{number}": "a x c" for number in range(10)}
    texts = {"old": wrong, "new": dict.fromkeys(wrong, "a b c"), "none": dict.fromkeys(wrong, "")}
    for name, each in texts.items():
        kaldi_text.write(each, name)

    def table(ref):
        for before, against in (("no-lm.", "new"), ("", "old"), ("oracle.", "new")):
            words = ["--ref", ref, "--hyp", "new", "--against", against]
            assert main(["evaluate", *words, "--out", f"{before}test.json"]) == 0
        return list(draw_table(Path(), "wer", ["lm"]))

    row = next(row for row in table("new") if row.startswith("with LM"))
    assert row.split(maxsplit=3)[3].startswith("0.00, 9.50    0.002 (sign test)  am 1, ")
    assert all(re.search("  -  -( |$)", row) for row in table("none")[1:]), table("none")


# Beginnings, middles and ends of sentences, and what a recogniser writes for some of their words
BARE = {
    "Chinese": """我的老师 隔壁的医生 那个司机 他的弟弟 | 今天修好了 昨天忘记带 已经卖掉了
        | 一把雨伞 旧自行车 那台电脑 新的手机 | 医生一声 雨伞雨散 手机手鸡 老师老是 弟弟地地""",
    "Japanese": """私の先生は 隣の医者が その運転手は 彼の弟が | 昨日コンピューターを 今朝ノートを
        | 修理しました 忘れてきました 買いに行きました | 先生専制 医者石屋 修理終理 昨日木野""",
    "Thai": """ครูของฉัน หมอข้างบ้าน คนขับรถ น้องชายของเขา | ซ่อม ลืมเอา เปิด ขาย
        | ร่มคันหนึ่ง จักรยานเก่า คอมพิวเตอร์เครื่องนั้น | ร่มล่ม ซ่อมซ้อม ลืมลิม ขายคาย เปิดเปืด""",
    "Burmese": """ကျွန်တော့်ဆရာ ဆရာဝန် ကားဆရာ သူ့ညီလေး | ထီးအသစ် စက်ဘီးဟောင်း ဖုန်းအသစ်
        | ကိုပြင်ခဲ့တယ် ကိုမေ့ခဲ့တယ် ကိုဖွင့်ခဲ့တယ် | ထီးတီး ဆရာစရာ ဖုန်းဘုန်း""",
    "Chinese with English": """我的老师 隔壁的manager 那个司机 他的team | 今天修好了 昨天forget带
        | 一把雨伞 旧laptop 那台电脑 | 老师老是 manager生意 雨伞雨散 司机思及""",
}


@pytest.mark.parametrize("leak", [False, True])
@pytest.mark.parametrize("language", BARE)
def test_letters_count_where_no_blanks_part_words(tmp_path, monkeypatch, capfd, language, leak):
    monkeypatch.chdir(tmp_path)
    *parts, confused = map(str.split, BARE[language].split("|"))
    draw = random.Random(7)
    every = [a + b + c for a in parts[0] for b in parts[1] for c in parts[2]]
    draw.shuffle(every)
    third = len(every) // 3
    for part, refs in (("dev", every[:third]), ("test", every[third : 2 * third])):
        lists = []
        for number, ref in enumerate(refs):
            pairs = ((word[: len(word) // 2], word[len(word) // 2 :]) for word in confused)
            texts = [*dict.fromkeys([*(ref.replace(*pair) for pair in pairs), ref])]
            draw.shuffle(texts)
            scores = [-number - draw.random() for number in range(len(texts))]
            lists.append(NBest.of(f"{part}-{number}", texts, ref=ref, am=scores))
        jsonl.write(lists, f"{part}.jsonl")
    text = every if leak else every[2 * third :]
    Path("text").write_text("".join(f"{line}\n" for line in text))
    status, (out, said) = main([*CALL.split(), "--text", "text"]), capfd.readouterr()
    assert f"{language.split()[0]} without blanks between words: by letters" in out
    if leak:
        assert "stand in text" in out + said
        return
    rows = [line for line in out.splitlines() if line.startswith(("first pass", "with LM"))]
    first, last = (float(row.split()[2]) for row in rows)
    assert status == 0 and "  CER  " in out and last < first and "(no use)" not in out


# Sentences, and what a recogniser writes for a word of each; lists are in upper case, as the
# language writes it
CASED = {
    "de": ("die straße war nass|er weiß den weg|der fuß tut weh|sie grüßt uns",
           "straße strafe weiß reis fuß fluss grüßt grüsste", str.upper, "case=upper"),
    "tr": ("ışık çok güzel|istanbul büyük bir şehir|kız kapıyı açtı|ılık su içti",
           "ışık aşık istanbul istasyon kız kir ılık ilik",
           lambda text: text.replace("i", "İ").upper(), "language=tr"),
    "el": ("ο δρόμος είναι μακρύς|η πόλη είναι όμορφη|ο ουρανός είναι γαλανός|το σπίτι έχει κήπο",
           "δρόμος τρόμος πόλη πάλη ουρανός ουραγός σπίτι σπιρί",
           lambda text: text.upper().translate(str.maketrans("ΆΈΉΊΌΎΏ", "ΑΕΗΙΟΥΩ")), "language=el"),
    "en": ("the street was wet|he knows the way|the foot hurts a lot|she greets us",
           "street treat knows nose foot food greets grits", str.upper, "librispeech"),
}  # fmt: skip


@pytest.mark.parametrize("refs", ["upper", "lower"])
@pytest.mark.parametrize("language", CASED)
def test_case_is_changed_as_the_language_writes_it(tmp_path, monkeypatch, capfd, language, refs):
    monkeypatch.chdir(tmp_path)
    texts, confused, upper, told = CASED[language]
    said, words = texts.split("|"), confused.split()
    for part in ("dev", "test"):
        lists = []
        for n in range(24):
            ref = said[n % len(said)]
            wrong = ref.replace(*words[2 * (n % len(said)) :][:2])
            hyps = [upper(text) for text in ((wrong, ref) if n % 3 else (ref, wrong))]
            ref = upper(ref) if refs == "upper" else ref
            lists.append(NBest.of(f"{part}-{n}", hyps, ref=ref, am=[-1.0, -1.5]))
        jsonl.write(lists, f"{part}.jsonl")
    Path("text").write_text("".join(f"{line}\n" for line in said * 9))
    assert main([*CALL.split(), "--text", "text"]) == 0
    out = capfd.readouterr().out
    assert "with LM             0.00" in out and "(no use)" not in out
    assert told in re.search("(?m)^writing: .*", out)[0] or (language, refs) == ("en", "lower")


def costs(nbest, sign=-1.0, factor=1.0):
    hyps = [h.with_scores({"am": 50 + sign * factor * h.scores["am"]}) for h in nbest.hyps]
    return replace(nbest, hyps=tuple(hyps))


def spell(nbest):
    return replace(nbest, ref=nbest.ref.replace(" ", "", 1))


UNDER = {  # what dev, test and text become, and what stands under the table
    "ids of three digits": (None, None, "utt-{:03} {}", "its lines have utterance ids ('utt-000"),
    "short ids": (None, None, "s{}.wav {}", "its lines have utterance ids ('s0.wav"),
    "other words": (None, None, "{0}a {0}b {0}c {0}d", "words of the hypotheses and "),
    "costs and scores": (costs, None, "{1}", "'am' is above and below 0 of dev and test"),
    "scores and costs": (None, costs, "{1}", "'am' is below and above 0 of dev and test"),
    "other units": (lambda n: costs(n, -1, 99), costs, "{1}", "'am' spans "),
    "worse": (None, lambda n: replace(n, ref=n.hyps[0].text), "{1}", "worse than the first pass"),
    "writing": (None, spell, "{1}", "are writing alone"),
}


@pytest.mark.parametrize("name", UNDER)
def test_the_worst_hint_stands_under_the_table(home, capsys, name):
    *changes, line, said = UNDER[name]
    for part, change in zip(("dev", "test"), changes, strict=True):
        nbests = [(change or (lambda nbest: nbest))(nbest) for nbest in jsonl.read(f"{part}.jsonl")]
        jsonl.write(nbests, home / f"{part}.jsonl")
    lines = sentences(500, 3)
    (home / "my text").write_text("".join(f"{line.format(n, s)}\n" for n, s in enumerate(lines)))
    assert main([*CALL.split(), "--text", "my text"]) == 0
    assert said in capsys.readouterr().out.split("\n\n")[2], name


@pytest.mark.parametrize(
    ("words", "more", "stops"),
    [
        ("le roi est là", "î", False),
        ("король здесь", "Anna", False),
        ("the king is", "9" * 40, True),
    ],
)
def test_a_share_of_characters_stops_nothing_below_5_percent(home, capsys, words, more, stops):
    text = " ".join([words] * 4)
    for part in ("dev", "test"):
        lists = [NBest.of(f"{part}{n}", [f"{text} {more}", text], ref=text) for n in range(30)]
        jsonl.write(lists, home / f"{part}.jsonl")
    (home / "my text").write_text("".join(f"{line} {words}\n" for line in sentences(500, 3)))
    assert main([*CALL.split(), "--text", "my text"]) == int(stops)
    said = "".join(capsys.readouterr()).split("\n\n")[-1]
    assert " characters (" in said and " that the references in dev.jsonl have not: " in said
