#!/usr/bin/env bash
# Measures overhead per task and bandwidth on the NVIDIA GPUs of this machine, each beside a loop by hand in the same
# process; then the tiled algorithms with GPU memory for all data and for a quarter of it, beside NVIDIA's own libraries
# (cuSOLVER, cuSOLVERMg, cuBLAS, cuBLASXt) in the same run; then large tiles between two ranks. Prints JSON lines, and at
# the end a table with the ratios. nvcc builds the programs that use NVIDIA's libraries. Without nvcc the table says that
# they are missing.
# usage: scripts/gpu-bench.sh [GPUs, default all] [tasks per measurement]
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  sed -n '2,/^# usage/s/^# //p' "$0"
  exit 0
fi
if [[ ${1:-} == -* ]]; then
  echo "there is no option $1" >&2
  exit 2
fi
unset HEADRACE_CUDA_LIBRARY
for built in build/Release/headrace.node build/Release/headrace_gpu_bench dist/bench/gpu-algorithms.js; do
  [[ -e $built ]] || { echo "$built is missing; to get it: npm run setup -- --with-stubs" >&2; exit 1; }
done
probe="require('./build/Release/headrace.node').probe().cuda"
node -p "JSON.stringify($probe)"
gpus=${1:-$(node -p "$probe.devices.length")}
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
timeout 300 build/Release/headrace_gpu_bench "$gpus" "${@:2}"

node dist/bench/gpu-plan.js --json
if ((gpus > 1)); then node dist/bench/gpu-plan.js --json --gpus "$gpus"; fi

peers=
tiles=
if type nvcc >/dev/null 2>&1; then
  peers=$results/gpu_solvers
  nvcc -O2 -std=c++17 -Xcompiler -Wno-deprecated-declarations bench/peers/gpu_solvers.cu -o "$peers" -lcusolverMg -lcusolver -lcublas
  tiles=$results/gpu_tiles
  nvcc -O2 -std=c++17 bench/peers/gpu_tiles.cu -o "$tiles" -lcusolver -lcublas
  nvcc -O2 -std=c++17 bench/peers/gpu_copies.cu -o "$results/gpu_copies"
  timeout 100 "$results/gpu_copies"
fi
# A benchmark that fails leaves its entry out and does not stop the others; the table names it.
entry() { timeout 300 "$@" | tee -a "$results/entries" || echo "failed: $*" | tee -a "$results/entries"; }
algorithm() { entry node dist/bench/gpu-algorithms.js --json --gpus "$gpus" "$@"; }
peer() { [[ -z $peers ]] || entry "$peers" "$@" --gpus "$gpus"; }

# Small tiles, on one GPU: inserted, played as a plan, and the same tiles by hand on streams and as a CUDA graph.
if ((gpus == 1)); then
  for size in '8192 512' '16384 512' '16384 1024' '32768 1024' '65536 2048'; do
    read -r n tile <<<"$size"
    for play in insert lists graph; do algorithm --n "$n" --tile "$tile" --streams 8 --play $play; done
    for graph in 0 1; do [[ -z $tiles ]] || entry "$tiles" "$n" --block "$tile" --streams 8 --graph $graph; done
    if [[ $tile == 512 ]]; then peer cholesky "$n"; fi
  done
fi
algorithm --n 65536
if ((gpus > 1)); then for play in lists graph; do algorithm --n 65536 --play $play; done; fi
peer cholesky 65536
algorithm --n 32768
peer cholesky 32768
algorithm --n 32768 --what gemm
if ((gpus == 1)); then peer gemm 32768; fi
# Out of core: memory for a quarter of the data, on all GPUs together. If a GPU has room for few tiles, tiles are
# smaller.
tile=$((gpus > 2 ? 2048 : 4096))
algorithm --n 32768 --what gemm --tile $tile --memory $((7168 / gpus))MiB --host-memory 30GiB --pinned 30GiB
algorithm --n 24576 --what gemm --tile $tile --memory $((4096 / gpus))MiB --host-memory 16GiB --pinned 16GiB
# As a plan: every iteration copies all data in and out, and the iterations of a play overlap.
algorithm --n 32768 --what gemm --tile $tile --memory $((7168 / gpus))MiB --host-memory 30GiB --pinned 30GiB --play lists --times 10
peer gemm-host 24576
algorithm --n 32768 --memory $((1229 / gpus))MiB --host-memory 8GiB --pinned 8GiB
if ((gpus > 1)) && type mpirun >/dev/null 2>&1; then
  timeout 200 node dist/bench/gpu-network.js
  # The dependency of 8 bytes by hand, with the same kernel on either side.
  if type nvcc mpicxx >/dev/null 2>&1; then
    nvcc -O2 -std=c++17 -ccbin mpicxx bench/peers/gpu_hops.cu -o "$results/gpu_hops" &&
      timeout 60 mpirun -n 2 "$results/gpu_hops" || echo 'gpu_hops needs an MPI that takes device pointers'
  fi
fi
node dist/bench/gpu-table.js "$results/entries"
if grep -q '^failed: ' "$results/entries"; then exit 1; fi
