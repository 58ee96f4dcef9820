# Sourced by run.sh: what the options that are empty become, and arrays of what the stages read and write.
# shellcheck shell=bash disable=SC2034,SC2154

# Where the corpus comes from, and which lists it has
raw=$datadir/local/$corpus tests=(test) lists=(dev test)
read -ra transcriptions <<<"$ldc_dir"
case $corpus in
  mini) source=$mini get=(python3 local/get_mini.py "$mini" "$raw") ;;
  swbd) source=$nbest_dir get=(python3 local/get_swbd.py "$raw" "$nbest_dir" "${transcriptions[@]}") ;;
  full)
    source=local/full.sha256 get=(local/get_full.sh "$raw" "$openslr")
    tests=({dev,test}-{clean,other}) lists=("${tests[@]}" dev=dev-clean+dev-other)
    ;;
esac

# Defaults that depend on it
declare -A ids=([mini-subword]=2000 [full-word]=200000)
[[ $lm_unit-$corpus = word-mini || $vocab_size ]] || vocab_size=${ids[$corpus-$lm_unit]-30000}
if [[ $corpus = mini ]]; then
  : "${depth:=20}" "${nbest_dir:=$raw}" "${conf:=conf$([[ $lm_unit = subword ]] || echo /word)}"
  if [[ ! $lattice_dir && -e $mini/dev.lattices.tar.xz && -e $mini/test.lattices.tar.xz ]]; then
    lattice_dir=$raw/lattices lattice_case=upper
  fi
fi
: "${depth:=50}" "${conf:=../../conf}"
[[ $lm_unit = subword ]] || subword=word
vocabulary=(--type "$subword" ${vocab_size:+--vocab-size "$vocab_size"})
[[ $vocab_size ]] || vocabulary+=(--min-count 2)
confs=("$conf" ../../conf)
[[ $conf = @(conf|../../conf) ]] || confs+=(conf) # what $conf may refine
oov=(${oov_penalty:+--oov-penalty "$oov_penalty"})

# Sets to rescore (weights are tuned on dev), LMs by name, systems that combine LMs
sets=(dev "${tests[@]}") texts=() nbests=()
paths texts "$datadir/" /text train valid "${sets[@]}"
paths nbests "$datadir/" /nbest.jsonl "${sets[@]}"
# shellcheck disable=SC1091
. ../../utils/systems.sh
declare -A lm=() && names=() neural=() trained=() given=() scores=() ppls=() bench=()
# shellcheck disable=SC2086
language_models "$expdir/lm" $lms $lm_dirs
for name in "${names[@]}"; do
  paths scores "$expdir/score/$name/" .scores "${sets[@]}"
  paths ppls "$expdir/ppl/$name/" .json valid "${tests[@]}"
done
timings bench "$timed"
raws=()
for name in $unnormalised; do
  [[ -v lm[$name] ]] || { wrong "--unnormalised names $name, which is none of the LMs" && continue; }
  lm[$name-unnormalised]=${lm[$name]} && raws+=("$name-unnormalised")
  [[ " $combinations " != *" $name+ngram "* ]] || raws+=("$name-unnormalised+ngram")
  paths scores "$expdir/score/$name-unnormalised/" .scores "${sets[@]}"
done
systems=() weights=() rescored=()
for system in first-pass "${names[@]}" $combinations "${raws[@]}"; do
  known "$system" || continue
  systems+=("$system") weights+=("$expdir/tune/$system/weights.json")
  paths rescored "$expdir/rescore/$system/" .txt "${sets[@]}"
done
lattices=() lattice_names=()
[[ ! $lattice_dir || $lattice_dir = none ]] || for system in $lattice_systems; do
  known "$system" || continue
  ((${#lattices[@]})) || paths lattices "$datadir/" /lattices "${sets[@]}"
  lattice_names+=("$system") weights+=("$expdir/tune/lattice-$system/weights.json")
  paths rescored "$expdir/rescore/lattice-$system/" .txt "${sets[@]}"
done
read -ra settings <<<"$train_opts"
read -ra normal <<<"--normaliser $normaliser"
threads=$(($(nproc) / nj > 1 ? $(nproc) / nj : 1))
