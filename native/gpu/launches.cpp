// Launches of kernels, and the outcomes of library calls that kernels make (gpu/events.cpp delivers them).
//
// Invariants: a kernel that refuses before it has put work into the stream fails its own task only, unless the GPU is lost;
// `currentStream` is set only while a kernel's code runs on this thread; a stream has as many words for outcomes as can be
// in flight.
#include <cstddef>
#include <cstring>

#include "gpu/device.h"
#include "gpu/graphs.h"
#include "gpu/launch_rules.h"
#include "gpu/quiescent_section.h"

namespace headrace {

namespace {

constexpr std::size_t kOutcomesPerStream = 288;

thread_local GpuStream* current = nullptr;

/// The kernel refused before anything was put into the stream.
DriverStatus rejected(GpuStream& on, const Launch& launch, std::int32_t code) {
  if (code == HEADRACE_DEVICE_LOST) on.device->abandon("a kernel said that the device is lost");
  if (on.device->lost.load(std::memory_order_relaxed)) return DriverStatus::lost;
  if (code == HEADRACE_DRIVER_ERROR) return DriverStatus::refused;
  *launch.status = code;
  if (launch.cancel != nullptr) launch.cancel->store(1, std::memory_order_release);
  return DriverStatus::ok;
}

DriverStatus launchFunction(GpuStream& on, const Launch& launch) {
  GpuDevice& at = *on.device;
  headrace_launch plan;
  std::memset(&plan, 0, offsetof(headrace_launch, arguments));
  std::int32_t code = 0;
  if (launch.rules != nullptr) {
    const char* why = "";
    code = launch.rules->plan(launch.task, plan, &why);
    if (code != 0) at.refuse(DriverStatus::refused, why);
  } else {
    headrace_task task = launch.task;
    task.stream = on.stream;
    on.launch = &launch;
    current = &on;
    code = launch.plan(&task, &plan);
    current = nullptr;
    on.launch = nullptr;
  }
  if (code != 0) return rejected(on, launch, code);
  if (plan.grid[0] == 0 || plan.grid[1] == 0 || plan.grid[2] == 0) return DriverStatus::ok;
  return at.check(at.api->launch(launch.function, plan.grid[0], plan.grid[1], plan.grid[2],
                                 plan.block[0], plan.block[1], plan.block[2], plan.shared_bytes,
                                 on.stream, plan.arguments, nullptr),
                  "cuLaunchKernel");
}

}  // namespace

DriverStatus gpuLaunch(StreamHandle handle, const Launch* launch) {
  GpuStream& on = *static_cast<GpuStream*>(handle);
  if (on.device->lost.load(std::memory_order_relaxed)) return DriverStatus::lost;
  ++on.device->work;
  // Work that becomes part of a graph runs later, and the thread that captures holds the pause itself.
  if (on.capture == nullptr) announceLaunch(on);
  if (launch->enqueue == nullptr) return launchFunction(on, *launch);
  headrace_task task = launch->task;
  task.stream = on.stream;
  on.device->refuse(DriverStatus::refused, "the kernel reported an error of the driver");
  on.launch = launch;
  current = &on;
  const std::int32_t code = launch->enqueue(&task);
  current = nullptr;
  on.launch = nullptr;
  return code == 0 ? DriverStatus::ok : rejected(on, *launch, code);
}

GpuStream* currentStream() { return current; }

DriverStatus prepareOutcomes(GpuStream& on) {
  void* words = nullptr;
  const int code = on.device->api->hostAlloc(&words, kOutcomesPerStream * sizeof(std::int32_t),
                                             gpu::kHostPortable);
  if (code != 0) return on.device->fail(code, "cuMemHostAlloc");
  on.outcomeWords = static_cast<std::int32_t*>(words);
  for (std::size_t i = 0; i < kOutcomesPerStream; ++i)
    on.sparePinned.push_back(on.outcomeWords + i);
  return DriverStatus::ok;
}

std::int32_t* takeOutcome(GpuStream& on) {
  if (on.capture != nullptr) {
    GpuGraph& graph = *on.capture;
    return graph.labels.size() < graph.room ? graph.words + graph.labels.size() : nullptr;
  }
  if (on.sparePinned.empty()) return nullptr;
  std::int32_t* word = on.sparePinned.back();
  on.sparePinned.pop_back();
  *word = 0;
  return word;
}

void reportLater(GpuStream& on, std::int32_t* pinned) {
  if (on.capture != nullptr) {
    on.capture->labels.push_back(on.capture->label);
    return;
  }
  on.outcomes.push_back({on.position + 1, pinned, on.launch->status, on.launch->cancel});
}

}  // namespace headrace
