// The memory spaces of a core, and what other processes need to reach them. Used by addon/addon.cpp.
#pragma once

#include <napi.h>

#include "core/core.h"

namespace headrace {

// The methods of `NativeCore` (contract.ts) with these names.
Napi::Value spaces(const Napi::CallbackInfo& info, Core& core);
Napi::Value shareable(const Napi::CallbackInfo& info, Core& core);
Napi::Value ipcExport(const Napi::CallbackInfo& info, Core& core);
Napi::Value peerAccess(const Napi::CallbackInfo& info, Core& core);
/// `address` of the contract.
Napi::Value spaceAddress(const Napi::CallbackInfo& info, Core& core);

}  // namespace headrace
