#!/usr/bin/env bash
# English models to begin with, of books in the public domain: a pruned 4-gram, a left-to-right
# Transformer (uniLM) and a T-TA of 2.4 million parameters, packed as the wheel lmtools-models-en.
# The wheel is EXPDIR/dist/lmtools_models_en-*.whl; docs/models.md shows what the models bring.
#
#   studies/run_models.sh --text-dir BOOKS
#
# KenLM's build_binary makes the small form of the 4-gram: utils/install_kenlm.sh.

# shellcheck disable=SC2086  # options of several words are split
# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

text_dir=         # books: FILE.txt, plain, .gz or .xz, a sentence a line
judged=mini-real  # directory of the lists that measure the models, which read no reference of them
valid=2000        # sentences held out, for validation and the model card, of books no model reads
vocab_size=5000   # BPE pieces of the neural LMs
min_count="1 2 2 3" # n-grams that occur less often are left out, a number an order
threshold=5e-9    # of pruning after that: the 4-gram of 44.7 million words comes to 33 MB
train_opts="epochs=1 arch.dim=192 arch.ffn=768 batch.tokens=2048" # key=value settings over conf
nj=1              # trainings at a time
datadir=data/models # for prepared text
expdir=exp/models # for LMs, and dist with the wheel
options "$@"
[[ $text_dir ]] || wrong "--text-dir has the books; name it"

if stage 1 "prepare text" $text_dir $judged studies/conf/titles.txt : $datadir/{valid,train,train-{10,30}M}.txt; then
  python3 studies/local/books_text.py $datadir $valid "10M 30M" "$judged" studies/conf/titles.txt \
    $text_dir/*.txt*
fi

if stage 2 "subword and binarise" $datadir \
  : $expdir/subword $expdir/{valid,train-{10,30}M}.bin; then
  lmtools subword --text $datadir/train-10M.txt --type bpe --vocab-size $vocab_size \
    --normaliser librispeech --out $expdir/subword
  for part in valid train-10M train-30M; do
    lmtools corpus --text $datadir/$part.txt --subword $expdir/subword --out $expdir/$part.bin
  done
fi

if stage 3 "n-gram" $datadir/train.txt : $expdir/lm/small; then
  submit lmtools ngram --text $datadir/train.txt --order 4 --min-count $min_count \
    --normaliser librispeech --out $expdir/lm/4gram
  lmtools ngram prune $expdir/lm/4gram --threshold $threshold --out $expdir/lm/pruned
  lmtools ngram quantize $expdir/lm/pruned --out $expdir/lm/small
fi

if stage 4 "neural LMs" $expdir/{valid,train-{10,30}M}.bin conf ../../conf \
  : $expdir/lm/{causal,tta}/model.safetensors; then
  common="--valid $expdir/valid.bin $train_opts"
  {
    echo --conf conf/causal.yaml --train $expdir/train-30M.bin $common --out $expdir/lm/causal
    echo --conf conf/tta.yaml --train $expdir/train-10M.bin $common --out $expdir/lm/tta
  } | each lmtools train
fi

if stage 5 "pack" $datadir/valid.txt $text_dir $expdir/lm/small \
  $expdir/lm/{causal,tta}/model.safetensors : $expdir/dist; then
  python3 ../../utils/pack_models.py $expdir/dist studies/conf/models.md $datadir/valid.txt $text_dir/*.txt* \
    en-books-4gram=$expdir/lm/small en-books-unilm=$expdir/lm/causal en-books-tta=$expdir/lm/tta
fi
