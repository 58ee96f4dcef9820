#!/usr/bin/env bash
# What the word vectors of language models bring to five tasks (Li et al. 2019, Tables 2 and 3):
# dependency parsing (dep), semantic roles (srl), implicit discourse relations (discourse), textual
# entailment (nli), word senses (wsd). LMs are those that run.sh trained, or any of --lm-dirs.

cd "$(dirname "$0")" && . ../../utils/recipe.sh
# shellcheck disable=SC2034  # recipe.sh reads them
recipe_script=./downstream.sh recipe_command=./downstream.sh

tasks="dep srl discourse nli wsd" # tasks, in the order of the report
task_dirs=         # their data, TASK=DIR each, plain, .gz or .xz: of dep train.conllu, dev and test;
                   # srl .conll09; discourse .rels; nli .tsv or .jsonl; wsd train.tsv and test.tsv,
                   # or .data.xml and .gold.key.txt, beside them index.sense or Debian's
                   # wordnet-sense-index; of those not named a small set that is made here
vectors="none majority random words elmo@char esulmo@bpe-500" # what is compared: none, majority (the
                   # commonest answer), random, words (static vectors of the LMs' text), and LMs:
                   # directories in EXPDIR/lm
lm_dirs=           # other LMs, NAME=DIR each: two-way models, or any other neural LM of ours; or
                   # NAME=F.vec, static vectors in the text form of word2vec
against=           # vectors that all are tested against, beside none; empty: the first LM
curve=             # an LM of --vectors trained with keep_epochs: its vectors after each such epoch
curve_task=nli     # for this task, as in the paper's Figure 2
limit=             # examples of training that are used, TASK=N each; of those not named all
seeds="1 2 3"      # of each training
mini=../librispeech/mini/train.txt.xz # text that the small set's discourse relations are made of
conf=conf/downstream.yaml # settings of the tasks
nj=2               # texts that are embedded, and trainings, at a time; 1 with a GPU
datadir=data       # for prepared data; its train/text, of run.sh, is what `words` are made of
expdir=exp         # where LMs are, for vectors and results
options "$@"

read -ra asked <<<"${vectors//@/-}"
read -ra told <<<"$task_dirs"
read -ra limits <<<"$limit"
read -ra seeds <<<"$seeds"
read -ra tasks <<<"$tasks"
lms=() static=() static_text=()
# shellcheck disable=SC2034  # stage reads static_text
for name in "${asked[@]}"; do
  case $name in
    words) static=(words) static_text=(train/text) ;;
    none | majority | random) ;;
    *) lms+=("$name") ;;
  esac
done
# shellcheck disable=SC2086
language_models "$expdir/lm" "${lms[@]}" $lm_dirs

declare -A folder=() most=()
for one in "${told[@]}"; do folder[${one%%=*}]=${one#*=}; done
for one in "${limits[@]}"; do most[${one%%=*}]=${one#*=}; done
constructed=() # tasks whose data are made here
for task in "${tasks[@]}"; do
  [[ ${folder[$task]-} ]] || { folder[$task]=$datadir/tasks/$task && constructed+=("$task"); }
done

home=$expdir/downstream
compared=("${asked[@]}") dirs=()
for name in "${names[@]}"; do
  [[ " ${asked[*]} " = *" $name "* ]] || compared+=("$name")
  [[ ${lm[$name]} = *.vec ]] || dirs+=("${lm[$name]}")
done
against=${against//@/-}
against=${against:-${names[0]-}}
curve=${curve//@/-} epochs=()
if [[ $curve ]]; then
  [[ ${lm[$curve]-} ]] || wrong "--curve $curve is no LM of --vectors or --lm-dirs"
  for kept in "${lm[$curve]}"/epoch-*; do
    epochs+=("$curve-${kept##*/}") && lm[$curve-${kept##*/}]=$kept
  done
fi

# of TASK: the names of its vectors that LMs make
embedded() {
  local name
  for name in "${names[@]}" $([[ $1 != "$curve_task" ]] || echo "${epochs[@]}"); do
    [[ ${lm[$name]} = *.vec ]] || echo "$name"
  done
}

# of TASK: its sets; senses are looked up in training text, and need no other
sets() {
  [[ $1 = wsd ]] && echo train test || echo train dev test
}

files=() # that stage 2 writes
for task in "${tasks[@]}"; do
  for name in $(embedded "$task"); do
    for set in $(sets "$task"); do files+=("$task/$name/$set.npz"); done
  done
done

# trainings TASK: lines for `tasks/run.py train`, of the vectors that the task can be asked of
trainings() {
  local name source
  for name in "${compared[@]}" $([[ $1 != "$curve_task" ]] || echo "${epochs[@]}"); do
    case $1,$name,${lm[$name]-} in
      dep,majority,* | srl,majority,*) continue ;; # no answer is commonest
      wsd,random,* | wsd,words,* | wsd,*,*.vec) continue ;; # the same in each context
      *,none,* | *,majority,* | *,random,*) source=$name ;;
      *,words,*) source=$home/words.vec ;;
      *.vec) source=${lm[$name]} ;;
      *) source=$home/vectors/$1/$name ;;
    esac
    quoted "$1" "${folder[$1]}" "$source" --conf "$conf" --limit "${most[$1]:-0}" \
      --out "$home/$1/$name" --seeds "${seeds[@]}"
  done
}

if stage 0 "prepare" "${told[@]#*=}" : "$home/{tasks}/test.txt"; then
  ((${#constructed[@]} == 0)) || python3 local/make_tasks.py "$datadir/tasks" --text "$mini"
  for task in "${tasks[@]}"; do
    python3 tasks/run.py prepare "$task" "${folder[$task]}" "$home/$task" \
      --limit "${most[$task]:-0}"
  done
fi

if stage 1 "static vectors" "$datadir/{static_text}" : "$home/{static}.vec"; then
  ((${#static[@]} == 0)) || python3 tasks/run.py vectors "$datadir/train/text" "$home/words.vec"
fi

if stage 2 "embed" "${dirs[@]}" "$home/{tasks}/test.txt" : "$home/vectors/{files}"; then
  for task in "${tasks[@]}"; do
    layer=all
    [[ $task != wsd ]] || layer=last # as in the paper
    for name in $(embedded "$task"); do
      for set in $(sets "$task"); do
        quoted --lm "${lm[$name]}" --pool words --layer "$layer" --text "$home/$task/$set.txt" \
          --cache "$expdir/cache" --out "$home/vectors/$task/$name/$set.npz"
      done
    done
  done | each 1 lmtools embed
fi

if stage 3 "train" "${told[@]#*=}" "$home/{tasks}/test.txt" "$home/{static}.vec" \
  "$home/vectors/{files}" "$conf" : "$home/{tasks}"; then
  for task in "${tasks[@]}"; do
    trainings "$task"
  done | each 1 python3 tasks/run.py train
fi

if stage 4 "report" "$home/{tasks}" "$conf" : "$home"/{RESULTS.md,results.json}; then
  python3 tasks/run.py report "$home" --conf "$conf" --tasks "${tasks[@]}" \
    --vectors "${compared[@]}" ${against:+--against "$against"} \
    ${curve:+--curve "$curve" --curve-task "$curve_task" --ppl "$expdir/ppl"}
  cat "$home/RESULTS.md"
fi
