// Moments in which no kernel runs on any open GPU, for calls that wait for running kernels: page-locking, allocating,
// loading code (hazard H8). A kernel may itself wait for data that the calling thread has yet to deliver, on another GPU
// too.
//
// Invariant: a launch raises its stream's `launched` and then checks for a pause; a pause is announced and
// then checks every `launched`. One of the two sees the other: either the pause does not hold, or the launch waits
// until it is over. A thread that holds a pause launches nothing through the driver table and waits for no other GPU's
// thread.
#pragma once

#include <cstdint>
#include <mutex>

#include "gpu/device.h"

namespace headrace {

class QuiescentSection {
 public:
  /// `patience` (nanoseconds): so long no kernel is launched while those that run come to their end. It has a limit because
  /// they may wait for the caller. After a wait in vain no section of the process waits for a second.
  explicit QuiescentSection(std::int64_t patience = 0);
  ~QuiescentSection();
  QuiescentSection(const QuiescentSection&) = delete;
  QuiescentSection& operator=(const QuiescentSection&) = delete;

  /// False when a kernel may be running: the forbidden calls must not be made now.
  bool holds() const { return holds_; }
  /// Whether it has waited for kernels.
  bool waited() const { return waited_; }
  /// Whether a section would wait now: no wait was in vain in the last second.
  static bool mayWait();

 private:
  std::unique_lock<std::mutex> one_;
  bool holds_ = false;
  bool waited_ = false;
};

/// Before a launch: from here on the stream counts as running a kernel. Waits until a pause is over.
void announceLaunch(GpuStream& stream);

/// GPUs count from when they are open, streams from when they are complete.
void addOpenDevice(GpuDevice* device);
void removeOpenDevice(GpuDevice* device);
void addOpenStream(GpuStream* stream);
void removeOpenStream(GpuStream* stream);
/// True when a GPU was given up whose streams still wait for another, lost one (gpu/events.h).
bool anyStuckDevice();

}  // namespace headrace
