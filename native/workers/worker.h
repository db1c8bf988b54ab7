// A host worker: one thread that serves one worker queue at a time, as a rule always the same (queue_ownership.h).
//
// Invariant: the thread spins for a moment at most, then sleeps until the awaited event has happened.
//
// While it spins it may serve the lanes of the message layer in place of the comm thread (headrace/lanes.h). It does so if it has waited
// for version after version without sleeping, and has had little to do in between. With more to do the messages would wait for it, or
// be served by two threads in turn, and each change costs as much as a message.
#pragma once

#include <cstdint>
#include <thread>

#include "core/helping.h"
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
  bool mayHelp(const Queue* awaited);
  void waitEnds(bool slept);

  Runtime& runtime_;
  Queue& first_;
  FutexToken sleeper_;
  StolenTime stolen_;
  Executor executor_;
  std::int64_t crowdedSince_ = 0;
  /// End of its last wait, if it did not sleep; kept while there are lanes.
  std::int64_t waitedUntil_ = 0;
  /// Its last waits for versions with little work before each, up to a limit.
  std::int32_t waitsInRow_ = 0;
  Helping helping_;
  std::thread thread_;  // last: starts when everything else exists
};

}  // namespace headrace
