#!/usr/bin/env bash
# Tests under Slurm: starts a Slurm of one node on this machine, as processes of its own with everything in a temporary folder
# and on loopback, and runs Headrace's programs with srun and sbatch, once per MPI library that is built and the PMI it speaks:
#   pmix Open MPI, srun --mpi=pmix
#   pmi2 MPICH, srun --mpi=pmi2
# Cases: the example and the batch job of docs/network.md, doctor, a factorisation with a trace per rank, a failing and a leaving rank, SIGTERM and
# scancel, GPUs and cores of a rank, a missing interface, a library that does not understand it, mpirun in a job.
# usage: scripts/slurm-test.sh [--help] [part of a case's name: only those]
# Takes the build as it is. As root on Debian or Ubuntu it installs Slurm and munge, unless HEADRACE_NO_SYSTEM_INSTALL=1.
# Without Slurm it skips, with the reason. The last line is `tests: N passed, N failed, N skipped`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  sed -n '2,/^# Without/s/^# //p' "$0"
  exit 0
fi
if [[ ${1:-} == -* ]]; then
  echo "there is no option $1" >&2
  exit 2
fi
only=${1:-}
root=$PWD
export PATH=$PATH:/usr/sbin:/sbin NO_COLOR=1
for built in build/Release/headrace.node dist/index.js; do
  [[ -e $built ]] || { echo "$built is missing; to get it: npm run setup" >&2; exit 1; }
done

passed=0 failed=0 skipped=0
finish() {
  echo "tests: $passed passed, $failed failed, $skipped skipped"
  ((failed == 0)) && exit 0
  exit 1
}
skip() { # name, reason
  [[ $1 == *"$only"* ]] || return 0
  echo "skipped: $1: $2"
  skipped=$((skipped + 1))
}

if ! node --input-type=module -e "
  import { ensureSystemPackage, systemPackages } from './scripts/lib/system-packages.mjs';
  const got = await ensureSystemPackage(systemPackages.slurm, { say: console.log });
  process.exit(got === 'missing' ? 1 : 0);"; then
  skip 'everything' 'Slurm is not installed'
  finish
fi

# --- The cluster ---------------------------------------------------------------------------------------------------------

# Nothing of a cluster to which this machine may belong.
for name in $(compgen -e | grep -E '^(SLURM|SBATCH|SRUN|SALLOC|PMI|PMIX|OMPI_COMM)'); do unset "$name"; done
here=$(mktemp -d "${TMPDIR:-/tmp}/headrace-slurm-XXXXXX")
export SLURM_CONF=$here/slurm.conf
pids=()
# Ends the jobs, then what this script started, in the opposite order.
stop() {
  trap - EXIT
  [[ ! -e $SLURM_CONF ]] || timeout 10 scancel --quiet --user="$(id -un)" 2>/dev/null
  for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
    kill "${pids[i]}" 2>/dev/null
    wait "${pids[i]}" 2>/dev/null
  done
  rm -rf "$here"
}
trap stop EXIT
trap 'stop; exit 130' INT
trap 'stop; exit 143' TERM
until_true() { # seconds, command: repeats it until it succeeds
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.05
  done
}

mkdir -m 700 "$here/state" "$here/spool" "$here/munge"
(umask 077 && head -c 1024 /dev/urandom >"$here/munge/key")
read -r ctld_port slurmd_port < <(node -e "
  const servers = [0, 1].map(() => require('net').createServer().listen(0, '127.0.0.1'));
  Promise.all(servers.map((s) => new Promise((go) => s.once('listening', go)))).then(() => {
    console.log(...servers.map((s) => s.address().port));
    for (const s of servers) s.close();
  });")
cores=64
cat >"$SLURM_CONF" <<CONF
ClusterName=headrace
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$ctld_port
SlurmdPort=$slurmd_port
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$here/munge/socket
CredType=cred/munge
StateSaveLocation=$here/state
SlurmdSpoolDir=$here/spool
SlurmctldPidFile=$here/slurmctld.pid
SlurmdPidFile=$here/slurmd.pid
SlurmctldLogFile=$here/slurmctld.log
SlurmdLogFile=$here/slurmd.log
MailProg=/bin/true
# Containers may not have control groups. Nothing is bound to cores.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
# A user may allow processes less than the controller has.
PropagateResourceLimits=NONE
SchedulerParameters=batch_sched_delay=0
MpiDefault=none
# From SIGTERM to SIGKILL: a rank that was killed has not ended by itself.
KillWait=60
# The node may have more cores and GPUs in its description than this machine.
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=localhost NodeAddr=127.0.0.1 CPUs=$cores RealMemory=1000 Gres=gpu:2 State=UNKNOWN
PartitionName=test Nodes=localhost Default=YES State=UP
CONF
# Any two character devices: only their numbers matter here.
printf 'NodeName=localhost Name=gpu File=/dev/%s\n' zero full >"$here/gres.conf"
# Slurm 23 and later can do without; 22 needs a plugin that it then does not use.
if [[ $(slurmd -V) =~ slurm(-wlm)?\ ([0-9]+) ]] && ((BASH_REMATCH[2] >= 23)); then
  echo 'CgroupPlugin=disabled' >"$here/cgroup.conf"
else
  echo 'CgroupPlugin=cgroup/v1' >"$here/cgroup.conf"
fi
start() { # name, command
  local name=$1
  shift
  "$@" >"$here/$name.out" 2>&1 </dev/null &
  pids+=($!)
}
start munged munged --foreground --force --key-file="$here/munge/key" --socket="$here/munge/socket" \
  --pid-file="$here/munge/pid" --log-file="$here/munge/log" --seed-file="$here/munge/seed"
until_true 10 test -S "$here/munge/socket"
start slurmctld slurmctld -D -c -f "$SLURM_CONF"
start slurmd slurmd -D -c -N localhost -f "$SLURM_CONF"
is_idle() { [[ $(timeout 5 sinfo -h -o %T 2>/dev/null) == idle ]]; }
if ! until_true 30 is_idle; then
  echo 'the Slurm of this script did not start:'
  tail -n 5 "$here"/*.out "$here/munge/log" 2>/dev/null
  failed=1
  finish
fi
echo "$(slurmd -V) with $(srun --mpi=list 2>&1 | sed '1d;/specific/d' | xargs)"

# --- Cases ---------------------------------------------------------------------------------------------------------------

out=$here/out
case_() { # name, function, arguments: the function prints what is wrong, nothing if all is right
  local name=$1 wrong began=$SECONDS
  shift
  [[ $name == *"$only"* ]] || return 0
  rm -rf "$out" && mkdir "$out"
  wrong=$("$@" 2>&1)
  if [[ -z $wrong ]]; then
    passed=$((passed + 1))
    echo "ok: $name ($((SECONDS - began)) s)"
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
    echo "$wrong" | tail -n 30 | sed 's/^/  /'
    [[ ! -s $out/text ]] || tail -n 30 "$out/text" | cut -c1-300 | sed 's/^/  | /'
  fi
}
# Runs srun with its words; its output is in $out/text, its exit code in $code.
step() {
  timeout 100 srun --quiet "$@" >"$out/text" 2>&1
  code=$?
}
# Runs sbatch with its words; the script's last line is its exit code. `sbatch --wait` looks every few seconds only.
submit() {
  touch "$out/text"
  timeout 20 sbatch --quiet -o "$out/text" "$@"
  until_true 100 grep -q '^exit code' "$out/text"
}
expect_code() { [[ $code == "$1" ]] || echo "exit code $code instead of $1"; }
expect_text() { # count, extended regular expression
  local found
  found=$(grep -cE -- "$2" "$out/text")
  [[ $found == "$1" ]] || echo "$found lines instead of $1 match $2"
}
# A JavaScript expression on the reports of the ranks (test/mpi/programs/report.mjs) must be true.
expect_reports() {
  node -e "
    const fs = require('fs');
    const lines = fs.readdirSync('$out').filter((f) => f.endsWith('.jsonl'))
      .flatMap((f) => fs.readFileSync('$out/' + f, 'utf8').trim().split('\n'));
    const of = (rank) => lines.map((line) => JSON.parse(line)).filter((each) => each.rank === rank);
    if (!($1)) console.log('the reports are not as expected:', lines.join('\n'));"
}
programs=$root/test/mpi/programs
stub=$root/build/Release/libstub_cuda.so
headrace=(node "$root/dist/cli/main.js")
node --input-type=module -e "
  import { readFileSync } from 'node:fs';
  const [, program] = /\`\`\`js\n([^]*?)\`\`\`/.exec(readFileSync('docs/network.md', 'utf8'));
  console.log(program.replaceAll(\"'headrace'\", JSON.stringify('file://$root/dist/index.js')));" >"$here/program.mjs"

example() {
  step -n 2 "$1" node "$here/program.mjs"
  expect_code 0
  expect_text 1 '^0 2$'
  expect_text 1 '^1 2$'
}
factorise() {
  step -n 2 "$1" "${headrace[@]}" run cholesky --n 512 --tile 100 --gpus 1 --memory 4MiB --json --trace "$out/run.hrtrace"
  expect_code 0
  expect_text 1 '"ok":true'
  expect_text 1 '"ranks":2'
  for rank in 0 1; do [[ -s $out/run.$rank.hrtrace ]] || echo "rank $rank wrote no trace"; done
}
failing_rank() {
  HEADRACE_REPORTS=$out step -n 2 "$1" node "$programs/failures.mjs" '{"way":"throw"}'
  expect_code 0
  expect_reports "of(0)[0].first.code === 'ERR_PEER_FAILED' && of(0)[0].first.from === 1 && of(1)[0].first.code === 'ERR_TASK_FAILED'"
}
leaving_rank() {
  HEADRACE_REPORTS=$out step -n 2 "$1" node "$programs/failures.mjs" '{"way":"exit"}'
  expect_code 7
  expect_reports "of(0)[0].first.code === 'ERR_PEER_LOST' && of(0)[0].first.from === 1"
}
# How the ranks of a step end that is ended from outside: by themselves, with SIGTERM's code.
ended_by() { # option of srun, what ends it ($step, $job and $srun are set)
  : >"$out/text" # The background shell may open it late, and what grep says about that counts as a failure.
  srun -n 2 "$1" node "$programs/endless.mjs" >>"$out/text" 2>&1 &
  local srun=$! step job
  are_ready() { [[ $(grep -c 'is ready$' "$out/text") == 2 ]]; }
  until_true 60 are_ready || echo 'the ranks did not start'
  step=$(squeue -h -s -o %i | grep -E '^[0-9]+\.0$')
  job=${step%.0}
  ${2/JOB/$job}
  wait "$srun"
  code=$?
  expect_code 143
  expect_text 0 Killed
  no_rank() { ! pgrep -f "$programs/endless.mjs" >/dev/null; }
  until_true 10 no_rank || echo 'a rank is still there'
}
own_gpus() { # The stub driver has as many GPUs as srun gave the rank.
  HEADRACE_CUDA_LIBRARY=$stub step -n 2 "$1" "$2" bash -c "
    HEADRACE_STUB_DEVICES=\$(tr , '\n' <<<\"\$CUDA_VISIBLE_DEVICES\" | wc -l) exec node --input-type=module -e \"
    import { Runtime } from 'file://$root/dist/index.js';
    const runtime = await Runtime.create({ gpus: 1, driver: 'cuda', workers: 1, gpuMemory: '16MiB', hostMemory: '64MiB' });
    console.log('rank', runtime.rank, 'of', runtime.ranks, 'of', process.env.CUDA_VISIBLE_DEVICES);
    await runtime.close();\""
  expect_code 0
  expect_text 1 "^rank 0 of 2 of $3\$"
  expect_text 1 "^rank 1 of 2 of $4\$"
}
doctor() { # One rank speaks for all. Each counts its share of the step, though nothing is bound.
  HEADRACE_CUDA_LIBRARY=$stub HEADRACE_STUB_DEVICES=2 step -n 2 -c 1 --gpus=2 "$1" "${headrace[@]}" doctor
  expect_code 0
  expect_text 1 "^launch +ok +2 ranks on 1 host by srun $1\$"
  expect_text 1 "^host $(hostname) +ok +rank 0-1; per rank 1 core, $2\$"
  expect_text 1 '^  ways +ok +.*, staged'
  expect_text 1 '^  clocks +ok +within [0-9.]+ [mu]?s of rank 0, known to [0-9.]+ [mu]?s$'
}
no_interface() {
  step -n 2 --mpi=none node "$here/program.mjs"
  expect_code 1
  expect_text 2 '^HeadraceError: srun started 2 processes, but without an interface .*srun --mpi=pmix for Open MPI'
}
by_themselves() {
  step -n 2 --mpi=none "${headrace[@]}" run cholesky --n 200 --tile 100 --gpus 1 --memory 4MiB --json
  expect_code 1
  expect_text 0 '"ok":true'
  step -n 2 --mpi=none node --input-type=module -e "
    import { Runtime } from 'file://$root/dist/index.js';
    const runtime = await Runtime.create({ comm: 'off', workers: 1 });
    console.log('rank', runtime.rank, 'of', runtime.ranks);
    await runtime.close();"
  expect_code 0
  expect_text 2 '^rank 0 of 1$'
}
misunderstood() {
  HEADRACE_MPI=$root/build/Release/mpi-mpich.node step -n 2 --mpi=pmix node "$here/program.mjs"
  expect_code 1
  expect_text 2 '^HeadraceError: srun --mpi=pmix started 2 processes, but .*mpich.* srun --mpi=pmi2'
}
batch() { # The script itself runs alone; mpirun within the job starts ranks.
  cat >"$out/job.sh" <<JOB
#!/bin/bash
set -euo pipefail
trap 'echo "exit code \$?"' EXIT
cd "$root"
node "$here/program.mjs" | sed 's/^/alone /'
$1 -n 2 node "$here/program.mjs"
${headrace[*]} run cholesky --ranks 2 --n 200 --tile 100 --gpus 1 --memory 4MiB --json
JOB
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 submit -n 2 "$out/job.sh"
  expect_text 1 '^exit code 0$'
  expect_text 1 '^alone 0 2$'
  expect_text 1 '^0 2$'
  expect_text 1 '^1 2$'
  expect_text 1 '"ok":true.*"ranks":2|"ranks":2.*"ok":true'
}

page_job() { # The batch job of docs/network.md as it stands, on fewer ranks and this node, with the build as the package.
  mkdir -p "$out/node_modules/.bin"
  ln -s "$root/dist/cli/main.js" "$out/node_modules/.bin/headrace"
  cp "$here/program.mjs" "$out/program.js"
  echo '{"type":"module"}' >"$out/package.json"
  sed -n '/^```bash$/,/^```$/p' docs/network.md | sed '1d;$d' >"$out/job.sh"
  # Its own shell options end it at the first failure; the line behind it tells that it came to its end.
  echo 'echo "exit code $?"' >>"$out/job.sh"
  HEADRACE_CUDA_LIBRARY=$stub HEADRACE_STUB_DEVICES=2 submit \
    --chdir="$out" --nodes=1 --ntasks-per-node=2 --gpus-per-node=2 --cpus-per-task=8 "$out/job.sh"
  expect_text 1 '^exit code 0$'
  expect_text 1 "^launch +ok +2 ranks on 1 host by srun --mpi=pmix$"
  expect_text 1 '^host .*; per rank [0-9]+ cores?, 1 GPU of 2$'
  expect_text 1 '^0 2$'
  expect_text 1 '^1 2$'
}
hidden_spool() { # A container sees neither Slurm's spool folder nor, perhaps, the host's process namespace.
  cat >"$out/inside.sh" <<'INSIDE'
mount -t tmpfs none "$1" && shift && exec "$@"
INSIDE
  PMIX_MCA_gds=hash step -n 2 --mpi=pmix unshare --mount bash "$out/inside.sh" "$here/spool" node "$here/program.mjs"
  expect_code 0
  expect_text 1 '^0 2$'
  expect_text 1 '^1 2$'
  expect_text 0 'PMIX ERROR'
  # Open MPI's own shared memory crashes between process namespaces.
  OMPI_MCA_btl=tcp,self step -n 2 --mpi=pmix unshare --pid --fork --mount-proc "${headrace[@]}" doctor
  expect_code 0
  expect_text 1 '^launch +ok +2 ranks on 2 hosts '
  expect_text 2 '^  ways +ok +no ipc \(one rank only\), direct, staged'
}

declare -A built=()
for addon in build/Release/mpi{,-openmpi,-mpich}.node; do
  [[ -e $addon ]] && built[$(node -p "require('./$addon').describe().flavour" 2>/dev/null)]=1
done
for pmi in pmix pmi2; do
  [[ $pmi == pmix ]] && library=openmpi || library=mpich
  name="$library, srun --mpi=$pmi"
  if [[ -z ${built[$library]:-} ]]; then
    skip "$name" "the message layer is not built for it; to get it: npm run setup -- --require-mpi --require-mpich"
    continue
  fi
  if ! srun --mpi=list 2>&1 | grep -qw "$pmi"; then
    skip "$name" "this Slurm has no plugin $pmi"
    continue
  fi
  mpi=--mpi=$pmi
  case_ "$name: the example of docs/network.md" example "$mpi"
  case_ "$name: a factorisation, a trace per rank" factorise "$mpi"
  case_ "$name: a task fails" failing_rank "$mpi"
  case_ "$name: a rank leaves" leaving_rank "$mpi"
  case_ "$name: SIGTERM to a step" ended_by "$mpi" 'scancel --signal=TERM JOB.0'
  case_ "$name: scancel of a job" ended_by "$mpi" 'scancel JOB'
  if [[ -e $stub ]]; then
    case_ "$name: doctor" doctor "$mpi" '1 GPU of 2'
    # Not a matter of the library.
    [[ $pmi == pmi2 ]] || case_ "$name: a GPU per task" own_gpus "$mpi" --gpus-per-task=1 0 1
    [[ $pmi == pmi2 ]] || case_ "$name: ranks divide the GPUs of the node" own_gpus "$mpi" --gpus=2 0,1 0,1
  else
    skip "$name: GPUs" 'the stub GPU drivers are not built; to get them: npm run setup -- --with-stubs'
  fi
  if [[ $pmi == pmix && -e $stub ]]; then
    case_ "$name: the batch job of docs/network.md" page_job
    if unshare --mount --pid --fork true 2>/dev/null; then
      case_ "$name: ranks in containers" hidden_spool
    else
      skip "$name: ranks in containers" 'this user may make no namespaces'
    fi
  fi
  if type "mpirun.$library" >/dev/null 2>&1; then
    case_ "$name: mpirun in a batch job" batch "mpirun.$library"
  else
    skip "$name: mpirun in a batch job" "mpirun.$library is not on PATH"
  fi
done
case_ 'srun without an interface' no_interface
case_ 'srun without an interface, processes by themselves' by_themselves
if [[ -e build/Release/mpi-mpich.node ]]; then
  case_ 'a library that does not understand srun' misunderstood
else
  skip 'a library that does not understand srun' 'no second message layer is built'
fi
finish
