// Real GPUs of the message layer: found by UUID (the number of a GPU differs between processes), with the
// primary context that the whole process shares.
//
// Invariant: a context that was retained here stays until `release`, which follows MPI_Finalize: an MPI library
// that takes device pointers has streams of its own in that context (hazard H14).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/api.h"

namespace headrace::mpi {

struct Gpu {
  const GpuApi* api;
  /// CUDA's number of it; not comparable with a number from another process.
  int ordinal;
  int device;
  void* context;
  std::string uuid;

  int makeCurrent() const { return api->contextSetCurrent(context); }
};

class Gpus {
 public:
  /// The GPU with that UUID, its context retained; or null and the reason. `kind` is a contract SpaceKind.
  const Gpu* find(std::int32_t kind, const std::string& uuid, std::string& why);
  /// Releases the contexts. No object of them may be used afterwards.
  void release();

 private:
  std::vector<std::unique_ptr<Gpu>> known_;
};

/// Makes a GPU current for a while on a thread that normally has another one current (or none).
class Current {
 public:
  Current(const Gpu& gpu, const Gpu* usual) : gpu_(gpu), usual_(usual) { gpu.makeCurrent(); }
  ~Current() {
    if (usual_ != nullptr)
      usual_->makeCurrent();
    else
      gpu_.api->contextSetCurrent(nullptr);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const Gpu& gpu_;
  const Gpu* usual_;
};

}  // namespace headrace::mpi
