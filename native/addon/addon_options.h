// The options and queues of a core, as JavaScript gives them. Used by addon/addon.cpp.
#pragma once

#include <napi.h>

#include <vector>

#include "core/core.h"

namespace headrace {

/// From `NativeOptions` of contract.ts.
CoreOptions readCoreOptions(const Napi::Object& given);
/// `table`: int32 kind, space and peer of each queue; `rings` and `times`: its records and their times.
std::vector<QueueOptions> readQueues(const Napi::Value& table, const Napi::Array& rings,
                                     const Napi::Array& times);
/// queueTable(workers, gpus, computeStreams, lanes, scriptWorkers): the queues of such a core.
Napi::Value queueTable(const Napi::CallbackInfo& info);

}  // namespace headrace
