// The part of the Node-API surface that concerns GPUs only; used by addon/addon.cpp.
#pragma once

#include <napi.h>

#include "core/kernel_source.h"

namespace headrace {

/// Reads a `NativeKernelSource` (contract.ts), which native/index.ts has checked. Throws CoreError.
KernelSource readKernelSource(const Napi::Object& given);
/// `NativeProbe.cuda`: the GPUs and the libraries for kernels.
Napi::Object cudaReport(Napi::Env env);
/// runBaselineLoop(name, gpus, count, bytes): nanoseconds per operation. Throws CoreError.
double rawLoop(const Napi::CallbackInfo& info);

}  // namespace headrace
