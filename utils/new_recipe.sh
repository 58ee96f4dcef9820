#!/usr/bin/env bash
# new_recipe.sh SOURCE NEW: copy the recipe egs/SOURCE to egs/NEW, for another corpus. The copy runs at once on SOURCE's mini corpus;
# its README.md says what to edit.
set -euo pipefail
egs=$(cd "$(dirname "$0")/../egs" && pwd)

fail() {
  echo "new_recipe.sh: $1" >&2
  exit "${2:-1}"
}

(($# == 2)) || fail "usage: utils/new_recipe.sh SOURCE NEW, as in utils/new_recipe.sh librispeech my-corpus" 2
source=${1#egs/} && source=${source%/} new=${2#egs/}
[[ -f $egs/$source/run.sh ]] || fail "egs/$source: no run.sh there; recipes are: $(cd "$egs" && echo */)"
[[ $new =~ ^[a-z0-9][a-z0-9._-]*$ ]] || fail "'$new' cannot be a recipe's name; use lower-case letters, digits, dot, dash, underscore"
[[ ! -e $egs/$new ]] || fail "egs/$new: exists already; choose another name or remove it"

copy=$(mktemp -d "$egs/.new.XXXXXX")
trap 'rm -rf "$copy"' EXIT
chmod 755 "$copy"
cp -R "$egs/$source"/{run.sh,conf,local} "$copy"
rm -rf "$copy"/local/{make_mini.sh,mini_*} "$copy/local/__pycache__"
# The mini corpus stays where it is; a copy of a copy still finds it.
sed -i "s|^mini=mini\b|mini=../$source/mini|; 2s|^# [^:]*:|# $new, copied from $source:|" "$copy/run.sh"

cat >"$copy/README.md" <<README
# $new

Copied from egs/$source. It runs as it is, on that recipe's mini corpus:

    egs/$new/run.sh
    egs/$new/run.sh --help

## Your corpus without editing anything
Put \`train.txt\` and \`valid.txt\` (a sentence a line), \`dev.nbest.jsonl\` and \`test.nbest.jsonl\` (with references, as
\`lmtools convert --ref\` writes them) into a directory and run \`egs/$new/run.sh --mini DIRECTORY\`.

## What to edit for a corpus that is fetched and prepared
1. \`local/get_full.sh\` (and \`local/full.sha256\`): fetch the corpus and check it.
2. \`local/prepare.py\`, the function \`full\`: write \`data/train/text\`, \`data/valid/text\` (a sentence a line) and
   \`data/SET/text\` (\`utterance w1 w2 ...\`, the references) for each set.
3. \`run.sh\`: the default of \`corpus\`, the names of the sets, \`vocab_size\`.
4. \`conf/*.yaml\`: sizes of the models, if others suit the corpus better.

Then replace this page by what the corpus is, how long the stages take, and the results with the command that made them.
README
mv "$copy" "$egs/$new"
trap - EXIT
echo "egs/$new: run egs/$new/run.sh, and see egs/$new/README.md for what to edit"
