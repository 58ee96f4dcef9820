#!/usr/bin/env bash
# What the word vectors of language models bring to five tasks (Li et al. 2019, Tables 2 and 3):
# dependency parsing (dep), semantic roles (srl), implicit discourse relations (discourse), textual
# entailment (nli), word senses (wsd). LMs are those that run.sh left, or others, as --experiment
# says. Figure 2 of the paper: see --curve.

# shellcheck disable=SC2086  # tasks, vectors and seeds are words; paths have no blanks
cd "$(dirname "$0")" && . ../../utils/recipe.sh

tasks="dep srl discourse nli wsd" # tasks, in the order of the report
task_dir=          # their data, plain, .gz or .xz: DIR/dep/ train.conllu, dev and test; DIR/srl/
                   # .conll09; DIR/discourse/ .rels; DIR/nli/ .tsv or .jsonl; DIR/wsd/ train.tsv and
                   # test.tsv, or .data.xml and .gold.key.txt, beside them index.sense or Debian's
                   # wordnet-sense-index; empty: a small set that is made here
experiment=conf/vectors.yaml # the LMs whose vectors are made, under `vectors`
vectors="none majority random words elmo-char esulmo-bpe-500" # what is compared: none, majority
                   # (the commonest answer), random, words (static vectors of the LMs' text), those
                   # of --experiment; NAME of static ones in EXPDIR/tasks/NAME.vec (word2vec's text)
against=elmo-char  # vectors that all are tested against, beside none
curve=             # an LM of which --vectors has NAME-epoch-1, NAME-epoch-2 ..., weights that the
                   # setting keep_epochs kept: what the first task makes of each
seeds="1 2 3"      # of each training
conf=conf/tasks.yaml # settings of the tasks, and how many examples train each
mini=../librispeech/mini/train.txt.xz # text that the small set's discourse relations are made of
nj=2               # texts that are embedded, and tasks that are trained, at a time; 1 with a GPU
datadir=data       # for prepared data; its train/text, of run.sh, is what `words` are made of
expdir=exp         # where LMs are, for vectors and results
options "$@"

if stage 0 "get data" $mini $task_dir : ${task_dir:-$datadir/tasks}; then
  [[ $task_dir ]] || python3 tasks/make/make_tasks.py $datadir/tasks --text $mini
fi

if stage 1 "prepare text" ${task_dir:-$datadir/tasks} $conf : $expdir/tasks/text; then
  for task in $tasks; do
    python3 tasks/run.py prepare $task ${task_dir:-$datadir/tasks}/$task \
      $expdir/tasks/text/$task --conf $conf
  done
fi

if stage 4 "embed, static vectors" $experiment $expdir/lm $expdir/tasks/text \
  : $expdir/tasks/vectors; then
  for text in {dep,srl,discourse,nli}/{train,dev,test}; do
    [[ " $tasks " != *" ${text%/*} "* ]] ||
      echo --experiment $experiment --lm "$expdir/lm/{lm}" --pool words --layer all \
        --text $expdir/tasks/text/$text.txt --cache $expdir/cache \
        --out "$expdir/tasks/vectors/${text%/*}/{vectors}/${text#*/}.npz"
  done | each lmtools embed
  for set in train test; do # of word senses the last layer, as in the paper
    [[ " $tasks " != *" wsd "* ]] ||
      echo --experiment $experiment --lm "$expdir/lm/{lm}" --pool words --layer last \
        --text $expdir/tasks/text/wsd/$set.txt --cache $expdir/cache \
        --out "$expdir/tasks/vectors/wsd/{vectors}/$set.npz"
  done | each lmtools embed
  [[ " $vectors " != *" words "* ]] ||
    python3 tasks/run.py vectors $datadir/train/text $expdir/tasks/words.vec
  mkdir -p $expdir/tasks/vectors
fi

if stage 5 "train the tasks and test" ${task_dir:-$datadir/tasks} $conf $expdir/tasks/vectors \
  : $expdir/tasks/results; then
  for task in $tasks; do
    echo $task ${task_dir:-$datadir/tasks}/$task $expdir/tasks --conf $conf --vectors $vectors \
      --seeds $seeds
  done | each python3 tasks/run.py train
fi

if stage 6 "report" $expdir/tasks/results $conf : $expdir/tasks/{RESULTS.md,results.json}; then
  python3 tasks/run.py report $expdir/tasks --conf $conf --tasks $tasks --vectors $vectors \
    ${against:+--against $against} \
    ${curve:+--curve $curve --curve-task ${tasks%% *} --ppl $expdir/ppl}
fi
