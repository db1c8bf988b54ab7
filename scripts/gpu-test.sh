#!/usr/bin/env bash
# Tests on the NVIDIA GPUs of this machine, in parts. Each part has a time limit, and all parts run, also after failures:
#   native native GPU tests (copies, events, kernels from source, tiles, errors, kernels that spin), then tests that make
#            their process unusable, one process each: an illegal address, a kernel on the NULL stream
#   classes  task classes with CUDA kernels, doctor, copy-cover (10 000 rounds), and in child processes teardown, out of
#            memory and an illegal address
#   oracles oracles, algorithms, random programs, failures and life cycles on 1, 2 and 4 GPUs, if there are so many
#   ranks if there is an mpirun: oracles and copy-cover by every way, a kernel that spins, killed ranks
# usage: scripts/gpu-test.sh [part | part of a native test's name: only that]
# Takes the build as it is (build/Release, dist), and builds the test program if it is missing. HEADRACE_TEST_GPUS limits
# the GPUs. The last line names the failures.
set -uo pipefail
cd "$(dirname "$0")/.."
if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  sed -n '2,/^# usage/s/^# //p' "$0"
  exit 0
fi
if [[ ${1:-} == -* ]]; then
  echo "there is no option $1" >&2
  exit 2
fi
for built in build/Release/headrace.node dist/index.js node_modules/vitest/vitest.mjs; do
  [[ -e $built ]] || { echo "$built is missing; to get it: npm run setup" >&2; exit 1; }
done
build=--no-build
[[ -x build/Release/headrace_gpu_tests ]] || build=
unset HEADRACE_CUDA_LIBRARY HEADRACE_NVRTC_LIBRARY HEADRACE_CUBLAS_LIBRARY HEADRACE_CUSOLVER_LIBRARY
only=${1:-}
failed=()
part() { # name, seconds, command
  local name=$1 seconds=$2
  shift 2
  [[ -z $only || $only == "$name" ]] || return 0
  echo "== $name"
  timeout -k 5 "$seconds" "$@" || failed+=("$name")
}
case $only in
  '' | native | classes | oracles | ranks) ;;
  *) exec timeout 300 node scripts/gpu-native-tests.mjs --real $build "$only" ;;
esac
part native 300 node scripts/gpu-native-tests.mjs --real $build
found=$(node -p "require('./build/Release/headrace.node').probe().cuda.devices.length")
on_gpus=(env HEADRACE_TEST_DRIVER=cuda "HEADRACE_TEST_GPUS=${HEADRACE_TEST_GPUS:-$found}" node node_modules/vitest/vitest.mjs run)
# Opening a GPU takes most of a test's time, so several test files run at once if there are cores for them.
workers=$(($(nproc) / 4 > 2 ? $(nproc) / 4 : 2))
# One file at a time, because one of them measures the GPU memory in use.
part classes 600 "${on_gpus[@]}" --project native-gpu --no-file-parallelism
part oracles 600 "${on_gpus[@]}" --maxWorkers "$workers" --project unit test/oracles test/algorithms test/scheduler/{random-programs,failure,lifecycle,reductions}.test.ts
if type mpirun >/dev/null 2>&1; then part ranks 600 node scripts/gpu-ranks.mjs; fi
if ((${#failed[@]})); then
  echo "failed: ${failed[*]}"
  exit 1
fi
echo 'all parts passed'
