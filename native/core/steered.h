// Kernels that take parameters from memory: the last flows of their records are parameters of the kernel that they stand for.
#pragma once

#include <cstdint>

#include "headrace/kernel.h"

namespace headrace {

/// Reads the parameters and calls the kernel. `task->kernel` names the entry of the registry.
std::int32_t runSteered(const headrace_task* task);

}  // namespace headrace
