# What scripts that are not converted yet need beside recipe.sh; goes with the last of them.
# shellcheck shell=bash disable=SC2034,SC2154,SC2153

declare -A recipe_default=([lms]="ngram causal masked tta")

eval "$(declare -f stage | sed '1s/stage/recipe_stage/')"
stage() {
  local number=$1 title=$2 inputs=() outputs=()
  shift 2
  while (($#)) && [[ $1 != : ]]; do
    inputs+=("$1")
    shift
  done
  expand inputs "${inputs[@]}"
  expand outputs "${@:2}"
  recipe_stage "$number" "$title" "${inputs[@]}" : "${outputs[@]}"
}

eval "$(declare -f each | sed '1s/each/recipe_each/')"
each() {
  [[ $1 != [0-9]* ]] || shift
  recipe_each "$@"
}

train_each() {
  each lmtools train
}

# recipe_lock DIR 8|9: make the directory and lock it with that descriptor; end the run if another
# has it.
recipe_lock() {
  recipe_python ready "$1/.lock" || exit 1
  exec 8<>"$1/.lock"
  recipe_python lock "$1/.lock" "$2" $$ || exit 1
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

# train_lms CONF DIR NAME...: train DIR/lm/NAME as CONF/NAME.yaml says, with the array settings, on
# what `binarise` left in DIR, $nj at a time.
# shellcheck disable=SC2154  # the recipe's settings
train_lms() {
  local name
  for name in "${@:3}"; do
    quoted --conf "$1/$name.yaml" --train "$2/train.bin" --valid "$2/valid.bin" \
      --out "$2/lm/$name" "${settings[@]}"
  done | each lmtools train
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

# recipe_once OUT IN... : COMMAND...: what `once` does with the directory to itself.
recipe_once() {
  local made=(recipe_python made "$1") status=0
  shift
  while [[ $1 != : ]]; do
    made+=("$1")
    shift
  done
  shift
  local made_by=("$@") # where it runs changes nothing of what it makes
  [[ $1 != submit ]] || made_by=("${@:2}")
  made+=("command=$(printf '%q ' "${made_by[@]}")")
  "${made[@]}" || status=$?
  ((status == 0 || status == 3)) || exit 1
  if ((status == 0)); then
    "$@"
    "${made[@]}" record
  fi
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
