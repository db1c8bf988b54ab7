// Kernels of a core: looked up by name, loaded, compiled, and bound to parameters and lengths. Used by addon/addon.cpp.
#pragma once

#include <napi.h>

#include "core/core.h"

namespace headrace {

// The methods of `NativeCore` (contract.ts) with these names, of a core that is open.
Napi::Value kernel(const Napi::CallbackInfo& info, Core& core);
Napi::Value takesLengths(const Napi::CallbackInfo& info, Core& core);
Napi::Value steered(const Napi::CallbackInfo& info, Core& core);
Napi::Value numberLengths(const Napi::CallbackInfo& info, Core& core);
Napi::Value loadKernels(const Napi::CallbackInfo& info, Core& core);
Napi::Value compileKernels(const Napi::CallbackInfo& info, Core& core);
/// Names of the kernels that the addon has.
Napi::Value builtInKernels(const Napi::CallbackInfo& info);

}  // namespace headrace
