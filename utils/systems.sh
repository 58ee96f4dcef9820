# Sourced by recipes' plan.sh: language models by name, and which of the systems that combine them there are.
# shellcheck shell=bash disable=SC2004,SC2034,SC2154

# language_models HOME NAME...: fill the arrays lm (directory by name), names, neural (names), trained (what training writes) and given
# (directories that are there already) for LMs to train into HOME/NAME and those that are there, NAME=DIR or NAME=hf:DIR.
language_models() {
  local one name
  for one in "${@:2}"; do
    name=${one%%=*} && names+=("$name")
    case $one in
      *=*) lm[$name]=${one#*=} && given+=("${lm[$name]#hf:}") ;;
      ngram) lm[$name]=$1/$name && trained+=("${lm[$name]}/config.yaml") ;;
      *) lm[$name]=$1/$name && neural+=("$name") trained+=("${lm[$name]}/model.safetensors") ;;
    esac
  done
}

# known SYSTEM: all LMs that it combines are there; of `all`, there are any.
known() {
  local name
  [[ $1 != all || ${#names[@]} -gt 0 ]] || return 1
  for name in $(lms_of "$1" "${names[@]}"); do
    [[ -v lm[$name] ]] || return 1
  done
}

# timings ARRAY NAMES: append options of `lmtools bench score` to ARRAY for those neural LMs that NAMES has; `all`: every one.
timings() {
  local -n recipe_array=$1
  local name
  for name in "${neural[@]}"; do
    [[ $2 != all && " $2 " != *" $name "* ]] || recipe_array+=(--lm "$name=${lm[$name]}")
  done
}
