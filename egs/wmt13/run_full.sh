#!/usr/bin/env bash
# WMT13, full: newstest2012 (dev) and newstest2013 (test) out of sacreBLEU's data sets, English news
# for LMs, and N-best lists of your translator, for run.sh to go on with:
#
#   ./run_full.sh --nbest-dir lists --nbest-format moses:bpe=subword_nmt
#   ./run.sh --corpus full --datadir data/full --expdir exp/full --conf conf/full --depth 50 \
#     --vocab-size 30000 --stage 2
#
# Without --nbest-dir there are sources and references, which run_nmt.sh translates.
# shellcheck disable=SC2086  # news_files and nbest_opts are words; paths have no blanks

cd "$(dirname "$0")" && . ../../utils/recipe.sh

pair=de-en         # de-en or fr-en
nbest_dir=         # N-best lists of your translator: files or directories called dev and test, in
                   # the order of the sentences of newstest2012 and newstest2013
nbest_format=jsonl # their format, one that lmtools convert knows, as in moses:bpe=subword_nmt,
                   # marian or fairseq
nbest_opts=        # further options of lmtools convert for them, as in "--detokenise en"
depth=50           # hypotheses a sentence
text_dir=          # English text of yours in place of the news: a directory with train.txt and
                   # valid.txt, plain, .gz or .xz
news=https://data.statmt.org/news-crawl/en # where to fetch the news
news_files=news.2012.en.shuffled.deduped.gz # its files. No published checksums of them are known:
                   # those of what was fetched first are kept, and checked from then on
datadir=data/full  # for prepared data
expdir=exp/full    # for logs
options "$@"
raw=$datadir/local

if stage 0 "get data" local/get_full.sh : $raw/$pair.{dev,test}.{foreign,english}; then
  bash local/get_full.sh $raw $pair "$text_dir" $news $news_files
fi

if stage 1 "prepare text and lists" $raw/$pair.{dev,test}.{foreign,english} $nbest_dir \
  : $datadir/english/{train,valid}.txt $datadir/$pair/{dev,test}/{text,source}; then
  if [[ $text_dir ]]; then
    mkdir -p $datadir/english
    cp $raw/{train,valid}.txt $datadir/english
  else
    python3 local/prepare.py split $datadir/english $raw $pair $news_files
  fi
  for set in dev test; do
    if [[ $nbest_dir ]]; then
      lmtools convert $nbest_dir/$set $datadir/$pair/$set/nbest.jsonl --format $nbest_format \
        --ref-lines $raw/$pair.$set.english --to jsonl --depth $depth $nbest_opts
      python3 ../../utils/references.py $datadir/$pair/$set/{nbest.jsonl,text}
      python3 local/prepare.py sources $datadir/$pair/$set/{nbest.jsonl,source} \
        $raw/$pair.$set.foreign
    else
      python3 local/prepare.py number $raw/$pair.$set.foreign $datadir/$pair/$set/source
      python3 local/prepare.py number $raw/$pair.$set.english $datadir/$pair/$set/text
    fi
  done
fi
