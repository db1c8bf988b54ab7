#!/usr/bin/env bash
# Tests on the NVIDIA GPUs of this machine: the native GPU tests (copies, events, kernels from source, tiles, errors,
# kernels that spin), a lost device in a process of its own, then the oracles, task classes with CUDA kernels, copy-cover and
# failures in child processes on 1, 2 and 4 GPUs, as many as there are (or HEADRACE_TEST_GPUS); last, where there is an mpirun,
# the programs of several ranks.
# usage: scripts/gpu-test.sh [part of a native test's name: only those]
# Takes the build as it is (build/Release, dist); builds the test program first where it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
build=--no-build
[[ -x build/Release/headrace_gpu_tests ]] || build=
unset HEADRACE_CUDA_LIBRARY HEADRACE_NVRTC_LIBRARY HEADRACE_CUBLAS_LIBRARY HEADRACE_CUSOLVER_LIBRARY
timeout 300 node scripts/gpu-native-tests.mjs --real $build "$@"
[[ $# -eq 0 ]] || exit 0
found=$(node -p "require('./build/Release/headrace.node').probe().cuda.devices.length")
export HEADRACE_TEST_DRIVER=cuda HEADRACE_TEST_GPUS=${HEADRACE_TEST_GPUS:-$found}
vitest() { timeout 600 node node_modules/vitest/vitest.mjs run "$@"; }
# One file at a time: one of them looks at how much memory of the GPUs is in use.
vitest --project native-gpu --no-file-parallelism
vitest --project unit test/oracles test/algorithms test/scheduler/{random-programs,failure,lifecycle}.test.ts
if type mpirun >/dev/null 2>&1; then
  unset HEADRACE_TEST_DRIVER HEADRACE_TEST_GPUS
  timeout 600 node scripts/gpu-ranks.mjs
fi
