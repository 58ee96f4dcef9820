# Sourced by recipes' local/nbest.sh: where a user keeps N-best lists.
# shellcheck shell=bash

# lists DIR SET: the file or directory in DIR that holds the lists of SET; SET.text are references.
lists() {
  local found=("$1/$2/nbest.jsonl" "$1/$2" "$1/$2".*)
  for path in "${found[@]}"; do
    [[ ! -e $path || $path = *.text ]] || { echo "$path" && return; }
  done
  echo "$1: no N-best lists of $2; put them in $1/$2, a file with any suffix or a directory" >&2
  return 1
}
