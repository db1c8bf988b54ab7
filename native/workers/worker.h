// A host worker: one thread that serves one worker queue at a time, as a rule always the same (queue_ownership.h).
//
// Invariant: the thread spins for a moment at most, then sleeps until the awaited event has happened.
#pragma once

#include <cstdint>
#include <thread>

#include "core/runtime.h"
#include "core/stolen_time.h"
#include "queues/futex_token.h"
#include "workers/executor.h"

namespace headrace {

class Worker {
 public:
  /// Joins the ownership with `queue`; serves from `start` on.
  Worker(Runtime& runtime, Queue& queue);
  /// The core must be closing.
  ~Worker();
  void start();

 private:
  enum class Next { execute, giveUp, look, end };

  void run();
  Next waitForWork();
  Next waitForEvent();
  bool changeQueue();

  Runtime& runtime_;
  Queue& first_;
  FutexToken sleeper_;
  StolenTime stolen_;
  Executor executor_;
  std::int64_t crowdedSince_ = 0;
  std::thread thread_;  // last: starts when everything else exists
};

}  // namespace headrace
