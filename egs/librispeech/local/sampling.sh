#!/usr/bin/env bash
# Training criteria of word LMs, after Gao et al. 2021, On Sampling-Based Training Criteria for
# Neural Language Modeling: models trained with each criterion rescore N-best lists, alone and with
# the n-gram, with and without normalisation; some rescore lattices.
#
# Writes a YAML file for each model and criterion (lstm-bce-nce.yaml) and calls run.sh once: it
# takes every option of run.sh too; stages, logs, killing and going on are run.sh's. --corpus full
# and swbd train the paper's sizes (../../conf), on a GPU.

cd "$(dirname "$0")" && . ../../../utils/recipe.sh

corpus=mini       # mini, full or swbd
lstm=             # criteria to train the LSTM with, as in "softmax bce-nce bce-mcs-unigram
                  # ce-is-printed" (a noise may follow, or `printed`: the target is not in the sum);
                  # none: no LSTM; empty: all but mse-sigmoid and ce-nce-paper for mini and swbd,
                  # none for full
causal=           # the same of the Transformer; empty: four for mini, those of the paper for full,
                  # none for swbd
tta=              # the same of T-TA, which the paper does not have; empty: two for mini, none for
                  # full and swbd
noise=log-uniform # of sampled criteria: log-uniform, unigram or uniform
rival=            # output.rival of mse, how much the ids that are not the target count; empty:
                  # 0.001 for mini, 1 for full and swbd
cutoffs=          # of adaptive, ranks with commas between them; empty: 1000,4000 for mini,
                  # 2000,10000 for the others
samples=          # of noise for a batch; empty: 1024 for mini, 8192 for full and swbd
unnormalised="softmax bce bce-mcs bce-is bce-cps bce-nce bce-mcs-unigram bce-cps-unigram" # criteria
                  # to score without normalisation too
lattices="lstm-softmax lstm-bce-is lstm-bce-nce" # models that rescore lattices, with the n-gram;
                  # none: no lattices
oov_penalty=      # nats that an unknown word of a hypothesis costs beyond <unk>, which stands for
                  # all of them; empty: 8.5 for mini, the log of how many words of its text occur
                  # once; none for full and swbd
nj=2              # processes that train and score at a time
expdir=exp/sampling # for models, scores and results

# split OPTION...: those of this script to `own`, those of run.sh to `further`
split() {
  own=() further=()
  local word name mine=false
  for word in "$@"; do
    if [[ $word = -* ]]; then
      name=${word#--} && name=${name%%=*} && name=${name//-/_} mine=false
      [[ $word != @(-h|--help) && ! -v recipe_default[$name] ]] || mine=true
    fi
    if [[ $mine = true ]]; then own+=("$word"); else further+=("$word"); fi
  done
}

# shellcheck disable=SC2317,SC2329  # options calls it
recipe_start() { :; } # the lock and the logs are run.sh's

recipe_declare "$recipe_script"
split "$@"
set -- "${own[@]}"
options "$@"
cd ..

one_of corpus mini full swbd
sampled="bce-mcs bce-is bce-cps bce-nce ce-mcs ce-is ce-cps ce-nce"
every="softmax bce mse $sampled adaptive bce-mcs-unigram bce-cps-unigram"
with_noise=" $sampled ce-nce-paper "
case $corpus in
  mini)
    : "${lstm:=$every}" "${causal:=softmax bce-is bce-nce ce-is}" "${tta:=softmax bce-nce}"
    : "${samples:=1024}"
    : "${oov_penalty:=8.5}" "${rival:=0.001}" "${cutoffs:=1000,4000}"
    ;;
  full) : "${lstm:=none}" "${causal:=softmax $sampled}" "${tta:=none}" ;;
  swbd) : "${lstm:=$every}" "${causal:=none}" "${tta:=none}" ;;
esac
: "${samples:=8192}" "${rival:=1}" "${cutoffs:=2000,10000}"
if [[ $corpus = mini ]]; then
  declare -A base=([lstm]=conf/word/lstm [causal]=conf/word/causal [tta]=conf/word/tta)
else
  declare -A base=([lstm]=../../conf/lstm-sgd [causal]=../../conf/causal42 [tta]=../../conf/tta)
fi

# configure MODEL CRITERION[-NOISE|-printed]: its settings in $expdir/conf, and its name among the LMs and,
# if its criterion is, the unnormalised
configure() {
  local name=$1-$2 criterion=${2%-printed} drawn=$noise printed='' kind
  [[ $2 != *-printed ]] || printed=", target_in_sum: false"
  for kind in log-uniform unigram uniform; do
    [[ $criterion != *-"$kind" ]] || { drawn=$kind criterion=${criterion%-"$kind"} && break; }
  done
  names+=("$name")
  [[ " $unnormalised " != *" $2 "* ]] || raws+=("$name")
  [[ $recipe_help = false ]] || return 0
  {
    echo "# Written by local/sampling.sh"
    echo "base: $(realpath --relative-to="$expdir/conf" "${base[$1]}.yaml")"
    echo "criterion: $criterion"
    [[ $criterion != mse ]] || echo "output: {rival: $rival}"
    [[ $criterion != adaptive ]] || echo "output: {cutoffs: [$cutoffs]}"
    # as sampled criteria start from their noise
    [[ $criterion != softmax ]] || echo "output: {start: unigram}"
    [[ $with_noise != *" $criterion "* ]] ||
      echo "output: {noise: $drawn, samples: $samples$printed}"
  } >"$expdir/conf/.$name.tmp"
  mv "$expdir/conf/.$name.tmp" "$expdir/conf/$name.yaml"
}

names=() raws=() systems=()
[[ $recipe_help = true ]] || mkdir -p "$expdir/conf"
for model in lstm causal tta; do
  [[ ${!model} = none ]] || for criterion in ${!model}; do
    configure "$model" "$criterion"
  done
done
for name in ${lattices#none}; do
  [[ " ${names[*]} " != *" $name "* ]] || systems+=("$name+ngram")
  [[ " ${raws[*]} " != *" $name "* ]] || systems+=("$name-unnormalised+ngram")
done
run=(./run.sh --corpus "$corpus" --lm-unit word --conf "$expdir/conf" --expdir "$expdir" --nj "$nj"
  --oov-penalty "$oov_penalty" --lms "ngram ${names[*]}" --combinations "${names[*]/%/+ngram}"
  --unnormalised "${raws[*]}" --lattice-systems "${systems[*]}" "${further[@]}")
if [[ $recipe_help = true ]]; then
  "${run[@]}" --help | grep '^  [0-9]  '
else
  exec "${run[@]}"
fi
