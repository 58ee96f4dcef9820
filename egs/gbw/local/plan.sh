# Sourced by run.sh: what the options that are empty become, and arrays of what the stages read and write.
# shellcheck shell=bash disable=SC2034,SC2154

# Where the corpus comes from
raw=$datadir/local/$corpus
if [[ $corpus = mini ]]; then
  source=$mini get=(python3 local/get_mini.py "$mini" "$raw")
else
  source=local/$corpus.sha256 get=(local/get_"$corpus".sh "$raw" ${url:+"$url"})
fi

# Defaults that depend on it
declare -A defaults=(
  [gbw]="kn5 lstm-2048 lstm-2048-2 gcnn-13 gcnn-14b elmo@char esulmo@bpe-500"
  [wikitext103]="kn5 lstm-1024 gcnn-8 gcnn-14"
)
: "${lms:=${defaults[$corpus]-kn5 lstm gcnn elmo@char esulmo@bpe-500}}"
: "${conf:=conf$([[ $corpus = mini ]] || echo "/$corpus")}"
: "${min_count:=$([[ $corpus = wikitext* ]] && echo 1 || echo 3)}"
[[ $corpus != mini ]] || : "${bench_opts:=--seconds 0.2}"

# LMs by name; a job is what `lmtools train` is told of one
names=() ngrams=() neural=() jobs=() pieces=() binarised=() timeable=()
declare -A order=()
read -ra settings <<<"$train_opts"

# add NAME YAML VOCABULARY [SETTING...]: a neural LM
add() {
  local file=$conf/$2.yaml bins=$expdir/corpus/$3
  [[ " ${names[*]} " != *" $1 "* ]] || return 0
  [[ -e $file ]] || file=../../conf/$2.yaml
  [[ -e $file ]] || wrong "no $2.yaml in $conf and ../../conf; name LMs that are there"
  [[ $3 =~ ^(words|char|(char|bpe|unigram)-[1-9][0-9]*)$ ]] || wrong "'$3' is no vocabulary; it is words, char, bpe-SIZE or unigram-SIZE"
  names+=("$1") neural+=("$1")
  jobs+=("$(quoted --conf "$file" --train "$bins/train.bin" --valid "$bins/valid.bin" --out "$expdir/lm/$1" "${@:4}" "${settings[@]}")")
  [[ " ${binarised[*]} " = *" $3 "* ]] || binarised+=("$3")
  [[ $3 = words || " ${pieces[*]} " = *" $3 "* ]] || pieces+=("$3")
}

for pair in ${lms/#none/}; do
  if [[ $pair =~ ^kn([1-6])$ ]]; then
    names+=("$pair") ngrams+=("$pair") order[$pair]=${BASH_REMATCH[1]}
  elif [[ $pair = *@* ]]; then
    add "${pair/@/-}" "${pair%%@*}" "${pair#*@}"
  else
    add "$pair" "$pair" words
  fi
done
timeable=("${names[@]}")
read -ra compared <<<"$grids"
planned=
((${#compared[@]} == 0)) || planned=$(python3 local/grids.py plan "$conf" "${compared[@]}") || [[ $recipe_help = true ]] || exit 1
while IFS=$'\t' read -ra run; do # NAME YAML VOCABULARY TIMED SETTING...
  ((${#run[@]})) || continue
  add "${run[@]:0:3}" "${run[@]:4}"
  [[ ${run[3]} != timed || " ${timeable[*]} " = *" ${run[0]} "* ]] || timeable+=("${run[0]}")
done <<<"$planned"
((${#names[@]})) || wrong "no LMs to train; name some with --lms, or grids with --grids"

# Files
vocabulary=$expdir/vocabulary texts=() vocabularies=("$vocabulary/words") corpora=() trained=() drawn=() ppls=() bench=() benched=()
confs=("$conf" ../../conf)
((${#compared[@]} == 0)) || confs+=(conf/grids)
paths texts "$datadir/" /text train valid test
paths vocabularies "$vocabulary/" "" "${pieces[@]}"
paths corpora "$expdir/corpus/" /train.bin "${binarised[@]}"
paths corpora "$expdir/corpus/" /valid.bin "${binarised[@]}"
paths trained "$expdir/lm/" /config.yaml "${ngrams[@]}"
paths trained "$expdir/lm/" /model.safetensors "${neural[@]}"
paths drawn "$expdir/grids/" .yaml "${compared[@]}"
paths ppls "$expdir/ppl/" /valid.json "${names[@]}"
paths ppls "$expdir/ppl/" /test.json "${names[@]}"
for name in "${timeable[@]}"; do
  [[ $timed != all && " $timed " != *" $name "* ]] || bench+=(--lm "$name=$expdir/lm/$name")
done
[[ $published = false ]] || bench+=(--published)
((${#bench[@]} == 0)) || benched=("$expdir/bench/lm.json")
read -ra further <<<"$bench_opts"
bench+=(--text "$datadir/test/text" --precision "$precision" "${further[@]}")

# How LMs are trained
read -ra normal <<<"--normaliser $normaliser"
train=(lmtools train)
((processes == 1)) || train=(torchrun --standalone --nproc-per-node "$processes" -m lmtools train)
cores=$(nproc)
threads=$((cores / (nj * processes) > 1 ? cores / (nj * processes) : 1))
