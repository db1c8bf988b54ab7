#!/usr/bin/env bash
# Overhead per task and bandwidth on the NVIDIA GPUs of this machine, each beside a loop by hand in the same process:
# one JSON line per measurement. usage: scripts/gpu-bench.sh [GPUs] [tasks per measurement]
set -euo pipefail
cd "$(dirname "$0")/.."
unset HEADRACE_CUDA_LIBRARY
node -e "console.log(JSON.stringify(require('./build/Release/headrace.node').probe().cuda))"
exec timeout 300 build/Release/headrace_gpu_bench "$@"
