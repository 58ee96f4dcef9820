"""utils/recipe.sh: stages, manifests, logs and the lock, on a toy recipe of three stages."""

import hashlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lmtools
from lmtools.verbs.parts import protect

REPOSITORY = Path(__file__).parents[2]
TOY = r"""#!/usr/bin/env bash
# Toy: writes words, sorts them, counts them.

cd "$(dirname "$0")" && . REPOSITORY/utils/recipe.sh

words="pear fig apple" # what to sort,
                       # in any order
slow=0                 # stage that takes minutes, and is killed
nj=1                   # jobs
loud=false             # shout
note=
expdir=exp
options "$@"

work() {
  ((slow != $1)) || sleep 600
}

if stage 1 "write" conf : $expdir/words; then
  echo writing $loud && work 1
  printf '%s\n' $words >$expdir/words.tmp
  mv $expdir/words.tmp $expdir/words
fi

if stage 2 "sort" $expdir/words : $expdir/sorted; then
  echo sorting && work 2
  mkdir -p $expdir/sorted && sort $expdir/words >$expdir/sorted/list
fi

if stage 3 "count" $expdir/sorted/list extra : $expdir/count; then
  echo counting && work 3
  wc -l <$expdir/sorted/list >$expdir/count
  lmtools count
fi
"""


@pytest.fixture
def toy(tmp_path, stub, make_recipe):
    home = tmp_path / "toy"
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "a.yaml").write_text("a: 1\n")
    (home / "extra").write_text("extra\n")
    (home / "run.sh").write_text(TOY.replace("REPOSITORY", str(REPOSITORY)))
    (home / "run.sh").chmod(0o755)
    return make_recipe(home, stub)


@pytest.fixture(scope="module")
def python():
    """utils/recipe.py as a module, beside those that it imports."""
    sys.path.append(str(REPOSITORY / "utils"))
    spec = importlib.util.spec_from_file_location("recipe_py", REPOSITORY / "utils/recipe.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def results(toy, exp="exp") -> dict[str, bytes]:
    return {
        name: (toy.home / exp / name).read_bytes() for name in ("words", "sorted/list", "count")
    }


def manifest(toy, stage: int) -> dict:
    return json.loads((toy.home / f"exp/stages/{stage}.json").read_text())


# Options


@pytest.mark.parametrize(
    "args, expected",
    [
        ([], {"words": "pear fig apple", "loud": "false", "note": ""}),
        (["--words", "b a"], {"words": "b a"}),
        (["--words=b a"], {"words": "b a"}),
        (["--note", ""], {"note": ""}),
        (["--note=--x=1"], {"note": "--x=1"}),
        (["--loud"], {"loud": "true"}),
        (["--loud", "--nj", "2"], {"loud": "true", "nj": "2"}),
        (["--loud", "true", "--nj=3"], {"loud": "true", "nj": "3"}),
        (["--loud", "false"], {"loud": "false"}),
        (["--words", "a", "--words", "b"], {"words": "b"}),
        (["--skip_done", "true", "--stop-stage", "1"], {}),
    ],
)
def test_options(toy, args, expected):
    toy("--stop-stage", 1, *args)
    options = manifest(toy, 1)["options"]
    assert list(options) == ["processes", "nnodes", "words", "slow", "nj", "loud", "note", "expdir"]
    assert expected.items() <= options.items()


@pytest.mark.parametrize(
    "args, message",
    [
        (["--wrods", "x"], "unknown option --wrods; did you mean --words?"),
        (["--stop_stages=3"], "unknown option --stop_stages; did you mean --stop-stage?"),
        (["--zzz"], "unknown option --zzz; --help"),
        (["--PATH", "x"], "unknown option --PATH; --help"),
        (["--recipe-home", "x"], "unknown option --recipe-home; --help"),
        (["words"], "unexpected 'words'"),
        (["--words"], "--words needs a value"),
        (["--words", "--nj", "2"], "--words needs a value; write --words=VALUE"),
        (["--nj", "two"], "--nj is 'two'; it takes a whole number"),
        (["--nj", "08"], "--nj is '08'; it takes a whole number"),
        (["--loud=yes"], "--loud is 'yes'; it takes true or false"),
        (["--loud", "yes"], "unexpected 'yes'"),
        (["--expdir", "my exp"], "--expdir is 'my exp'; it takes a path without blanks"),
        (["--stage", "3", "--stop-stage", "2"], "--stage 3 comes after --stop-stage 2"),
    ],
)
def test_wrong_usage(toy, args, message):
    done = toy(*args, status=2)
    assert done.stderr.startswith("./run.sh: " + message) and done.stderr.count("\n") == 1
    assert not (toy.home / "exp").exists()


def test_help(toy):
    text = toy("--words", "a b", "--help", PATH="/usr/bin:/bin").stdout
    assert text.startswith("Toy: writes words, sorts them, counts them.\n")
    for line in (
        "--stage 0",
        "--stop-stage 99",
        "--skip-done false",
        "--debug false",
        "--words pear fig apple",
        '--note ""',
    ):
        assert re.search(rf"^  {re.escape(line)}$", text, re.MULTILINE), line
    assert "        what to sort,\n        in any order\n" in text
    stages = text.partition("Stages:\n")[2]
    assert "  2  sort\n       reads  exp/words\n       writes exp/sorted\n" in stages
    assert not (toy.home / "exp").exists()


def test_who_stops_reading_hears_of_no_pipe(toy):
    line = "for i in 1 2 3 4; do ./run.sh --help | head -n 1; ./run.sh --help | true; done"
    done = subprocess.run(["bash", "-c", line], cwd=toy.home, capture_output=True, text=True)
    assert done.stderr == "" and done.stdout.count("\n") == 4


def test_debug_shows_commands_and_passes_the_flag_on(toy):
    assert "count\n" in toy().stdout
    done = toy("--stage", 3, "--debug")
    assert "count --debug\n" in done.stdout and "+ echo counting" in done.stdout


def test_without_lmtools(toy, tmp_path):
    (tmp_path / "bin" / "lmtools").unlink()
    if (REPOSITORY / ".venv/bin/lmtools").exists():
        pytest.skip("the repository's own environment is always found")
    assert "run 'make setup'" in toy(status=1, PATH=f"{tmp_path / 'bin'}:/usr/bin:/bin").stderr


# Commands printed in place of running

PLAN = r"""#!/usr/bin/env bash
# Plan: commands of one line each.

cd "$(dirname "$0")" && . REPOSITORY/utils/recipe.sh

text="a 'b  c'" # of the first file
nj=2
expdir=exp
options "$@"

if stage 1 "write" : "$expdir/first"; then
  mkdir -p "$expdir/sub"
  python3 -c "import sys; open(sys.argv[1], 'w').write(sys.argv[2])" "$expdir/first" "$text"
  cp "$expdir/first" "$expdir/second"
fi

if stage 2 "copy" "$expdir/first" : "$expdir/copy-1"; then
  for n in 1 2; do
    quoted "$expdir/first" "$expdir/copy-$n"
  done | each cp
  submit cp "$expdir/first" "$expdir/with blank"
fi
"""


def test_a_dry_run_prints_commands_that_can_be_pasted(toy):
    (toy.home / "run.sh").write_text(PLAN.replace("REPOSITORY", str(REPOSITORY)))
    printed = toy("--dry-run", "--text", "it's {a}  b", "--expdir", "dry").stdout
    assert not (toy.home / "dry").exists()
    assert [line for line in printed.splitlines() if line.startswith("#")] == [
        "# stage 1: write",
        "# stage 2: copy",
    ]
    assert "# stage 1" not in toy("--dry-run", "--stage", 2).stdout
    subprocess.run(["bash", "-e"], input=printed, text=True, check=True, cwd=toy.home, env=toy.env)
    toy("--text", "it's {a}  b", "--expdir", "run")
    for name in ("first", "second", "copy-1", "copy-2", "with blank"):
        files = [(toy.home / exp / name).read_bytes() for exp in ("dry", "run")]
        assert files == [b"it's {a}  b"] * 2


def test_scripts_beside_run_sh_go_on_from_it(toy):
    other = toy.home / "run_other.sh"
    other.write_text(TOY.replace("REPOSITORY", str(REPOSITORY)).replace("stage 1", "stage 9"))
    other.chmod(0o755)

    def run(*args):
        return subprocess.run([other, *args], env=toy.env, capture_output=True, text=True)

    command = ("--stage", "2", "--stop-stage", "3")
    assert run(*command).stderr == (
        "./run_other.sh: stage 2 needs exp/words, which no earlier stage writes; run ./run.sh"
        " first or check it\n"
    )
    toy("--stop-stage", 1)
    assert run(*command).returncode == 0
    assert json.loads((toy.home / "exp/stages/other-2.json").read_text())["finished"]
    assert "sorting" in (toy.home / "exp/log/other-stage2.log").read_text()
    assert not (toy.home / "exp/stages/2.json").exists()


# Inputs and outputs


def test_missing_input_names_its_stage(toy):
    done = toy("--stage", 2, status=1)
    assert (
        done.stderr
        == "./run.sh: stage 2 needs exp/words, which stage 1 writes; run ./run.sh --stage 1"
        " --stop-stage 1\n"
    )
    toy("--stop-stage", 1)
    done = toy("--stage", 3, status=1)
    assert (
        done.stderr
        == "./run.sh: stage 3 needs exp/sorted/list, which stage 2 writes; run ./run.sh --stage 2"
        " --stop-stage 2\n"
    )


def test_missing_input_starts_from_what_is_there(toy):
    done = toy("--stage", 3, "--words", "a b", status=1)
    assert done.stderr.endswith(
        "which stage 2 writes; run ./run.sh --words a\\ b --stage 1 --stop-stage 2\n"
    )


def test_missing_input_that_no_stage_writes(toy):
    (toy.home / "extra").unlink()
    done = toy(status=1)
    assert (
        done.stderr
        == "./run.sh: stage 3 needs extra, which no earlier stage writes; check the path\n"
    )
    assert manifest(toy, 2)["finished"] and not (toy.home / "exp/stages/3.json").exists()


def test_missing_output_fails_the_stage(toy):
    toy.edit("run.sh", "  mv $expdir/words.tmp $expdir/words\n", "")
    done = toy(status=1)
    assert "stage 1 failed; its log: exp/log/stage1.log" in done.stderr
    assert (
        "stage 1 (write) ended without writing exp/words"
        in (toy.home / "exp/log/stage1.log").read_text()
    )
    assert manifest(toy, 1)["finished"] is None


@pytest.mark.parametrize("name", ["options", "inputs", "outputs", "commands", "finished"])
def test_a_damaged_manifest_is_none(toy, name):
    """A flipped bit in a name, too: the stage runs again."""
    toy("--loud", "true")
    before, path = results(toy), toy.home / "exp/stages/1.json"
    path.write_text(path.read_text().replace(f'"{name}"', f'"X{name[1:]}"'))
    said = toy("--loud", "true", "--skip-done", "true").stdout
    assert "stage 2 (" in said and not re.search(r"stage 1 \(.*is done already", said)
    assert results(toy) == before and "Traceback" not in said
    assert manifest(toy, 1)[name]


def test_manifest(toy):
    toy("--loud", "true")
    content = manifest(toy, 3)
    assert [content[key] for key in ("stage", "title", "command")] == [
        3,
        "count",
        "./run.sh --loud true",
    ]
    assert content["lmtools"] == lmtools.__version__
    assert content["started"] <= content["finished"] and content["seconds"] >= 0
    listing = (toy.home / "exp/sorted/list").read_bytes()
    assert content["inputs"]["exp/sorted/list"] == {
        "size": len(listing),
        "sha256": hashlib.sha256(listing).hexdigest(),
    }
    assert content["outputs"]["exp/count"] == {
        "size": 2,
        "sha256": hashlib.sha256(b"3\n").hexdigest(),
    }
    assert manifest(toy, 2)["outputs"]["exp/sorted"]["files"] == 1


def test_changed_input_is_said(toy):
    toy()
    again = toy()
    assert "changed" not in again.stdout + again.stderr
    (toy.home / "conf/a.yaml").write_text("a: 2\n")
    done = toy("--stage", 2)
    assert (
        done.stderr
        == "warning: conf changed since stage 1 read it; its outputs are stale: start from"
        " --stage 1\n"
    )
    assert "conf changed since stage 1 read it; running again\n" in toy().stdout
    assert toy("--stage", 2).stderr == ""


# Skipping what is done


def test_skip_done(toy):
    toy("--skip-done")
    before = manifest(toy, 3)
    done = toy("--skip-done", "true", "--nj", 7)
    assert [line.split(" (")[0] for line in done.stdout.splitlines()] == [
        "stage 1",
        "stage 2",
        "stage 3",
    ]
    assert done.stdout.count("is done already: skipped") == 3
    assert manifest(toy, 3) == before


@pytest.mark.parametrize(
    "change, args, reason, stages",
    [
        (
            lambda toy: (toy.home / "conf/b.yaml").write_text("b\n"),
            [],
            "conf changed since stage 1 read it",
            "1",
        ),
        (
            lambda toy: (toy.home / "extra").write_text("other\n"),
            [],
            "extra changed since stage 3 read it",
            "3",
        ),
        (
            lambda toy: (toy.home / "exp/words").write_text("kiwi\n"),
            [],
            "exp/words is not as stage 1 left it",
            "1",
        ),
        (
            lambda toy: (toy.home / "exp/sorted/list").unlink(),
            [],
            "exp/sorted is not as stage 2 left it",
            "2",
        ),
        (
            lambda toy: toy.edit("run.sh", "sort $expdir", "sort -r $expdir"),
            [],
            "the commands of stage 2 changed",
            "23",
        ),
        (lambda toy: None, ["--loud"], "option loud was 'false' and is 'true'", "1"),
        (lambda toy: None, ["--words", "a b"], "option words was 'pear fig apple'", "123"),
        (lambda toy: None, ["--slow", 9], "option slow was '0' and is '9'", "123"),
    ],
)
def test_skip_done_runs_what_changed(toy, change, args, reason, stages):
    toy()
    change(toy)
    done = toy("--skip-done", "true", *args)
    assert re.search(rf"{re.escape(reason)}.*; running again\n", done.stdout)
    assert "".join(re.findall(r"^== stage (\d)", done.stdout, re.MULTILINE)) == stages
    assert toy("--skip-done", *args).stdout.count("skipped") == 3


# Logs, failures, signals


# A recipe of commands that are checked before anything is written

CHECKED = r"""#!/usr/bin/env bash
# Checked: of commands that lmtools would refuse.
# shellcheck disable=SC2086  # words

cd "$(dirname "$0")" && . REPOSITORY/utils/recipe.sh

conf=conf    # of the models
train_opts=  # settings
normaliser=none
pieces=20
precision=auto
experiment=conf/experiment.yaml
nj=1
datadir=data
expdir=exp
options "$@"
sets="dev test"
names=
for set in $sets; do names+=" $set-$pieces"; done

if stage 0 "get" conf : $datadir/text; then
  cp conf/a.yaml $datadir/text
  sleep 9 >never
fi

if stage 2 "pieces" $datadir/text : $expdir/out; then
  lmtools subword --text $datadir/text --vocab-size $pieces --normaliser $normaliser --out o
  echo $names
  cp $datadir/text $expdir/out
fi

if stage 3 "train" $conf : $expdir/out; then
  for lm in lstm gru; do
    echo --conf $conf/lstm.yaml --train a --valid b --out $expdir/lm/$lm $train_opts
  done | each lmtools train
fi

if stage 4 "report" $experiment : $expdir/out; then
  score_sets $experiment lm data exp "dev"
  lmtools report $expdir --conf conf/report.yaml
fi
"""


@pytest.fixture
def checked(toy):
    (toy.home / "run.sh").write_text(CHECKED.replace("REPOSITORY", str(REPOSITORY)))
    shutil.copy(REPOSITORY / "egs/gbw/conf/lstm.yaml", toy.home / "conf")
    (toy.home / "conf/experiment.yaml").write_text("columns: {a: {}}\nsystems: {a: [a]}\n")
    (toy.home / "conf/report.yaml").write_text("order: ['*']\n")
    return toy


@pytest.mark.parametrize(
    "args, status, message",
    [
        ("--nj 0", 2, "--nj is 0; it takes 1 or more"),
        ("--processes 0", 2, "--processes is 0; it takes 1 or more"),
        ("--conf nowhere", 1, "stage 3, lmtools train: nowhere/lstm.yaml: cannot read"),
        ("--train-opts optim.lrr=1", 1, "stage 3, lmtools train: conf/lstm.yaml: unknown setting"),
        ("--normaliser foo", 1, "stage 2, lmtools subword: normaliser foo: none is called 'foo'"),
        ("--pieces 0", 1, "stage 2, lmtools subword: argument --vocab-size: '0' is not"),
        ("--experiment no.yaml", 1, "stage 4, lmtools score: no.yaml: cannot read"),
        ("conf/report.yaml", 1, "stage 4, lmtools report: conf/report.yaml:"),
        ("conf/experiment.yaml", 1, "stage 4, lmtools score: conf/experiment.yaml:"),
        ("conf/lstm.yaml", 1, "stage 3, lmtools train: conf/lstm.yaml:"),
    ],
)
def test_what_would_be_refused_later_is_refused_before_all(checked, args, status, message):
    if not args.startswith("--"):
        path, args = checked.home / args, ""
        path.write_text(f"wrong: [1\n{path.read_text()}")
    done = checked(*args.split(), "--stop-stage", 0, status=status)
    assert done.stderr.startswith(f"./run.sh: {message}") and done.stderr.count("\n") == 1
    assert {path.name for path in checked.home.iterdir()} == {"conf", "extra", "run.sh"}


def test_runs_with_one_datadir(checked):
    """One that writes it is alone; others read it together."""
    checked.edit("run.sh", "sleep 9 >never", "echo written")
    checked("--stop-stage", 2, "--expdir", "one")
    checked.edit("run.sh", "echo $names", "echo waits && sleep 60")
    process = checked.start("--stage", 2)
    checked.said("waits", process)
    done = checked("--stop-stage", 0, "--expdir", "two", status=1)
    assert re.fullmatch(r"data is in use by \d+ processes; wait for them\n", done.stderr)
    checked.edit("run.sh", "echo waits && sleep 60", "true")
    checked("--stage", 2, "--stop-stage", 2, "--expdir", "two")
    checked.kill(process)
    checked.edit("run.sh", "echo written", "echo written && sleep 60")
    process = checked.start("--stop-stage", 0)
    checked.said("written", process)
    done = checked("--stage", 2, "--expdir", "two", status=1)
    said = f"data is in use by another run, process {process.pid}; wait for it"
    assert done.stderr.startswith(said)
    checked.kill(process)


def test_jobs_of_a_file_of_the_cluster_have_logs_of_their_models(checked):
    (checked.home / "cmd.sh").write_text('cmd="utils/run.sh --mem 4G"\n')
    (checked.home / "data").mkdir()
    shutil.copy(checked.home / "extra", checked.home / "data/text")
    checked("--stage", 2, "--stop-stage", 3)
    for number, name in enumerate(("lstm", "gru"), 1):
        log = checked.home / f"exp/log/stage3.{name}.log"
        assert f"train --conf conf/lstm.yaml --train a --valid b --out exp/lm/{name}\n" in (
            log.read_text()
        )
        assert log.samefile(checked.home / f"exp/log/stage3.jobs.{number}.log")
    assert "shellcheck" not in checked("--help").stdout
    done = checked("--cmd", "none.sh", "--stage", 3, status=2)
    assert "--cmd is 'none.sh'" in done.stderr


def test_log_has_all_output_of_its_stage(toy):
    toy.edit("run.sh", "echo sorting", "echo sorting && echo oops >&2")
    done = toy()
    toy("--stage", 2, "--stop-stage", 2)
    log = (toy.home / "exp/log/stage2.log").read_text()
    assert re.fullmatch(
        r"(== stage 2: sort == \d{4}-\d\d-\d\d [\d:]{8}\nsorting\noops\nstage 2 done in [\d.]+"
        r" s\n){2}",
        log,
    )
    assert log[: len(log) // 2] in done.stdout


def test_failing_command_is_named(toy):
    toy.edit("run.sh", "  wc -l", "  false\n  wc -l")
    line = toy.home.joinpath("run.sh").read_text().splitlines().index("  false") + 1
    done = toy(status=1)
    assert (
        done.stderr
        == f"./run.sh:{line}: stage 3 failed with status 1; its log: exp/log/stage3.log\n"
    )
    assert toy("--stage", 3, "--stop-stage", 3, "--words", "x", status=1).returncode == 1
    assert "warning: stage 3 was interrupted" in toy("--stop-stage", 2).stderr


def test_sigterm_reaches_the_command_that_runs(toy):
    toy()  # all outputs are there: only the signal tells that the stage did not finish
    toy.edit(
        "run.sh",
        "echo sorting",
        """bash -c 'trap "echo saved; exit 3" TERM; echo ready; sleep 9 & wait'""",
    )
    process = toy.start()
    toy.said("ready", process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=8) != 0
    assert (toy.home / "exp/log/stage2.log").read_text().endswith("ready\nsaved\n")
    assert (
        "stage 2 was interrupted; the same command goes on with it"
        in (toy.home / "run.out").read_text()
    )
    assert manifest(toy, 2)["finished"] is None


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_sigkill_then_the_same_command(toy, stage):
    toy("--expdir", "whole")
    process = toy.start("--slow", stage)
    toy.said(f"== stage {stage}", process)
    toy.kill(process)
    assert manifest(toy, stage)["finished"] is None
    toy()
    assert results(toy) == results(toy, "whole")


def test_two_runs_do_not_mix(toy):
    process = toy.start("--slow", 1)
    toy.said("writing", process)
    done = toy(status=1)
    assert (
        done.stderr
        == f"exp is in use by another run, process {process.pid}; wait for it, or stop it and run"
        " again\n"
    )
    toy("--expdir", "other")
    toy.kill(process)
    toy()


def test_a_run_ends_well_while_another_waits_for_its_lock(toy):
    toy()
    with open(toy.home / "exp/.lock", "r+") as lock:  # opened, as each run does before it locks
        waiting = subprocess.Popen(["sleep", "60"], pass_fds=[lock.fileno()])
    toy()
    assert waiting.poll() is None
    waiting.kill()
    waiting.wait()


@pytest.mark.parametrize(
    "name",
    [
        ".lock",
        "stages",
        "log",
        "log/stage1.log",
        "stages/1.json",
        "stages/.1.json.tmp",
        "stages/hashes.json",
    ],
)
def test_nothing_is_written_through_a_link_that_nobody_named(toy, tmp_path, name):
    precious = tmp_path / "precious"
    if name in ("stages", "log"):
        precious.mkdir()
    else:
        precious.write_text("x")
    (toy.home / "exp" / name).parent.mkdir(parents=True, exist_ok=True)
    (toy.home / "exp" / name).symlink_to(precious)
    refused = name in (".lock", "stages", "log", "log/stage1.log")
    done = toy("--stop-stage", 1, status=1 if refused else 0)
    if refused:
        assert (
            f"exp/{name}: is a symbolic link, through which a recipe does not write; remove it"
            in done.stderr
        )
        assert done.stderr.count("\n") == 1
    assert not os.listdir(precious) if precious.is_dir() else precious.read_text() == "x"


def test_a_lock_that_is_no_file(toy):
    os.mkfifo((toy.home / "exp").mkdir() or toy.home / "exp/.lock")
    assert "exp/.lock: is no file; remove it" in toy(status=1).stderr


def test_an_experiment_may_lie_elsewhere(toy, tmp_path):
    (tmp_path / "disk").mkdir()
    (toy.home / "exp").symlink_to(tmp_path / "disk")
    toy("--stop-stage", 1)
    assert (tmp_path / "disk/stages/1.json").exists()


def test_what_a_killed_run_left_working_is_waited_for(toy):
    process = toy.start("--slow", 1)
    toy.said("writing", process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    waiting = toy.start()
    toy.said("waiting for it (kill", waiting)
    said = re.match(
        rf"run {process.pid} was killed but left process (\d+) \(sleep\) working; waiting for it"
        r" \(kill \1 ends it\)\n",
        (toy.home / "run.out").read_text(),
    )
    os.kill(int(said[1]), signal.SIGKILL)
    assert waiting.wait() == 0
    assert results(toy)["count"] == b"3\n"


# Jobs, as Kaldi's run.pl runs them

RUN_PL = [  # words of the command line, its status, what its logs say (first the command, if told)
    ("x.log echo a", 0, {"x.log": ["echo a", "a"]}),
    ("x.log false", 1, {"x.log": ["false"]}),
    ("-V x.log echo a", 0, {"x.log": ["", "a"]}),
    ("--mem 4G -l arch=x -pe smp 2 x.log echo a", 0, {"x.log": ["echo a", "a"]}),
    ("J=1:2 l/J.log echo J-xJ", 0, {"l/1.log": ["echo 1-x1", "1-x1"], "l/2.log": ["", "2-x2"]}),
    ("JOB=1:2 --max-jobs-run 1 JOB.log echo JOB", 0, {"1.log": ["", "1"], "2.log": ["", "2"]}),
    ("-tc 1 n_1=1:2 n_1.log echo n_1", 0, {"1.log": ["", "1"], "2.log": ["", "2"]}),
    ("JOB=2 JOB.log echo JOB", 0, {"2.log": ["echo 2", "2"]}),
    ("JOB=2 x.log echo JOB", 0, {"x.log": ["echo 2", "2"]}),
    ("JOB=3:3 x.log echo JOB", 0, {"x.log": ["echo 3", "3"]}),
    ("JOB=08:09 JOB.log echo JOB", 0, {"8.log": ["", "8"], "9.log": ["", "9"]}),
    ("JOB=1:2 JOB.log test JOB -ne 1", 1, {"1.log": [""], "2.log": [""]}),
    ("JOB=1:2 --max-jobs-run 1 JOB.log exit 255", 1, {"1.log": [""], "2.log": [""]}),
    ("JOB=5:3 JOB.log echo JOB", 2, {}),
    ("JOB=0:3 JOB.log echo JOB", 2, {}),
    ("JOB=0 JOB.log echo JOB", 2, {}),
    ("JOB=1:2 x.log echo JOB", 1, {}),
    ("x.log", 2, {}),
    ("--max-jobs-run 0 x.log echo a", 2, {}),
    ("x.log echo b a '|' tr a c", 0, {"x.log": ["echo b a | tr a c", "b c"]}),
    ("x.log echo a '>' out '2>&1'", 0, {"x.log": ["echo a > out 2>&1"], "out": ["a"]}),
    ("x.log echo a '>>' out ';' cat '<' out", 0, {"x.log": ["", "a"], "out": ["a"]}),
    ("x.log false '|' true", 0, {"x.log": [""]}),
    ("x.log false '||' echo b", 0, {"x.log": ["", "b"]}),
    ("x.log false '&&' echo b", 1, {"x.log": [""]}),
    ("x.log echo '$Y' '${Y}z'", 0, {"x.log": ["echo $Y ${Y}z", "y y z"]}),  # $Y is "y  "
    ("x.log printf %s. 'a  $Y' ''", 0, {"x.log": ['printf %s. "a  $Y" ""', "a  y  .."]}),
    ("x.log printf %s. '<\"$Y  b\">'", 0, {"x.log": ["printf %s. '<\"$Y  b\">'", '<"$Y  b">.']}),
    ("x.log printf %s. '\"$Y\"'", 0, {"x.log": ['printf %s. "$Y"', "y  ."]}),
    ("x.log sh -c 'cat; echo $((1+1)) >&2; exit 3'", 1, {"x.log": ["", "2"]}),
    ("J=1:2 J.log echo 'J | J' '|' rev", 0, {"1.log": ["", "1 | 1"], "2.log": ["", "2 | 2"]}),
]


@pytest.mark.parametrize("program", [str(REPOSITORY / "utils/run.sh"), "run.pl"])
@pytest.mark.parametrize("words, status, said", RUN_PL)
def test_run_sh_keeps_the_contract_of_run_pl(tmp_path, program, words, status, said):
    """The table is of run.pl, which is run too where it is installed; 2 is wrong usage."""
    if not shutil.which(program):
        pytest.skip("no run.pl; it is in egs/wsj/s5/utils/parallel of Kaldi")
    command, env = [program, *shlex.split(words)], {**os.environ, "Y": "y  "}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert min(done.returncode, 2) == status, done.stderr
    files = {str(p.relative_to(tmp_path)): p for p in tmp_path.rglob("*") if p.is_file()}
    assert files.keys() == said.keys()
    for name, expected in said.items():
        lines = files[name].read_text().splitlines()
        if name.endswith(".log"):
            assert re.match(r"# Started at .+\n#\n", "\n".join(lines[1:])), lines
            assert re.match(r"# Ended \(code \d+\) at .*, elapsed time \d+ seconds$", lines[-1])
            told = lines[0][2:].rstrip() if expected[0] else ""
            # what the command says last may have no line's end
            body = "\n".join(lines[3:]).partition("# Accounting: time=")[0]
            lines = [told, *body.splitlines()]
        assert lines == expected


def test_jobs_leave_the_words_of_a_command_alone(tmp_path):
    """Those of --cmd, whose programs give them to bash."""
    words = ["a  b", "$HOME", "x;y", 'say "a"', "it's", "*", "", "{a,b}", "(ä)", "--x=1\n", "JOB"]
    script = "import sys, json; json.dump(sys.argv[1:], open('out', 'w'))"
    line = [str(REPOSITORY / "utils/run.sh"), "x.log", sys.executable, "-c", script, *words]
    subprocess.run([*line[:2], *map(protect, line[2:])], cwd=tmp_path, check=True)
    assert json.loads((tmp_path / "out").read_text()) == words


# Hashes


def test_hashes_are_kept_until_the_file_changes(python, tmp_path, monkeypatch):
    monkeypatch.setattr(python, "RACY_SECONDS", -1)
    path, cache = tmp_path / "big", tmp_path / "hashes.json"
    path.write_bytes(b"a" * 10)
    first = python.Hashes(cache)
    digest = first.file(str(path))
    first.save()
    with monkeypatch.context() as patch:
        patch.setattr(python.hashlib, "sha256", None)
        assert python.Hashes(cache).file(str(path)) == digest
    times = path.stat()
    time.sleep(0.01)
    path.write_bytes(b"b" * 10)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert python.Hashes(cache).file(str(path)) == hashlib.sha256(b"b" * 10).hexdigest()
    path.unlink()
    first.save()
    assert python.load(cache) == {}
