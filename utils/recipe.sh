# Options, stages with declared inputs and outputs, manifests, logs and one run at a time, for every
# script of a recipe:
#
#   cd "$(dirname "$0")" && . ../../utils/recipe.sh
#   depth=50  # hypotheses an utterance: a variable is an option, its comment what --help says
#   options "$@"
#   if stage 4 "score" exp/lm/tta/model.safetensors : exp/score/tta/dev.scores; then
#     lmtools score ...
#   fi
#
# A stage starts only if its inputs exist and has to leave its outputs behind. What it read and wrote
# is recorded in $expdir/stages/4.json, with the options that its lines name, what it said in $expdir/log/stage4.log; those of run_NAME.sh
# are NAME-4.json and NAME-stage4.log. Commands of stages begin with a program's name and redirect
# nothing, so that --dry-run can print them.
# shellcheck shell=bash

set -euo pipefail

# Options of every recipe
stage=0          # first stage to run
stop_stage=99    # last stage to run
skip_done=false  # true: skip stages whose commands, options, inputs and outputs are as their
                 # manifests say
dry_run=false    # true: print the commands of these stages, one a line, and run none
cmd=local        # what runs --nj commands at a time: local (processes), or a program as Kaldi's
                 # run.pl is, as in "utils/slurm.sh --mem 4G" (utils/gridengine.sh, utils/run.sh);
                 # cmd.sh of the recipe's directory may set it: cmd="utils/slurm.sh --mem 4G"
processes=1      # processes of one training on a machine, by torchrun: the number of GPUs
nnodes=1         # machines of one training, of so many processes each, by utils/slurm.sh
debug=false      # true: show every command, and the traceback of an error

recipe_home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
recipe_script=./$([[ -f ${0##*/} ]] || echo studies/)${0##*/} # of the recipe, or its studies
recipe_tag=$(sed -E 's/^run_?//; s/\.sh$//; s/.$/&-/' <<<"${0##*/}") # run.sh: nothing; run_x.sh: x-
recipe_command=$recipe_script # with the options of this call that decide the results
recipe_help=false
recipe_open= # number of the stage that runs now
recipe_line= # of the script, where a command failed
recipe_names=() # of options
recipe_cmd=() # words of --cmd
recipe_declared= # lines of stage, reads or writes, and path, with tabs between them
. "$recipe_home/utils/each.sh"
. "$recipe_home/utils/dry_run.sh"
. "$recipe_home/utils/rescore.sh"
# an environment that is active comes first
if ! command -v lmtools >/dev/null && [[ -d $recipe_home/.venv/bin ]]; then
  PATH=$recipe_home/.venv/bin:$PATH
fi
export LMTOOLS_KENLM=${LMTOOLS_KENLM:-$recipe_home/tools/kenlm} # where utils/install_kenlm.sh puts it

# recipe_fail MESSAGE [STATUS]: end the run, saying why.
recipe_fail() {
  printf '%s: %s\n' "$recipe_script" "$1" >&2
  exit "${2:-1}"
}

# wrong MESSAGE: end the run because its options do not fit together; --help still works.
wrong() {
  [[ $recipe_help = true ]] || recipe_fail "$1" 2
}

# options "$@": set the variables above from --name value and take the lock, or, under --help,
# explain the recipe.
options() {
  local assignments
  assignments=$(recipe_python options "$recipe_script" "${BASH_SOURCE[0]}" "$@") || exit
  # shellcheck disable=SC1091  # the user's
  [[ ! -f cmd.sh ]] || . ./cmd.sh
  eval "$assignments" # variables and recipe_help, quoted by Python's shlex
  : "${expdir:=exp}"
  if [[ $recipe_help = true ]]; then
    recipe_python explain "$recipe_script" "${BASH_SOURCE[0]}"
  elif [[ $dry_run = true ]]; then
    recipe_print
  else
    recipe_data=$(recipe_check "$@") || exit
    recipe_start
  fi
}

# recipe_start: lmtools is installed, and the experiment's directory is ours until this run and all
# that it started end.
recipe_start() {
  ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)) ||
    recipe_fail "bash $BASH_VERSION is too old; use 4.4 or newer"
  command -v lmtools >/dev/null ||
    recipe_fail "lmtools is not installed; run 'make setup' in $recipe_home"
  recipe_version=$(lmtools --version) && recipe_version=${recipe_version##* }
  if [[ $debug = true ]]; then
    # shellcheck disable=SC2317,SC2329  # stages call it
    lmtools() { command lmtools "$@" --debug; }
  fi
  if [[ $cmd != local ]]; then
    read -ra recipe_cmd <<<"$cmd"
    [[ -x ${recipe_cmd[0]} ]] || recipe_cmd[0]=$recipe_home/${recipe_cmd[0]}
    [[ -f ${recipe_cmd[0]} && -x ${recipe_cmd[0]} ]] ||
      recipe_fail "--cmd is '$cmd'; it takes local, or a program as utils/slurm.sh" 2
    LMTOOLS_CMD=$(quoted "${recipe_cmd[@]}")
    export LMTOOLS_CMD
  fi
  ((nnodes == 1)) || [[ $cmd = *slurm* ]] ||
    recipe_fail "--nnodes $nnodes are machines that Slurm gives; add --cmd utils/slurm.sh" 2
  recipe_python ready "$expdir/.lock" "$expdir/stages" "$expdir/log"
  exec 9<>"$expdir/.lock" # children inherit it: the lock lasts as long as anything may still write
  recipe_python lock "$expdir/.lock" 9 $$
  recipe_lock_data
  trap recipe_exit EXIT
  set -o errtrace
  trap '((${#BASH_LINENO[@]} > 1)) && recipe_line=${BASH_LINENO[-2]} || recipe_line=$LINENO' ERR
}

# recipe_lock_data: nobody writes the data of this run; runs that only read them go side by side.
recipe_lock_data() {
  [[ ${datadir-} && ! $datadir -ef $expdir ]] || return 0
  [[ ! $recipe_data || -w $datadir ]] || return 0
  recipe_python ready "$datadir/.lock"
  exec 8<>"$datadir/.lock"
  recipe_python lock "$datadir/.lock" 8 $$ "$recipe_data"
}

# recipe_python VERB ...: what is easier in Python.
recipe_python() {
  command python3 "$recipe_home/utils/recipe.py" "$@" <<<"$recipe_declared"
}

# stage N TITLE IN... : OUT...: true if stage N is to run now; all commands up to the next stage
# belong to it.
stage() {
  local number=$1 title=$2 side=reads path status=0
  for path in "${@:3}"; do
    [[ $path != : ]] || { side=writes && continue; }
    recipe_declared+=$number$'\t'$side$'\t'$path$'\n'
  done
  if [[ $recipe_help = true ]]; then
    recipe_python describe "$number" "$title"
    return 1
  fi
  recipe_close
  if ((number < stage || number > stop_stage)); then
    [[ $dry_run = true ]] || recipe_python stale "$expdir/stages/$recipe_tag$number.json"
    return 1
  elif [[ $dry_run = true ]]; then
    echo "# stage $number: $title"
    recipe_restrict
    return
  fi
  recipe_begin "$number" "$title" || status=$?
  ((status == 0 || status == 3)) || exit 1
  return "$status"
}

# recipe_begin N TITLE: record the start of a stage and open its log; status 3 if it is done and may
# be skipped.
recipe_begin() {
  local values=() name
  for name in "${recipe_names[@]}"; do
    values+=("$name=${!name}")
  done
  recipe_log=$expdir/log/${recipe_tag}stage$1.log
  recipe_python begin "$expdir/stages/$recipe_tag$1.json" "$1" "$2" "$recipe_log" \
    "$recipe_script" "$recipe_command" "$recipe_version" "$skip_done" "${values[@]}" || return
  recipe_open=$1
  # tee ignores the signals that end a stage: the stage's last words are kept
  exec {recipe_out}>&1 {recipe_err}>&2 \
    > >(trap '' HUP INT PIPE TERM && exec tee -a "$recipe_log" 8>&- 9>&-) 2>&1
  recipe_tee=$!
  echo "== stage $1: $2 == $(date '+%F %T')"
  [[ $debug = false ]] || set -x
}

# recipe_unlog: the stage's output has reached its log; give the run its own output back.
recipe_unlog() {
  exec >&"$recipe_out" 2>&"$recipe_err" {recipe_out}>&- {recipe_err}>&-
  wait "$recipe_tee" || true
}

# recipe_close: the stage that runs, if any, is over: its outputs exist, and its manifest is
# complete.
recipe_close() {
  { set +x; } 2>/dev/null
  [[ $recipe_open ]] || return 0
  local number=$recipe_open status=0
  recipe_open=
  recipe_python end "$expdir/stages/$recipe_tag$number.json" || status=$?
  recipe_unlog
  ((status == 0)) || recipe_fail "stage $number failed; its log: $recipe_log"
}

# recipe_exit: at the end of the run complete the last stage, or say which stage failed and where.
recipe_exit() {
  local status=$?
  { set +x; } 2>/dev/null
  # A signal ends the shell with the status of an earlier command; that something still works tells
  # it from a regular end.
  if [[ $recipe_open ]] && recipe_python stop "$expdir/.lock" && ((status == 0)); then
    status=143
  fi
  if ((status == 0)); then
    recipe_close
  elif [[ $recipe_open ]]; then
    recipe_unlog
    if ((status > 128)); then
      recipe_fail "stage $recipe_open was interrupted; the same command goes on with it (its log:\
 $recipe_log)" "$status"
    fi
    printf '%s:%s: stage %s failed with status %s; its log: %s\n' \
      "$recipe_script" "$recipe_line" "$recipe_open" "$status" "$recipe_log" >&2
    exit "$status"
  fi
}
