// A dependency between GPU tasks of two ranks as programs with MPI have it, an empty kernel on eight bytes of device memory on
// either side, in microseconds per hop, the best of three, as one JSON object:
//   direct      the kernel, the end of its stream, MPI_Send of device memory, MPI_Recv into device memory
//   messages    the same without the kernel
//   host        the message arrives in page-locked host memory and leaves from there: copy in, kernel, and copy out on one stream
//   streams     the same on three streams with events between them
//
// build: nvcc -O2 -std=c++17 -ccbin mpicxx bench/peers/gpu_hops.cu -o gpu_hops
// usage: mpirun -n 2 gpu_hops
#include <cuda_runtime.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace {

constexpr int kHops = 2000;
constexpr int kRepeats = 3;
constexpr std::size_t kBytes = sizeof(double);

enum Way { direct, messages, host, streams, kWays };

void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "gpu_hops: %s: %s\n", call, cudaGetErrorString(code));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

__global__ void Touch(double*) {}

struct Rank {
  double* onGpu = nullptr;
  double* onHost = nullptr;
  cudaStream_t in, compute, out;
  cudaEvent_t arrived, touched, left;

  explicit Rank(int number) {
    int gpus = 0;
    check(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
    check(cudaSetDevice(number % std::max(gpus, 1)), "cudaSetDevice");
    check(cudaMalloc(reinterpret_cast<void**>(&onGpu), kBytes), "cudaMalloc");
    check(cudaMallocHost(reinterpret_cast<void**>(&onHost), kBytes), "cudaMallocHost");
    for (cudaStream_t* stream : {&in, &compute, &out})
      check(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), "cudaStreamCreate");
    for (cudaEvent_t* event : {&arrived, &touched, &left})
      check(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "cudaEventCreate");
  }

  /// Returns when the memory that the next message leaves from holds the value.
  void work(Way way) {
    if (way == messages) return;
    if (way == direct) {
      Touch<<<1, 1, 0, compute>>>(onGpu);
      check(cudaStreamSynchronize(compute), "cudaStreamSynchronize");
      return;
    }
    const bool several = way == streams;
    cudaStream_t first = several ? in : compute;
    cudaStream_t last = several ? out : compute;
    check(cudaMemcpyAsync(onGpu, onHost, kBytes, cudaMemcpyHostToDevice, first), "cudaMemcpyAsync");
    if (several) order(first, arrived, compute);
    Touch<<<1, 1, 0, compute>>>(onGpu);
    if (several) order(compute, touched, last);
    check(cudaMemcpyAsync(onHost, onGpu, kBytes, cudaMemcpyDeviceToHost, last), "cudaMemcpyAsync");
    check(cudaEventRecord(left, last), "cudaEventRecord");
    while (cudaEventQuery(left) == cudaErrorNotReady) {
    }
  }

  void* message(Way way) { return way == direct || way == messages ? onGpu : onHost; }

 private:
  static void order(cudaStream_t before, cudaEvent_t event, cudaStream_t after) {
    check(cudaEventRecord(event, before), "cudaEventRecord");
    check(cudaStreamWaitEvent(after, event, 0), "cudaStreamWaitEvent");
  }
};

/// Seconds of `kHops` hops.
double hops(int number, Rank& rank, Way way) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  void* word = rank.message(way);
  for (int hop = number; hop < kHops; hop += 2) {
    if (hop > 0)
      MPI_Recv(word, 1, MPI_DOUBLE, 1 - number, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    rank.work(way);
    if (hop + 1 < kHops) MPI_Send(word, 1, MPI_DOUBLE, 1 - number, 0, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Wtime() - begin;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int number = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) {
    std::fprintf(stderr, "usage: mpirun -n 2 gpu_hops\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  Rank rank(number);
  double best[kWays];
  std::fill(best, best + kWays, 1e9);
  for (int repeat = 0; repeat <= kRepeats; ++repeat) {
    for (int way = 0; way < kWays; ++way) {
      const double seconds = hops(number, rank, static_cast<Way>(way));
      if (repeat > 0) best[way] = std::min(best[way], seconds / kHops * 1e6);
    }
  }
  if (number == 0) {
    std::printf("{\"name\":\"peer/gpu-hop\",\"unit\":\"us\",\"direct\":%.2f,\"messages\":%.2f,"
                "\"host\":%.2f,\"streams\":%.2f}\n",
                best[direct], best[messages], best[host], best[streams]);
  }
  MPI_Finalize();
  return 0;
}
