# Commands of stages that are printed in place of running: all that --dry-run shows, and what is
# checked before a run. recipe.sh sources it.
# shellcheck shell=bash disable=SC2154  # variables of recipe.sh and of the recipe

# recipe_print: programs print themselves in place of running.
# shellcheck disable=SC2317,SC2329  # stages call them
recipe_print() {
  lmtools() {
    [[ " $* " = *" --experiment "* && $1 != report && $- != *r* ]] ||
      { quoted lmtools "$@" && return; }
    recipe_python commands "$@" # one a column or system
  }
  local name
  for name in python3 bash cp ln mkdir rm; do eval "$name() { quoted $name \"\$@\"; }"; done
}

# recipe_check WORD...: check the commands of all stages from the first on, as --dry-run prints them;
# print `shared` if the stages that run only read $datadir.
recipe_check() {
  { RECIPE_CHECK=1 timeout 60 "$BASH" "$recipe_script" "$@" --dry-run true --stop-stage 99 || true; } \
    2>/dev/null | command python3 "$recipe_home/utils/recipe.py" check "$recipe_script" \
    "$stop_stage" "$expdir" "${datadir-}"
}

# recipe_restrict: in such a check no program runs and nothing is written, whatever stages do.
recipe_restrict() {
  [[ ${RECIPE_CHECK-} ]] || return 0
  printf '%s' "$recipe_declared"
  [[ $- != *r* ]] || return 0
  nproc() { echo 1; }
  # shellcheck disable=SC2123  # that of programs
  PATH='' && set +eu -r
}
