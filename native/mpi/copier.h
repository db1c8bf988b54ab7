// The copy engine of emulated devices for the message layer: a thread of its own, so that copying a chunk
// overlaps with sending another, as with real copy engines. A hand-over costs more than a short copy, so the
// comm thread makes short copies itself.
// Invariants: jobs are done in order; `done` counts them; the thread exists from the first job on.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

#include "queues/futex_token.h"

namespace headrace::mpi {

class Copier {
 public:
  explicit Copier(FutexToken& comm) : comm_(comm) {}
  ~Copier();
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  /// Number of the job; it is over when `done()` has reached it.
  std::uint64_t copy(void* to, const void* from, std::uint64_t bytes);
  std::uint64_t done() const { return done_.load(std::memory_order_acquire); }
  bool busy() const { return done() != submitted_; }

 private:
  struct Job {
    void* to;
    const void* from;
    std::uint64_t bytes;
  };
  void run();

  FutexToken& comm_;
  FutexToken sleeper_;
  std::mutex lock_;
  std::deque<Job> jobs_;
  std::uint64_t submitted_ = 0;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace headrace::mpi
