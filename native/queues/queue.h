// One queue for native code: its ring, its control words, and its sleepers.
//
// Invariants: only the thread that serves the queue (queue_ownership.h, gpu/submission_lock.h) stores completed,
// submitted, failures and busy; completed only moves forward, in order, and after all writes of the records up to it
// (release), so a thread that sees it (acquire) sees their data. The record with sequence number s lies in slot
// (s - 1) & mask.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "core/guards.h"
#include "headrace/contract.h"
#include "queues/completion_waiters.h"
#include "queues/doorbell.h"
#include "queues/futex_token.h"

namespace headrace {

using Word = std::atomic<std::int32_t>;
static_assert(sizeof(Word) == 4 && Word::is_always_lock_free,
              "shared words are plain int32 in memory");

class Feed;
class StreamQueue;

class Queue {
 public:
  Queue(std::int32_t index, std::int32_t kind, std::int32_t space, std::int32_t peer,
        std::int32_t* ring, double* times, std::uint32_t records, Word* control, Word* shared,
        Doorbell* doorbell)
      : index(index),
        kind(kind),
        space(space),
        peer(peer),
        control_(control),
        busyWord_(reinterpret_cast<std::atomic<std::int64_t>*>(control + Control::busy)),
        ring_(ring),
        times_(times),
        mask_(records - 1),
        failed_(shared + Shared::failed),
        doorbell_(doorbell) {}

  const std::int32_t index;
  const std::int32_t kind;
  const std::int32_t space;
  const std::int32_t peer;
  /// The sleeping place of the thread that serves this queue. Null: that thread does not sleep.
  FutexToken* owner() const { return owner_.load(std::memory_order_seq_cst); }
  void setOwner(FutexToken* owner) { owner_.store(owner, std::memory_order_seq_cst); }
  /// The stream behind the queue, or null for a host worker.
  StreamQueue* stream = nullptr;
  /// Sleepers for `completed` and (other GPUs' threads) for `submitted`.
  CompletionWaiters completion;
  CompletionWaiters submission;

  std::uint32_t mask() const { return mask_; }
  std::uint32_t slot(std::int32_t sequence) const {
    return (static_cast<std::uint32_t>(sequence) - 1) & mask_;
  }
  std::int32_t* record(std::int32_t sequence) const {
    return ring_ + static_cast<std::size_t>(slot(sequence)) * Record::words;
  }

  /// Stores the times of the record at `words`, before it completes.
  void setTimes(const std::int32_t* words, double start, double end) {
    double* times = times_ + (words - ring_) / Record::words * Times::doubles;
    times[Times::start] = start;
    times[Times::end] = end;
  }

  /// The times in the slot of a record, and in the slots behind it.
  double* times(std::int32_t sequence) const {
    return times_ + static_cast<std::size_t>(slot(sequence)) * Times::doubles;
  }

  /// The rest of a play (queues/feed.h), or null.
  Feed* feed() const { return feed_.load(std::memory_order_acquire); }
  void setFeed(Feed* feed) { feed_.store(feed, std::memory_order_seq_cst); }
  /// On the thread that serves the queue, which has taken its records from a feed.
  void setPublished(std::int32_t sequence) {
    control_[Control::published].store(sequence, std::memory_order_seq_cst);
  }

  std::int32_t published(std::memory_order order = std::memory_order_acquire) const {
    return control_[Control::published].load(order);
  }
  void prefetchPublished() const { __builtin_prefetch(&control_[Control::published]); }
  std::int32_t completed(std::memory_order order = std::memory_order_acquire) const {
    return control_[Control::completed].load(order);
  }
  bool hasCompleted(std::int32_t sequence,
                    std::memory_order order = std::memory_order_acquire) const {
    return ahead(completed(order), sequence) >= 0;
  }
  bool hasSubmitted(std::int32_t sequence,
                    std::memory_order order = std::memory_order_acquire) const {
    return ahead(control_[Control::submitted].load(order), sequence) >= 0;
  }

  /// Makes all records up to `sequence` finished: for waiting queues, for the engine, and for its doorbell.
  void publish(std::int32_t sequence) {
    setCompleted(sequence);
    announce(sequence);
  }
  /// The two halves of `publish`, for a thread that tells the engine something in between.
  void setCompleted(std::int32_t sequence) {
    control_[Control::completed].store(sequence, std::memory_order_seq_cst);
  }
  void announce(std::int32_t sequence) {
    completion.reached(sequence);
    // Lanes wait until the engine has handled a failure, and no other record may end meanwhile. So a failure rings whether
    // the engine armed it or not.
    const bool failed = std::exchange(failing_, false);
    if (failed && guards.failureRings && doorbell_->engineSleeps()) {
      doorbell_->ring();
    } else if (doorbellDue() && doorbell_->engineSleeps() &&
               control_[Control::doorbellArmed].exchange(0, std::memory_order_seq_cst) != 0) {
      doorbell_->ring();
    }
  }

  /// True when the engine has armed a number that is reached.
  bool doorbellDue() const {
    return control_[Control::doorbellArmed].load(std::memory_order_seq_cst) != 0 &&
           hasCompleted(control_[Control::doorbellAt].load(std::memory_order_seq_cst),
                        std::memory_order_seq_cst);
  }

  void setSubmitted(std::int32_t sequence, std::memory_order order) {
    control_[Control::submitted].store(sequence, order);
  }

  void setSleeping(bool sleeping) {
    control_[Control::sleeping].store(sleeping ? 1 : 0, std::memory_order_seq_cst);
  }

  /// On the queue of a script worker: who serves it (Serving).
  void setServing(std::int32_t serving) {
    control_[Control::serving].store(serving, std::memory_order_seq_cst);
  }

  /// The engine's call after it saw `sleeping`.
  void wake() {
    control_[Control::sleeping].store(0, std::memory_order_seq_cst);
    FutexToken* sleeper = owner();
    if (sleeper != nullptr) sleeper->unpark();
  }

  /// Before the record completes: a thread that sees its completion sees that there was a failure.
  void addFailure() {
    Word& failures = control_[Control::failures];
    failures.store(failures.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    failed_->fetch_add(1, std::memory_order_seq_cst);
    failing_ = true;
  }

  /// Bracket time in which the queue has work. A reading in the middle of it (Control::busy) counts up to that moment.
  void beginBusy(std::int64_t time) {
    busySince_ = time;
    setBusy(busy_ - time);
  }
  void endBusy(std::int64_t time) {
    busy_ += time - busySince_;
    setBusy(busy_);
  }

  void setError(const std::string& text) {
    std::lock_guard<std::mutex> guard(errorLock_);
    error_ = text;
  }
  std::string error() const {
    std::lock_guard<std::mutex> guard(errorLock_);
    return error_;
  }

 private:
  void setBusy(std::int64_t value) { busyWord_->store(value, std::memory_order_relaxed); }

  Word* control_;
  std::atomic<std::int64_t>* busyWord_;
  std::int32_t* ring_;
  double* times_;
  std::uint32_t mask_;
  /// Failures of all queues.
  Word* failed_;
  Doorbell* doorbell_;
  std::atomic<FutexToken*> owner_{nullptr};
  std::atomic<Feed*> feed_{nullptr};
  std::int64_t busy_ = 0;
  std::int64_t busySince_ = 0;
  /// A record has failed that is not announced. The thread that executes the queue owns it.
  bool failing_ = false;
  mutable std::mutex errorLock_;
  std::string error_;
};

}  // namespace headrace
