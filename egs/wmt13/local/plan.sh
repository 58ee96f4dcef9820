# Sourced by run.sh: what the options that are empty become, and arrays of what the stages read and write.
# shellcheck shell=bash disable=SC2034,SC2086,SC2154

# Where the corpus comes from: `fetched` is what stage 0 leaves, `raws` what the English text is made of
foreign=${pair%-en} text=$shared/text raw=$shared/local/$corpus
sets=(dev test) prefix=
if [[ $corpus = mini ]]; then
  source=$mini get=(python3 local/get_mini.py "$mini" "$pair" "$raw")
  raws=("$raw"/{train,valid}.txt) fetched=("${raws[@]}") making=copy
  paths fetched "$raw/$pair." .nbest.jsonl "${sets[@]}"
  nbest_dir=$raw prefix=$pair.
  : "${depth:=20}" "${vocab_size:=4000}" "${conf:=conf}"
else
  read -ra files <<<"$news_files"
  source=${text_dir:-local/get_full.sh} get=(local/get_full.sh "$raw" "$foreign" "$text_dir" "$news" "${files[@]}")
  fetched=("$raw"/{dev,test}.{"$foreign",en})
  if [[ $text_dir ]]; then
    raws=("$raw"/{train,valid}.txt) making=copy
    fetched+=("${raws[@]}")
  else
    raws=("$raw"/{dev,test}.en "${files[@]/#/$raw/}") making=split
    fetched+=("${raws[@]:2}")
  fi
  [[ ! $nmt ]] || nbest_dir=$datadir/local/nmt nbest_format=jsonl
  : "${depth:=50}" "${vocab_size:=30000}" "${conf:=../../conf}"
fi
lists=()
[[ $corpus = mini ]] || lists=("${nmt:-$nbest_dir}")
confs=("$conf" ../../conf)
[[ $conf = @(conf|../../conf) ]] || confs+=(conf) # what $conf may refine
read -ra convert <<<"${detokenise:+--detokenise $detokenise} $nbest_opts"
read -ra settings <<<"$train_opts"
read -ra normal <<<"--normaliser $normaliser"
read -ra risk <<<"--utility $mbr"
threads=$(($(nproc) / nj > 1 ? $(nproc) / nj : 1))
workers=$((nj < $(nproc) ? nj : $(nproc))) # of scoring: more than processors only start more slowly

# LMs, and a column of scores for each that systems combine: its feature and its directory
# shellcheck disable=SC1091
. ../../utils/systems.sh
declare -A lm=() column=() && names=() neural=() trained=() given=() texts=() nbests=() scores=() ppls=() bench=() singles=()
language_models "$shared/lm" $lms $lm_dirs
paths texts "$datadir/" /text "${sets[@]}"
paths nbests "$datadir/" /nbest.jsonl "${sets[@]}"
for name in "${names[@]}"; do
  column[$name]=$name=$expdir/score/$name
  lm[$name-mean]=${lm[$name]} column[$name-mean]=$name/token=$expdir/score/$name
  [[ " $averages " != *" sum "* ]] || singles+=("$name")
  [[ " $averages " != *" mean "* ]] || singles+=("$name-mean")
  paths scores "$expdir/score/$name/" .scores "${sets[@]}"
  paths ppls "$expdir/ppl/$name/" .json valid test
done
if [[ $mbr != none ]]; then
  lm[mbr]=none column[mbr]=mbr=$expdir/score/mbr singles=(mbr "${singles[@]}")
  paths scores "$expdir/score/mbr/" .scores "${sets[@]}"
fi
timings bench "$timed"
reported=("$expdir"/report/{RESULTS.md,index.html,metrics.md})

# Systems, and what local/choose.sh is told of each
systems=() weights=() rescored=() jobs=()
for system in first-pass "${singles[@]}" $combinations; do
  known "$system" || continue
  systems+=("$system") weights+=("$expdir/tune/$system/weights.json")
  paths rescored "$expdir/rescore/$system/" .txt "${sets[@]}"
  columns=()
  for name in $(lms_of "$system" "${names[@]}"); do
    columns+=("${column[$name]}")
  done
  jobs+=("$(quoted "$system" "${columns[@]}")")
done
