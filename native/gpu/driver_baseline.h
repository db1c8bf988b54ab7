// The same work as the runtime's, written by hand against the driver, in one process and one run: the reference for its
// overhead and its bandwidth.
#pragma once

#include <cstdint>
#include <string>

namespace headrace {

struct BaselineLoop {
  /// launch     empty kernels on one stream
  /// streams    a chain over two streams of one GPU: launch, record, wait
  /// devices    the same over two GPUs
  /// stencil    4 streams; each step waits for three events of the step before
  /// parallel   empty kernels on `gpus` GPUs at once, a thread each
  /// h2d, d2h   pinned copies of `bytes` to and from GPU `to`
  /// d2d        copies of `bytes` from GPU `from` to GPU `to`
  std::string name;
  std::int32_t gpus = 1;
  std::int32_t count = 10000;
  std::uint64_t bytes = 0;
  std::int32_t to = 0;
  std::int32_t from = 1;
};

/// Nanoseconds per kernel (and GPU) or copy, of the whole loop until the GPU is done. Throws CoreError.
double runBaselineLoop(const BaselineLoop& loop);

}  // namespace headrace
