// The work of a GPU for the message layer: copies to and from staging buffers, reads of memory that another process has
// opened for this one, flushes. One thread per GPU, so that the comm thread itself enters the driver only through MPI. A
// call that takes long here (a flush, a full launch queue) holds up neither messages nor the runtime's own work (H8, H16).
//
// Invariants:
// - all work goes into non-blocking streams made before the first job; nothing here allocates or waits for a
//   kernel afterwards. A lane is one stream: its jobs are done in order, jobs of different lanes in any order;
// - `take` hands back every submitted job exactly once, with the driver's code;
// - the thread holds no lock while it is inside the driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "gpus.h"
#include "queues/futex_token.h"

namespace headrace::mpi {

class GpuMover {
 public:
  enum class Kind : std::uint8_t { toHost, toDevice, onDevice, flush };
  struct Job {
    Kind kind;
    std::int32_t lane;
    /// Its name for `take`.
    std::int32_t ticket;
    std::uint64_t to;
    std::uint64_t from;
    std::uint64_t bytes;
    /// Of a flush: CUDA's scope.
    std::int32_t scope;
  };
  struct Finished {
    std::int32_t ticket;
    int code;
  };

  /// Throws std::runtime_error when the streams cannot be made. Every finished job wakes `comm`.
  GpuMover(const Gpu& gpu, std::int32_t lanes, FutexToken& comm);
  /// Finishes the submitted jobs.
  ~GpuMover();
  /// True when the thread has been in one flush for that long: it may never return, and neither may the destructor.
  bool isStuck(std::int64_t nanoseconds) const;
  /// Abandons a stuck mover: if the flush returns after all, its thread touches only the mover (which
  /// the caller must not destroy) and ends. Its streams and events stay as long as the process.
  void orphan();
  GpuMover(const GpuMover&) = delete;
  GpuMover& operator=(const GpuMover&) = delete;

  void submit(const Job& job);
  /// Appends the finished jobs; true when there are any.
  bool take(std::vector<Finished>& finished);
  /// Jobs submitted and not taken. Only the submitting thread may ask.
  std::int32_t outstanding() const { return outstanding_; }
  const Gpu& gpu() const { return gpu_; }

 private:
  struct Lane {
    void* stream = nullptr;
    /// In the stream, in order, each with the event behind it.
    std::deque<std::pair<void*, std::int32_t>> running;
  };
  void run();
  int prepare();
  void dismantle();
  bool begin(const Job& job);
  int enqueue(const Job& job, Lane& lane);
  bool look();
  void finish(std::int32_t ticket, int code);

  const Gpu& gpu_;
  FutexToken& comm_;
  FutexToken sleeper_;
  std::vector<Lane> lanes_;
  std::vector<void*> events_;
  std::deque<Job> accepted_;
  std::int32_t running_ = 0;
  std::int32_t outstanding_ = 0;

  std::mutex lock_;
  std::deque<Job> jobs_;
  std::vector<Finished> finished_;
  std::atomic<bool> waiting_{false};
  std::atomic<bool> some_{false};
  std::atomic<bool> ending_{false};
  std::atomic<int> ready_{-1};
  /// The begin of the flush under way; 0 when there is none.
  std::atomic<std::int64_t> flushingSince_{0};
  bool orphaned_ = false;  // under `lock_`
  std::thread thread_;
};

}  // namespace headrace::mpi
