// A host worker: one thread, one queue; runs kernels and copies on host memory in the order of its ring.
//
// Invariants: `completed` is published after every record, so no other queue ever waits for a record that is done;
// the thread spins for a few microseconds at most, then sleeps until what it waits for has happened.
#pragma once

#include <cstdint>
#include <thread>
#include <vector>

#include "parker.h"
#include "ring.h"
#include "runtime.h"

namespace headrace {

class Worker {
 public:
  Worker(Runtime& runtime, Queue& queue);
  /// The core must be closing.
  ~Worker();

 private:
  void run();
  bool waitForWork(std::int32_t sequence);
  bool waitForEvent(const Command& command);
  std::int32_t execute(const Command& command, std::int32_t sequence);
  std::int32_t runKernel(const Command& command, std::int32_t sequence, std::int32_t span);
  std::int32_t copy(const Command& command);
  std::int32_t fill(const Command& command);
  void becomeIdle(std::int64_t time);
  void becomeBusy();

  Runtime& runtime_;
  Queue& queue_;
  Parker parker_;
  bool stopped_ = false;
  std::int32_t visible_ = 0;  // last record known to be published
  std::int64_t busySince_ = 0;
  std::vector<void*> flows_;
  std::vector<double> scratch_;
  headrace_task task_;
  std::thread thread_;  // last: starts when everything else exists
};

}  // namespace headrace
