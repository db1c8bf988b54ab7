// The part of the Node-API surface that script workers use, on their own threads.
#pragma once

#include <napi.h>

#include "core/core.h"

namespace headrace {

/// hostView(offset, bytes) of a core that is open.
Napi::Value viewOfHost(const Napi::CallbackInfo& info, const Core& core);
/// `NativeScriptServer` of contract.ts.
Napi::Function defineScriptServer(Napi::Env env);

}  // namespace headrace
