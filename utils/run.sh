#!/usr/bin/env bash
# run.sh: run commands on this machine, as Kaldi's run.pl does; see jobs.sh. --mem, --gpu and --time
# limit nothing.
. "$(dirname "$0")/jobs.sh"
jobs_parse "$@"
((${#more[@]} == 0)) || echo "run.sh: warning: ${more[*]}: of a cluster, and ignored here" >&2
share=$(($(nproc) / most))
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((share > threads ? share : threads))}
set -m # the commands are a group of processes, which ends with this one
seq "$first" "$last" |
  xargs -P "$most" -n 1 "$BASH" "$here/jobs.sh" "$name" "$log" "${command[@]}" &
group=$(jobs -p %%)
trap 'kill -- -"$group" 2>/dev/null' EXIT
trap 'exit 143' HUP INT TERM
wait "$!" || true
trap - EXIT
jobs_check
