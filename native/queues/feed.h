// A play of a plan: the threads that serve the queues write the commands of the plan into the rings, iteration after
// iteration, and execute them like commands of the engine.
//
// A plan has a list of records per queue. Sequence numbers run on: record i (from 0) of iteration k of a queue has the number
// base + k * length + i + 1. So every wait, doorbell and status works as for any other record, and a wait for an event of an
// earlier iteration is a smaller number.
//
// Invariants:
// - while a queue has a feed, the engine writes nothing to it. Only the thread that serves the queue (queue_ownership.h,
//   gpu/submission_lock.h) calls its feed, so a ring has one producer at a time;
// - a slot is written only after the record in it has completed and, if somebody wants the times of all records, after its
//   times were kept;
// - a wait of a plan names a record that was planned earlier, so the queues cannot wait for each other in a circle, although
//   the awaited record may not be in its ring yet;
// - in the end `completed` of every queue is base + times * length: also if the run was cancelled, or the condition no
//   longer held. Then a feed that has nothing in flight skips the rest in one step;
// - the engine may give a play more iterations while no feed has written the last one of those that it has, or skips. From then on
//   the number is final, for all queues and for the engine: one atomic word holds the number, and whether it is final.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/contract.h"
#include "queues/queue.h"

namespace headrace {

class Play;

/// The list of one queue in a play, and the place that the play has reached in it.
class Feed {
 public:
  /// `records`: `length` records of the contract's layout, whose waits count from the beginning of an iteration;
  /// `open`: `openCount` entries of PlanOpen, by record; `times`: takes Times::doubles of every record and iteration, or
  /// null. All of them stay in place until the play is over.
  Feed(Play& play, Queue& queue, const std::int32_t* records, std::int32_t length,
       const std::int32_t* open, std::int32_t openCount, double* times);

  /// On the thread that serves the queue, when it has no published record left to start. True when there are new ones, or
  /// when the rest was skipped: `completed` has moved then.
  bool refill();
  /// Whether `refill` would do something now.
  bool ready() const;

  Queue& queue() const { return queue_; }
  std::int32_t length() const { return length_; }
  std::int32_t base() const { return base_; }
  /// Number of the last record of the play.
  std::int32_t last() const;
  /// On the engine's thread, when the play is over: the records that succeeded, and the status of the one after them
  /// (Status::ok: the play went on no further). Keeps the last times.
  void outcome(double& succeeded, std::int32_t& status);

 private:
  /// All that it may write is written, and more may come.
  bool atBarrier() const;
  void write(std::int32_t sequence, bool isFirst);
  bool fill();
  void skip();
  /// Records written so far, over all iterations.
  std::int64_t written() const { return iteration_ * length_ + index_; }
  void keepTimes(std::int64_t end);

  Play& play_;
  Queue& queue_;
  const std::int32_t* records_;
  const std::int32_t length_;
  const std::int32_t* open_;
  const std::int32_t openCount_;
  const std::int32_t base_;
  double* const times_;
  /// Records whose times are in `times_`.
  std::int64_t kept_ = 0;
  /// The next record to write: its iteration, its index in the list, and the first open entry that may concern it.
  std::int64_t iteration_ = 0;
  std::int32_t index_ = 0;
  std::int32_t nextOpen_ = 0;
  /// Values of the open parameters in that iteration.
  const double* values_;
  /// All of its records up to the barrier are over, and the play knows.
  bool arrived_ = false;
};

/// Whether a queue without published records has a feed with something to do.
inline bool feedIsReady(const Queue& queue) {
  const Feed* feed = queue.feed();
  return feed != nullptr && feed->ready();
}

/// A condition on one number, checked between iterations.
struct PlayCondition {
  /// Address of the number; null: no condition.
  const void* value = nullptr;
  /// A value of PlanElement.
  std::int32_t element = 0;
  /// The play goes on while the number is greater (or, with `below`, smaller) than the limit.
  double limit = 0;
  bool below = false;
  /// Iterations between two checks.
  std::int64_t every = 1;
  /// It is checked before the first iteration, too.
  bool first = false;

  bool holds() const;
};

struct PlayOptions {
  std::int64_t times = 1;
  /// Iterations for whose parameters there is room: more may come while earlier ones are over. 0: no more come.
  std::int64_t room = 0;
  /// Slot of the run whose word cancels the play.
  std::int32_t run = -1;
  /// Values of the open parameters: `slots` per iteration, and again from the beginning after `room` iterations. May be null
  /// without any.
  const double* parameters = nullptr;
  std::int32_t slots = 0;
  PlayCondition condition;
};

/// One play at a time: its feeds, and how far they may go.
class Play {
 public:
  Play(const PlayOptions& options, Word* cancel);

  /// Before `begin`.
  void add(Queue& queue, const std::int32_t* records, std::int32_t length, const std::int32_t* open,
           std::int32_t openCount, double* times = nullptr);
  /// Hands the feeds to the queues and wakes their threads.
  void begin();

  /// On the engine's thread: gives the play more iterations, so that it has `times`. The values of their parameters are there. False if
  /// the number that it has is final.
  bool extend(std::int64_t times);
  /// Iterations so far.
  std::int64_t times() const { return end_.load(std::memory_order_seq_cst) >> 1; }

  const std::vector<std::unique_ptr<Feed>>& feeds() const { return feeds_; }
  /// Iterations that were played to their end by every queue, as far as the condition decided.
  std::int64_t iterations() const;

 private:
  friend class Feed;

  bool cancelled() const {
    return cancel_ != nullptr && cancel_->load(std::memory_order_acquire) != 0;
  }
  /// Iterations that the feeds may write.
  std::int64_t allowed() const;
  /// A feed has written that many iterations, or will write no more: true if no others follow.
  bool endsAfter(std::int64_t iterations);
  void makeFinal() { end_.fetch_or(1, std::memory_order_seq_cst); }
  const double* parametersOf(std::int64_t iteration) const;
  void arrive();
  void wakeAll();

  const PlayOptions options_;
  Word* const cancel_;
  std::vector<std::unique_ptr<Feed>> feeds_;
  /// Where record 0 of iteration 0 lies, and the length of an iteration, by queue.
  std::vector<std::int32_t> bases_;
  std::vector<std::int32_t> lengths_;
  /// Iterations so far, doubled; and 1 if the number is final.
  std::atomic<std::int64_t> end_;
  /// Iterations up to the barrier.
  std::atomic<std::int64_t> barrier_;
  /// The condition no longer holds.
  std::atomic<bool> ended_{false};
  std::atomic<std::int32_t> arrivals_{0};
};

}  // namespace headrace
