#!/usr/bin/env bash
# gridengine.sh: run commands as an array of Grid Engine (Sun's, Univa's and their heirs), as
# Kaldi's queue.pl does; see jobs.sh. Other options are qsub's with their values, as -q main.q or
# -l arch=lx-amd64. Resources have each cluster's own names: --mem is of mem_free, --gpu of gpu,
# --num-threads of the parallel environment smp; for others give qsub's options. If this process is
# stopped, so is the array.
. "$(dirname "$0")/jobs.sh"
jobs_parse "$@"
options=(-terse -V -r y -j y -b y -shell n -N lmtools -t "$first-$last" -tc "$most" -wd "$PWD")
options+=(${mem:+-l "mem_free=$mem"} ${time:+-l "h_rt=$time"})
((gpu == 0)) || options+=(-l "gpu=$gpu")
((threads == 1)) || options+=(-pe smp "$threads")
path=$(realpath -m "$log")
# elsewhere files such as .sge_request of the working directory, which holds data, add options
id=$(cd / && qsub "${options[@]}" -o "${path//"$name"/\$TASK_ID}" "${more[@]}" "$BASH" \
  "$here/jobs.sh" "$name" "$log" "${command[@]}" SGE_TASK_ID) || jobs_fail "not submitted"
jobs_wait "${id%%.*}" qdel qstat -u "$(id -un)"
jobs_check
