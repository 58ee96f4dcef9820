#!/usr/bin/env bash
# WMT13: train language models on English text, rescore N-best lists of translations into English
# with them, and compare.
#
# --corpus mini (the default) needs no network: sentences of a manual, translated by a small model
# that was trained on others. --corpus full: newstest2012 (dev) and newstest2013 (test) from
# sacreBLEU's own data sets, English news for LMs from their public address. The N-best lists are
# those of your translator (--nbest-dir), or made here by another (--nmt). Translators that are
# trained on bilingual text (--pairs) score hypotheses beside LMs: p(hypothesis | source) and the
# channel p(source | hypothesis). Both pairs of languages share text, vocabulary and LMs in --shared:
# what the first pair made, the second takes as it is.

cd "$(dirname "$0")" && . ../../utils/recipe.sh

pair=de-en         # de-en or fr-en
corpus=mini        # mini or full
mini=mini          # directory of the mini corpus: train.txt valid.txt PAIR.dev.nbest.jsonl
                   # PAIR.test.nbest.jsonl and, if there is bilingual text, PAIR.train.tsv and
                   # PAIR.valid.tsv, plain, .gz or .xz; your own in this form will do as well
nbest_dir=         # full: N-best lists of your translator, DIR/dev and DIR/test, a file (with any
                   # suffix) or a directory, in the order of the sentences of newstest2012 and
                   # newstest2013
nbest_format=jsonl # their format, one that lmtools convert knows, as in moses:bpe=subword_nmt,
                   # marian or fairseq
detokenise=        # undo the tokenisation of their texts, as in en; empty: they are detokenised
nbest_opts=        # further options of lmtools convert for them, as in "--case sentence"
nmt=               # translator that makes the lists, for mini in place of its own: direct, the one
                   # of --translators, another directory of lmtools train, or hf:DIR, a Marian model
                   # of Hugging Face
pairs=             # bilingual text that translators are trained on: directory with PAIR.train.tsv and
                   # PAIR.valid.tsv, a foreign sentence, a tab and an English one a line, plain, .gz
                   # or .xz; empty: for mini the directory of the corpus, if they are there
translators=       # translators whose scores are columns beside those of LMs: direct, p(hypothesis |
                   # source), and channel, p(source | hypothesis), trained on --pairs unless they are
                   # there; empty: those of --translator-dirs, else channel if there are pairs; none
translator_dirs=   # translators that are there already, as in "direct=DIR channel=hf:DIR"
news=https://data.statmt.org/news-crawl/en # full: where to fetch the English text
news_files=news.2012.en.shuffled.deduped.gz # its files, with spaces between them. No published
                   # checksums of them are known: those of what was fetched first are kept beside
                   # them, and checked from then on
text_dir=          # full: English text of yours in place of the news: a directory with train.txt
                   # and valid.txt, plain, .gz or .xz
depth=             # hypotheses a sentence; empty: 20 for mini, whose lists have no more, and 50 for full
normaliser=cased   # of text and hypotheses: cased, none or librispeech (lower case, no
                   # punctuation); flags that lmtools subword knows may follow, as in
                   # "cased --unicode-form NFKC"
subword=bpe        # bpe, unigram, word or char: what all LMs predict, and all translators
vocab_size=        # ids of the LMs' subword model, and of that of both sides of the pairs; empty:
                   # 4000 for mini, 30000 for full
conf=              # directory with a YAML file for each neural LM, and seq2seq.yaml for translators;
                   # empty: conf for mini, conf/full for full
lms="ngram causal masked tta" # LMs to train: ngram, and names of YAML files in conf
lm_dirs=           # LMs that are there already, NAME=DIR each, as in bert=hf:DIR
paper=false        # true: the rows of the T-TA paper's Table 2 too: bert and, as conf/paper.yaml says,
                   # sum and mean of each LM by (1 - lambda) first pass + lambda LM as well
bert=              # with --paper: directory of a BERT of Hugging Face; empty: a small one is trained,
                   # as bert.yaml in conf says
systems=           # what is tuned: LMs alone, and which are combined; empty: conf/systems.yaml, with
                   # --paper conf/paper.yaml
first_pass=        # for --paper: the translator's score, NAME or NAME=W of scores and lengths of the
                   # lists; empty: am, beside means norm, for mini and --nmt, else their total, score
                   # or only score
averages=          # of LMs alone, in place of what it says: sum, the log-probability (system NAME),
                   # mean, that by token (NAME-mean), or both
combinations=      # other combinations than its own, as in "tta-mean+mbr all"; none: each LM alone
mbr=bleu           # utility of minimum Bayes risk, which needs no LM: bleu, chrf, ter, wer or cer;
                   # options of lmtools mbr may follow, as in "bleu --scale 0.5"; none: no such
                   # system
lengths=words      # lengths that are features of every system: words, characters, log-words; none
metric=bleu        # what weights are tuned for and the report shows: bleu, chrf, ter, wer or cer
order=5            # of the n-gram
train_opts=        # key=value settings over the YAML files, as in steps=100
precision=auto     # of matrix products in scoring: auto, float32 or bfloat16
nj=3               # processes that train, score and tune at a time, as many as there are neural
                   # LMs; 1 with a GPU
timed=none         # neural LMs whose run time by length is measured: names, all or none
shared=exp/english # for text, vocabulary and LMs, which the pairs share
datadir=           # for prepared data; empty: data/PAIR
expdir=            # for scores and results; empty: exp/PAIR
defaults() {
  one_of pair de-en fr-en
  : "${expdir:=exp/$pair}" "${datadir:=data/$pair}"
  [[ ! $expdir -ef $shared && $expdir != "$shared" ]] ||
    wrong "--expdir and --shared are both $shared; give two directories"
  one_of corpus mini full
  [[ $corpus = mini || $nbest_dir || $nmt ]] || wrong "--corpus full rescores N-best lists of a \
translator; name their directory with --nbest-dir, or a translator with --nmt"
  [[ ! $nbest_dir || ! $nmt ]] ||
    wrong "--nmt makes the lists that --nbest-dir has; give one of them"
  [[ $corpus = full || ! $nbest_dir ]] ||
    wrong "--corpus mini has lists of its own; give others as --mini DIR, or with --corpus full"
  [[ ! $averages || $averages =~ ^(sum|mean)(\ (sum|mean))*$ ]] ||
    wrong "--averages is '$averages'; it takes sum, mean or both"
  one_of metric bleu chrf ter wer cer

  : "${systems:=conf/$([[ $paper = true ]] && echo paper || echo systems).yaml}"
  [[ $paper = true || ! $bert ]] || wrong "--bert is a row of --paper true; give both"
  [[ $paper = false ]] || add_bert "$bert"
  first_pass_mean=
  [[ $first_pass || ! ($corpus-$mini = mini-mini || $nmt) ]] ||
    first_pass=am first_pass_mean=norm # a sum with sums, a mean with means
  raw=$shared/local/$corpus foreign=${pair%-en} lists=()
  # shellcheck disable=SC2034  # {text_files} and {pair_files} in stages
  if [[ $corpus = mini ]]; then
    source=$mini text_files=({train,valid}.txt) pair_files=("$pair".{dev,test}.nbest.jsonl)
    nbest_dir=$raw prefix=$pair.
    [[ $pairs || ! -e $(packed "$mini/$pair.train.tsv") ]] || pairs=$mini
    : "${depth:=20}" "${vocab_size:=4000}" "${conf:=conf}"
  else
    source=${text_dir:-local/get_full.sh} pair_files=({dev,test}.{"$foreign",en})
    read -ra text_files <<<"$news_files"
    [[ ! $text_dir ]] || text_files=({train,valid}.txt)
    lists=(${nbest_dir:+"$nbest_dir"}) prefix=''
    : "${depth:=50}" "${vocab_size:=30000}" "${conf:=conf/full}"
  fi
  if [[ ! $translators ]]; then
    for one in ${translator_dirs:-${pairs:+channel}}; do
      translators+="${translators:+ }${one%%=*}"
    done
  fi
}

# translation_models HOME: fill the arrays translator (directory by name), trained (names of those to
# train, into HOME/NAME), training (what of: bilingual text, then settings), conditional (names of
# those whose scores are columns), sources (the sets whose source sentences these need); add to given
# and lists what is there already.
translation_models() {
  local one name wanted
  declare -gA translator=() && trained=() training=() conditional=() sources=()
  for one in $translator_dirs; do
    [[ $one = @(direct|channel)=?* ]] ||
      wrong "--translator-dirs has '$one'; it takes direct=DIR and channel=DIR"
    name=${one%%=*} && translator[$name]=${one#*=} && given+=("${translator[$name]#hf:}")
  done
  [[ $translators = none ]] || read -ra conditional <<<"$translators"
  wanted=("${conditional[@]}")
  [[ $nmt != direct ]] || wanted+=(direct)
  for name in "${wanted[@]}"; do
    [[ $name = @(direct|channel) ]] ||
      wrong "--translators is '$translators'; it takes direct, channel, both or none"
    [[ ! ${lm[$name]-} ]] || wrong "an LM is called $name, as a translator is; rename the LM"
    [[ ! ${translator[$name]-} ]] || continue
    [[ $pairs ]] || wrong "the translator $name is trained on pairs; give their directory as\
 --pairs, or the model as --translator-dirs $name=DIR"
    translator[$name]=$1/$name && trained+=("$name")
    training=("$(packed "$pairs/$pair.train.tsv")" "$(packed "$pairs/$pair.valid.tsv")" "$conf"
      conf ../../conf)
  done
  ((${#conditional[@]} == 0)) || sources=(dev test)
  case $nmt in
    direct) nmt=${translator[direct]} && lists=("$nmt/model.safetensors") ;;
    ?*) lists=("${nmt#hf:}") ;;
  esac
}

options "$@"

# shellcheck disable=SC2086
language_models "$shared/lm" $lms $lm_dirs
bilingual=$expdir/translator
translation_models "$bilingual"
others=() bench=() # columns of scores of no LM; options of lmtools bench
[[ $mbr = none ]] || others=(mbr)
others+=("${conditional[@]}") && columns+=("${others[@]}")
combined=("$systems" "lms=${names[*]}" "others=${others[*]}" ${averages:+"averages=$averages"}
  ${combinations:+"combinations=$combinations"} ${first_pass:+"first_pass=$first_pass"}
  ${first_pass_mean:+"first_pass_mean=$first_pass_mean"})
read -ra news_options <<<"$news $news_files"
read -ra convert <<<"${detokenise:+--detokenise $detokenise} $nbest_opts"
read -ra settings <<<"$train_opts"
read -ra normal <<<"--normaliser $normaliser"
read -ra utility <<<"--utility $mbr"
read -ra features <<<"--lengths $lengths"
[[ $lengths != none ]] || features=(--no-words)
workers=$nj # of scoring: more than this machine's processors only start more slowly
[[ $cmd != local ]] || workers=$((nj < $(nproc) ? nj : $(nproc)))

if stage 0 "get data" "$source" : "$raw/{text_files}" "$raw/{pair_files}"; then
  if [[ $corpus = mini ]]; then
    alone "$shared" python3 ../../utils/unpack.py "$mini" "$raw" {train,valid}.txt \
      "$pair".{dev,test}.nbest.jsonl
  else
    alone "$shared" local/get_full.sh "$raw" "$foreign" "$text_dir" "${news_options[@]}"
  fi
fi

if stage 1 "train translators" "${training[@]}" : "$bilingual/{trained}/model.safetensors"; then
  if ((${#trained[@]} > 0)); then
    text=$datadir/bilingual
    python3 local/prepare.py pairs "${training[0]}" "$text/train".{"$foreign",en}
    python3 local/prepare.py pairs "${training[1]}" "$text/valid".{"$foreign",en}
    lmtools subword --text "$text/train".{"$foreign",en} --type "$subword" \
      --vocab-size "$vocab_size" "${normal[@]}" --out "$bilingual/subword"
  fi
  for name in "${trained[@]}"; do
    from=$foreign to=en
    [[ $name = direct ]] || from=en to=$foreign
    for set in train valid; do
      lmtools corpus --source "$text/$set.$from" --text "$text/$set.$to" \
        --subword "$bilingual/subword" --out "$bilingual/$set.$name.bin"
    done
  done
  for name in "${trained[@]}"; do
    quoted --conf "$conf/seq2seq.yaml" --train "$bilingual/train.$name.bin" \
      --valid "$bilingual/valid.$name.bin" --out "$bilingual/$name" "${settings[@]}"
  done | train_each
fi

if stage 2 "prepare text and N-best" "$raw/{text_files}" "$raw/{pair_files}" "${lists[@]}" \
  : "$shared/text"/{train,valid}.txt "$datadir"/{dev,test}/{text,nbest.jsonl} \
  "$datadir/{sources}/source"; then
  if [[ $corpus = mini || $text_dir ]]; then
    once "$shared/text" "$raw"/{train,valid}.txt : python3 local/prepare.py copy "$shared/text" \
      "$raw"/{train,valid}.txt
  else
    files=()
    expand files "$raw"/{dev,test}.en "$raw/{text_files}"
    once "$shared/text" "${files[@]}" : python3 local/prepare.py split "$shared/text" "${files[@]}"
  fi
  for set in dev test; do
    refs=() lines=() # of lists that have none of their own
    if [[ $nmt ]]; then
      sides=("$raw/$set".{"$foreign",en}) given_lists=$datadir/local/nmt/$set.jsonl
      if [[ $corpus = mini ]]; then
        sides=("$datadir/local/nmt/$set".{"$foreign",en})
        python3 local/prepare.py lines "$raw/$prefix$set.nbest.jsonl" "${sides[@]}"
      fi
      with=(lmtools translate --lm "$nmt" --precision "$precision" --ref)
      [[ $nmt != hf:* ]] || with=(python3 local/translate.py --model "${nmt#hf:}" --reference)
      once "$given_lists" "${lists[@]}" "${sides[@]}" : submit "${with[@]}" "${sides[1]}" \
        --source "${sides[0]}" --beam "$depth" --out "$given_lists"
      from=(--format jsonl)
    else
      given_lists=$(find_lists "$nbest_dir" "$prefix$set") from=(--format "$nbest_format")
      [[ $corpus = mini ]] || refs=(--ref-lines "$raw/$set.en") lines=("$raw/$set.$foreign")
    fi
    lmtools convert "$given_lists" "$datadir/$set/nbest.jsonl" "${from[@]}" --to jsonl \
      --depth "$depth" "${refs[@]}" "${convert[@]}"
    python3 ../../utils/references.py "$datadir/$set/nbest.jsonl" "$datadir/$set/text"
    ((${#sources[@]} == 0)) || python3 local/prepare.py sources "$datadir/$set/nbest.jsonl" \
      "$datadir/$set/source" "${lines[@]}"
  done
fi

if stage 3 "subword and binarise" "$shared/text"/{train,valid}.txt \
  : "$shared/subword" "$shared"/{train,valid}.bin; then
  once "$shared/subword" "$shared/text/train.txt" : lmtools subword \
    --text "$shared/text/train.txt" --type "$subword" --vocab-size "$vocab_size" "${normal[@]}" \
    --out "$shared/subword"
  for set in train valid; do
    once "$shared/$set.bin" "$shared/text/$set.txt" "$shared/subword" : lmtools corpus \
      --text "$shared/text/$set.txt" --subword "$shared/subword" --out "$shared/$set.bin"
  done
fi

if stage 4 "train LMs" "$shared/text/train.txt" "$shared/subword" "$shared"/{train,valid}.bin \
  "$conf" conf ../../conf \
  : "$shared/lm/{ngrams}/config.yaml" "$shared/lm/{neural}/model.safetensors"; then
  ((${#ngrams[@]} == 0)) || once "$shared/lm/ngram" "$shared/text/train.txt" "$shared/subword" : \
    submit lmtools ngram --text "$shared/text/train.txt" --order "$order" \
    --subword "$shared/subword" --out "$shared/lm/ngram"
  alone "$shared" train_lms "$conf" "$shared" "${neural[@]}"
  ln -sfnrt "$expdir" "$shared"/{lm,train.bin} # where the report looks for them
fi

if stage 5 "score" "$shared/lm/{ngrams}/config.yaml" "$shared/lm/{neural}/model.safetensors" \
  "$bilingual/{trained}/model.safetensors" "${given[@]}" "$shared/text/valid.txt" \
  "$datadir"/{dev,test}/{text,nbest.jsonl} "$datadir/{sources}/source" \
  : "$expdir/score/{columns}"/{dev,test}.scores "$expdir/ppl/{names}"/{valid,test}.json; then
  for name in "${names[@]}"; do
    with=(--lm "${lm[$name]}" --precision "$precision" --cache "$shared/cache")
    lmtools ppl "${with[@]}" --text "$shared/text/valid.txt" --out "$expdir/ppl/$name/valid.json"
    lmtools ppl "${with[@]}" --kaldi --text "$datadir/test/text" --out "$expdir/ppl/$name/test.json"
    for set in dev test; do
      lmtools score "${with[@]}" --nj "$workers" --nbest "$datadir/$set/nbest.jsonl" \
        --out "$expdir/score/$name/$set.scores"
    done
  done
  for name in "${conditional[@]}"; do
    with=(--lm "${translator[$name]}" --precision "$precision" --cache "$shared/cache")
    [[ $name = direct ]] || with+=(--reverse)
    for set in dev test; do
      lmtools score "${with[@]}" --nj "$workers" --source "$datadir/$set/source" \
        --nbest "$datadir/$set/nbest.jsonl" --out "$expdir/score/$name/$set.scores"
    done
  done
  [[ $mbr = none ]] || for set in dev test; do
    lmtools mbr --nbest "$datadir/$set/nbest.jsonl" "${utility[@]}" \
      --out "$expdir/score/mbr/$set.scores"
  done
fi

if stage 6 "tune on dev and rescore test" "$systems" "$datadir"/{dev,test}/nbest.jsonl \
  "$expdir/score/{columns}"/{dev,test}.scores : "$expdir"/{tune,rescore}; then
  OMP_NUM_THREADS=$(share_cores "$nj") lmtools tune --systems "${combined[@]}" \
    --nbest "$datadir/dev/nbest.jsonl" --scores "$expdir/score/{lm}/dev.scores" "${features[@]}" \
    --metric "$metric" --nj "$workers" \
    --out "$expdir/tune/{system}/weights.json"
  for set in dev test; do
    lmtools rescore --systems "${combined[@]}" --nbest "$datadir/$set/nbest.jsonl" \
      --scores "$expdir/score/{lm}/$set.scores" --weights "$expdir/tune/{system}/weights.json" \
      --out "$expdir/rescore/{system}/$set.txt"
  done
fi

if stage 7 "report" "$datadir"/{dev,test}/{nbest.jsonl,text} "$expdir"/{tune,rescore} \
  "$shared/lm/{ngrams}/config.yaml" "$shared/lm/{neural}/model.safetensors" conf/report.yaml \
  : "$expdir"/report/{RESULTS.md,index.html,metrics.md}; then
  timings bench "$timed"
  ((${#bench[@]} == 0)) || lmtools bench score "${bench[@]}" --out "$expdir/bench/speed.json"
  nbests=("$datadir"/{dev,test}/nbest.jsonl)
  lmtools report "$expdir" --nbest "${nbests[@]}" --conf conf/report.yaml \
    --title "${PWD##*/} ($corpus, $pair)"
  python3 local/metrics.py "$datadir/test/text" "$expdir/rescore" "$expdir/report/metrics.md" \
    "${combined[@]}"
  ((${#trained[@]} == 0)) || python3 local/overlap.py "$shared/text/train.txt" \
    "$datadir/bilingual/train.en" "$expdir/report/overlap.md"
fi
