// Ends of transfers that failed as they would if the peer had died. The peer's memory goes before its socket ends, and
// rank 0 may be slow to pass the news on (lifeline.h): for a while such an end is kept back, so that the death of the
// peer is named as the cause and not the first thing that could not be done without it.
//
// Invariants: used by one thread; every end that was added is told once, in the order added, with its own status when
// its time has come or with that of the loss.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "contract.h"
#include "core/guards.h"

namespace headrace::mpi {

/// `End` is what the owner needs to tell an end.
template <class End>
class Doubts {
 public:
  /// A peer's death would explain the status.
  static bool explains(std::int32_t status) {
    const bool isLikely = status == NetStatus::library || status == NetStatus::mapping;
    return isLikely && guards.doubtFailures;
  }
  bool empty() const { return doubts_.empty(); }
  void add(End end, std::int32_t status, std::int64_t until) {
    doubts_.push_back({std::move(end), status, until});
  }
  /// Nobody died in time: `tell(end, status)` for what was added long enough before `time`. True when any was told.
  template <class Tell>
  bool tellDue(std::int64_t time, Tell tell) {
    bool told = false;
    while (!doubts_.empty() && doubts_.front().until <= time) {
      const Doubt doubt = std::move(doubts_.front());
      doubts_.pop_front();
      tell(doubt.end, doubt.status);
      told = true;
    }
    return told;
  }
  /// A rank died: `tell(end)` for everything that was kept back.
  template <class Tell>
  void tellAll(Tell tell) {
    while (!doubts_.empty()) {
      const Doubt doubt = std::move(doubts_.front());
      doubts_.pop_front();
      tell(doubt.end);
    }
  }

 private:
  struct Doubt {
    End end;
    std::int32_t status;
    std::int64_t until;
  };
  std::deque<Doubt> doubts_;
};

}  // namespace headrace::mpi
