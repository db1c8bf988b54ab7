#!/usr/bin/env bash
# Tests on the NVIDIA GPUs of this machine: the native GPU tests (copies, events, kernels from source, tiles, errors),
# then a lost device in a process of its own. usage: scripts/gpu-test.sh [part of a test's name]
# Takes the build as it is (build/Release); builds first where the test program is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
build=--no-build
[[ -x build/Release/headrace_gpu_tests ]] || build=
unset HEADRACE_CUDA_LIBRARY HEADRACE_NVRTC_LIBRARY HEADRACE_CUBLAS_LIBRARY HEADRACE_CUSOLVER_LIBRARY
exec timeout 300 node scripts/gpu-native-tests.mjs --real $build "$@"
