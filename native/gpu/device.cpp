// The errors of a GPU, and the check of calls that could wait for a running kernel (hazard H8).
//
// Invariants: once a call has reported that the context is dead, the GPU is lost for good and keeps the words of that first
// error, since all later ones are a consequence; the words are touched under a lock, because any thread may ask for them.
#include "gpu/device.h"

#include <execinfo.h>
#include <pthread.h>

#include <algorithm>
#include <cstdlib>

#include "core/clock.h"

namespace headrace {

namespace {

std::atomic<bool> checks{false};

}  // namespace

DriverStatus GpuDevice::fail(int code, const char* call) {
  const std::string text = std::string(call) + ": " + gpuErrorText(*api, code);
  if (gpuLost(code)) return abandon(text);
  return refuse(code == gpu::kOutOfMemory ? DriverStatus::outOfMemory : DriverStatus::refused,
                text);
}

DriverStatus GpuDevice::abandon(const std::string& text) {
  std::lock_guard<std::mutex> guard(errorLock_);
  // The first error stays the device's error for good: all later ones are a consequence.
  if (!lost.load(std::memory_order_relaxed)) {
    error_ = text;
    lostAt.store(now(), std::memory_order_relaxed);
    lost.store(true, std::memory_order_release);
  }
  return DriverStatus::lost;
}

DriverStatus GpuDevice::refuse(DriverStatus status, const std::string& text) {
  std::lock_guard<std::mutex> guard(errorLock_);
  if (lost.load(std::memory_order_relaxed)) return DriverStatus::lost;
  error_ = text;
  return status;
}

const char* GpuDevice::error() {
  thread_local std::string copy;
  std::lock_guard<std::mutex> guard(errorLock_);
  copy = error_;
  return copy.c_str();
}

bool GpuDevice::quiet() const {
  // No work of a lost GPU runs any more, and no completion of it will be seen.
  return lost.load(std::memory_order_acquire) ||
         std::all_of(streams.begin(), streams.end(), [](const GpuStream* each) {
           return each->launched.load(std::memory_order_relaxed) <=
                  each->completed.load(std::memory_order_acquire);
         });
}

DriverStatus GpuDevice::permit(const char* call) {
  if (!driverChecks() || lost.load(std::memory_order_relaxed) || quiet()) return DriverStatus::ok;
  char thread[16] = "";
  pthread_getname_np(pthread_self(), thread, sizeof thread);
  std::string text = std::string(call) + " while kernels run on GPU " + std::to_string(ordinal) +
                     " (thread " + thread + "), called from";
  void* frames[6];
  const int count = backtrace(frames, 6);
  if (char** names = backtrace_symbols(frames, count)) {
    for (int i = 1; i < count; ++i) text += std::string(i > 1 ? " < " : " ") + names[i];
    std::free(names);
  }
  return refuse(DriverStatus::refused, text);
}

void enableDriverChecks() { checks.store(true, std::memory_order_relaxed); }
bool driverChecks() { return checks.load(std::memory_order_relaxed); }

}  // namespace headrace
