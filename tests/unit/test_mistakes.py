"""Mistakes that people make first, and the one line that each gets."""

import io
import json
import lzma
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from toys import sentences

from lmtools.cli import main
from lmtools.formats import FORMATS, jsonl, kaldi_text
from lmtools.types import Hypothesis, NBest

RESCUE = "rescue --dev dev.jsonl --test test.jsonl --text text --out out --cache none"


def lists(count: int, seed: int) -> list[NBest]:
    """Two hypotheses each, the first with one more word in every second list."""
    made = []
    for row, line in enumerate(sentences(count, seed)):
        texts = [line, f"{line} went"][:: 1 if row % 2 else -1]
        hyps = (Hypothesis(t, {"am": -float(rank)}) for rank, t in enumerate(texts, 1))
        made.append(NBest(f"ann-{seed}-{row}", tuple(hyps), line))
    return made


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Lists, references, text, and what people take them for."""
    home = tmp_path_factory.mktemp("home")
    dev, test = lists(30, 1), lists(30, 2)
    jsonl.write(dev, home / "dev.jsonl")
    jsonl.write(test, home / "test.jsonl")
    bare = [replace(nbest, ref=None) for nbest in dev]
    jsonl.write(bare, home / "bare.jsonl")
    costs = [
        replace(n, hyps=tuple(Hypothesis(h.text, {"am": -h.scores["am"]}) for h in n.hyps))
        for n in dev
    ]
    jsonl.write(costs, home / "costs.jsonl")
    for part, some in (("dev", bare), ("test", test)):
        FORMATS.write(some, home / f"kaldi_{part}", "kaldi-nbest")
    for name, change in {
        "path": "/data/{}.wav", "suffix": "{}.flac", "speaker": "SPK9-{}", "other": "{}x"
    }.items():  # fmt: skip
        kaldi_text.write({change.format(n.utt): n.ref for n in dev}, home / f"{name}.ref")
    kaldi_text.write({n.utt.upper(): n.ref for n in dev}, home / "upper.ref")
    nemo = ({"audio_filepath": f"/a/{n.utt}.wav", "text": n.ref, "duration": 1.5} for n in dev)
    (home / "nemo.json").write_text("".join(json.dumps(row) + "\n" for row in nemo))
    (home / "t.csv").write_text("utt,text\n" + "".join(f"{n.utt},{n.ref}\n" for n in dev))
    rows = [{"id": n.utt, "sentence": n.ref} for n in dev]
    (home / "rows.json").write_text(json.dumps(rows))
    (home / "map.json").write_text(json.dumps({n.utt: n.ref for n in dev}))
    text = "\n".join(sentences(300, 3)) + "\n"
    (home / "text").write_text(text)
    long = [f"{n.ref} {n.ref} {n.ref}" for n in test]
    longer = [replace(n, ref=ref) for n, ref in zip(test, long, strict=True)]
    jsonl.write(longer, home / "long.jsonl")
    (home / "refs").write_text("\n".join(long) + "\n" + text)
    content = (home / "dev.jsonl").read_bytes()
    (home / "cut.jsonl").write_bytes(content[:300])
    (home / "cut.jsonl.xz").write_bytes(lzma.compress(content)[:300])
    (home / "utf16.jsonl").write_bytes(content.decode().encode("utf-16"))
    (home / "latin.jsonl").write_bytes(content.replace(b"the", b"th\xe9"))
    for name in ("empty.jsonl", "empty.ref"):
        (home / name).write_text("")
    (home / "g.xml").write_text("<?xml version='1.0'?>\n<lexicon><lexeme/></lexicon>\n")
    return home


# what is typed, and what is said of it; a `?` begins what is said where the command succeeds
MISTAKES = [
    ("--dev kaldi_dev --test kaldi_test", "kaldi_dev: utterance 'ann-1-0' has no reference; give"
     " them by --dev-ref F"),
    ("--dev kaldi_dev --dev-ref path.ref", "?ids joined without directory and suffix"),
    ("--dev bare.jsonl --dev-ref suffix.ref", "?ids joined without directory and suffix"),
    ("--dev bare.jsonl --dev-ref speaker.ref", "?ids joined without what stands before - or _"),
    ("--dev bare.jsonl --dev-ref upper.ref", "?ids joined in lower case"),
    ("--dev bare.jsonl --dev-ref other.ref", "(first 'ann-1-0', there 'ann-1-0x')"),
    ("--dev bare.jsonl --dev-ref nemo.json", "?references in nemo.json\n"),
    ("--dev bare.jsonl --dev-ref t.csv", "?references in t.csv\n"),
    ("--dev bare.jsonl --dev-ref rows.json", "?references in rows.json\n"),
    ("--dev bare.jsonl --dev-ref map.json", "map.json:1: is JSON of no known format; give lines"),
    ("--dev bare.jsonl --dev-ref empty.ref", "empty.ref: is empty; give a line"),
    ("--test dev.jsonl", "has the lists of --dev, on which weights are tuned; give others"),
    ("--test long.jsonl --text refs", "?stand in refs: the LM was estimated without"),
    ("--dev costs.jsonl", "?costs: the lowest am is best; tuned by --fix am=-1"),
    ("--dev empty.jsonl", "empty.jsonl: no utterances; give the recogniser's N-best lists"),
    ("--dev cut.jsonl", "); it is cut off: copy or write the file again"),
    ("--dev cut.jsonl.xz", "cut.jsonl.xz:1: damaged archive"),
    ("--dev utf16.jsonl", "utf16.jsonl:1: in UTF-16; write it as UTF-8: iconv -f UTF-16"),
    ("--dev latin.jsonl", ": not UTF-8; write it as UTF-8: iconv -f WINDOWS-1252"),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "said"), MISTAKES)
def test_a_mistake_of_rescue(place, monkeypatch, capsys, typed, said):
    monkeypatch.chdir(place)
    assert main([*RESCUE.split(), *typed.split()]) == int(said[0] != "?")
    printed = capsys.readouterr()
    if said[0] == "?":
        assert said[1:] in printed.out and not printed.err
    else:
        assert said in printed.err and printed.err.count("\n") == 1


FRENCH = "une barque traverse le fleuve\nune barque traverse\nle passeur\n"
LIGATURES = "a \ufb01ne day \u2026 here\nthe \ufb01rst \u2026 one\nwe \ufb01nd it \u00bd way\n" * 10
PLAIN = {0xFB01: "fi", 0xBD: "1/2", 0x2026: "..."}
LISTS = "".join(
    json.dumps({"utt": f"u{n}", "ref": line.translate(PLAIN),
                "hyps": [{"text": line, "scores": {"NAME": -1.0}}]}) + "\n"
    for n, line in enumerate(LIGATURES.splitlines())
)  # fmt: skip
# files by name, what is typed beside the mistakes' files, and what is said, `!` before it: not
SAID = [
    ({"fr": FRENCH}, "ngram mix m m --text fr --out x", "fr: 100% of 10 tokens are unknown to"),
    ({"fr": FRENCH}, "select --lm m --general m --pool fr --keep 3 --out x",
     "x: 100% of 10 tokens are unknown to m, most often"),
    ({"fr": FRENCH}, "select --in-domain fr --pool text --keep 3 --out x",
     " tokens are unknown to what fr has at least twice, most often"),
    ({}, "select --in-domain text --pool text --keep 3 --out x", "!unknown"),
    ({}, "ngram mix m m --text text --out x", "!unknown"),
    ({"a": "u a b\n", "b": "u a c\n"}, "network rover a b --out x --to text",
     "hint: no references: a vote of unlike systems can be worse than the best system alone; tune"),
    ({}, "network rover dev.jsonl dev.jsonl --out x --to text", "!no references"),
    ({}, "pool bare.jsonl bare.jsonl --out x", "hint: no references: joined lists of unlike"),
    ({}, "pool dev.jsonl dev.jsonl --out x", "!no references"),
    ({"s/b.txt": "a b\n", "s/a.txt": "a c\n"}, "convert s x --format systems",
     "s: a comes first in each list, as the name of its file does"),
    ({"mt.jsonl": LISTS.replace("NAME", "LM0")}, "doctor --nbest mt.jsonl", "!nfkc"),
    ({"mt.jsonl": LISTS.replace("NAME", "F0")}, "doctor --nbest mt.jsonl", "!NFKC"),
    ({"asr.jsonl": LISTS.replace("NAME", "am")}, "doctor --nbest asr.jsonl", "--unify nfkc"),
    ({}, "doctor --nbest -", "format: jsonl, kaldi-nbest, kaldi-text, or another of lmtools"
     " convert --help\n-: 0 lists"),
    ({"d/x": "u a\n"}, "evaluate --ref d --hyp bare.jsonl", "d: is a directory without"),
    ({"d/x": "u a\n"}, "convert bare.jsonl x --ref d", "d: is a directory without Kaldi's `text`;"),
    ({"a": "u a b\n", "b": "u a c\nv d\n"}, "evaluate --ref a --hyp b",
     "b: 1 of 2 hypotheses have no reference in a (first 'v'); exchange the files or make"),
    ({"v.json": '{"partial": "a b"}'}, "convert v.json x", "v.json: a partial result; leave"),
    ({"v": '{"utt": "a", "partial": ""}\n'}, "convert v x", "v:1: a partial result; leave it out"),
    ({"v.json": '{\n "text": "a"\n}\n{\n "text": "b"\n}'}, "convert v.json x",
     "v.json:4: not JSON (Extra data at column 1); of several values each has to be a line"),
    ({"v/a.json": '{"text": "a"}', "v/b.json": '{"text": "b c"}'}, "convert v x",
     "x: 2 utterances, 2 hypotheses"),
    ({"v/a.json": '{"partial": "a"}', "v/b.json": '{"text": "b c"}'}, "convert v x",
     "v/a.json: a partial result; leave it out"),
    ({"z/a.json": '{"RecognitionStatus": "NoMatch", "Offset": 1}', "z/b.json":
      '{"RecognitionStatus": "Success", "NBest": [{"Confidence": 0.9, "Lexical": "b"}]}'},
     "convert z x", "x: 2 utterances, 1 hypotheses"),
    ({"z": '{"utt": "a", "RecognitionStatus": "NoMatch", "Duration": 1}'}, "convert z x",
     "x: 1 utterances, 0 hypotheses"),
    ({}, "ppl --lm m/config.yaml --text text", "a file of a model; give its directory, m"),
    ({}, "score --lm m/subword/subword.yaml --nbest dev.jsonl --out x", "a file of a model; give"),
    ({"w/wav.scp": "r r.wav\n", "w/segments": "u r 0 1 A\n"},
     "decode --asr vosk:none --audio w/wav.scp --out x", "w/segments:1: has a channel; make each"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "typed", "said"), SAID)
def test_what_is_said_of_a_result(place, monkeypatch, capsys, files, typed, said):
    monkeypatch.chdir(place)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x\n")))
    if not Path("m").exists():
        assert main(["ngram", "--text", "text", "--order", "2", "--out", "m"]) == 0
    for name in {"x", *(Path(name).parts[0] for name in files)}:
        shutil.rmtree(name, ignore_errors=True)
        Path(name).unlink(missing_ok=True)
    for name, content in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(content)
    main(shlex.split(typed))
    printed = "".join(capsys.readouterr())
    assert (said[1:] not in printed) if said[0] == "!" else (said in printed), printed


def test_mistakes_of_other_verbs(place, monkeypatch, capsys):
    monkeypatch.chdir(place)

    def call(words: str) -> tuple[int, str]:
        status = main(shlex.split(words))
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    call("ngram --text text --order 2 --out lm")
    for part in ("dev", "test"):
        call(f"score --nbest {part}.jsonl --lm lm --out {part}.scores")
    call("tune --nbest dev.jsonl --scores new=dev.scores --out w.json")
    for words, expected in {
        "tune --nbest dev.jsonl --scores a=test.scores --out o": "score these very lists again",
        "rescore --nbest test.jsonl --scores a=test.scores --weights w.json --out o": "feature new",
        "rescore --nbest test.jsonl --scores new=dev.scores --weights w.json --out o":
            "score these very lists again",
        "tune --nbest dev.jsonl --phrases g.xml --out o": "g.xml:2: ",
    }.items():  # fmt: skip
        status, said = call(words)
        assert status == 1 and expected in said
    status, said = call("tune --nbest costs.jsonl --set lengths= --out o")
    assert status == 0 and "'am' has the sign of costs" in said and "--fix am=-1 turns" in said
    rescore = "rescore --nbest kaldi_test --lm new=lm --weights default:whisper --out o"
    assert "lists in the format kaldi-nbest are hardly Whisper's" in call(rescore)[1]
    rescore = "rescore --nbest test.jsonl --scores new=test.scores --weights w.json --out"
    status, said = call(f"{rescore} /dev/stdout")
    assert status == 0 and said.count("ann-2-") == 30
    assert Path("o").exists()


CUT = {"bpe": "{0}@@ {1} ", "spm": "▁{0} {1} ", "bert": "{0} ##{1} "}
READERS = (
    "ngram --text cut.txt --order 2 --out cut-lm", "ppl --lm cut-lm --text cut.txt",
    "evaluate --plain --ref cut.txt --hyp cut.txt --metric bleu", "evaluate --hyp cut.jsonl",
    "tune --nbest cut.jsonl --out w", "score --nbest cut.jsonl --lm cut-lm --out s",
    "select --in-domain cut.txt --pool cut.txt --keep 2 --out few",
    "subword --text cut.txt --type word --out cut-words",
    "corpus --text cut.txt --subword cut-words --out c.bin",
)  # fmt: skip


@pytest.mark.parametrize("form", CUT)
def test_pieces_are_told_wherever_text_is_read(tmp_path, monkeypatch, capsys, form):
    monkeypatch.chdir(tmp_path)
    marked = lambda text: "".join(CUT[form].format(w[:1], w[1:] or "x") for w in text.split())  # noqa: E731
    Path("cut.txt").write_text("".join(f"{marked(line)}\n" for line in sentences(30, 5)))
    cut = [
        replace(n, ref=marked(n.ref), hyps=tuple(replace(h, text=marked(h.text)) for h in n.hyps))
        for n in lists(25, 4)
    ]
    jsonl.write(cut, "cut.jsonl")
    for call in READERS:
        assert (
            main([*call.split(), "--normaliser", "none"] if "ngram" in call else call.split()) == 0
        )
        printed = capsys.readouterr().err
        assert " of its words are pieces (" in printed
        assert "unify.py pieces < " in printed or "--unify pieces LISTS NEW" in printed
    words = dict.fromkeys(word for line in cut for word in line.ref.split())
    Path("tokens.txt").write_text("".join(f"{word} {i}\n" for i, word in enumerate(words)))
    assert main(["subword", "--model", "tokens.txt", "--out", "adopted"]) == 1
    assert "tokens.txt: a list of pieces (" in capsys.readouterr().err
    assert not Path("adopted").exists()
    lines = sentences(30, 5)
    Path("cut.txt").write_text("".join(f"{line} c@t {line}\n" for line in lines))
    assert main(READERS[0].split()) == 0 and "pieces" not in capsys.readouterr().err
