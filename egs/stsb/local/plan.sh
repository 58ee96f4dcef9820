# Sourced by run.sh: what the options that are empty become, and arrays of what the stages read and write.
# shellcheck shell=bash disable=SC2034,SC2154

# Where pairs and text come from
raw=$datadir/local/$corpus sets=(dev test) pairs=()
case $corpus in
  mini) sources=("$mini" ${lm_text:+"$lm_text"}) files=({dev,test}.tsv) get=(python3 local/get_mini.py "$mini" "$raw" "${files[@]}") ;;
  stsb) sources=("${pairs_dir:-local/stsb.sha256}" "${lm_text:-$mini}") files=(sts-{dev,test}.csv) url=$stsb_url ;;
  sick) sources=("${pairs_dir:-local/sick.sha256}" "${lm_text:-$mini}") files=(SICK_{trial,test_annotated}.txt) url=$sick_url ;;
esac
[[ $corpus = mini ]] || get=(python3 local/get_pairs.py "$corpus" "$raw" "$url" "$pairs_dir")
raws=("${files[@]/#/$raw/}" "$raw"/{train,valid}.txt)
paths pairs "$datadir/" /pairs.tsv "${sets[@]}"

# Defaults that depend on the text
if [[ $lm_text ]]; then
  : "${vocab_size:=30000}" "${conf:=../../conf}"
else
  : "${vocab_size:=4000}" "${conf:=conf}"
fi
confs=("$conf" ../../conf)
[[ $conf = @(conf|../../conf) ]] || confs+=(conf) # what $conf may refine
read -ra settings <<<"$train_opts"
read -ra normal <<<"--normaliser $normaliser"
threads=$(($(nproc) / nj > 1 ? $(nproc) / nj : 1))

# LMs, and those systems that suit each
# shellcheck disable=SC1091
. ../../utils/systems.sh
declare -A lm=() && names=() neural=() trained=() given=() bench=() words=() made=()
# shellcheck disable=SC2086
language_models "$expdir/lm" $lms $lm_dirs
timings bench "$timed"
declare -A how=([eos]="--pool eos" [cls]="--pool cls" [max]="--pool max" [masked]="--masked" [boundaries]="--boundaries")

# model_of FILE: the model that a YAML file names, or the file that it refines; nothing if there is none.
model_of() {
  local model base
  [[ -f $1 ]] || return 0
  model=$(sed -n 's/^model: *\([a-z0-9]*\).*/\1/p' "$1") base=$(sed -n 's/^base: *\([^ ]*\).*/\1/p' "$1")
  [[ $model || ! $base ]] || model=$(model_of "$(dirname "$1")/$base")
  echo "$model"
}

# kind_of NAME: causal, masked, tta ... or, of Hugging Face's, hf if it is masked, else gpt.
kind_of() {
  local dir=${lm[$1]}
  case $dir in
    hf:*) ! grep -qsE '"(GPT|[A-Za-z0-9]*(CausalLM|LMHeadModel))' "${dir#hf:}/config.json" && echo hf || echo gpt ;;
    "$expdir/lm/$1") model_of "$conf/$1.yaml" ;;
    *) model_of "$dir/config.yaml" ;;
  esac
}

# suited NAME: the systems that `auto` means of an LM.
suited() {
  case $(kind_of "$1") in
    causal | tta) echo "$1 $1-eos" ;;
    masked) echo "$1 $1-masked" ;;
    hf) echo "$1 $1-masked $1-cls $1-boundaries" ;;
    *) echo "$1" ;;
  esac
}

# using SYSTEM: options of lmtools embed for a system; status 1 if it is none of any LM.
using() {
  local name=${1%-*} way=${1##*-}
  if [[ -v lm[$1] ]]; then
    quoted --lm "${lm[$1]}" --layer all
  elif [[ -v lm[$name] && -v how[$way] ]]; then
    echo "$(quoted --lm "${lm[$name]}") ${how[$way]}"
  else
    return 1
  fi
}

chosen=$systems
if [[ $systems = auto ]]; then
  chosen=
  for name in "${names[@]}"; do
    [[ $name != @(words|tfidf) ]] || wrong "an LM is called $name, as the static vectors are; give it another name"
    chosen+=" $(suited "$name")"
  done
fi

# What lmtools embed and lmtools sts are told of each
embed=() correlate=() embedded=() correlated=()
for system in $chosen $statics; do
  case $system in
    words)
      [[ $vectors ]] || made=("$expdir/words.txt")
      words=("${vectors:-${made[@]}}") options=$(quoted --lm "words:${words[0]}")
      ;;
    tfidf) options=$(quoted --lm "tfidf:$datadir/train.txt") ;;
    *)
      options=$(using "$system") || wrong "'$system' is no system; give an LM (${names[*]}), alone or with -masked, -eos, -cls ..."
      ;;
  esac
  embedded+=("$expdir/embed/$system.npz")
  embed+=("$options $(quoted --out "$expdir/embed/$system.npz")")
  paths correlated "$expdir/sts/$system/" .json "${sets[@]}"
  for set in "${sets[@]}"; do
    correlate+=("$(quoted --vectors "$expdir/embed/$system.npz" --pairs "$datadir/$set/pairs.tsv" --out "$expdir/sts/$system/$set.json")")
  done
done
((${#embed[@]})) || wrong "no system: name LMs with --lms or --lm-dirs, or vectors with --statics"
