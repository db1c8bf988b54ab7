// Pauses between launches: see gpu/quiescent_section.h.
#include "gpu/quiescent_section.h"

#include <sched.h>

#include <algorithm>
#include <vector>

#include "core/clock.h"
#include "core/guards.h"
#include "gpu/events.h"

namespace headrace {

namespace {

/// The open GPUs of all cores of the process, and their streams.
std::mutex openLock;
std::vector<GpuDevice*> openDevices;

std::mutex pauseLock;
std::atomic<bool> paused{false};

/// After a wait in vain: kernels that wait for something from outside should not be kept from it again and again.
constexpr std::int64_t kImpatience = 1000000000;
std::atomic<std::int64_t> impatientUntil{0};

bool allQuiet() {
  if (!guards.launchPause) return true;
  std::lock_guard<std::mutex> guard(openLock);
  return std::all_of(openDevices.begin(), openDevices.end(),
                     [](const GpuDevice* each) { return each->quiet(); });
}

/// The same, asked of the drivers: while launches are held up, the threads of the GPUs do not look at their streams.
bool allIdle() {
  std::lock_guard<std::mutex> guard(openLock);
  return std::all_of(openDevices.begin(), openDevices.end(), [](const GpuDevice* each) {
    return each->lost.load(std::memory_order_acquire) ||
           std::all_of(each->streams.begin(), each->streams.end(), [&](const GpuStream* one) {
             return one->launched.load(std::memory_order_relaxed) <=
                        one->completed.load(std::memory_order_acquire) ||
                    each->api->streamQuery(one->stream) == 0;
           });
  });
}

}  // namespace

QuiescentSection::QuiescentSection(std::int64_t patience) {
  const std::int64_t start = now();
  if (!guards.lockPatience || !mayWait()) patience = 0;
  // No launch is held up if it is certain that no pause is possible.
  if (patience == 0 && !allQuiet()) return;
  one_ = std::unique_lock<std::mutex>(pauseLock);
  paused.store(true, std::memory_order_seq_cst);
  holds_ = allQuiet();
  while (!holds_ && now() - start < patience) {
    waited_ = true;
    sched_yield();
    holds_ = allIdle();
  }
  if (!holds_ && patience > 0) impatientUntil.store(now() + kImpatience, std::memory_order_relaxed);
  if (!holds_) paused.store(false, std::memory_order_release);
}

bool QuiescentSection::mayWait() { return now() >= impatientUntil.load(std::memory_order_relaxed); }

QuiescentSection::~QuiescentSection() {
  if (holds_) paused.store(false, std::memory_order_release);
}

void announceLaunch(GpuStream& stream) {
  stream.launched.store(stream.position + 1, std::memory_order_seq_cst);
  while (__builtin_expect(paused.load(std::memory_order_seq_cst), 0)) sched_yield();
}

void addOpenDevice(GpuDevice* device) {
  std::lock_guard<std::mutex> guard(openLock);
  openDevices.push_back(device);
}

void removeOpenDevice(GpuDevice* device) {
  std::lock_guard<std::mutex> guard(openLock);
  openDevices.erase(std::find(openDevices.begin(), openDevices.end(), device));
}

void addOpenStream(GpuStream* stream) {
  std::lock_guard<std::mutex> guard(openLock);
  stream->device->streams.push_back(stream);
}

void removeOpenStream(GpuStream* stream) {
  std::lock_guard<std::mutex> guard(openLock);
  auto& streams = stream->device->streams;
  streams.erase(std::find(streams.begin(), streams.end(), stream));
}

bool anyStuckDevice() {
  std::lock_guard<std::mutex> guard(openLock);
  return std::any_of(openDevices.begin(), openDevices.end(),
                     [](GpuDevice* each) { return gpuStuck(*each); });
}

}  // namespace headrace
