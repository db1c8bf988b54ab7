#!/usr/bin/env bash
# Overhead per task and bandwidth on the NVIDIA GPUs of this machine, each beside a loop by hand in the same process, then the
# tiled algorithms with data in GPU memory and with a quarter of it, then large tiles between two ranks: JSON lines.
# usage: scripts/gpu-bench.sh [GPUs, default all] [tasks per measurement]
set -euo pipefail
cd "$(dirname "$0")/.."
unset HEADRACE_CUDA_LIBRARY
probe="require('./build/Release/headrace.node').probe().cuda"
node -p "JSON.stringify($probe)"
gpus=${1:-$(node -p "$probe.devices.length")}
timeout 300 build/Release/headrace_gpu_bench "$gpus" "${@:2}"
algorithm() { timeout 300 node dist/bench/gpu-algorithms.js --json --gpus "$gpus" "$@"; }
algorithm --n 65536
algorithm --n 32768
algorithm --n 32768 --what gemm
# Out of core: memory for a quarter of the data, all GPUs together. Where each has room for few tiles, smaller ones.
tile=$((gpus > 2 ? 2048 : 4096))
algorithm --n 32768 --what gemm --tile $tile --memory $((7168 / gpus))MiB --host-memory 30GiB --pinned 30GiB
algorithm --n 24576 --what gemm --tile $tile --memory $((4096 / gpus))MiB --host-memory 16GiB --pinned 16GiB
algorithm --n 32768 --memory $((1229 / gpus))MiB --host-memory 8GiB --pinned 8GiB
if ((gpus > 1)) && type mpirun >/dev/null 2>&1; then timeout 200 node dist/bench/gpu-network.js; fi
