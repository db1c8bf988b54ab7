// Kernel sources, what the machine has, and raw loops of its drivers, for JavaScript. Used by addon/addon.cpp and addon/addon_kernels.cpp.
#pragma once

#include <napi.h>

#include "core/kernel_source.h"

namespace headrace {

/// Reads a `NativeKernelSource` (contract.ts), which native/index.ts has checked. Throws CoreError.
KernelSource readKernelSource(const Napi::Object& given);
/// probe(): `NativeProbe` of contract.ts, what the doctor reports.
Napi::Value probe(const Napi::CallbackInfo& info);
/// rawLoop(name, gpus, count, bytes, to, from): nanoseconds per operation of a driver without queues.
Napi::Value rawLoop(const Napi::CallbackInfo& info);

}  // namespace headrace
