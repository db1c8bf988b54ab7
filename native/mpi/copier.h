// The copy engine of emulated devices for the message layer: a thread of its own, so that copying a chunk
// overlaps with sending another, as with real copy engines. A hand-over costs more than a short copy, so the
// comm thread makes short copies itself. The chunks of a version come one after the other: between two of them the thread waits
// awake, like the comm thread, because waking it takes as long as a copy.
// Invariants: jobs are done in order; `done` counts them; the thread exists from the first job on. `submitted` grows after the job is in
// the list and before `unpark`, so a thread that finds no job and sleeps is woken.
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
  /// `spinNanoseconds`: how long the comm thread spins before it sleeps.
  Copier(FutexToken& comm, std::int64_t spinNanoseconds);
  ~Copier();
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  /// Number of the job; it is over when `done()` has reached it.
  std::uint64_t copy(void* to, const void* from, std::uint64_t bytes);
  std::uint64_t done() const { return done_.load(std::memory_order_acquire); }
  bool busy() const { return done() != submitted_.load(std::memory_order_relaxed); }

 private:
  struct Job {
    void* to;
    const void* from;
    std::uint64_t bytes;
  };
  void run();
  bool take(Job& job);

  FutexToken& comm_;
  const std::int64_t spinNanoseconds_;
  FutexToken sleeper_;
  std::mutex lock_;
  std::deque<Job> jobs_;
  std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace headrace::mpi
