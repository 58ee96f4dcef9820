#!/usr/bin/env bash
# nbest.sh DIR SET OUT OPTION...: convert the N-best lists DIR/SET of a translator to OUT/nbest.jsonl, by these options of lmtools convert,
# and write their references to OUT/text.
set -euo pipefail
here=$(dirname "$0")
. "$here/../../../utils/nbest.sh"

path=$(lists "$1" "$2")
lmtools convert "$path" "$3/nbest.jsonl" --to jsonl "${@:4}"
python3 "$here/prepare.py" references "$3/nbest.jsonl" "$3/text"
