#!/usr/bin/env bash
# new_recipe.sh SOURCE NEW: copy run.sh of recipe egs/SOURCE, and the few files that it needs, to
# egs/NEW, for another corpus. The copy runs at once on SOURCE's mini corpus; its README.md names what
# to edit. Which files, and the page, stand in local/new_recipe.md; a copy is copied whole.
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
page=$egs/$source/local/new_recipe.md
if [[ -f $page ]]; then
  files=$(sed -n '1s/^    files: //p' "$page")
  sed "1d; s|@source@|$source|g; s|@new@|$new|g" "$page" >"$copy/README.md"
else
  files="conf local"
  sed "1s|.*|# $new|; s|egs/$source/|egs/$new/|g; s|^Copied from egs/[^.]*|Copied from egs/$source|" \
    "$egs/$source/README.md" >"$copy/README.md"
fi
# shellcheck disable=SC2086  # files are words
tar -C "$egs/$source" --exclude __pycache__ -cf - run.sh $files | tar -C "$copy" -xf -
for corpus in "$egs/$source"/mini*/; do # corpora of the repository stay where they are
  [[ ! -d $corpus ]] || ln -s "../$source/$(basename "$corpus")" "$copy"
done

mv "$copy" "$egs/$new"
trap - EXIT
echo "egs/$new: run egs/$new/run.sh, and see egs/$new/README.md for what to edit"
