#!/usr/bin/env bash
# LMs for one's own domain: n-grams and neural LMs of general text, of some lines of the domain, and
# of both; perplexity on both domains, WER of the domain's N-best lists, by the number of lines.
#
#   studies/run_adapt.sh       # mini's lists: ten novels, then lines of a Bible; 9 minutes on 2 cores
#   studies/run_adapt.sh --general BOOKS --domain domain.txt --dev dev.jsonl --test test.jsonl --lines all

# shellcheck disable=SC2086  # options of several words are split
# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

general=mini-real/train.txt.xz # general text: a file, or a directory of FILE.txt, plain, .gz or .xz
domain=mini/train.txt.xz # text of the domain, in the same forms
lines="5000 1000 100" # of the domain: so many drawn from its text, and all. One of ten, at most
                  # 500, is held out: mixtures and the end of training are decided on it
dev=mini/dev.nbest.jsonl.xz # N-best lists of the domain with references, to tune on
test=mini/test.nbest.jsonl.xz # others, to test on
source=           # the recogniser's own text, whose bigram may be subtracted; empty: the general
general_lm=       # a neural LM of general text to go on from, of BPE or unigram pieces; empty:
                  # conf/causal.yaml is trained on the general text
normaliser=librispeech # of text and hypotheses; flags that lmtools subword knows may follow
order=4           # of n-grams
vocab_size=2000   # BPE pieces of the general text
train_opts=       # key=value settings over conf/causal.yaml, for all neural LMs
domain_opts="epochs=20 patience=3 batch.tokens=512 optim.lr=1e-3 optim.warmup=100" # the domain's
experiment=studies/conf/adapt.yaml # columns and systems; or studies/conf/adapt_exact.yaml
nj=2              # processes at a time
expdir=exp/adapt  # for text, LMs of general text and, in EXPDIR/SIZE, what each size comes to
options "$@"

data=$expdir/data
parts='valid-general' lms='' scores='' systems=''
[[ $general_lm ]] || parts+=' train-general'
for size in $lines; do
  parts+=" train-$size valid-$size" lms+=" $expdir/$size/lm"
  scores+=" $expdir/$size/ppl $expdir/$size/score"
  systems+=" $expdir/$size/tune $expdir/$size/rescore"
done

if stage 1 "prepare text and lists" $general $domain $dev $test : $data; then
  python3 studies/local/adapt_text.py general $data $general
  python3 studies/local/adapt_text.py domain $data $domain $lines
  lmtools convert $dev $data/dev/nbest.jsonl --format jsonl --to jsonl
  lmtools convert $test $data/test/nbest.jsonl --format jsonl --to jsonl
  python3 ../../utils/references.py $data/test/nbest.jsonl $data/test/text
fi

if stage 2 "subword and binarise" $data $general_lm : $expdir/subword $expdir/bin; then
  if [[ $general_lm ]]; then
    lmtools subword --model $general_lm/subword/subword.model --normaliser $normaliser \
      --out $expdir/subword
  else
    lmtools subword --text $data/train-general.txt --type bpe --vocab-size $vocab_size \
      --normaliser $normaliser --out $expdir/subword
  fi
  for part in $parts; do
    lmtools corpus --text $data/$part.txt --subword $expdir/subword --out $expdir/bin/$part.bin
  done
fi

if stage 3 "train LMs" $data $expdir/bin $source $general_lm conf ../../conf \
  : $expdir/general $lms; then
  submit lmtools ngram --text $data/train-general.txt --order $order --min-count 1 1 2 \
    --normaliser $normaliser --out $expdir/general/ngram-general
  submit lmtools ngram --text ${source:-$data/train-general.txt} --order 2 \
    --normaliser $normaliser --out $expdir/general/source
  if [[ $general_lm ]]; then
    cp -rT $general_lm $expdir/general/neural-general
  else
    common="--train $expdir/bin/train-general.bin --valid $expdir/bin/valid-general.bin"
    echo --conf conf/causal.yaml $common --out $expdir/general/neural-general $train_opts |
      each lmtools train
  fi
  for size in $lines; do
    submit lmtools ngram --text $data/train-$size.txt --order $order --normaliser $normaliser \
      --out $expdir/$size/lm/ngram
    lmtools ngram mix $expdir/general/ngram-general $expdir/$size/lm/ngram \
      --text $data/valid-$size.txt --out $expdir/$size/lm/mixed
    ln -sfn ../../general/{ngram-general,neural-general,source} $expdir/$size/lm
  done
  for size in $lines; do
    common="--train $expdir/bin/train-$size.bin --valid $expdir/bin/valid-$size.bin"
    echo --conf conf/causal.yaml $common --out $expdir/$size/lm/neural $train_opts $domain_opts
    echo --conf conf/causal.yaml $common --out $expdir/$size/lm/continued $train_opts $domain_opts \
      --init $expdir/general/neural-general --also-valid general=$expdir/bin/valid-general.bin
  done | each lmtools train
fi

if stage 4 "score" $data $expdir/general $lms $experiment conf : $scores; then
  for size in $lines; do
    home=$expdir/$size
    lmtools ppl --experiment $experiment --lm "$home/lm/{lm},oov_penalty=11" --precision auto \
      --text $data/test-general.txt --out "$home/ppl/{lm}/general.json"
    lmtools ppl --experiment $experiment --lm "$home/lm/{lm},oov_penalty=11" --precision auto \
      --kaldi --text $data/test/text --out "$home/ppl/{lm}/test.json"
    score_sets $experiment "$home/lm/{lm}" $data $home "dev test"
  done
fi

if stage 5 "tune on dev and rescore" $data $scores $experiment conf : $systems; then
  for size in $lines; do
    rescore_sets $experiment $data $expdir/$size dev "dev test"
  done
fi

if stage 6 "report" $data $scores $systems $experiment conf : $expdir/report/curve.{md,png}; then
  for size in $lines; do
    lmtools report $expdir/$size --experiment $experiment --nbest $data/{dev,test}/nbest.jsonl \
      --conf conf/report.yaml --title "general text and $size lines of a domain's"
  done
  python3 studies/local/adapt_curve.py $experiment $expdir $lines
fi
