// The way in which native threads wake the engine, which either blocks in `wait` or sleeps in its event loop.
//
// Invariant (no lost wake-up): the engine arms a queue (doorbellAt, then doorbellArmed), sets engineAsleep, and *then*
// reads that queue's completed word; the queue stores completed and *then* reads doorbellArmed and engineAsleep.
// All of it is seq_cst, so either the engine sees that the number is reached and stays awake, or the queue sees a
// sleeping engine that wants a ring. While the engine is awake no queue rings, and the queue stays armed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "headrace/contract.h"
#include "queues/futex_token.h"

namespace headrace {

class Doorbell {
 public:
  explicit Doorbell(std::atomic<std::int32_t>* shared) : shared_(shared) {}

  bool engineSleeps() const {
    return shared_[Shared::engineAsleep].load(std::memory_order_seq_cst) != 0;
  }
  /// Wakes the engine from either sleep. Any thread.
  void ring();
  /// Blocks the engine until a ring or the time is over; true when it rang. `due()` is called once the engine counts as
  /// asleep: true means that there is nothing to wait for. Engine thread only.
  template <typename Due>
  bool wait(std::int64_t nanoseconds, Due due) {
    shared_[Shared::engineAsleep].store(1, std::memory_order_seq_cst);
    const bool rang = due() || engine_.park(nanoseconds);
    shared_[Shared::engineAsleep].store(0, std::memory_order_seq_cst);
    return rang;
  }
  /// As `wait`, but the engine's thread does `work(rung)` instead of sleeping; `rung()` tells it when to end.
  template <typename Due, typename Work>
  void workUntilRung(Due due, Work work) {
    shared_[Shared::engineAsleep].store(1, std::memory_order_seq_cst);
    if (!due()) work([this] { return engine_.poll(); });
    shared_[Shared::engineAsleep].store(0, std::memory_order_seq_cst);
  }
  /// The function that a ring calls (on the ringing thread) while the engine sleeps in its event loop; at most one call is
  /// outstanding until `answered`. Set while no queue can ring, or null.
  void setCall(std::function<void()> call) { call_ = std::move(call); }
  /// The engine runs again: the next ring calls again.
  void answered() { called_.store(false, std::memory_order_seq_cst); }

 private:
  std::atomic<std::int32_t>* shared_;
  FutexToken engine_;
  std::atomic<bool> called_{false};
  std::function<void()> call_;
};

}  // namespace headrace
