#!/usr/bin/env bash
# jobs.sh: what run.sh, slurm.sh and gridengine.sh share. They keep the contract of Kaldi's run.pl:
#
#   run.sh [OPTION VALUE ...] [JOB=1:N | JOB=I] LOG COMMAND...
#
# runs the command, or N of them, in each of which (and in LOG) JOB stands for its number; what they
# say goes to the logs. The words of the command are one line of bash: a word without blanks stands
# there as it is, so that "|" and ">" are pipes and redirections; a word with blanks stands in
# double quotes, where bash replaces variables, or in single quotes if it has double ones. If one
# fails, the status is 1 and a line names its log. Options: --mem 4G, --num-threads N, --gpu N,
# --time D and --max-jobs-run N (-tc N), of which so many run at a time; each script says what
# others it takes.
#
#   jobs.sh JOB LOG COMMAND... NUMBER    run one of them (or that of the variable NUMBER)
# shellcheck disable=SC2034  # variables of those that source it
set -euo pipefail
jobs_program=$(basename "$0")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mem='' threads=1 gpu=0 time='' most='' more=() name=@JOB@ first=1 last=1

jobs_fail() { # MESSAGE [STATUS]
  echo "$jobs_program: $1" >&2
  exit "${2:-1}"
}

# jobs_parse WORD...: set the variables above, log and command; make room for logs.
jobs_parse() {
  local number
  while (($# > 1)); do
    case $1 in
      --mem) mem=$2 ;;
      --num-threads) threads=$2 ;;
      --gpu) gpu=$2 ;;
      --time) time=$2 ;;
      --max-jobs-run | -tc) most=$2 ;;
      -V) more+=("$1") && shift && continue ;;
      -pe) more+=("$1" "$2" "${3-}") && shift $(($# > 2)) ;;
      -*) more+=("$1" "$2") ;;
      *)
        [[ $1 =~ ^([A-Za-z_][A-Za-z0-9_]*)=([0-9]+)(:([0-9]+))?$ ]] || break
        name=${BASH_REMATCH[1]} first=$((10#${BASH_REMATCH[2]}))
        last=$((10#${BASH_REMATCH[4]:-$first}))
        ((0 < first && first <= last)) || jobs_fail "$1: jobs are counted from 1 up, as in JOB=1:N" 2
        shift && continue
        ;;
    esac
    shift 2
  done
  (($# > 1)) || jobs_fail "write [OPTION VALUE ...] [JOB=1:N] LOG COMMAND..." 2
  [[ $1 != *=*:* ]] || echo "$jobs_program: warning: $1 is taken for the log" >&2
  [[ $1 = *"$name"* ]] || ((first == last)) || jobs_fail "$1: a log of all; write $name in its name"
  log=$1 command=("${@:2}") most=${most:-$((last - first + 1))}
  [[ $most = [1-9]* ]] || jobs_fail "--max-jobs-run is '$most'; it takes 1 or more" 2
  for ((number = first; number <= last; number++)); do
    mkdir -p "$(dirname "${log//"$name"/$number}")"
    rm -f "${log//"$name"/$number}"
  done
}

# jobs_wait ID CANCEL COMMAND...: wait until the command lists ID no more; if this process is
# stopped meanwhile, CANCEL ID. A queue that gives no answer is asked again, for five minutes.
jobs_wait() {
  local id=$1 queued misses=0
  trap 'exit 143' HUP INT TERM
  # shellcheck disable=SC2064  # of now
  trap "$2 $id >&2" EXIT
  while true; do
    if queued=$("${@:3}"); then misses=0; else queued=$id && ((++misses < 150)); fi
    grep -qw "$id" <<<"$queued" || break
    sleep 2 &
    wait $!
  done
  trap - EXIT
}

# jobs_check: end with a line that names the log where a command has failed. A log of another
# machine may come late.
jobs_check() {
  local number path failed=() tries=20
  for ((number = first; number <= last; number++)); do
    path=${log//"$name"/$number}
    while ! tail -n 1 "$path" 2>/dev/null | grep -q '^# Ended' && ((tries-- > 0)); do sleep 0.2; done
    tail -n 1 "$path" 2>/dev/null | grep -q '^# Ended (code 0)' || failed+=("$path")
  done
  ((${#failed[@]} == 0)) ||
    jobs_fail "${#failed[@]} / $((last - first + 1)) failed, log is in ${failed[0]}"
}

if [[ ${BASH_SOURCE[0]} = "$0" ]]; then
  name=$1 log=$2 number=${!#} line='' told=''
  if [[ $number = [0-9]* ]]; then told=yes; else number=${!number}; fi
  for word in "${@:3:$#-3}"; do
    [[ $word && $word != *[[:space:]]* ]] || case $word in
      *\"*) word="'$word'" ;;
      *) word="\"$word\"" ;;
    esac
    line+="$word "
  done
  line=${line//"$name"/$number}
  export OMP_NUM_THREADS=${OMP_NUM_THREADS:-${SLURM_CPUS_PER_TASK:-${NSLOTS:-1}}}
  export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1}
  exec >>"${log//"$name"/$number}" 2>&1
  echo "# $line"
  [[ ! $told ]] || printf '# Started at %s\n#\n' "$(date)"
  SECONDS=0 status=0
  "$BASH" -c "( $line)" bash </dev/null || status=$?
  [[ ! $told ]] || echo "# Accounting: time=$SECONDS threads=1"
  echo "# Ended (code $status) at $(date '+%F %T')${told:+, elapsed time $SECONDS seconds}"
  [[ ! $told ]] || exit $((status > 0)) # xargs would start no more after 255
  exit "$status"
fi
