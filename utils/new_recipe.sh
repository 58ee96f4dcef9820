#!/usr/bin/env bash
# new_recipe.sh SOURCE NEW: copy the recipe egs/SOURCE to egs/NEW, for another corpus. The copy runs
# at once on SOURCE's mini corpus; its README.md says what to edit.
set -euo pipefail
egs=$(cd "$(dirname "$0")/../egs" && pwd)

fail() {
  echo "new_recipe.sh: $1" >&2
  exit "${2:-1}"
}

(($# == 2)) ||
  fail "usage: utils/new_recipe.sh SOURCE NEW, as in utils/new_recipe.sh librispeech my-corpus" 2
source=${1#egs/} && source=${source%/} new=${2#egs/}
[[ -f $egs/$source/run.sh ]] ||
  fail "egs/$source: no run.sh there; recipes are: $(cd "$egs" && echo */)"
[[ $new =~ ^[a-z0-9][a-z0-9._-]*$ ]] || fail "'$new' cannot be a recipe's name; use lower-case\
 letters, digits, dot, dash, underscore"
[[ ! -e $egs/$new ]] || fail "egs/$new: exists already; choose another name or remove it"

copy=$(mktemp -d "$egs/.new.XXXXXX")
trap 'rm -rf "$copy"' EXIT
chmod 755 "$copy"
cp -R "$egs/$source"/{run.sh,conf,local} "$copy"
rm -rf "$copy"/local/{make_mini.*,mini_*,__pycache__}
# The mini corpus stays where it is; a copy of a copy still finds it.
sed -i "s|^mini=mini\b|mini=../$source/mini|; 2s|^# [^:]*:|# $new, copied from $source:|" \
  "$copy/run.sh"
# Reports of the copy have its name alone: its corpora are not what the source calls its own.
# shellcheck disable=SC2016  # sed is to see $corpus
sed -i -E '/--title "/s/ \(\$corpus\)//; /--title "/s/\(\$corpus, /(/' "$copy/run.sh"

# what to edit, in the words of the recipe
sed "s|@source@|$source|g; s|@new@|$new|g" "$copy/local/new_recipe.md" >"$copy/README.md"

mv "$copy" "$egs/$new"
trap - EXIT
echo "egs/$new: run egs/$new/run.sh, and see egs/$new/README.md for what to edit"
