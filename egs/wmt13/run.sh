#!/usr/bin/env bash
# WMT13: train language models on English text, rescore N-best lists of translations into English with them, and compare.
#
# --corpus mini (the default) needs no network: sentences of a manual, translated by a small model that was trained on others.
# --corpus full: newstest2012 (dev) and newstest2013 (test) from sacreBLEU's own data sets, English news for LMs from their public
# address. The N-best lists are those of your translator (--nbest-dir), or made here by a Marian model of Hugging Face (--nmt).
# Pairs share text, vocabulary and LMs in --shared: what the first pair made, the second takes as it is.

cd "$(dirname "$0")" && . ../../utils/recipe.sh

pair=de-en         # de-en or fr-en
corpus=mini        # mini or full
mini=mini          # directory of the mini corpus: train.txt valid.txt PAIR.dev.nbest.jsonl PAIR.test.nbest.jsonl, plain, .gz or .xz;
                   # your own corpus in this form will do as well
nbest_dir=         # full: N-best lists of your translator, DIR/dev and DIR/test, a file (with any suffix) or a directory, in the order of
                   # the sentences of newstest2012 and newstest2013
nbest_format=jsonl # their format, one that lmtools convert knows, as in moses:bpe=subword_nmt, marian or fairseq
detokenise=        # undo the tokenisation of their texts, as in en; empty: they are detokenised already
nbest_opts=        # further options of lmtools convert for them, as in "--case sentence"
nmt=               # full: directory of a Marian model (Hugging Face) that makes the lists
news=https://data.statmt.org/news-crawl/en # full: where to fetch the English text
news_files=news.2012.en.shuffled.deduped.gz # its files, with spaces between them. No published checksums of them are known: those of what was
                   # fetched first are kept beside them, and checked from then on
text_dir=          # full: English text of yours in place of the news: a directory with train.txt and valid.txt, plain, .gz or .xz
depth=             # hypotheses a sentence; empty: 20 for mini, whose lists have 50, and 50 for full
normaliser=cased   # of text and hypotheses: cased, none or librispeech (lower case, no punctuation); flags that lmtools subword knows
                   # may follow, as in "cased --unicode-form NFKC"
subword=bpe        # bpe, unigram, word or char: what all LMs predict
vocab_size=        # ids of the subword model; empty: 4000 for mini, 30000 for full
conf=              # directory with a YAML file for each neural LM; empty: conf for mini, ../../conf for full
lms="ngram causal masked tta" # LMs to train: ngram, and names of YAML files in conf
lm_dirs=           # LMs that are there already, NAME=DIR each, as in bert=hf:DIR
averages="sum mean" # what systems take of an LM alone: sum, its log-probability (system NAME), mean, that by token (NAME-mean), or both
mbr=bleu           # utility of minimum Bayes risk, which needs no LM: bleu, chrf, ter, wer or cer; options of lmtools mbr may follow, as in
                   # "bleu --scale 0.5"; none: no such system
combinations="causal+ngram tta+ngram all" # to combine, beside each alone; parts may be NAME-mean and mbr too; all: every LM's sum
lengths=words      # lengths that are features of every system: words, characters, log-words; none
metric=bleu        # what weights are tuned for and the report shows: bleu, chrf, ter, wer or cer
tolerance=0.1      # of the metric on dev: of weights so near the best those nearest the first pass (lmtools tune --tolerance)
order=5            # of the n-gram
train_opts=        # key=value settings over the YAML files, as in steps=100
precision=auto     # of matrix products in scoring: auto, float32 or bfloat16
nj=3               # processes that train, score and tune at a time, as many as there are neural LMs; 1 with a GPU
timed=none         # neural LMs whose run time by length is measured: names, all or none
shared=exp/english # for text, vocabulary and LMs, which the pairs share
datadir=           # for prepared data; empty: data/PAIR
expdir=            # for scores and results; empty: exp/PAIR
defaults() {
  [[ $pair = @(de-en|fr-en) ]] || wrong "--pair is '$pair'; it takes de-en or fr-en"
  : "${expdir:=exp/$pair}" "${datadir:=data/$pair}"
  [[ ! $expdir -ef $shared && $expdir != "$shared" ]] || wrong "--expdir and --shared are both $shared; give two directories"
}
options "$@"

[[ $corpus = @(mini|full) ]] || wrong "--corpus is '$corpus'; it takes mini or full"
[[ $corpus = mini || $nbest_dir || $nmt ]] ||
  wrong "--corpus full rescores N-best lists of a translator; name their directory with --nbest-dir, or a Marian model with --nmt"
[[ ! $nbest_dir || ! $nmt ]] || wrong "--nmt makes the lists that --nbest-dir has; give one of them"
[[ $corpus = full || ! $nbest_dir$nmt ]] || wrong "--corpus mini has lists of its own; give others as --mini DIR, or with --corpus full"
[[ $averages =~ ^(sum|mean)(\ (sum|mean))*$ ]] || wrong "--averages is '$averages'; it takes sum, mean or both"
[[ $metric = @(bleu|chrf|ter|wer|cer) ]] || wrong "--metric is '$metric'; it takes bleu, chrf, ter, wer or cer"

. local/plan.sh # what the stages read and write, from these options

if stage 0 "get data" "$source" : "${fetched[@]}"; then
  alone "$shared" "${get[@]}"
fi

if stage 1 "prepare text and N-best" "${fetched[@]}" "${lists[@]}" : "$text"/{train,valid}.txt "${texts[@]}" "${nbests[@]}"; then
  once "$text" "${raws[@]}" : python3 local/prepare.py "$making" "$text" "${raws[@]}"
  for set in dev test; do
    [[ ! $nmt ]] || once "$nbest_dir/$set.jsonl" "$nmt" "$raw/$set".{"$foreign",en} : python3 local/translate.py --model "$nmt" \
      --source "$raw/$set.$foreign" --reference "$raw/$set.en" --beam "$depth" --out "$nbest_dir/$set.jsonl"
    refs=()
    [[ $corpus = mini ]] || refs=(--ref-lines "$raw/$set.en")
    local/nbest.sh "$nbest_dir" "$prefix$set" "$datadir/$set" --format "$nbest_format" --depth "$depth" "${refs[@]}" "${convert[@]}"
  done
fi

if stage 2 "subword and binarise" "$text"/{train,valid}.txt : "$shared/subword" "$shared"/{train,valid}.bin; then
  once "$shared/subword" "$text/train.txt" : lmtools subword --text "$text/train.txt" --type "$subword" --vocab-size "$vocab_size" \
    "${normal[@]}" --out "$shared/subword"
  for set in train valid; do
    once "$shared/$set.bin" "$text/$set.txt" "$shared/subword" : lmtools corpus --text "$text/$set.txt" --subword "$shared/subword" \
      --out "$shared/$set.bin"
  done
fi

if stage 3 "train LMs" "$text/train.txt" "$shared/subword" "$shared"/{train,valid}.bin "${confs[@]}" : "${trained[@]}"; then
  [[ " $lms " != *" ngram "* ]] || once "${lm[ngram]}" "$text/train.txt" "$shared/subword" : lmtools ngram --text "$text/train.txt" \
    --order "$order" --subword "$shared/subword" --out "${lm[ngram]}"
  printf '%s\n' "${neural[@]}" | OMP_NUM_THREADS=$threads alone "$shared" xargs -r -P "$nj" -I NAME lmtools train \
    --conf "$conf/NAME.yaml" --train "$shared/train.bin" --valid "$shared/valid.bin" --out "$shared/lm/NAME" "${settings[@]}"
  ln -sfnrt "$expdir" "$shared"/{lm,train.bin} # where the report looks for them
fi

if stage 4 "score" "${trained[@]}" "${given[@]}" "$text/valid.txt" "${texts[@]}" "${nbests[@]}" : "${scores[@]}" "${ppls[@]}"; then
  for name in "${names[@]}"; do
    with=(--lm "${lm[$name]}" --precision "$precision" --cache "$shared/cache")
    lmtools ppl "${with[@]}" --text "$text/valid.txt" --out "$expdir/ppl/$name/valid.json"
    lmtools ppl "${with[@]}" --kaldi --text "$datadir/test/text" --out "$expdir/ppl/$name/test.json"
    for set in dev test; do
      lmtools score "${with[@]}" --nj "$workers" --nbest "$datadir/$set/nbest.jsonl" --out "$expdir/score/$name/$set.scores"
    done
  done
  [[ $mbr = none ]] || for set in dev test; do
    lmtools mbr --nbest "$datadir/$set/nbest.jsonl" "${risk[@]}" --out "$expdir/score/mbr/$set.scores"
  done
fi

if stage 5 "tune on dev and rescore test" "${nbests[@]}" "${scores[@]}" : "${weights[@]}" "${rescored[@]}"; then
  printf '%s\n' "${jobs[@]}" | OMP_NUM_THREADS=$threads xargs -P "$nj" -L 1 local/choose.sh "$datadir" "$expdir" \
    "$metric" "$tolerance" "$lengths"
fi

if stage 6 "report" "${nbests[@]}" "${texts[@]}" "${trained[@]}" "${weights[@]}" "${rescored[@]}" : "${reported[@]}"; then
  ((${#bench[@]} == 0)) || lmtools bench score "${bench[@]}" --out "$expdir/bench/speed.json"
  lmtools report "$expdir" --nbest "${nbests[@]}" --title "${PWD##*/} ($corpus, $pair)"
  python3 local/metrics.py "$datadir/test/text" "$expdir/rescore" "$expdir/report/metrics.md" "${systems[@]}"
fi
