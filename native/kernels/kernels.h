// The built-in kernels: each file of this folder offers its own through one function of the public interface.
#pragma once

#include <cstdint>

#include "headrace/kernel.h"

namespace headrace {

std::int32_t registerBasicKernels(headrace_registry* registry);
std::int32_t registerBlockKernels(headrace_registry* registry);
std::int32_t registerCombineKernels(headrace_registry* registry);
std::int32_t registerTaskBenchKernels(headrace_registry* registry);
std::int32_t registerTileKernels(headrace_registry* registry);
std::int32_t registerTileFactorKernels(headrace_registry* registry);
std::int32_t registerTileReductionKernels(headrace_registry* registry);
std::int32_t registerGradientKernels(headrace_registry* registry);
std::int32_t registerCudaBasicKernels(headrace_registry* registry);
std::int32_t registerCudaTileKernels(headrace_registry* registry);

/// The compute-bound loop of Task Bench: `iterations` times a = a * a + a on 64 doubles.
void computeBound(std::int64_t iterations);

/// True for the names of kernels that use BLAS: the library is found when their id is asked for, not on a worker.
bool isTileKernel(const char* name);

/// True when `bytes` bytes from `pointer` on lie inside the task's memory space.
inline bool inSpace(const headrace_task* task, const void* pointer, double bytes) {
  const auto offset = reinterpret_cast<std::uintptr_t>(pointer) -
                      reinterpret_cast<std::uintptr_t>(task->space_base);
  return bytes >= 0 && offset <= task->space_bytes &&
         bytes <= static_cast<double>(task->space_bytes - offset);
}

}  // namespace headrace
