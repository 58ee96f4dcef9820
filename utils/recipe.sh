# Options, stages with declared inputs and outputs, manifests, logs and one run at a time, for every
# recipe's run.sh:
#
#   cd "$(dirname "$0")" && . ../../utils/recipe.sh
#   depth=50  # hypotheses an utterance: a variable is an option, its comment what --help says
#   options "$@"
#   if stage 4 "score" $nbest $lm/config.yaml : $scores; then
#     lmtools score ...
#   fi
#
# Options whose defaults depend on others are set by a function `defaults`, if the recipe has one
# before `options`:
#
#   defaults() { : "${expdir:=exp/$pair}"; }
#
# A stage starts only if its inputs exist and has to leave its outputs behind; {name} in a path
# stands for each element of the array `name`. What it read and wrote is recorded in
# $expdir/stages/4.json, what it said in $expdir/log/stage4.log. No stage changes the directory of
# the run.
# shellcheck shell=bash

set -euo pipefail

# Options of every recipe
stage=0          # first stage to run
stop_stage=99    # last stage to run
skip_done=false  # true: skip stages whose commands, options, inputs and outputs are as their
                 # manifests say
cmd=local        # where what --nj takes at a time runs: local, by processes; slurm or queue, by jobs
                 # of Slurm or Grid Engine, as conf/slurm.yaml or conf/queue.yaml of the repository
                 # says, or slurm:F.yaml, queue:F.yaml
processes=1      # processes of one training on a machine, by torchrun: the number of GPUs
nnodes=1         # machines of one training, of so many processes each, with --cmd slurm
debug=false      # true: show every command, and the traceback of an error

recipe_home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
recipe_script=./${0##*/}
recipe_command=$recipe_script # with the options of this call that decide the results
recipe_help=false
recipe_open= # number of the stage that runs now
recipe_line= # of run.sh, where a command failed
recipe_names=()
declare -A recipe_default=() recipe_about=() recipe_reads=() recipe_writes=()
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

# one_of OPTION CHOICE...: end the run unless the option's value is one of these.
one_of() {
  local others=("${@:2:$#-2}")
  [[ " ${*:2} " = *" ${!1} "* && ${!1} ]] || wrong "--${1//_/-} is '${!1}'; it takes$(
    printf ' %s,' "${others[@]}" | sed 's/,$//') or ${*: -1}"
}

# expand ARRAY PATH...: set ARRAY to the paths, {name} in them replaced by each element of the
# array `name`; each path once. So do the paths that `stage` is told of.
expand() {
  local -n recipe_paths=$1
  local -A recipe_seen=()
  local recipe_path
  recipe_paths=()
  for recipe_path in "${@:2}"; do
    recipe_expand "$recipe_path"
  done
}

# quoted WORD...: the words on a line that xargs takes apart again; a blank at its end would join
# the next line.
quoted() {
  local word line=
  for word in "$@"; do
    line+=${line:+ }$(printf %q "$word")
  done
  echo "$line"
}

# language_models HOME NAME...: fill the arrays lm (directory by name), names, neural, ngrams (names
# of those to train, into HOME/NAME) and given (directories) for LMs NAME to train and those that
# are there, NAME=DIR or NAME=hf:DIR; columns of scores (names) and how they are made, `add_columns`.
language_models() {
  local one name
  declare -gA lm=() how=() && names=() neural=() ngrams=() given=()
  for one in "${@:2}"; do
    name=${one%%=*} && names+=("$name")
    case $one in
      *=*) lm[$name]=${one#*=} && given+=("${lm[$name]#hf:}") ;;
      ngram) lm[$name]=$1/$name && ngrams+=("$name") ;;
      *) lm[$name]=$1/$name && neural+=("$name") ;;
    esac
  done
  columns=("${names[@]}")
}

# add_columns SUFFIX OPTIONS NAME...: columns NAME-SUFFIX beside those in `columns`, made by these
# options of `lmtools score` (in how) with the LMs (in lm).
add_columns() {
  local name
  need_lms "$1" "${@:3}"
  for name in "${@:3}"; do
    # shellcheck disable=SC2034  # run.sh reads them
    columns+=("$name-$1") how[$name-$1]=$2 lm["$name-$1"]=${lm[$name]-}
  done
}

# need_lms OPTION NAME...: end the run unless each is the name of an LM.
need_lms() {
  local name
  for name in "${@:2}"; do
    [[ ${lm[$name]-} ]] || wrong "--$1 names $name, which is none of the LMs"
  done
}

# add_bert DIR: name one more LM, bert: the Hugging Face model in DIR, or one to train where DIR is
# empty; not where $lms or $lm_dirs name it already.
add_bert() {
  if named bert; then return; fi
  if [[ $1 ]]; then lm_dirs+=" bert=hf:$1"; else lms+=" bert"; fi
}

# named NAME: whether $lms or $lm_dirs name the LM.
named() {
  [[ " $lms $lm_dirs " = *" $1"[=\ ]* ]]
}

# lms_of SYSTEM: the names of the LMs that a system combines, a+b or all; nothing if one is not
# there.
lms_of() {
  local name parts=${1//+/ }
  [[ $1 != all ]] || parts=${names[*]}
  for name in $parts; do
    [[ ${lm[$name]-} ]] || return 0
  done
  echo "$parts"
}

# share_cores COUNT: the threads of each of so many processes that work at a time.
share_cores() {
  echo $(($(nproc) / $1 > 1 ? $(nproc) / $1 : 1))
}

# binarise TEXT VALID DIR TYPE SIZE OPTION...: the subword model of a text in DIR/subword, with
# options of lmtools subword, and by it DIR/train.bin, in shards of $shard_size where a recipe has
# that, and DIR/valid.bin; an empty SIZE: what occurs twice.
# shellcheck disable=SC2154  # the recipe's nj
binarise() {
  lmtools subword --text "$1" --type "$4" "--${5:+vocab-size=}${5:-min-count=2}" "${@:6}" \
    --nj "$nj" --out "$3/subword"
  lmtools corpus --text "$1" --subword "$3/subword" ${shard_size:+--shard-size "$shard_size"} \
    --nj "$nj" --out "$3/train.bin"
  lmtools corpus --text "$2" --subword "$3/subword" --out "$3/valid.bin"
}

# each PROCESSES COMMAND...: run the command, of so many processes, with each line of standard input
# (as `quoted` writes it), $nj at a time: by xargs, or jobs of a cluster.
# shellcheck disable=SC2154  # the recipe's nj
each() {
  if [[ $cmd = local ]]; then
    OMP_NUM_THREADS=$(share_cores "$((nj * $1))") xargs -r -P "$nj" -L 1 "${@:2}"
  else
    python3 -m lmtools.jobs lines "$nj" 1 "${@:2}"
  fi
}

# train_each: run lmtools train with each line of standard input, $nj at a time, by $processes
# processes on each of $nnodes machines.
# shellcheck disable=SC2154  # the recipe's nj
train_each() {
  if ((nnodes > 1)); then
    python3 -m lmtools.jobs lines "$nj" "$nnodes" srun --kill-on-bad-exit=1 \
      python3 -m lmtools.jobs node "$processes" -m lmtools train
  elif ((processes > 1)); then
    each "$processes" python3 -m torch.distributed.run --standalone --nproc-per-node "$processes" \
      -m lmtools train
  else
    each 1 lmtools train
  fi
}

# submit COMMAND...: run the command: here, or as a job of a cluster.
submit() {
  if [[ $cmd = local ]]; then
    "$@"
  else
    quoted "${@:2}" | python3 -m lmtools.jobs lines 1 1 "$1"
  fi
}

# train_lms CONF DIR NAME...: train DIR/lm/NAME as CONF/NAME.yaml says, with the array settings, on
# what `binarise` left in DIR, $nj at a time.
# shellcheck disable=SC2154  # the recipe's settings
train_lms() {
  local name
  for name in "${@:3}"; do
    quoted --conf "$1/$name.yaml" --train "$2/train.bin" --valid "$2/valid.bin" \
      --out "$2/lm/$name" "${settings[@]}"
  done | train_each
}

# timings ARRAY NAMES: set ARRAY to options of `lmtools bench score` for those neural LMs that NAMES
# has; `all`: every one.
timings() {
  local -n recipe_array=$1
  local name
  recipe_array=()
  for name in "${neural[@]}"; do
    [[ $2 != all && " $2 " != *" $name "* ]] || recipe_array+=(--lm "$name=${lm[$name]}")
  done
}

# find_lists DIR SET: the file or directory in DIR that holds the lists or lattices of SET;
# SET.text are references.
find_lists() {
  local path found=("$1/$2/nbest.jsonl" "$1/$2" "$1/$2".*)
  for path in "${found[@]}"; do
    [[ ! -e $path || $path = *.text ]] || { echo "$path" && return; }
  done
  echo "$1: nothing of $2; put it in $1/$2, a file with any suffix or a directory" >&2
  return 1
}

# packed FILE: the first of FILE, FILE.gz and FILE.xz that exists; FILE, if none does.
packed() {
  local path
  for path in "$1" "$1.gz" "$1.xz"; do
    [[ ! -e $path ]] || { echo "$path" && return; }
  done
  echo "$1"
}

# alone DIR COMMAND...: run the command while no other run has the directory, for what several
# experiments write.
alone() {
  recipe_lock "$1" 8
  "${@:2}"
  exec 8>&-
}

# once OUT IN... : COMMAND...: run the command, which makes OUT out of the files IN, alone with
# OUT's directory; not if it made OUT before and OUT and all IN are as they were then, so that
# experiments can share OUT.
once() {
  alone "$(dirname "$1")" recipe_once "$@"
}

# options "$@": set the variables above from --name value and take the lock, or, under --help,
# explain the recipe.
options() {
  recipe_declare "${BASH_SOURCE[0]}"
  recipe_declare "$recipe_script"
  recipe_parse "$@"
  ! declare -F defaults >/dev/null || defaults
  : "${expdir:=exp}"
  if [[ $recipe_help = true ]]; then
    recipe_explain
  else
    recipe_start
  fi
}

# recipe_declare FILE: collect the lines NAME=DEFAULT # COMMENT; an indented comment line continues
# the one above it.
recipe_declare() {
  local line name='' value='"[^"]*"|'\''[^'\'']*'\''|[^[:space:]]*'
  local pattern="^([a-z][a-z0-9_]*)=($value)([[:space:]]+#[[:space:]]*(.*))?$"
  while IFS= read -r line && [[ $line != 'options "$@"'* ]]; do
    if [[ $line =~ $pattern && $line != recipe_* ]]; then
      name=${BASH_REMATCH[1]}
      [[ -v recipe_default[$name] ]] || recipe_names+=("$name")
      recipe_default[$name]=${!name}
      recipe_about[$name]=${BASH_REMATCH[4]}
    elif [[ $name && $line =~ ^[[:space:]]+\#[[:space:]]*(.*)$ ]]; then
      recipe_about[$name]+=$'\n'${BASH_REMATCH[1]}
    else
      name=
    fi
  done <"$1"
}

# recipe_parse "$@": --name value, --name=value, --switch; a dash in a name is as good as an
# underscore.
recipe_parse() {
  local word name value
  while (($#)); do
    word=$1
    shift
    case $word in
      --help | -h) recipe_help=true && continue ;;
      --?*) ;;
      *) recipe_fail "unexpected '$word'; options are --name value (--help lists them)" 2 ;;
    esac
    name=${word#--} && name=${name%%=*} && name=${name//-/_}
    [[ $name && -v recipe_default[$name] ]] || recipe_unknown "${word%%=*}"
    if [[ $word = *=* ]]; then
      value=${word#*=}
    elif [[ ${recipe_default[$name]} = @(true|false) && ${1-} != @(true|false) ]]; then
      value=true
    elif (($#)) && [[ $1 != --* ]]; then
      value=$1
      shift
    else
      recipe_fail "$word needs a value; write $word=VALUE if it begins with dashes" 2
    fi
    recipe_set "$name" "$value"
  done
  ((stage <= stop_stage)) ||
    recipe_fail "--stage $stage comes after --stop-stage $stop_stage; nothing would run" 2
}

# recipe_unknown --NAME: refuse an option, naming the closest.
recipe_unknown() {
  local close
  close=$(recipe_python closest "${1#--}" "${recipe_names[@]//_/-}" help)
  recipe_fail "unknown option $1; ${close:+did you mean --$close? }--help lists the options" 2
}

# recipe_set NAME VALUE: assign an option; a value of another kind than its default is refused.
recipe_set() {
  local option=--${1//_/-} default=${recipe_default[$1]} kind=
  [[ $default != @(true|false) || $2 = @(true|false) ]] || kind="true or false"
  [[ ! $default =~ ^[0-9]+$ || $2 =~ ^(0|[1-9][0-9]*)$ ]] || kind="a whole number"
  [[ ! $kind ]] || recipe_fail "$option is '$2'; it takes $kind" 2
  printf -v "$1" %s "$2"
  [[ $1 = @(stage|stop_stage|skip_done|debug) ]] || recipe_command+=" $option $(printf %q "$2")"
}

# recipe_explain: the recipe's first comment and its options; the stages explain themselves as they
# are met.
recipe_explain() {
  local name
  sed -n '2,/^$\|^[^#]/s/^# \{0,1\}//p' "$recipe_script"
  printf '\nUsage: %s [--option value]...   ' "$recipe_script"
  printf 'Paths are seen from the directory of run.sh.\n'
  printf '\nOptions, with their defaults:\n'
  for name in "${recipe_names[@]}"; do
    printf '  --%s %s\n' "${name//_/-}" "${recipe_default[$name]:-\"\"}"
    [[ ! ${recipe_about[$name]} ]] ||
      printf '        %s\n' "${recipe_about[$name]//$'\n'/$'\n'        }"
  done
  printf '\nStages:\n'
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
    # shellcheck disable=SC2317,SC2329  # run.sh calls it
    lmtools() { command lmtools "$@" --debug; }
  fi
  [[ $cmd = @(local|slurm|queue|slurm:?*|queue:?*) ]] ||
    recipe_fail "--cmd is '$cmd'; it takes local, slurm, queue, slurm:F.yaml or queue:F.yaml" 2
  ((nnodes > 0 && processes > 0)) || recipe_fail "--nnodes and --processes take 1 or more" 2
  ((nnodes == 1)) || [[ $cmd = slurm* ]] ||
    recipe_fail "--nnodes $nnodes are machines that Slurm gives; add --cmd slurm, or --nnodes 1" 2
  [[ $cmd != @(slurm|queue) ]] || cmd=$cmd:$recipe_home/conf/$cmd.yaml
  export LMTOOLS_CMD=$cmd
  recipe_lock "$expdir" 9
  recipe_python ready "$expdir/.lock" "$expdir/stages" "$expdir/log" || exit 1
  trap recipe_exit EXIT
  set -o errtrace
  trap '((${#BASH_LINENO[@]} > 1)) && recipe_line=${BASH_LINENO[-2]} || recipe_line=$LINENO' ERR
}

# recipe_lock DIR 8|9: make the directory and lock it with that descriptor; end the run if another
# has it.
recipe_lock() {
  recipe_python ready "$1/.lock" || exit 1
  case $2 in # children inherit it: the lock lasts as long as anything that may still write
    8) exec 8<>"$1/.lock" ;;
    9) exec 9<>"$1/.lock" ;;
  esac
  recipe_python lock "$1/.lock" "$2" $$ || exit 1
}

# recipe_once OUT IN... : COMMAND...: what `once` does with the directory to itself.
recipe_once() {
  local made=(recipe_python made "$1" --inputs) status=0
  shift
  while [[ $1 != : ]]; do
    made+=("$1")
    shift
  done
  shift
  local made_by=("$@") # where it runs changes nothing of what it makes
  [[ $1 != submit ]] || made_by=("${@:2}")
  made+=("--command=$(printf '%q ' "${made_by[@]}")")
  "${made[@]}" || status=$?
  ((status == 0 || status == 3)) || exit 1
  if ((status == 0)); then
    "$@"
    "${made[@]}" --record
  fi
}

# recipe_python VERB ...: what is easier in Python.
recipe_python() {
  python3 "$recipe_home/utils/recipe.py" "$@"
}

# stage N TITLE IN... : OUT...: true if stage N is to run now; all commands up to the next stage
# belong to it.
stage() {
  local number=$1 title=$2 inputs=() outputs=() status=0
  shift 2
  while (($#)) && [[ $1 != : ]]; do
    inputs+=("$1")
    shift
  done
  expand inputs "${inputs[@]}"
  expand outputs "${@:2}"
  recipe_reads[$number]=$(printf '%s\n' "${inputs[@]}")
  recipe_writes[$number]=$(printf '%s\n' "${outputs[@]}")
  if [[ $recipe_help = true ]]; then
    printf '  %s  %s\n       reads  %s\n' "$number" "$title" "${inputs[*]}"
    printf '       writes %s\n' "${outputs[*]}"
    return 1
  fi
  recipe_close
  if ((number < stage || number > stop_stage)); then
    recipe_python stale "$expdir/stages" "$number"
    return 1
  fi
  recipe_need "$number" "${inputs[@]}"
  recipe_begin "$number" "$title" "${#inputs[@]}" "${inputs[@]}" "${outputs[@]}" || status=$?
  ((status == 0 || status == 3)) || exit 1
  return "$status"
}

# recipe_expand PATH: `expand` of one path, to recipe_paths.
recipe_expand() {
  local word name
  if [[ $1 =~ \{([a-z_]+)\} ]] && declare -p "${BASH_REMATCH[1]}" &>/dev/null; then
    name=${BASH_REMATCH[1]}
    local -n recipe_words=$name
    for word in "${recipe_words[@]}"; do
      recipe_expand "${1%%"{$name}"*}$word${1#*"{$name}"}"
    done
  elif [[ ! ${recipe_seen[/$1]-} ]]; then
    recipe_seen[/$1]=yes
    recipe_paths+=("$1")
  fi
}

# recipe_need N IN...: each input of stage N exists; else say which stage writes it, and from where
# to start.
recipe_need() {
  local number=$1 path writer first
  for path in "${@:2}"; do
    [[ ! -e $path ]] || continue
    writer=$(recipe_writer "$path" "$number")
    [[ $writer ]] ||
      recipe_fail "stage $number needs $path, which no earlier stage writes; check the path"
    first=$(recipe_first "$writer")
    recipe_fail "stage $number needs $path, which stage $writer writes; run $recipe_command\
 --stage $first --stop-stage $writer"
  done
}

# recipe_writer PATH N: number of the last stage before N that writes PATH or a directory around it;
# nothing if none does.
recipe_writer() {
  local number output last=
  for number in "${!recipe_writes[@]}"; do
    ((number < $2 && number >= ${last:-0})) || continue
    while IFS= read -r output; do
      [[ ! $output || ($1 != "$output" && $1 != "$output"/*) ]] || last=$number
    done <<<"${recipe_writes[$number]}"
  done
  echo "$last"
}

# recipe_first N: the earliest stage that has to run for stage N to have all its inputs.
recipe_first() {
  local first=$1 path writer
  while IFS= read -r path; do
    [[ $path && ! -e $path ]] || continue
    writer=$(recipe_writer "$path" "$1")
    [[ ! $writer ]] || writer=$(recipe_first "$writer")
    ((${writer:-$first} >= first)) || first=$writer
  done <<<"${recipe_reads[$1]}"
  echo "$first"
}

# recipe_begin N TITLE COUNT IN... OUT...: record the start of a stage and open its log; status 3 if
# it is done and may be skipped.
recipe_begin() {
  local number=$1 title=$2 inputs=("${@:4:$3}") values=() name
  for name in "${recipe_names[@]}"; do
    [[ $name = @(stage|stop_stage|skip_done|debug|cmd) ]] || values+=("$name=${!name}")
  done
  recipe_python begin "$expdir/stages" "$number" --title "$title" --script "$recipe_script" \
    --command "$recipe_command" --version "$recipe_version" --skip-done "$skip_done" \
    --options "${values[@]}" --inputs "${inputs[@]}" --outputs "${@:4+$3}" || return
  recipe_open=$number
  recipe_log=$expdir/log/stage$number.log
  # tee ignores the signals that end a stage: the stage's last words are kept
  exec {recipe_out}>&1 {recipe_err}>&2 \
    > >(trap '' HUP INT PIPE TERM && exec tee -a "$recipe_log" 9>&-) 2>&1
  recipe_tee=$!
  echo "== stage $number: $title == $(date '+%F %T')"
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
  recipe_python end "$expdir/stages" "$number" || status=$?
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
