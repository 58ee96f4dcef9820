#!/usr/bin/env bash
# Switchboard, after Gao et al. 2021, On Sampling-Based Training Criteria for Neural Language
# Modeling: LSTMs of 2 x 2048 over 30,000 words, trained with each criterion on Switchboard's
# transcriptions (and Fisher's), rescore your recogniser's lists of Hub5'00, alone and with a 4-gram
# of the same words; perplexities of each, and mixed with the 4-gram. On a GPU.
#
#   studies/run_swbd.sh --ldc-dir "SWB1 FISHER" --nbest-dir DIR

# shellcheck disable=SC2086  # options of several words, and patterns of files, are split
# shellcheck source=../../../utils/recipe.sh
cd "$(dirname "$0")/.." && . ../../utils/recipe.sh

corpus=swbd       # what conf/report.yaml calls the data
ldc_dir=          # LDC97S62's transcriptions and, if you have them, Fisher's: directories
nbest_dir=        # for dev and test (Hub5'00): N-best lists DIR/SET.jsonl, as lmtools convert makes
                  # them of any, references DIR/SET.text, Kaldi text, and, for --lattices, lattices
                  # DIR/SET.lattices, a directory of SLF files
confs="studies/conf/swbd/*.yaml" # settings of the neural LMs, a file each, called after the LM
experiment=studies/conf/swbd.yaml # columns of scores, and systems of them
vocab_size=30000  # the most frequent words
order=4           # of the n-gram
train_opts=       # key=value settings over all of --confs, as in steps=100
lattices=         # LMs that rescore lattices, with the n-gram, as in "lstm-softmax lstm-bce-nce"
lattice_opts="--set tokens=8 cover_beam=60 --exact 20 --nj 2" # of lmtools lattice rescore
hub5=             # "GLM STM SEGMENTS", to score test by NIST's hubscr.pl (sctk), too: NIST's global map
                  # and stm, and Kaldi's segments of the utterances
precision=auto    # of matrix products in scoring: auto, float32 or bfloat16
nj=1              # processes that train and score at a time; 1 with a GPU
datadir=data/swbd # for prepared data
expdir=exp/swbd   # for models, scores and results
options "$@"
[[ $ldc_dir && $nbest_dir ]] ||
  wrong "--ldc-dir has the LDC's transcriptions, --nbest-dir your recogniser's lists; name both"

if stage 0 "get data" $ldc_dir $nbest_dir : $datadir/{train,valid,dev,test}/text; then
  python3 studies/local/get_swbd.py $datadir $nbest_dir $ldc_dir
fi

if stage 1 "prepare N-best and lattices" $datadir/{dev,test}/text $nbest_dir \
  : $datadir/{swb,ch}/text $datadir/{dev,test,swb,ch}/nbest.jsonl; then
  for set in dev test; do
    lmtools convert $nbest_dir/$set.jsonl $datadir/$set/nbest.jsonl --format jsonl --to jsonl \
      --ref $datadir/$set/text --depth 50
    if [[ $lattices ]]; then
      lmtools convert $nbest_dir/$set.lattices $datadir/$set/lattices --format slf --to slf
    fi
  done
  python3 studies/local/split.py $datadir/test $datadir/swb sw
  python3 studies/local/split.py $datadir/test $datadir/ch en
fi

if stage 2 "subword and binarise" $datadir/{train,valid}/text \
  : $expdir/subword $expdir/{train,valid}.bin; then
  lmtools subword --text $datadir/train/text --type word --vocab-size $vocab_size \
    --normaliser librispeech --nj $nj --out $expdir/subword
  lmtools corpus --text $datadir/train/text --subword $expdir/subword --nj $nj \
    --out $expdir/train.bin
  lmtools corpus --text $datadir/valid/text --subword $expdir/subword --out $expdir/valid.bin
fi

if stage 3 "train LMs" $datadir/train/text $expdir/subword $expdir/{train,valid}.bin $confs \
  ../../conf : $expdir/lm; then
  submit lmtools ngram --text $datadir/train/text --order $order --subword $expdir/subword --unk \
    --out $expdir/lm/ngram
  for file in $confs; do
    name=${file##*/}
    echo --conf $file --train $expdir/train.bin --valid $expdir/valid.bin \
      --out $expdir/lm/${name%.yaml} $train_opts
  done | each lmtools train
fi

if stage 4 "score" $expdir/lm $experiment conf $datadir/valid/text \
  $datadir/{dev,test,swb,ch}/{text,nbest.jsonl} : $expdir/{ppl,score}; then
  lmtools ppl --experiment $experiment --lm "$expdir/lm/{lm}" --text $datadir/valid/text \
    --precision $precision --cache $expdir/cache --out "$expdir/ppl/{lm}/valid.json"
  for set in test swb ch; do
    lmtools ppl --experiment $experiment --lm "$expdir/lm/{lm}" --kaldi \
      --text $datadir/$set/text --precision $precision --cache $expdir/cache \
      --out "$expdir/ppl/{lm}/$set.json"
  done
  for file in $confs; do
    name=${file##*/} && name=${name%.yaml}
    mixed="--lm $expdir/lm/$name --lm $expdir/lm/ngram --tune-on $datadir/valid/text --kaldi"
    mixed+=" --precision $precision"
    lmtools ppl $mixed --text $datadir/test/text --out $expdir/ppl/$name+ngram/test.json
    lmtools ppl $mixed --text $datadir/swb/text --out $expdir/ppl/$name+ngram/swb.json
    lmtools ppl $mixed --text $datadir/ch/text --out $expdir/ppl/$name+ngram/ch.json
  done
  score_sets $experiment "$expdir/lm/{lm}" $datadir $expdir "dev test swb ch"
fi

if stage 5 "tune on dev and rescore" $expdir/{lm,score} $experiment conf \
  $datadir/{dev,test,swb,ch}/nbest.jsonl : $expdir/{tune,rescore}; then
  rescore_sets $experiment $datadir $expdir dev "dev test swb ch"
  for lm in $lattices; do
    bash studies/local/rescore_lattices.sh $lm+ngram $datadir $expdir "dev test swb ch" $lattice_opts \
      --precision $precision --lm $lm=$expdir/lm/$lm --lm ngram=$expdir/lm/ngram
  done
fi

if stage 6 "score as hub5" $expdir/rescore $hub5 : $expdir/scored; then
  bash studies/local/score_hub5.sh $expdir $hub5
fi

if stage 7 "report" $datadir/{dev,test,swb,ch}/nbest.jsonl $expdir/{tune,rescore} \
  $experiment conf : $expdir/report/{RESULTS.md,index.html}; then
  lmtools report $expdir --experiment $experiment --nbest $datadir/{dev,test,swb,ch}/nbest.jsonl \
    --conf conf/report.yaml --title "librispeech ($corpus)"
  python3 ../../utils/papers/paper_tables.py $expdir conf/report.yaml conf/papers.yaml
fi
