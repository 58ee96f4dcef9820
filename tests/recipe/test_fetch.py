"""utils/fetch.py, egs/librispeech/local, run_full.sh and run_asr.sh, against a local server."""

import contextlib
import functools
import gzip
import hashlib
import http.server
import io
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import wave
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
STUDIES = REPOSITORY / "egs/librispeech/studies"
LOCAL = STUDIES / "local"
PARTS = ("dev-clean", "dev-other", "test-clean", "test-other")


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files; `ranges`: continues where asked; `cut`: ends a connection, once."""

    ranges, cut, asked = True, 0, ()

    def do_GET(self):
        content = (
            Path(self.translate_path(self.path)).read_bytes()
            if Path(self.translate_path(self.path)).is_file()
            else None
        )
        start = self.headers.get("Range")
        self.asked.append((self.path, start))
        if content is None:
            self.send_error(404)
            return
        begin = int(start.removeprefix("bytes=").removesuffix("-")) if start and self.ranges else 0
        if begin >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if begin else 200)
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        end, type(self).cut = type(self).cut or len(content), 0
        self.wfile.write(content[begin:end])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path):
    """A context manager that serves tmp_path/www: address, list of (path, range)."""
    www = tmp_path / "www"
    www.mkdir()

    @contextlib.contextmanager
    def serve(ranges=True, cut=0):
        handler = type("H", (Handler,), {"ranges": ranges, "cut": cut, "asked": []})
        with http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(handler, directory=www)
        ) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}", handler.asked
            server.shutdown()

    return serve


def run(*command, status=0) -> subprocess.CompletedProcess:
    env = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, env=env, timeout=60
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


def fetch(url, out, sha256, status=0):
    return run(sys.executable, REPOSITORY / "utils/fetch.py", url, out, sha256, status=status)


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


CONTENT = bytes(range(256)) * 400


@pytest.mark.parametrize("ranges", [True, False])
def test_an_interrupted_download_goes_on(server, tmp_path, ranges):
    (tmp_path / "www/f").write_bytes(CONTENT)
    with server(ranges, cut=70_000) as (url, asked):
        fetch(f"{url}/f", tmp_path / "out/f", sha256(CONTENT))
    assert (tmp_path / "out/f").read_bytes() == CONTENT
    assert asked == [("/f", None), ("/f", "bytes=70000-")]
    assert os.listdir(tmp_path / "out") == ["f"]


def test_what_an_earlier_run_left_is_used(server, tmp_path):
    (tmp_path / "www/f").write_bytes(CONTENT)
    (tmp_path / "f.part").write_bytes(CONTENT[:1000])
    with server() as (url, asked):
        fetch(f"{url}/f", tmp_path / "f", sha256(CONTENT))
        assert asked == [("/f", "bytes=1000-")]
        assert "is there already" in fetch(f"{url}/f", tmp_path / "f", sha256(CONTENT)).stdout
        assert len(asked) == 1
    (tmp_path / "f").rename(tmp_path / "f.part")
    with server() as (url, asked):
        fetch(f"{url}/f", tmp_path / "f", sha256(CONTENT))
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_wrong_checksum_is_refused(server, tmp_path):
    (tmp_path / "www/f").write_bytes(CONTENT)
    with server() as (url, _):
        done = fetch(f"{url}/f", tmp_path / "f", sha256(b"other"), status=1)
    assert f"its SHA-256 is {sha256(CONTENT)}, expected {sha256(b'other')}; removed" in done.stderr
    assert os.listdir(tmp_path) == ["www"]


def test_missing_file_is_not_tried_again(server, tmp_path):
    with server() as (url, asked):
        done = fetch(f"{url}/f", tmp_path / "f", sha256(CONTENT), status=1)
    assert "404" in done.stderr and "Traceback" not in done.stderr and len(asked) == 1


class Versions(http.server.BaseHTTPRequestHandler):
    """Serves CONTENTS one by one, the next after a cut, with the header of `mark`."""

    contents, mark, honest, cut, now, asked = (), None, True, 70_000, 0, ()

    def do_GET(self):
        content, (name, value) = self.contents[self.now], self.mark(self.now)
        start, condition = self.headers.get("Range"), self.headers.get("If-Range")
        self.asked.append((start, condition))
        goes_on = start and (condition is None or condition == value or not self.honest)
        begin = int(start.removeprefix("bytes=").removesuffix("-")) if goes_on else 0
        self.send_response(206 if begin else 200)
        self.send_header(name, value)
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        if self.now + 1 < len(self.contents):
            type(self).now += 1
            self.wfile.write(content[begin : begin + self.cut])
        else:
            self.wfile.write(content[begin:])

    def log_message(self, *args):
        pass


MARKS = {
    "tag": lambda now: ("ETag", f'"{now}"'),
    "same tag": lambda now: ("ETag", '"x"'),
    "time": lambda now: ("Last-Modified", f"Mon, 01 Jun 2026 00:00:0{now} GMT"),
    "weak tag": lambda now: ("ETag", 'W/"x"'),
    "nothing": lambda now: ("X-Nothing", "x"),
}


@pytest.mark.parametrize("honest", [True, False])
@pytest.mark.parametrize("mark", MARKS)
def test_two_versions_of_a_file_are_not_joined(tmp_path, mark, honest):
    """Only the server's name of a version tells; without one the download starts over."""
    old, new = b"old " * 30_000, b"new " * 30_000
    contents = (new, new) if mark == "same tag" else (old, new)
    handler = type(
        "V",
        (Versions,),
        {"contents": contents, "mark": staticmethod(MARKS[mark]), "honest": honest, "asked": []},
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        run(
            sys.executable,
            REPOSITORY / "utils/fetch.py",
            f"http://127.0.0.1:{server.server_port}/f",
            tmp_path / "f",
        )
        server.shutdown()
    assert (tmp_path / "f").read_bytes() == new
    assert sorted(os.listdir(tmp_path)) == ["f", "f.sha256"]
    asked = {"tag": '"0"', "same tag": '"x"', "time": "Mon, 01 Jun 2026 00:00:00 GMT"}.get(mark)
    assert handler.asked[1] == (("bytes=70000-", asked) if asked else (None, None))


def test_a_part_is_not_written_through_a_link(server, tmp_path):
    (tmp_path / "www/f").write_bytes(CONTENT)
    (tmp_path / "precious").write_bytes(b"")
    (tmp_path / "f.part").symlink_to(tmp_path / "precious")
    with server() as (url, _):
        fetch(f"{url}/f", tmp_path / "f", sha256(CONTENT))
    assert (tmp_path / "precious").read_bytes() == b"" and (tmp_path / "f").read_bytes() == CONTENT


# Archives


def archive(path: Path, files: dict[str, str | bytes], *evil: tarfile.TarInfo) -> None:
    """A .tar.gz of files, with other members after them."""
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            content = text if isinstance(text, bytes) else text.encode()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for member in evil:
            tar.addfile(member)


def wave_file(out, samples: int) -> None:
    with wave.open(out, "wb") as sound:
        sound.setparams((1, 2, 16_000, samples, "NONE", ""))
        sound.writeframes(bytes(2 * samples))


def member(name, kind=tarfile.REGTYPE, target="") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    return made


GOOD = {
    "LibriSpeech/x/84/121123/84-121123.trans.txt": (
        "84-121123-0000 GO DO YOU HEAR\n84-121123-0001 BUT IN LESS\n"
    ),
    "LibriSpeech/x/26/7/26-7.trans.txt": "26-7-0000 AH\n",
    "LibriSpeech/x/84/121123/84-121123-0000.flac": "noise",
}


def test_transcripts(tmp_path):
    archive(
        tmp_path / "a.tar.gz",
        GOOD,
        member("LibriSpeech/x", tarfile.DIRTYPE),
        member("LibriSpeech/l", tarfile.SYMTYPE, "x/84"),
    )
    run(sys.executable, LOCAL / "transcripts.py", tmp_path / "a.tar.gz", tmp_path / "text")
    assert (
        tmp_path / "text"
    ).read_text() == "26-7-0000 AH\n84-121123-0000 GO DO YOU HEAR\n84-121123-0001 BUT IN LESS\n"
    assert sorted(os.listdir(tmp_path)) == ["a.tar.gz", "text"]
    run(
        sys.executable,
        LOCAL / "transcripts.py",
        tmp_path / "a.tar.gz",
        *map(tmp_path.joinpath, ("text", "audio")),
    )
    assert (tmp_path / "audio/84-121123-0000.flac").read_text() == "noise"
    assert (tmp_path / "audio/text").read_text() == (tmp_path / "text").read_text()
    assert len(os.listdir(tmp_path / "audio")) == 2


def test_recordings_stay_in_their_directory(tmp_path):
    twice = {"a/1-1-1.flac": "A", "b/1-1-1.flac": "B", "1-1.trans.txt": "1-1-1 A\n"}
    for files in (GOOD | {"x/../../y.flac": "out"}, twice):
        archive(tmp_path / "a.tar.gz", files)
        out = tmp_path / "in/text", tmp_path / "in/audio"
        done = run(sys.executable, LOCAL / "transcripts.py", tmp_path / "a.tar.gz", *out, status=1)
        assert done.stderr.startswith(f"{tmp_path}/a.tar.gz: ") and done.stderr.count("\n") == 1
        assert not list((tmp_path / "in").iterdir())


@pytest.mark.parametrize(
    "evil",
    [
        member("/etc/x.trans.txt"),
        member("../x.trans.txt"),
        member("LibriSpeech/../../x.trans.txt"),
        member("LibriSpeech/l", tarfile.SYMTYPE, "/etc/passwd"),
        member("LibriSpeech/l", tarfile.SYMTYPE, "../../x"),
        member("LibriSpeech/l", tarfile.LNKTYPE, "../x"),
        member("LibriSpeech/l", tarfile.LNKTYPE, "/etc/passwd"),
        member("LibriSpeech/p", tarfile.FIFOTYPE),
        member("LibriSpeech/d", tarfile.CHRTYPE),
    ],
    ids=lambda evil: f"{evil.name}>{evil.linkname}",
)
def test_evil_archives_are_refused(tmp_path, evil):
    archive(tmp_path / "a.tar.gz", GOOD, evil)
    done = run(
        sys.executable, LOCAL / "transcripts.py", tmp_path / "a.tar.gz", tmp_path / "text", status=1
    )
    assert f"its member '{evil.name}' would leave the directory" in done.stderr
    assert os.listdir(tmp_path) == ["a.tar.gz"]


@pytest.mark.parametrize(
    "damage", [lambda content: content[:100], lambda content: b"no archive", lambda content: b""]
)
def test_damaged_archives_are_refused(tmp_path, damage):
    path = tmp_path / "a.tar.gz"
    archive(path, GOOD)
    path.write_bytes(damage(path.read_bytes()))
    done = run(sys.executable, LOCAL / "transcripts.py", path, tmp_path / "text", status=1)
    assert done.stderr.startswith(f"{path}: ") and done.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == ["a.tar.gz"]


UNPACKED = ("train.txt", "valid.txt", "dev.nbest.jsonl", "dev.lattices.tar.xz")


@pytest.fixture
def corpus(tmp_path):
    """A small corpus with lattices, damaged as told, and how stage 0 unpacks it."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for name in ("train.txt", "valid.txt", "dev.nbest.jsonl", "test.nbest.jsonl"):
        (corpus / name).write_text("x\n")

    def unpack(path, content, status=0):
        (corpus / path).write_bytes(content)
        command = [REPOSITORY / "utils/unpack.py", corpus, tmp_path / "out", *UNPACKED]
        return run(sys.executable, *command, status=status)

    return unpack


def tarred(*members: tuple[str, str]) -> bytes:
    with io.BytesIO() as whole:
        with tarfile.open(fileobj=whole, mode="w:xz") as tar:
            for name, text in members:
                made = tarfile.TarInfo(name)
                made.size = len(text)
                tar.addfile(made, io.BytesIO(text.encode()))
        return whole.getvalue()


def test_lattices_are_unpacked(corpus, tmp_path):
    (tmp_path / "out/lattices/dev").mkdir(parents=True)
    (tmp_path / "out/lattices/dev/old.slf").touch()
    corpus("dev.lattices.tar.xz", tarred(("dev/a.slf", "A"), ("../b.slf", "B")))
    assert {path.name: path.read_text() for path in (tmp_path / "out/lattices/dev").iterdir()} == {
        "a.slf": "A",
        "b.slf": "B",
    }
    assert not list(tmp_path.rglob(".*"))


@pytest.mark.parametrize(
    "content",
    [tarred(("a.slf", "A"), (name, "B")) for name in ("..", "x/..", "c/a.slf", "a.slf")]
    + [tarred(("a.slf", "A" * 99_999))[:-60], tarred(("a.slf", "A"))[:20], b"no archive", b""],
)
def test_damaged_lattices_are_refused(corpus, tmp_path, content):
    done = corpus("dev.lattices.tar.xz", content, status=1)
    assert (
        done.stderr.startswith(f"{tmp_path}/corpus/dev.lattices.tar.xz: ")
        and done.stderr.count("\n") == 1
    )
    assert not (tmp_path / "out/lattices/dev").exists()
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".tmp")]


@pytest.mark.parametrize("suffix, pack", [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_a_damaged_text_is_refused(corpus, tmp_path, suffix, pack):
    (tmp_path / "corpus/train.txt").unlink()
    whole = pack(b"".join(b"line %d\n" % n for n in range(1000)))
    for content in (whole[:-30], whole[:200] + b"\xff\xff" + whole[202:], b"no archive"):
        done = corpus(f"train.txt{suffix}", content, status=1)
        assert (
            f"train.txt{suffix}: damaged archive (" in done.stderr and done.stderr.count("\n") == 1
        )
        assert not (tmp_path / "out/train.txt").exists()


# run_full.sh up to the N-best lists


@pytest.fixture
def full(tmp_path, server, shell, make_recipe):
    """The recipe with a small LibriSpeech on a local server, and N-best lists of it."""
    www, home = tmp_path / "www", tmp_path / "egs/librispeech"
    shutil.copytree(STUDIES, home / "studies")
    shutil.copytree(STUDIES.with_name("conf"), home / "conf")
    shutil.copytree(REPOSITORY / "utils", tmp_path / "utils")
    shutil.copytree(REPOSITORY / "conf", tmp_path / "conf")
    (tmp_path / "lmtools").symlink_to(REPOSITORY / "lmtools")
    (www / "11").mkdir()
    (www / "12").mkdir()
    lines = "".join(f"LINE {n}\n" for n in range(45_000))
    (www / "11/librispeech-lm-norm.txt.gz").write_bytes(gzip.compress(lines.encode(), 1))
    for n, part in enumerate(PARTS):
        archive(
            www / f"12/{part}.tar.gz",
            {f"LibriSpeech/{part}/{n}/1/{n}-1.trans.txt": f"{n}-1-1 YES\n{n}-1-0 NO\n"},
        )
        (tmp_path / "nbest").mkdir(exist_ok=True)
        hyps = '[{"text": "NOW"}, {"text": "NO"}, {"text": "KNOW"}]'
        lists = "".join(f'{{"utt": "{n}-1-{u}", "hyps": {hyps}}}\n' for u in (0, 1))
        (tmp_path / f"nbest/{part}.jsonl.gz").write_bytes(gzip.compress(lists.encode()))
    paths = ["11/librispeech-lm-norm.txt.gz", *(f"12/{part}.tar.gz" for part in PARTS)]
    (home / "studies/local/full.sha256").write_text(
        "".join(f"{sha256((www / path).read_bytes())}  {path}\n" for path in paths)
    )
    shell = {name: value for name, value in shell.items() if not name.lower().endswith("_proxy")}
    recipe = make_recipe(home, shell)
    return lambda *args, script="studies/run_full.sh", **how: recipe(*args, script=script, **how)


def test_full(full, server, tmp_path):
    with server(cut=50_000) as (url, asked):
        options = ("--openslr", url, "--nbest-dir", tmp_path / "nbest")
        options += ("--nbest-suffix", ".jsonl.gz", "--stop-stage", 1)
        full(*options)
        fetched = len(asked)
        assert fetched == 6  # five files, one of them cut
        full(*options)
        assert len(asked) == fetched
    data = tmp_path / "egs/librispeech/data/full"
    train, valid = ((data / part / "text").read_text().splitlines() for part in ("train", "valid"))
    assert valid == ["LINE 0", "LINE 20000", "LINE 40000"]
    assert len(train) == 45_000 - 3 and not set(valid) & set(train)
    assert (data / "test-other/text").read_text() == "3-1-0 NO\n3-1-1 YES\n"
    assert (data / "dev/text").read_text() == "0-1-0 NO\n0-1-1 YES\n1-1-0 NO\n1-1-1 YES\n"
    lists = (data / "dev/nbest.jsonl").read_text()
    assert lists == "".join(
        (data / f"dev-{part}/nbest.jsonl").read_text() for part in ("clean", "other")
    )
    assert lists.count('"KNOW"') == 4 and lists.count('"ref": "YES"') == 2


def test_a_recogniser_makes_the_lists(full, server, tmp_path, shell):
    """Recordings are fetched too, decoded, and merged where equal; run_full.sh takes the lists."""
    pytest.importorskip("soundfile", reason="soundfile is not installed")
    code = "import fake_recogniser as f, sys; f.install(); from lmtools.cli import main"
    script = tmp_path / "bin/lmtools"
    script.parent.mkdir()
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH="{REPOSITORY}/tests:{REPOSITORY}" exec "{sys.executable}" -c'
        f' "{code}; sys.exit(main(sys.argv[1:]))" "$@"\n'
    )
    script.chmod(0o755)
    path = f"{script.parent}:{shell['PATH']}"
    for n, part in enumerate(PARTS):
        names = {f"LibriSpeech/{part}/{n}/1/{n}-1.trans.txt": f"{n}-1-1 YES\n{n}-1-0 NO\n"}
        for u in (0, 1):
            with io.BytesIO() as sound:
                wave_file(sound, 800 + n + u)
                names[f"LibriSpeech/{part}/{n}/1/{n}-1-{u}.flac"] = sound.getvalue()
        archive(tmp_path / f"www/12/{part}.tar.gz", names)
    home, www = tmp_path / "egs/librispeech", tmp_path / "www"
    sums = home / "studies/local/full.sha256"
    paths = [line.split()[1] for line in sums.read_text().splitlines()]
    sums.write_text("".join(f"{sha256((www / path).read_bytes())}  {path}\n" for path in paths))
    (tmp_path / "model").mkdir()
    (tmp_path / "model/model").write_text("Word\n")
    with server() as (url, asked):
        for _ in range(2):
            full("--openslr", url, "--stop-stage", 0, "--audio")
        assert len(asked) == 5
    options = ("--asr", f"fake:{tmp_path}/model", "--audio", "data/full/audio", "--stop-stage", 1)
    options += ("--sets", " ".join(PARTS), "--asr-opts")
    for _ in range(2):
        full(*options, "depth=3 kill=5", script="studies/run_asr.sh", PATH=path)
    assert len((tmp_path / "model.heard").read_text().split()) == 8
    assert len(list((home / "data/full/audio/test-other").iterdir())) == 3
    full(
        "--stage", 1, "--stop-stage", 1, "--nbest-dir", "data/asr", "--nbest-suffix", "/nbest.jsonl"
    )
    lists = (home / "data/full/dev/nbest.jsonl").read_text().splitlines()
    lists = [json.loads(line) for line in lists]
    assert [nbest["utt"] for nbest in lists] == ["0-1-0", "0-1-1", "1-1-0", "1-1-1"]
    # words as the normaliser writes them, and what differs in a full stop merged
    texts = [hyp["text"] for hyp in lists[1]["hyps"]]
    assert texts == ["word 801 0", "word 801 1"]
    (first, _) = (home / "data/asr/dev-clean/nbest.jsonl").read_text().splitlines()
    assert json.loads(first)["ref"] == "no" and "Word 800 0" in first
    full(*options, "depth=4", script="studies/run_asr.sh", PATH=path)
    assert len((tmp_path / "model.heard").read_text().split()) == 16


@pytest.mark.parametrize(
    "script, options, said",
    [
        ("studies/run_asr.sh", ("--asr", "vosk:m"), "--audio its recordings; give both"),
        ("studies/run_asr.sh", ("--audio", "a"), "--asr names a recogniser"),
        ("studies/run_full.sh", (), "--nbest-dir names the directory of your recogniser's lists"),
    ],
)
def test_what_a_script_cannot_do_without(full, script, options, said):
    done = full(*options, script=script, status=2)
    assert said in done.stderr and done.stderr.count("\n") == 1
    assert "Stages:" in full(*options, "--help", script=script).stdout


def test_a_set_without_lists_is_named(full, server, tmp_path):
    (tmp_path / "nbest/test-clean.jsonl.gz").unlink()
    with server() as (url, _):
        options = ("--openslr", url, "--nbest-dir", tmp_path / "nbest")
        options += ("--nbest-suffix", ".jsonl.gz", "--stop-stage", 1)
        done = full(*options, status=1)
    assert f"{tmp_path}/nbest/test-clean.jsonl.gz: " in done.stdout
