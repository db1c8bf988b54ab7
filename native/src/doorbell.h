// How native threads wake the engine: it either blocks in `wait` or sleeps in its event loop.
//
// Invariant (no lost wake-up): the engine arms a queue (doorbellAt, then doorbellArmed) and *then* looks at that
// queue's completed word; the queue stores completed and *then* looks at doorbellArmed. Whoever clears the armed word
// rings. A ring leaves a token for the next `wait`; for the event loop, the engine sets engineAsleep to 2 and then
// re-reads the armed words it set: one that is 0 has rung already.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "headrace/contract.h"
#include "parker.h"

namespace headrace {

class Doorbell {
 public:
  explicit Doorbell(std::atomic<std::int32_t>* shared) : shared_(shared) {}

  /// Rings unconditionally. Any thread.
  void ring();
  /// Blocks the engine until a ring or the time is over; true when it rang. Engine thread only.
  bool wait(std::int64_t nanoseconds);
  /// What a ring calls (on the ringing thread) while the engine sleeps in its event loop; at most one call is
  /// outstanding until `answered`. Set while no queue can ring, or null.
  void setCall(std::function<void()> call) { call_ = std::move(call); }
  /// The engine runs again: the next ring calls again.
  void answered() { called_.store(false, std::memory_order_seq_cst); }

 private:
  std::atomic<std::int32_t>* shared_;
  Parker engine_;
  std::atomic<bool> called_{false};
  std::function<void()> call_;
};

}  // namespace headrace
