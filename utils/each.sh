# What runs the commands of a stage: here, some at a time, or as jobs that the program of --cmd
# starts. recipe.sh sources it; the options $nj, $cmd, $processes and $nnodes are the recipe's.
# shellcheck shell=bash disable=SC2154  # variables of recipe.sh and of the recipe

# quoted WORD...: the words on a line that xargs and the shell take apart again; a blank at its end
# would join the next line.
quoted() {
  local word line=
  for word in "$@"; do
    line+=${line:+ }$(printf %q "$word")
  done
  echo "$line"
}

# each COMMAND...: run the command with each line of standard input (words, or as `quoted` writes
# them), $nj at a time, here or by jobs of a cluster; `lmtools train` by $processes processes on each
# of $nnodes machines.
each() {
  local command=("$@") nodes=() line share
  share=$(($(nproc) / (nj * processes)))
  if [[ $1 = lmtools && ${2-} = train ]]; then
    if ((nnodes > 1)); then
      nodes=(--nodes "$nnodes")
      command=(srun --kill-on-bad-exit=1 "$recipe_home/utils/node.sh" "$processes" -m "$@")
    elif ((processes > 1)); then
      command=(python3 -m torch.distributed.run --standalone --nproc-per-node "$processes" -m "$@")
    fi
  fi
  share=OMP_NUM_THREADS=$((share > 1 ? share : 1))
  if [[ $dry_run = true ]]; then
    while read -r line; do echo "$share ${command[*]} $line"; done
  elif [[ $cmd = local ]]; then
    env "$share" xargs -r -P "$nj" -L 1 "${command[@]}"
  else
    recipe_jobs "${nodes[@]}" --max-jobs-run "$nj" -- "${command[@]}"
  fi
}

# recipe_jobs OPTION... -- COMMAND...: have --cmd run the command with each line of standard input;
# print their logs, which have links named by what is made (stage3.lstm.log), when all have ended.
recipe_jobs() {
  local options=() jobs number name log=$expdir/log/${recipe_tag}stage$recipe_open.jobs
  while [[ $1 != -- ]]; do options+=("$1") && shift; done
  mapfile -t jobs
  ((${#jobs[@]})) || return 0
  for number in "${!jobs[@]}"; do
    name=job$number
    [[ ! ${jobs[number]} =~ --out\ ([^ ]+) ]] || name=/${BASH_REMATCH[1]#"$expdir"/}
    name=${name//\/lm/} name=${name#/}
    echo "${name//[^[:alnum:]._-]/-} ${jobs[number]}"
  done >"$log"
  # shellcheck disable=SC2016  # the job's arguments
  "${recipe_cmd[@]}" "${options[@]}" JOB="1:${#jobs[@]}" "$log.JOB.log" \
    bash -c 'line=$(sed -n "$2p" "$1") && ln -f "$1.$2.log" "${1%jobs}${line%% *}.log"
      LMTOOLS_CMD=local xargs -r -L 1 "${@:3}" <<<"${line#* }"' - "$log" JOB "${@:2}"
  for ((number = 1; number <= ${#jobs[@]}; number++)); do
    cat "$log.$number.log"
  done
}

# submit COMMAND...: run the command: here, or as a job of a cluster.
submit() {
  if [[ $cmd = local || $dry_run = true ]]; then
    "$@"
  else
    quoted "${@:2}" | recipe_jobs -- "$1"
  fi
}
