// The assignment of worker threads to worker queues.
//
// As a rule every worker thread serves the queue it was started for. But if there are as many workers as cores, the
// engine's thread is one too many. The operating system then lets it and a worker take turns on one core, and
// every other worker that waits for the one without a core waits with it. So while the engine is active one worker
// *steps aside*: it gives up its queue and sleeps. Idle threads serve the free queues: other workers, which
// exchange the queue that they hold for a free one when they would wait, and the engine's thread instead of
// blocking.
//
// Invariants, kept under `lock_`:
// - a queue is held by at most one thread or is free; as many queues are free, or held by the engine's thread, as
//   workers have stepped aside;
// - a worker goes to sleep for lack of work only when no queue is free, or after it has called back the workers that
//   stepped aside: some thread always watches a free queue;
// - a worker that stepped aside returns when it is called, and by itself when for `kSilence` no thread has taken a queue
//   that is free: published commands are executed whatever the engine does.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "queues/queue.h"

namespace headrace {

struct Runtime;

class QueueOwnership {
 public:
  /// `cores`: limit of threads of this process that run at once.
  QueueOwnership(const Runtime& runtime, Word* shared, std::int32_t cores)
      : runtime_(runtime), shared_(shared), cores_(cores) {}

  /// A worker thread starts with `queue`. Before any thread runs.
  void join(Queue& queue, FutexToken& sleeper);
  /// No more threads join.
  void complete();
  /// True when the engine has no core of its own: its thread may then serve queues.
  bool full() const { return full_; }

  /// True when a worker should step aside. Costs a few loads.
  bool crowded() const {
    if (!full_ || awake_.load(std::memory_order_relaxed) < cores_) return false;
    const std::int32_t silent = silentBeat_.load(std::memory_order_relaxed);
    return engineIsActive() &&
           static_cast<std::uint32_t>(beat()) - static_cast<std::uint32_t>(silent) > kGrace;
  }
  /// While crowded: true when the calling worker should step aside. That is the worker on the engine's core: otherwise
  /// that core would have two threads and another none. `since`: when the caller first saw it crowded, or 0.
  bool inTheWay(std::int64_t& since) const;
  /// The engine's thread has woken up: gives the worker on its core the time to step aside.
  void engineWakes();
  /// Gives up `held` and sleeps; returns the queue to serve from then on. Null at once when no worker has to step aside
  /// any more: the caller keeps `held`.
  Queue* stepAside(Queue* held, FutexToken& sleeper);
  /// True when queues are free.
  bool hasFree() const { return freeCount_.load(std::memory_order_relaxed) != 0; }
  /// A free queue whose next record can be executed, or null. `sleeper`: the thread to wake for it (null: the engine's
  /// thread, which wakes itself). A thread that holds another queue gives that back at once.
  Queue* take(FutexToken* sleeper);
  /// The caller has finished its work with the queue.
  void giveBack(Queue* held);

  /// Bracket a worker's sleep for lack of work.
  void fallAsleep();
  void wakeUp() { awake_.fetch_add(1, std::memory_order_relaxed); }

  /// The engine's thread begins and ends to serve queues.
  void engineServes(bool on) { engineServes_.store(on, std::memory_order_seq_cst); }
  /// Calls back the workers that stepped aside.
  void recall();

 private:
  /// No thread has served a free queue for that long: the engine does other work or waits in its event loop.
  static constexpr std::int64_t kSilence = 5'000'000;
  /// A worker that returned for that stays, until the engine has made so many passes that it is at work again.
  static constexpr std::uint32_t kGrace = 64;
  /// The engine may have moved to another core: after that time the worker that notices steps aside.
  static constexpr std::int64_t kStale = 100'000;

  bool engineIsActive() const;
  std::int32_t beat() const;
  Queue* pick(bool runnableOnly);
  bool canExecute(const Queue& queue) const;
  void recallLocked();

  const Runtime& runtime_;
  Word* const shared_;
  const std::int32_t cores_;
  bool full_ = false;
  std::atomic<bool> engineServes_{false};
  /// Workers that neither sleep nor stepped aside.
  std::atomic<std::int32_t> awake_{0};
  /// The engine's beat when a worker returned because its free queue was not served. At first: long ago.
  std::atomic<std::int32_t> silentBeat_{-1 - static_cast<std::int32_t>(kGrace)};
  /// Free queues taken so far.
  std::uint64_t taken_ = 0;
  std::atomic<std::int32_t> freeCount_{0};
  std::mutex lock_;
  std::vector<Queue*> free_;
  std::vector<FutexToken*> aside_;
  bool recalled_ = false;
};

}  // namespace headrace
