"""What comes along with data to be taken for lmtools' own: job folders, journals, caches, shards,
links and modules. None of it runs, none changes a result or is written through.
"""

import contextlib
import functools
import importlib
import os
import pickle
import shutil
import sys
import tempfile
import wave
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import split

from trust.common import REPOSITORY, Case, Done, Skipped, Wrong, run, snapshot, sound, succeeded
from trust.damage import experiment
from trust.hostile import RUN, Bomb, guarded
from trust.world import World, take, training

# sbatch that does each task at once, or leaves it to nobody; squeue and scancel say nothing
SBATCH = r"""#!{python}
import os, re, subprocess, sys
options = dict(re.fullmatch(r"--([a-z-]+)=?(.*)", one, re.DOTALL).groups() for one in sys.argv[1:])
for n in options["array"].partition("%")[0].split(",") if {works} else ():
    with open(options["output"].replace("%a", n), "ab") as log:
        env = {{**os.environ, "SLURM_ARRAY_TASK_ID": n, "SLURM_JOB_ID": n}}
        subprocess.run(["sh", "-c", options["wrap"]], env=env, stdout=log, stderr=log)
print(7)
"""
MODULES = ("multiprocessing", "runpy", "lmtools", "numpy", "json", "torch", "sitecustomize")


@dataclass(frozen=True)
class Verb:
    """A verb that takes --cmd: what is copied, its words, and the files that it writes."""

    needs: tuple[str, ...]
    words: str
    outputs: tuple[str, ...]
    prepare: Callable[[Path], None] = lambda home: None


def systems(home: Path) -> None:
    """Three systems to tune."""
    (home / "e.yaml").write_text(
        "columns: {tta: {}, ngram: {}}\nsystems: {first: [], tta: [tta], ngram: [ngram]}\n"
    )


def recordings(home: Path, count: int = 4) -> None:
    """Recordings for a recogniser that needs no model."""
    try:
        importlib.import_module("soundfile")
    except ImportError:
        raise Skipped("soundfile is not installed") from None
    importlib.import_module("fake_recogniser").install()
    for n in range(count):
        (home / "set").mkdir(exist_ok=True)
        with wave.open(str(home / f"set/u{n}.wav"), "wb") as out:
            out.setparams((1, 2, 16000, 0, "NONE", ""))
            out.writeframes(bytes(range(200)) * (n + 1))
    (home / "m").mkdir()
    (home / "m/model").write_text("word\n")


SLURM = "slurm:slurm.yaml"
TEXTS = ("train.txt", "valid.txt", "words")
VERBS = {
    "corpus": Verb(TEXTS, "corpus --text train.txt valid.txt --subword words --out o", ("o",)),
    "shards": Verb(
        TEXTS,
        "corpus --text train.txt valid.txt --subword words --shard-size 1M --out o",
        ("o", "o.shards"),
    ),
    "subword": Verb(TEXTS, "subword --text train.txt valid.txt --type word --out o", ("o",)),
    "score": Verb(
        ("lm/tta", "test.jsonl"),
        "score --lm lm/tta --nbest test.jsonl --rows 2 --cache none --device cpu --out o",
        ("o",),
    ),
    "ppl": Verb(
        ("lm/tta", "valid.txt"),
        "ppl --lm lm/tta --text valid.txt --rows 2 --cache none --device cpu --out o",
        ("o",),
    ),
    "tune": Verb(
        ("dev.jsonl", "dev.tta.scores", "dev.ngram.scores"),
        "tune --nbest dev.jsonl --experiment e.yaml --scores dev.{column}.scores"
        " --out o/{system}.json",
        ("o",),
        systems,
    ),
    "rescore": Verb(
        ("test.jsonl", "test.ngram.scores", "weights.json", "lm/tta"),
        "rescore --nbest test.jsonl --scores ng=test.ngram.scores --lm tta=lm/tta --rows 2"
        " --weights weights.json --cache none --device cpu --out o",
        ("o",),
    ),
    "lattice": Verb(
        ("lm/causal", "lattices"),
        "lattice rescore lattices --lm c=lm/causal --weights am=1,lm=1,c=1 --device cpu"
        " --nbest-out o",
        ("o",),
    ),
    "decode": Verb((), "decode --asr fake:m --audio set --out o", ("o",), recordings),
}


def cluster(home: Path, works: bool) -> dict[str, str]:
    """Variables for a queue that does its tasks, or loses them."""
    folder = home.parent / f"{home.name}.bin.{works}"
    folder.mkdir(exist_ok=True)
    scripts = {"sbatch": SBATCH.format(python=sys.executable, works=works)}
    for name in ("sbatch", "squeue", "scancel"):
        (folder / name).write_text(scripts.get(name, "#!/bin/sh\n"))
        (folder / name).chmod(0o755)
    paths = f"{REPOSITORY}:{REPOSITORY / 'tests'}"  # of the fake recogniser
    return {"PATH": f"{folder}:{os.environ['PATH']}", "PYTHONPATH": paths}


def ready(home: Path, name: str) -> None:
    """What the verb reads."""
    take(home, *VERBS[name].needs)
    VERBS[name].prepare(home)
    (home / "slurm.yaml").write_text("poll: 0.01\n")


def start(home: Path, name: str, works: bool = True, where: str = SLURM, **env) -> Done:
    """The verb by two tasks of the queue, or two processes."""
    how = ("--nj", 2, "--cmd", where)
    return run(*split(VERBS[name].words), *how, home=home, **{**cluster(home, works), **env})


def left(home: Path, name: str) -> dict[str, bytes]:
    """What the verb wrote."""
    found = {}
    for output in VERBS[name].outputs:
        path = home / output
        found |= {output: path.read_bytes()} if path.is_file() else snapshot(path)
    return found


@functools.cache
def expected(name: str) -> dict[str, bytes]:
    """What it writes where nothing is planted, by tasks as by processes."""
    found = []
    for where in (SLURM, "local"):
        home = Path(tempfile.mkdtemp(dir=World.base), "case")
        home.mkdir()
        ready(home, name)
        done = succeeded(start(home, name, where=where))
        if (where != "local") != ("array " in done.err):
            raise done.wrong("lost", "the queue was not asked")
        found.append(left(home, name))
    if found[0] != found[1]:
        raise Wrong("silent change", f"{name}: tasks and processes differ")
    return found[0]


def right(home: Path, name: str, done: Done) -> None:
    """Wrong unless the verb refused in one line, or wrote what it should."""
    if sound(done).status == 0 and left(home, name) != expected(name):
        raise done.wrong("silent change")


# Job folders


def forge(folder: Path, file: str, content: bytes) -> None:
    """Write a file of a job folder as whoever lacks the key would: a record by another key."""
    from lmtools.base.jobs.shards import NONCE, ShardKeys
    from lmtools.base.keys import SIZE

    head = (folder / "work").read_bytes()[: SIZE + NONCE]
    keys = ShardKeys(b"another." * 4, head[:SIZE], head[SIZE:])
    n = int(file.partition(".")[0]) if file[0].isdigit() else 0
    kinds = {"work": keys.work, "items": lambda: keys.items(n)}
    signer = kinds.get(file.rpartition(".")[2], lambda: keys.results(n))()
    (folder / file).unlink(missing_ok=True)
    with open(
        folder / file, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)
    ) as stream:
        stream.write(head if file == "work" else b"")
        signer.write_record(stream, 0, content)


def planted(*files: str, how: Callable[[Path, str, bytes], None] = forge) -> Callable[[Path], None]:
    """What plants pickles under these names into a job folder."""

    def plant(folder: Path) -> None:
        for file in files:
            how(folder, file, pickle.dumps(Bomb()))

    return plant


def bare(folder: Path, file: str, content: bytes) -> None:
    """Write the pickle as it is."""
    (folder / file).write_bytes(content)


def linked(folder: Path, file: str, content: bytes) -> None:
    """Write the pickle elsewhere, and a link to it."""
    forge(folder, file, content)
    (folder / file).rename(folder.parent / file)
    (folder / file).symlink_to(folder.parent / file)


def through(folder: Path) -> None:
    """Have the logs be links out of the directory."""
    for n in range(2):
        (folder / f"{n}.log").symlink_to(folder.parents[2] / "outside/kept")


RESULTS = ("0.results", "1.results")
PLANTS = {
    "results": planted(*RESULTS),
    "work": planted("work"),
    "items": planted("0.items", "1.items"),
    "part": planted("0.0123.part", "1.0123.part"),
    "bare": planted(*RESULTS, how=bare),
    "bare-work": planted("work", how=bare),
    "linked": planted(*RESULTS, how=linked),
    "logs": through,
}


def folder_of(home: Path) -> Path:
    """The one job folder."""
    (folder,) = (path for path in (home / "jobs").iterdir() if path.is_dir())
    return folder


def jobs(home: Path, name: str, plant: str) -> None:
    """A job folder of the very work, with planted files in it, before the verb is called again."""
    ready(home, name)
    right(home, name, start(home, name, works=False))
    with guarded(home):
        PLANTS[plant](folder_of(home))
        right(home, name, start(home, name))


def carried(home: Path, name: str) -> None:
    """An archive with all of a work's directory, its results too, as another user left it."""
    other = home.parent / f"{home.name}.other" / home.name
    other.mkdir(parents=True)
    ready(other, name)
    start(other, name, works=False)
    for file in RESULTS:
        forge(folder_of(other), file, pickle.dumps(Bomb()))
    shutil.copytree(other, home, dirs_exist_ok=True)
    with guarded(home):
        done = succeeded(start(home, name))
        right(home, name, done)


def replayed(home: Path) -> None:
    """Genuine results of another text of the same size and time."""
    ready(home, "corpus")
    text = home / "train.txt"
    whole, time = text.read_text(), text.stat().st_mtime_ns
    text.write_text("".join(reversed(whole.splitlines(keepends=True))))
    os.utime(text, ns=(time, time))
    right(home, "corpus", start(home, "corpus", works=False))
    right(home, "corpus", start(home, "corpus", PATH=broken(home)))
    text.write_text(whole)
    os.utime(text, ns=(time, time))
    right(home, "corpus", start(home, "corpus"))


def broken(home: Path) -> str:
    """A PATH whose queue does the first task only, so that the directory of work stays."""
    folder = Path(cluster(home, True)["PATH"].partition(":")[0])
    text = (folder / "sbatch").read_text().replace('.split(",")', '.split(",")[:1]')
    other = folder.with_name(f"{folder.name}.half")
    shutil.copytree(folder, other)
    (other / "sbatch").write_text(text)
    return f"{other}:{os.environ['PATH']}"


# What else lies beside data


def journal(home: Path, how: str) -> None:
    """A journal of `decode` with other lists, by another key or by none."""
    ready(home, "decode")
    from lmtools.decode.recognisers import make_recogniser, sign_recogniser
    from lmtools.decode.utterances import find_utterances, identify_audio
    from lmtools.formats.journal import Journal, JournalEntry
    from lmtools.types import NBest

    audio, _ = identify_audio(find_utterances(home / "set", None))
    planted = Journal(
        home / "o", sign_recogniser("fake:m", make_recogniser(f"fake:{home / 'm'}", (), "cpu"))
    )
    planted.key = b"another." * 4
    if how == "bomb":
        planted.path.write_bytes(pickle.dumps(Bomb()) + b"\n")
    else:
        notes = {"seconds": 1.0, "spent": 1.0}
        with planted.appending() as add:
            for utt, mark in audio.items():
                add(JournalEntry(NBest.of(utt, ["planted"]), {**notes, "audio": mark}))
    kept = planted.path.read_bytes()
    with guarded(home):
        done = succeeded(start(home, "decode", where="local"))
        right(home, "decode", done)
    if not kept:
        raise Wrong("lost", "nothing was planted")


def cache(home: Path) -> None:
    """A cache of pickles and links."""
    ready(home, "score")
    words = VERBS["score"].words.replace("--cache none", "--cache kept")
    succeeded(run(*split(words), home=home))
    for number, path in enumerate(sorted((home / "kept").rglob("*.segment"))):
        path.write_bytes(pickle.dumps(Bomb()))
        (path.with_name(f"{number:032x}.segment")).symlink_to(home.parent / "outside/kept")
    with guarded(home):
        done = succeeded(run(*split(words), home=home))
        right(home, "score", done)


def shards(home: Path, where: str) -> None:
    """Links and pickles where a corpus in shards belongs."""
    ready(home, "shards")
    with guarded(home) as outside:
        (home / "o").write_bytes(b"lmtools-corpus-index-1\n" + pickle.dumps(Bomb()))
        (home / "o.shards").mkdir()
        for n in range(2):
            (home / f"o.shards/{n}.part").symlink_to(outside / "kept")
            (home / f"o.shards/{n:032x}.bin").write_bytes(pickle.dumps(Bomb()))
        right(home, "shards", succeeded(start(home, "shards", where=where)))
        shutil.rmtree(home / "o.shards")
        (home / "o.shards").symlink_to(outside / "folder")
        right(home, "shards", start(home, "shards", where=where))


def modules(home: Path, name: str, where: str) -> None:
    """Python modules beside the data, of names that whatever starts would import."""
    if sys.version_info < (3, 11):
        raise Skipped("Python 3.10 always takes them")
    ready(home, name)
    for module in MODULES:
        (home / f"{module}.py").write_text(f"import os\nos.system('{RUN}-{module}')\n")
    with guarded(home):
        right(home, name, succeeded(start(home, name, where=where)))


OPTIONS = ("-S ./evil", "-jsv ./evil", "-b y", "-o ../outside/kept", "-@ evil")


def settings(home: Path, more: str) -> None:
    """A queue's settings with options that run a program or write."""
    ready(home, "corpus")
    (home / "evil").write_text(f"#!/bin/sh\n{RUN}\n")
    (home / "evil").chmod(0o755)
    (home / "queue.yaml").write_text(f"poll: 0.01\nmore: '{more}'\n")
    programs = Path(cluster(home, True)["PATH"].partition(":")[0])
    (programs / "qstat").write_text("#!/bin/sh\necho '<x/>'\n")
    (programs / "qsub").write_text(f"#!/bin/sh\n{RUN}\n")  # it would do what it is told
    for program in ("qstat", "qsub"):
        (programs / program).chmod(0o755)
    with guarded(home):
        done = sound(start(home, "corpus", where="queue:queue.yaml"))
    if done.status == 0:
        raise done.wrong("accepted")


# Links in outputs


OUTPUTS = {
    "train": (("train.bin", "valid.bin"), training("tta", "run"), "run"),
    "ngram": (("train.txt",), ("ngram", "--text", "train.txt", "--order", 2, "--out", "g"), "g"),
    "subword": (TEXTS, tuple(split("subword --text train.txt --type word --out v")), "v"),
    "report": ((), (*split("report exp --nbest data/dev/nbest.jsonl"),), "exp/report"),
}


def links(home: Path, name: str) -> None:
    """A link out of it in the place of each file of a directory that a verb writes into."""
    needs, words, folder = OUTPUTS[name]
    take(home, *needs)
    if name == "report":
        shutil.copytree(experiment(), home, dirs_exist_ok=True)
    succeeded(run(*words, home=home))
    names = [path.relative_to(home) for path in (home / folder).rglob("*") if path.is_file()]
    names.append(Path(folder, "set_aside.txt"))
    for keep in (False, True):  # with the content in place a training is complete
        with contextlib.ExitStack() as stack:
            shutil.rmtree(home.parent / "outside", ignore_errors=True)
            outside = stack.enter_context(guarded(home))
            for file in names:
                (home / file).unlink(missing_ok=True)
                (home / file).symlink_to(outside / ("new" if keep else "kept"))
            sound(run(*words, home=home))


def cases(size: str, seed: int) -> Iterator[Case]:
    """Each verb that takes --cmd with each plant; in the short campaign the quickest verb with
    each, and each verb with planted results.
    """
    every: list[Case] = []
    for name in VERBS:
        for plant in PLANTS:
            every.append(
                Case(f"jobs-{name}-{plant}", lambda home, n=name, p=plant: jobs(home, n, p))
            )
        every.append(Case(f"carried-{name}", lambda home, n=name: carried(home, n)))
        for where in ("local", SLURM):
            every.append(
                Case(
                    f"modules-{name}-{where.partition(':')[0]}",
                    lambda home, n=name, w=where: modules(home, n, w),
                )
            )
    every.append(Case("replayed", replayed))
    for how in ("bomb", "key"):
        every.append(Case(f"journal-{how}", lambda home, h=how: journal(home, h)))
    every.append(Case("cache", cache))
    for where in ("local", SLURM):
        every.append(
            Case(f"shards-{where.partition(':')[0]}", lambda home, w=where: shards(home, w))
        )
    for number, more in enumerate(OPTIONS):
        every.append(Case(f"settings-{number}", lambda home, m=more: settings(home, m)))
    for name in OUTPUTS:
        every.append(Case(f"links-{name}", lambda home, n=name: links(home, n)))
    yield from (case for case in every if size != "short" or case.name in SHORT)


SHORT = {
    *(f"jobs-corpus-{plant}" for plant in PLANTS),
    *("jobs-decode-results", "jobs-score-results", "jobs-tune-results", "carried-subword"),
    *("modules-subword-local", "modules-subword-slurm", "replayed", "journal-key", "cache"),
    *("shards-local", "settings-0", "links-train", "links-subword"),
}
