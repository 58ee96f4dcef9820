# Sourced by run.sh: arrays of what the stages read and write, from its options.
# shellcheck shell=bash disable=SC2034,SC2154

# Sets to rescore (weights are tuned on dev), LMs by name, systems that combine LMs
sets=(dev "${tests[@]}") texts=() nbests=()
paths texts "$datadir/" /text train valid "${sets[@]}"
paths nbests "$datadir/" /nbest.jsonl "${sets[@]}"
declare -A lm=() && names=() neural=() trained=() given=() scores=() ppls=() bench=()
for pair in $lms $lm_dirs; do
  name=${pair%%=*} && names+=("$name")
  case $pair in
    *=*) lm[$name]=${pair#*=} && given+=("${lm[$name]#hf:}") ;;
    ngram) lm[$name]=$expdir/lm/$name && trained+=("${lm[$name]}/config.yaml") ;;
    *) lm[$name]=$expdir/lm/$name && neural+=("$name") trained+=("${lm[$name]}/model.safetensors") && bench+=(--lm "$name=${lm[$name]}") ;;
  esac
  paths scores "$expdir/score/$name/" .scores "${sets[@]}"
  paths ppls "$expdir/ppl/$name/" .json valid "${tests[@]}"
done
systems=() weights=() rescored=()
for system in first-pass "${names[@]}" $combinations; do
  for name in $(lms_of "$system" "${names[@]}"); do
    [[ -v lm[$name] ]] || continue 2
  done
  systems+=("$system") weights+=("$expdir/tune/$system/weights.json")
  paths rescored "$expdir/rescore/$system/" .txt "${sets[@]}"
done
lattices=() lattice_names=()
[[ ! $lattice_dir || $lattice_dir = none ]] || for system in $lattice_systems; do
  ((${#lattices[@]})) || paths lattices "$datadir/" /lattices "${sets[@]}"
  lattice_names+=("$system") weights+=("$expdir/tune/lattice-$system/weights.json")
  paths rescored "$expdir/rescore/lattice-$system/" .txt "${sets[@]}"
done
read -ra settings <<<"$train_opts"
read -ra normal <<<"--normaliser $normaliser"
threads=$(($(nproc) / nj > 1 ? $(nproc) / nj : 1))
