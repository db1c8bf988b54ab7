// The right to submit for a GPU. Its own thread has it, or the thread of another GPU that waits for work which this one
// has yet to submit. So one thread submits dependent tasks that alternate between GPUs, as a loop by hand would:
// handing every one of them from thread to thread costs more than the launch.
//
// Invariants: one thread holds the lock at a time, and the next holder sees its writes. No holder waits for
// another. The owner leaves the lock to others for at most `kAside` after they last submitted something.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "core/clock.h"

namespace headrace {

class SubmissionLock {
 public:
  bool tryTake() {
    return !taken_.load(std::memory_order_relaxed) &&
           !taken_.exchange(true, std::memory_order_acquire);
  }
  void take() {
    while (!tryTake()) sched_yield();
  }
  void giveBack() { taken_.store(false, std::memory_order_release); }

  /// Another GPU's thread that has made progress here calls it: the owner stays out of its way for a while.
  void keepOwnerAside() {
    const std::int64_t time = now();
    if (asideUntil_.load(std::memory_order_relaxed) - time < kAside / 2) {
      asideUntil_.store(time + kAside, std::memory_order_relaxed);
    }
  }
  bool ownerIsAside() {
    const std::int64_t until = asideUntil_.load(std::memory_order_relaxed);
    if (until == 0) return false;
    if (now() < until) return true;
    asideUntil_.store(0, std::memory_order_relaxed);
    return false;
  }

 private:
  /// About as long as a few launches take (nanoseconds).
  static constexpr std::int64_t kAside = 20000;

  alignas(64) std::atomic<bool> taken_{false};
  // In a line of its own: the owner keeps reading it while others hold the lock.
  alignas(64) std::atomic<std::int64_t> asideUntil_{0};
};

}  // namespace headrace
