// The lanes of a core for the message layer (headrace/lanes.h): the last queues of the core, without a thread of their own.
//
// Invariant: the count of arrivals grows after a completion is stored and before the doorbell rings for it. So an engine
// that sees the new count sees the completion, and one that the doorbell wakes sees the new count.
#pragma once

#include <cstdint>
#include <vector>

#include "core/runtime.h"
#include "headrace/lanes.h"

namespace headrace {

class Lanes {
 public:
  /// The lanes are the queues of the runtime from number `first` on.
  Lanes(Runtime& runtime, std::int32_t first);
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  /// Valid as long as this object.
  const headrace_lanes* table() const { return &table_; }

 private:
  static Lanes& of(void* self) { return *static_cast<Lanes*>(self); }
  Queue& lane(std::int32_t number) const { return *runtime_.queues[first_ + number]; }
  std::int32_t refill(Queue& queue);
  void complete(Queue& queue, std::int32_t sequence, std::int32_t status, double start, double end);
  bool watch(std::int32_t lane, Queue& queue, std::int32_t sequence, FutexToken& sleeper);
  bool watchFeed(std::int32_t number, FutexToken& sleeper);
  void unwatch(std::int32_t lane);

  Runtime& runtime_;
  const std::int32_t first_;
  headrace_lanes table_;
  /// By lane: the wish to wake the server, and the queue that has it.
  struct Watch {
    CompletionWaiter waiter;
    Queue* queue = nullptr;
    /// The lane waits in a play: the play wakes the server as the owner of the lane.
    bool owns = false;
  };
  std::vector<Watch> watches_;
};

}  // namespace headrace
