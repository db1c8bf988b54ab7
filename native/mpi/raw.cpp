// Loops by hand over MPI and the GPU driver: see raw.h.
#include "raw.h"

#include <mpi.h>
#include <sched.h>
#include <sys/mman.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/clock.h"
#include "gpu_imports.h"

namespace headrace::mpi {
namespace {

constexpr int kTag = 1;

void check(const Gpu& gpu, int code, const char* call) {
  if (code != 0) throw std::runtime_error(std::string(call) + ": " + gpuErrorText(*gpu.api, code));
}

/// Memory for one message, on a GPU or the host.
class Buffer {
 public:
  /// With `shared`, host memory of the kind that emulated GPUs have.
  Buffer(std::int64_t bytes, const Gpu* gpu, bool shared) : gpu_(gpu) {
    if (shared) {
      sharedBytes_ = static_cast<std::size_t>(bytes) + 1;
      shared_ =
          ::mmap(nullptr, sharedBytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      if (shared_ == MAP_FAILED) throw std::runtime_error("mmap failed");
      std::memset(shared_, 1, sharedBytes_);
      return;
    }
    if (gpu == nullptr) {
      host_.resize(static_cast<std::size_t>(bytes) + 1, 1);
      return;
    }
    gpu->makeCurrent();
    check(*gpu, gpu->api->memoryAlloc(&device_, static_cast<std::size_t>(bytes) + 1), "cuMemAlloc");
  }
  ~Buffer() {
    if (device_ != 0) gpu_->api->memoryFree(device_);
    if (sharedBytes_ > 0) ::munmap(shared_, sharedBytes_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* pointer() {
    if (sharedBytes_ > 0) return shared_;
    return gpu_ == nullptr ? host_.data() : reinterpret_cast<void*>(device_);
  }
  std::uint64_t address() const { return device_; }

 private:
  const Gpu* gpu_;
  std::uint64_t device_ = 0;
  std::vector<char> host_;
  void* shared_ = nullptr;
  std::size_t sharedBytes_ = 0;
};

/// One stream and event of a GPU.
class Line {
 public:
  explicit Line(const Gpu& gpu) : gpu_(gpu) {
    check(gpu, gpu.api->streamCreate(&stream_, gpu::kStreamNonBlocking, 0), "cuStreamCreate");
    check(gpu, gpu.api->eventCreate(&event_, gpu::kEventNoTiming), "cuEventCreate");
  }
  ~Line() {
    gpu_.api->eventDestroy(event_);
    gpu_.api->streamDestroy(stream_);
  }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  double copies(std::uint64_t to, std::uint64_t from, std::int64_t bytes, int rounds) {
    const std::int64_t start = now();
    for (int i = 0; i < rounds; ++i) {
      check(gpu_, gpu_.api->copyOnDevice(to, from, static_cast<std::size_t>(bytes), stream_),
            "cuMemcpyDtoDAsync");
    }
    check(gpu_, gpu_.api->eventRecord(event_, stream_), "cuEventRecord");
    int code = 0;
    while ((code = gpu_.api->eventQuery(event_)) == gpu::kNotReady) sched_yield();
    check(gpu_, code, "cuEventQuery");
    return static_cast<double>(now() - start) * 1e-9 / rounds;
  }

 private:
  const Gpu& gpu_;
  void* stream_ = nullptr;
  void* event_ = nullptr;
};

}  // namespace

double rawPingPong(std::int64_t bytes, int rounds, int rank, int size, const Gpu* gpu,
                   bool shared) {
  Buffer buffer(bytes, gpu, shared);
  const auto count = static_cast<int>(bytes);
  double seconds = 0;
  for (const int repeat : {rounds / 10 + 1, rounds}) {
    MPI_Barrier(MPI_COMM_WORLD);
    const std::int64_t start = now();
    for (int i = 0; i < repeat && rank < 2 && size > 1; ++i) {
      const int other = 1 - rank;
      if (rank == 0) MPI_Send(buffer.pointer(), count, MPI_BYTE, other, kTag, MPI_COMM_WORLD);
      MPI_Recv(buffer.pointer(), count, MPI_BYTE, other, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(buffer.pointer(), count, MPI_BYTE, other, kTag, MPI_COMM_WORLD);
    }
    seconds = static_cast<double>(now() - start) * 1e-9 / repeat / 2;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return seconds;
}

double rawIpcRead(std::int64_t bytes, int rounds, int rank, int size, const Gpu* gpu) {
  if (gpu == nullptr || gpu->api->ipcOpen == nullptr || size < 2) {
    throw std::runtime_error("an IPC read needs two ranks with GPUs");
  }
  Buffer buffer(bytes, gpu, false);
  GpuExport exported{};
  double seconds = 0;
  std::string error;
  if (rank == 0) {
    const int code = gpu->api->ipcGetHandle(exported.handle, buffer.address());
    if (code != 0) error = gpuErrorText(*gpu->api, code);
    exported.base = buffer.address();
    std::strncpy(exported.uuid, gpu->uuid.c_str(), sizeof exported.uuid - 1);
  }
  MPI_Bcast(&exported, sizeof exported, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (rank == 1) {
    GpuImports imports(gpu);
    const std::uint64_t from = imports.open(0, exported, *gpu, error);
    if (from != 0) {
      Line line(*gpu);
      line.copies(buffer.address(), from, bytes, rounds / 10 + 1);
      seconds = line.copies(buffer.address(), from, bytes, rounds);
    }
  }
  // Rank 0 keeps its memory until rank 1 has closed it.
  MPI_Bcast(&seconds, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
  if (!error.empty()) throw std::runtime_error(error);
  return seconds;
}

}  // namespace headrace::mpi
