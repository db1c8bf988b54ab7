// What copies between page-locked host memory and GPUs reach by hand: in, out, and both ways at once, on one GPU and on all at
// the same time. The rates of both ways on all GPUs bound what a program out of core can reach. Prints a JSON object per line.
//
// build: nvcc -O2 -std=c++17 bench/peers/gpu_copies.cu -o gpu_copies
// usage: gpu_copies
#include <cuda_runtime.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kTile = std::size_t{32} << 20;
/// Tiles of each GPU on the host: the first half goes in, the other half comes back.
constexpr int kHostTiles = 32;
constexpr int kGpuTiles = 4;
constexpr int kWarmUp = 8;
constexpr int kCopies = 60;

void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "gpu_copies: %s: %s\n", call, cudaGetErrorString(code));
  std::exit(1);
}

/// GB/s each way of one GPU whose tiles begin at `host`.
double rate(int gpu, char* host, bool in, bool out) {
  check(cudaSetDevice(gpu), "cudaSetDevice");
  char* memory[2];
  cudaStream_t stream[2];
  for (int way = 0; way < 2; ++way) {
    check(cudaMalloc(reinterpret_cast<void**>(&memory[way]), kTile * kGpuTiles), "cudaMalloc");
    check(cudaStreamCreateWithFlags(&stream[way], cudaStreamNonBlocking), "cudaStreamCreate");
  }
  const auto copies = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const std::size_t there = kTile * (i % kGpuTiles);
      char* from = host + kTile * (i % (kHostTiles / 2));
      char* to = from + kTile * (kHostTiles / 2);
      if (in) check(cudaMemcpyAsync(memory[0] + there, from, kTile, cudaMemcpyHostToDevice, stream[0]), "copy in");
      if (out) check(cudaMemcpyAsync(to, memory[1] + there, kTile, cudaMemcpyDeviceToHost, stream[1]), "copy out");
    }
    for (cudaStream_t each : stream) check(cudaStreamSynchronize(each), "cudaStreamSynchronize");
  };
  copies(kWarmUp);
  const auto start = std::chrono::steady_clock::now();
  copies(kCopies);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (int way = 0; way < 2; ++way) {
    check(cudaStreamDestroy(stream[way]), "cudaStreamDestroy");
    check(cudaFree(memory[way]), "cudaFree");
  }
  return kCopies * static_cast<double>(kTile) / seconds / 1e9;
}

}  // namespace

int main() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  char* host = nullptr;
  const std::size_t bytes = kTile * kHostTiles * static_cast<std::size_t>(count);
  check(cudaHostAlloc(reinterpret_cast<void**>(&host), bytes, cudaHostAllocPortable), "cudaHostAlloc");
  std::memset(host, 1, bytes);
  for (int gpus = 1; gpus <= count; gpus += count > 1 ? count - 1 : 1) {
    for (int ways = 1; ways <= 3; ++ways) {
      const bool in = (ways & 1) != 0;
      const bool out = (ways & 2) != 0;
      std::vector<double> rates(static_cast<std::size_t>(gpus));
      std::vector<std::thread> threads;
      for (int g = 0; g < gpus; ++g) {
        threads.emplace_back([&, g] { rates[g] = rate(g, host + kTile * kHostTiles * g, in, out); });
      }
      for (std::thread& thread : threads) thread.join();
      double least = rates[0];
      for (double each : rates) least = each < least ? each : least;
      std::printf("{\"name\":\"peer/copies/%s\",\"value\":%.1f,\"unit\":\"GB/s each way and GPU\",\"params\":{\"gpus\":%d}}\n",
                  in && out ? "both" : in ? "in" : "out", least, gpus);
    }
  }
  check(cudaFreeHost(host), "cudaFreeHost");
  return 0;
}
