"""egs/gbw/local: corpora of the published layout, small and made up, from a local server to the
texts that are trained on.
"""

import gzip
import io
import lzma
import os
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from recipe import test_fetch

REPOSITORY = Path(__file__).parents[2]
LOCAL = REPOSITORY / "egs/gbw/local"
MINI = REPOSITORY / "egs/librispeech/mini"
HOME = "1-billion-word-language-modeling-benchmark-r13output"
TRAIN = f"{HOME}/training-monolingual.tokenized.shuffled/news.en-{{:05d}}-of-00100"
HELD_OUT = f"{HOME}/heldout-monolingual.tokenized.shuffled/news.en.heldout-{{:05d}}-of-00050"
server, run, sha256 = test_fetch.server, test_fetch.run, test_fetch.sha256

ARTICLE = (
    " \n = Title = \n \n The <unk> , a word @-@ pair . \n Another paragraph . \n \n = = Part = ="
    " \n \n"
)


@pytest.fixture(scope="module")
def billion() -> dict[str, str]:
    """Members of a small One Billion Word: shards of 2 lines, held-out ones, others."""
    shards = {
        TRAIN.format(n): f"Shard {n} , first .\nShard {n} , <unk> last .\n"
        for n in (7, *range(1, 7), *range(8, 100))
    }
    shards[TRAIN.format(50)] = "Shard 50 ends early ."
    shards |= {
        HELD_OUT.format(n): "".join(f"Held out {n} : {line} .\n" for line in range(4000))
        for n in (3, 1, 0)
    }
    return {f"{HOME}/README": "about\n", **shards, TRAIN.format(0): "not training\n"}


def packed(files: dict[str, str]) -> bytes:
    """A .tar.gz of them, with their directories."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as tar:
        folder = tarfile.TarInfo(f"{HOME}/training-monolingual.tokenized.shuffled")
        folder.type = tarfile.DIRTYPE
        tar.addfile(folder)
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()


def zipped(name: str, parts=("train", "valid", "test")) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/", "")
        for part in parts:
            archive.writestr(f"{name}/wiki.{part}.tokens", ARTICLE + f" Only in {part} é . \n")
    return out.getvalue()


def published(tmp_path, name: str, content: bytes) -> Path:
    """The archive on the server, and its checksums."""
    (tmp_path / "www" / name).write_bytes(content)
    (tmp_path / "sums").write_text(f"{sha256(content)}  {name}\n")
    return tmp_path / "sums"


def prepare(corpus, tmp_path, *line, status=0):
    command = [LOCAL / "prepare.py", corpus, tmp_path / "raw", tmp_path / "data", *line]
    return run(sys.executable, *command, status=status)


def texts(tmp_path) -> dict[str, list[str]]:
    return {
        part: (tmp_path / "data" / part / "text").read_text().splitlines()
        for part in ("train", "valid", "test")
    }


def test_one_billion_words(billion, server, tmp_path):
    content = packed(billion)
    sums = published(tmp_path, f"{HOME}.tar.gz", content)
    with server(cut=len(content) // 2) as (url, asked):
        run(LOCAL / "get_gbw.sh", tmp_path / "raw", url, sums)
        assert [start for _, start in asked] == [None, f"bytes={len(content) // 2}-"]
        assert (
            "is there already" in run(LOCAL / "get_gbw.sh", tmp_path / "raw", url, sums).stdout
            and len(asked) == 2
        )
    prepare("gbw", tmp_path)
    made = texts(tmp_path)
    assert len(made["train"]) == 98 * 2 + 1 and made["train"][:3] == [
        "Shard 7 , first .",
        "Shard 7 , <unk> last .",
        "Shard 1 , first .",
    ]
    assert sorted(set(made["train"])) == sorted(
        line for n in range(1, 100) for line in billion[TRAIN.format(n)].splitlines()
    )
    assert made["test"] == billion[HELD_OUT.format(0)].splitlines()
    assert made["valid"] == billion[HELD_OUT.format(1)].splitlines()[:3000]
    assert os.listdir(tmp_path / "raw") == [f"{HOME}.tar.gz"]  # nothing was unpacked beside it


@pytest.mark.parametrize("name", ["wikitext-2", "wikitext-103"])
def test_wikitext(server, tmp_path, name):
    corpus = name.replace("-", "")
    sums = published(tmp_path, f"{name}-v1.zip", zipped(name))
    with server() as (url, _):
        run(LOCAL / f"get_{corpus}.sh", tmp_path / "raw", url, sums)
    prepare(corpus, tmp_path)
    common = ["= Title =", "The <unk> , a word @-@ pair .", "Another paragraph .", "= = Part = ="]
    assert texts(tmp_path) == {
        part: [*common, f"Only in {part} é ."] for part in ("train", "valid", "test")
    }


def test_wikitext_by_article(tmp_path):
    """An article is a line with its headings; a formula between signs of equality begins none."""
    lines = ["before any title", "", "= One =", "", "= = Part = =", "a b", "= c ; d =", "e", ""]
    lines += ["= = = Smaller = = =", "", "= Two = or = 2 =", "", "f"]
    (tmp_path / "raw").mkdir()
    with zipfile.ZipFile(tmp_path / "raw/w.zip", "w") as archive:
        for part in ("train", "valid", "test"):
            archive.writestr(f"w/wiki.{part}.tokens", "".join(f" {line} \n" for line in lines))
    prepare("wikitext2", tmp_path, "article")
    expected = [
        "before any title",
        "= One = = = Part = = a b = c ; d = e = = = Smaller = = =",
        "= Two = or = 2 = f",
    ]
    assert texts(tmp_path) == dict.fromkeys(("train", "valid", "test"), expected)


def test_a_text_of_one_s_own(tmp_path):
    """Its three parts, packed or not, and nothing made of another where all are there."""
    parts = {"train": "a b\n\nc\n", "valid": "d\n", "test": "e f\n"}
    home = tmp_path / "mine"
    home.mkdir()
    for (part, content), (suffix, opener) in zip(
        parts.items(), {"": open, ".gz": gzip.open, ".xz": lzma.open}.items(), strict=True
    ):
        with opener(home / f"{part}.txt{suffix}", "wt") as stream:
            stream.write(content)
    unpack(home, tmp_path)
    prepare("text", tmp_path)
    assert {p: (tmp_path / f"data/{p}/text").read_text() for p in parts} == parts
    (home / "test.txt.xz").unlink()  # and then the end of the training text tests
    unpack(home, tmp_path)
    assert sorted(os.listdir(tmp_path / "raw")) == ["train.txt", "valid.txt"]
    assert "too short to keep a part of it" in prepare("text", tmp_path, status=1).stderr
    (home / "valid.txt.gz").unlink()
    done = unpack(home, tmp_path, status=1)
    assert "give a directory with train.txt, valid.txt" in done.stderr


def test_another_checksum_is_refused(server, tmp_path):
    published(tmp_path, "wikitext-2-v1.zip", zipped("wikitext-2"))
    with server() as (url, _):
        # against the published archive's
        done = run(LOCAL / "get_wikitext2.sh", tmp_path / "raw", url, status=1)
    expected = (LOCAL / "wikitext2.sha256").read_text().split()[0]
    assert f"expected {expected}; removed" in done.stderr and not os.listdir(tmp_path / "raw")


def damaged(how, tmp_path) -> tuple[str, str]:
    """An archive in raw that cannot be used; the corpus, and what is said of it."""
    raw = tmp_path / "raw"
    raw.mkdir()
    few = {TRAIN.format(n): "A line .\n" for n in range(1, 99)}
    if how == "nothing":
        return "gbw", "expected one *.tar.gz, found 0; run stage 0"
    if how == "cut":
        content = packed({**few, HELD_OUT.format(0): "x\n" * 9999})
        (raw / "a.tar.gz").write_bytes(content[: len(content) // 2])
        return "gbw", "damaged archive"
    if how == "shard":
        (raw / "a.tar.gz").write_bytes(packed(few))
        return "gbw", "lacks 3 shards, such as held-out shard 0; fetch it again"
    if how == "part":
        (raw / "w.zip").write_bytes(zipped("wikitext-2", ("train", "valid")))
        return "wikitext2", "lacks wiki.test.tokens"
    (raw / "w.zip").write_bytes(zipped("wikitext-2")[:-30])
    return "wikitext2", "damaged archive"


@pytest.mark.parametrize("how", ["nothing", "cut", "shard", "part", "zip"])
def test_what_is_not_whole_leaves_no_text(tmp_path, how):
    corpus, message = damaged(how, tmp_path)
    done = prepare(corpus, tmp_path, status=1)
    assert (
        message in done.stderr
        and done.stderr.count("\n") == 1
        and done.stderr.startswith(str(tmp_path / "raw"))
    )
    assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file()]


# The mini corpus


def unpack(mini, home, status=0):
    command = [REPOSITORY / "utils/unpack.py", mini, home / "raw"]
    return run(sys.executable, *command, "train.txt", "valid.txt", "test.txt?", status=status)


@pytest.mark.skipif(not MINI.exists(), reason="no mini corpus in this tree")
def test_the_mini_corpus_of_the_repository(tmp_path):
    unpack(MINI, tmp_path)
    assert sorted(os.listdir(tmp_path / "raw")) == ["train.txt", "valid.txt"]
    prepare("text", tmp_path)
    made = texts(tmp_path)
    whole, valid = (
        (tmp_path / f"raw/{name}.txt").read_text().splitlines() for name in ("train", "valid")
    )
    assert made["valid"] == valid
    assert made["train"] == whole[: len(made["train"])]
    rest = whole[len(made["train"]) :]
    assert len(rest) == len(whole) // 80 and made["test"] == [
        line for line in rest if line in set(made["test"])
    ]
    assert len(rest) > len(made["test"]) > 0.9 * len(rest)
    assert not set(made["test"]) & {*made["train"], *valid}
    eights = [
        {
            tuple(words[i : i + 8])
            for line in made[part]
            for words in [line.split()]
            for i in range(len(words) - 7)
        }
        for part in made
    ]
    assert not eights[2] & (eights[0] | eights[1])


def test_a_mini_corpus_of_one_s_own(tmp_path):
    """A passage of eight words that training has is not tested on, shorter ones are."""
    mini = tmp_path / "mini"
    mini.mkdir()
    shared, short = "one two three four five six seven eight", "a b c"
    lines = [f"line {n} and {shared if n == 0 else 'more'} of it" for n in range(237)]
    (mini / "train.txt").write_text(
        "\n".join([*lines, f"x {shared} y", f"{short} d", short]) + "\n"
    )
    (mini / "valid.txt").write_text(f"{short}\n")
    unpack(mini, tmp_path)
    prepare("text", tmp_path)
    assert texts(tmp_path) == {"train": lines, "valid": [short], "test": [f"{short} d"]}
    (mini / "train.txt").write_text("too short\n")
    unpack(mini, tmp_path)
    assert (
        "too short to keep a part of it for testing" in prepare("text", tmp_path, status=1).stderr
    )
    (mini / "SHA256SUMS").write_text(f"{'0' * 64}  train.txt\n")
    assert "restore it from the repository" in unpack(mini, tmp_path, status=1).stderr
    (mini / "SHA256SUMS").unlink()
    (mini / "valid.txt").unlink()
    done = unpack(mini, tmp_path, status=1)
    assert "give a directory with train.txt, valid.txt" in done.stderr
