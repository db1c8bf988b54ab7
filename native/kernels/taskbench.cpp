// The checking kernel of Task Bench (Slaughter et al., SC'20): task (t, p) fills its output with the pair (t, p),
// and every consumer checks every pair of every input.
//
//   taskbench   flows: output, inputs...
//               params: t, p, epoch, bytes, iterations, then for each input the column whose task of step t - 1 must
//               have written it
//
// An output of `bytes` bytes (a multiple of 16) holds pairs of int64 (epoch * 2^32 + t, p): a second run with another
// epoch that reads stale data fails. Checks first, then computes `iterations` rounds of the compute-bound kernel, then
// writes, so an output may share memory with an input. Returns 1 + i when input i has a wrong content.
#include <cstdint>

#include "kernels/kernels.h"

namespace headrace {

namespace {

struct Pair {
  std::int64_t step;
  std::int64_t column;
};

constexpr std::int32_t kFixedParams = 5;

std::int64_t stamp(double epoch, double step) {
  return static_cast<std::int64_t>(epoch) * (std::int64_t{1} << 32) +
         static_cast<std::int64_t>(step);
}

std::int32_t taskBench(const headrace_task* task) {
  const std::int32_t inputs = task->flow_count - 1;
  if (inputs < 0 || task->param_count != kFixedParams + inputs) return HEADRACE_BAD_ARGUMENTS;
  const double step = task->params[0];
  const double epoch = task->params[2];
  const double bytes = task->params[3];
  const auto pairs = static_cast<std::int64_t>(bytes / sizeof(Pair));
  for (std::int32_t i = 0; i <= inputs; ++i) {
    if (!inSpace(task, task->flows[i], bytes)) return HEADRACE_OUT_OF_RANGE;
  }
  for (std::int32_t i = 0; i < inputs; ++i) {
    const auto* input = static_cast<const Pair*>(task->flows[i + 1]);
    const std::int64_t wantedStep = stamp(epoch, step - 1);
    const auto wantedColumn = static_cast<std::int64_t>(task->params[kFixedParams + i]);
    for (std::int64_t k = 0; k < pairs; ++k) {
      if (input[k].step != wantedStep || input[k].column != wantedColumn) return 1 + i;
    }
  }
  const auto iterations = static_cast<std::int64_t>(task->params[4]);
  if (iterations > 0) computeBound(iterations);
  auto* output = static_cast<Pair*>(task->flows[0]);
  const Pair mine{stamp(epoch, step), static_cast<std::int64_t>(task->params[1])};
  for (std::int64_t k = 0; k < pairs; ++k) output[k] = mine;
  return 0;
}

}  // namespace

std::int32_t registerTaskBenchKernels(headrace_registry* registry) {
  return registry->add(registry, "taskbench", HEADRACE_KERNEL_HOST, taskBench);
}

}  // namespace headrace
