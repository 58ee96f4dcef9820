# What the calls share; each sources it. Variables that may be set before a call:
# shellcheck shell=bash disable=SC2034  # calls use them
device=${device:-cuda}   # cuda, or cpu for a trial
carried=${carried:-.gpu} # the folder that prepare.sh made, in the repository's root
work=${work:-/tmp/lmtools-gpu} # on the machine: what a call leaves there the next one finds
out=${out:-$work/out}    # what comes back
trial=${trial:-false}    # true: the smallest form of everything, for a test on a CPU
nj=${nj:-14}             # processes of the host
train_seconds=${train_seconds:-780} # from the start of the trainings of call 3 to their end in call 4
batch=${batch:-8192}     # tokens of their batches

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD
carried=$(realpath -m "$carried") work=$(realpath -m "$work") out=$(realpath -m "$out")
mkdir -p "$work"/{bin,lm,site} "$out"
export PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
export PYTHONPATH=$work/site:$root:$root/benchmarks${PYTHONPATH:+:$PYTHONPATH}
if compgen -G "$carried/whl/*.whl" >/dev/null && [[ ! -e $work/site/.done ]]; then
  python3 -m pip install -q --no-index --no-deps --target "$work/site" "$carried"/whl/*.whl
  touch "$work/site/.done"
fi
if ! command -v lmtools >/dev/null; then
  printf '#!/bin/sh\nexec python3 -m lmtools "$@"\n' >"$work/bin/lmtools"
  chmod +x "$work/bin/lmtools"
  PATH=$work/bin:$PATH
fi

sizes=()      # settings of trainings, over conf/{tta,masked,causal}.yaml: the paper's sizes
shape=()      # and of models with random weights
settings=(optim.lr=5e-4 optim.warmup=1500 valid_every=2000 checkpoint_every=2000 precision=auto seed=1)
check=1500    # the step after which T-TA's loss has to be below 6 nats
if [[ $trial = true ]]; then
  shape=(layers=1 dim=16 heads=2 ffn=32)
  sizes=("${shape[@]/#/arch.}")
  settings=(optim.lr=1e-3 optim.warmup=2 valid_every=5 checkpoint_every=5 log_every=1 seed=1)
  batch=64 check=2
fi

# bench KIND OPTION...: a benchmark, with its figures in $out and its lines on the screen.
bench() {
  python3 benchmarks/bench.py "$@"
}

# say WORDS: what is being done, and when.
say() {
  printf '== %s: %s\n' "$(date +%T)" "$*"
}
