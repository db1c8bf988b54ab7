// The element counts that the kernel of a record gets: a list by number, or the numbers behind the parameters.
#pragma once

#include "core/runtime.h"
#include "queues/ring.h"

namespace headrace {

/// Sets the parameters and lengths of a task from its record, whose arguments are `values`. False: the record lacks some.
inline bool readParameters(const Runtime& runtime, const Command& command, const double* values,
                           headrace_task& task) {
  const std::int32_t flows = command.flowCount();
  const std::int32_t total = command.argumentCount();
  task.params = values + flows;
  task.param_count = total - flows;
  task.lengths = nullptr;
  if (!runtime.registry.takesLengths(command.kernel())) return flows <= total;
  if (command.lengths() != 0) {
    task.lengths = runtime.lengths.at(command.lengths(), flows);
    return flows <= total && task.lengths != nullptr;
  }
  task.param_count -= flows;
  task.lengths = values + total - flows;
  return task.param_count >= 0;
}

}  // namespace headrace
