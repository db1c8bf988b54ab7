// Kernels that need no library: for tests, for benchmarks of the runtime itself, and for plain data handling.
//
//   empty          does nothing; any flows and parameters
//   compute_bound  params: iterations. Task Bench's compute-bound kernel
//   spin           params: microseconds. Keeps its executor busy for that long
//   fill_f64       flows: to; params: count, value. to[i] = value
//   add_f64        flows: to, from; params: count [, factor = 1]. to[i] += factor * from[i]
//   dot_f64        flows: to, x, y; params: count. to[0] += sum of x[i] * y[i]
//   copy_bytes     flows: to, from; params: bytes
//   fail           params: code. Returns the code (tests of error paths)
#include <cmath>
#include <cstring>

#include "core/clock.h"
#include "kernels/kernels.h"
#include "kernels/vectorised.h"

namespace headrace {

HEADRACE_VECTORISED void computeBound(std::int64_t iterations) {
  constexpr int kLanes = 64;
  double a[kLanes];
  for (double& value : a) value = 1.2345;
  for (std::int64_t i = 0; i < iterations; ++i) {
    for (double& value : a) value = value * value + value;
  }
  // The values have no use: this keeps the compiler from removing them.
  asm volatile("" : : "r"(a) : "memory");
}

namespace {

/// Enough independent sums that the loop waits for memory only.
HEADRACE_VECTORISED double dotOf(const double* x, const double* y, std::int64_t count) {
  constexpr int kLanes = 32;
  double sums[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += x[i + lane] * y[i + lane];
  }
  for (int lane = 0; i + lane < count; ++lane) sums[lane] += x[i + lane] * y[i + lane];
  for (int step = kLanes / 2; step > 0; step /= 2) {
    for (int lane = 0; lane < step; ++lane) sums[lane] += sums[lane + step];
  }
  return sums[0];
}

std::int32_t empty(const headrace_task*) { return 0; }

std::int32_t computeBoundKernel(const headrace_task* task) {
  if (task->param_count < 1) return HEADRACE_BAD_ARGUMENTS;
  computeBound(static_cast<std::int64_t>(task->params[0]));
  return 0;
}

std::int32_t spinKernel(const headrace_task* task) {
  if (task->param_count < 1) return HEADRACE_BAD_ARGUMENTS;
  const std::int64_t end = now() + static_cast<std::int64_t>(task->params[0] * 1000);
  while (now() < end) pauseProcessor();
  return 0;
}

std::int32_t fillF64(const headrace_task* task) {
  if (task->flow_count < 1 || task->param_count < 2) return HEADRACE_BAD_ARGUMENTS;
  if (!inSpace(task, task->flows[0], task->params[0] * 8)) return HEADRACE_OUT_OF_RANGE;
  auto* to = static_cast<double*>(task->flows[0]);
  const auto count = static_cast<std::int64_t>(task->params[0]);
  const double value = task->params[1];
  for (std::int64_t i = 0; i < count; ++i) to[i] = value;
  return 0;
}

std::int32_t addF64(const headrace_task* task) {
  if (task->flow_count < 2 || task->param_count < 1) return HEADRACE_BAD_ARGUMENTS;
  const double bytes = task->params[0] * 8;
  if (!inSpace(task, task->flows[0], bytes) || !inSpace(task, task->flows[1], bytes)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  auto* to = static_cast<double*>(task->flows[0]);
  const auto* from = static_cast<const double*>(task->flows[1]);
  const auto count = static_cast<std::int64_t>(task->params[0]);
  const double factor = task->param_count > 1 ? task->params[1] : 1;
  for (std::int64_t i = 0; i < count; ++i) to[i] += factor * from[i];
  return 0;
}

std::int32_t dotF64(const headrace_task* task) {
  if (task->flow_count != 3 || task->param_count < 1) return HEADRACE_BAD_ARGUMENTS;
  const double bytes = task->params[0] * 8;
  const auto& flows = task->flows;
  if (!inSpace(task, flows[0], 8) || !inSpace(task, flows[1], bytes) ||
      !inSpace(task, flows[2], bytes)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  *static_cast<double*>(flows[0]) +=
      dotOf(static_cast<const double*>(flows[1]), static_cast<const double*>(flows[2]),
            static_cast<std::int64_t>(task->params[0]));
  return 0;
}

std::int32_t copyBytes(const headrace_task* task) {
  if (task->flow_count < 2 || task->param_count < 1) return HEADRACE_BAD_ARGUMENTS;
  const double bytes = task->params[0];
  if (!inSpace(task, task->flows[0], bytes) || !inSpace(task, task->flows[1], bytes)) {
    return HEADRACE_OUT_OF_RANGE;
  }
  std::memmove(task->flows[0], task->flows[1], static_cast<std::size_t>(bytes));
  return 0;
}

std::int32_t failKernel(const headrace_task* task) {
  return task->param_count < 1 ? HEADRACE_BAD_ARGUMENTS
                               : static_cast<std::int32_t>(task->params[0]);
}

}  // namespace

std::int32_t registerBasicKernels(headrace_registry* registry) {
  const struct {
    const char* name;
    headrace_kernel kernel;
  } kernels[] = {
      {"empty", empty},          {"compute_bound", computeBoundKernel},
      {"spin", spinKernel},      {"fill_f64", fillF64},
      {"add_f64", addF64},       {"dot_f64", dotF64},
      {"copy_bytes", copyBytes}, {"fail", failKernel},
  };
  for (const auto& each : kernels) {
    registry->add(registry, each.name, HEADRACE_KERNEL_HOST, each.kernel);
  }
  return 0;
}

}  // namespace headrace
