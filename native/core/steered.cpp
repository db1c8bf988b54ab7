// Kernels that take parameters from memory: see core/steered.h.
#include "core/steered.h"

#include <cstring>
#include <vector>

#include "core/registry.h"
#include "headrace/contract.h"

namespace headrace {
namespace {

double elementAt(const void* address, bool isInteger) {
  if (isInteger) {
    std::int32_t value;
    std::memcpy(&value, address, sizeof value);
    return value;
  }
  double value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

}  // namespace

std::int32_t runSteered(const headrace_task* task) {
  const KernelEntry* entry = Registry::instance().entry(task->kernel);
  if (entry == nullptr || entry->base == nullptr) return Status::unknownKernel;
  const auto count = static_cast<std::int32_t>(entry->steers.size());
  const std::int32_t flows = task->flow_count - count;
  if (flows < 0) return Status::badArguments;
  // One kernel at a time runs on a thread.
  thread_local std::vector<double> params;
  params.assign(task->params, task->params + task->param_count);
  for (std::int32_t i = 0; i < count; ++i) {
    const Steer& steer = entry->steers[static_cast<std::size_t>(i)];
    if (static_cast<std::size_t>(steer.position) > params.size()) return Status::badArguments;
    params.insert(params.begin() + steer.position,
                  elementAt(task->flows[flows + i], steer.isInteger));
  }
  headrace_task whole = *task;
  whole.flow_count = flows;
  whole.params = params.data();
  whole.param_count = static_cast<std::int32_t>(params.size());
  return entry->base(&whole);
}

}  // namespace headrace
