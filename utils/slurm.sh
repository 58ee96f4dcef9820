#!/usr/bin/env bash
# slurm.sh: run commands as an array of Slurm, as Kaldi's slurm.pl does; see jobs.sh. Other options
# are sbatch's with their values, as --partition main or --nodes 2. If this process is stopped, so
# is the array. A task that is preempted, or whose node fails, is queued again.
. "$(dirname "$0")/jobs.sh"
jobs_parse "$@"
options=(--parsable --requeue --ntasks-per-node=1 --cpus-per-task="$threads" --open-mode=append)
options+=(${mem:+--mem="$mem"} ${time:+--time="$time"} --array="$first-$last%$most")
((gpu == 0)) || options+=(--gpus-per-task="$gpu")
path=${log//%/%%}
script=$(printf '%q ' "$BASH" "$here/jobs.sh" "$name" "$log" "${command[@]}" SLURM_ARRAY_TASK_ID)
id=$(sbatch "${options[@]}" --output="${path//"$name"/%a}" "${more[@]}" \
  <<<"#!$BASH"$'\n'"exec $script") || jobs_fail "not submitted"
jobs_wait "${id%%;*}" scancel squeue -h -u "$(id -un)" -o %F
jobs_check
