// Handing queues from thread to thread: see queue_ownership.h.
#include "queues/queue_ownership.h"

#include <sched.h>

#include <algorithm>

#include "core/clock.h"
#include "core/runtime.h"
#include "queues/feed.h"
#include "queues/ring.h"

namespace headrace {

void QueueOwnership::join(Queue& queue, FutexToken& sleeper) {
  queue.setOwner(&sleeper);
  awake_.fetch_add(1, std::memory_order_relaxed);
}

void QueueOwnership::complete() { full_ = awake_.load(std::memory_order_relaxed) >= cores_; }

bool QueueOwnership::engineIsActive() const {
  return shared_[Shared::engineAsleep].load(std::memory_order_seq_cst) == 0 ||
         engineServes_.load(std::memory_order_seq_cst);
}

bool QueueOwnership::inTheWay(std::int64_t& since) const {
  const int core = sched_getcpu();
  if (core < 0 || core == shared_[Shared::engineCore].load(std::memory_order_relaxed)) return true;
  const std::int64_t time = now();
  if (since == 0) since = time;
  return time - since > kStale;
}

void QueueOwnership::engineWakes() {
  if (!full_) return;
  shared_[Shared::engineCore].store(sched_getcpu(), std::memory_order_relaxed);
  if (!crowded()) return;
  const std::int64_t until = now() + kStale;
  do {
    sched_yield();
  } while (crowded() && now() < until);
  shared_[Shared::engineCore].store(sched_getcpu(), std::memory_order_relaxed);
}

std::int32_t QueueOwnership::beat() const {
  return shared_[Shared::beat].load(std::memory_order_relaxed);
}

bool QueueOwnership::canExecute(const Queue& queue) const {
  const std::int32_t done = queue.completed();
  if (queue.published() == done) return feedIsReady(queue);
  const Command head(queue.record(static_cast<std::int32_t>(static_cast<std::uint32_t>(done) + 1)));
  const Queue* target = runtime_.queue(head.waitQueue());
  return target == nullptr || target->hasCompleted(head.waitSequence());
}

/// Removes a queue from the free ones.
Queue* QueueOwnership::pick(bool runnableOnly) {
  auto found = std::find_if(free_.begin(), free_.end(),
                            [&](const Queue* queue) { return canExecute(*queue); });
  if (found == free_.end()) {
    if (runnableOnly || free_.empty()) return nullptr;
    found = free_.begin();
  }
  Queue* queue = *found;
  free_.erase(found);
  ++taken_;
  freeCount_.store(static_cast<std::int32_t>(free_.size()), std::memory_order_relaxed);
  return queue;
}

Queue* QueueOwnership::stepAside(Queue* held, FutexToken& sleeper) {
  std::unique_lock<std::mutex> guard(lock_);
  if (!crowded() || runtime_.closing.load(std::memory_order_seq_cst)) return nullptr;
  awake_.fetch_sub(1, std::memory_order_relaxed);
  free_.push_back(held);
  freeCount_.store(static_cast<std::int32_t>(free_.size()), std::memory_order_relaxed);
  aside_.push_back(&sleeper);
  // The engine goes to sleep and *then* reads this word; here it is the other way round, so one sees the other.
  shared_[Shared::aside].store(static_cast<std::int32_t>(aside_.size()), std::memory_order_seq_cst);
  std::uint64_t lastTaken = taken_;
  Queue* queue = nullptr;
  for (;;) {
    const bool wanted =
        recalled_ || !engineIsActive() || runtime_.closing.load(std::memory_order_seq_cst);
    if (wanted && (queue = pick(false)) != nullptr) break;
    guard.unlock();
    const bool called = sleeper.park(kSilence);
    guard.lock();
    if (!called && !engineServes_.load(std::memory_order_seq_cst) && taken_ == lastTaken) {
      silentBeat_.store(beat(), std::memory_order_relaxed);
      if ((queue = pick(false)) != nullptr) break;
    }
    lastTaken = taken_;
  }
  aside_.erase(std::find(aside_.begin(), aside_.end(), &sleeper));
  if (aside_.empty()) recalled_ = false;
  shared_[Shared::aside].store(static_cast<std::int32_t>(aside_.size()), std::memory_order_seq_cst);
  awake_.fetch_add(1, std::memory_order_relaxed);
  queue->setOwner(&sleeper);
  return queue;
}

void QueueOwnership::fallAsleep() {
  std::lock_guard<std::mutex> guard(lock_);
  awake_.fetch_sub(1, std::memory_order_relaxed);
  if (!free_.empty()) recallLocked();
}

Queue* QueueOwnership::take(FutexToken* sleeper) {
  if (!hasFree()) return nullptr;
  std::unique_lock<std::mutex> guard(lock_, std::try_to_lock);
  Queue* queue = guard.owns_lock() ? pick(true) : nullptr;
  if (queue != nullptr) queue->setOwner(sleeper);
  return queue;
}

void QueueOwnership::giveBack(Queue* held) {
  std::lock_guard<std::mutex> guard(lock_);
  free_.push_back(held);
  freeCount_.store(static_cast<std::int32_t>(free_.size()), std::memory_order_relaxed);
  if (recalled_) recallLocked();
}

void QueueOwnership::recall() {
  std::lock_guard<std::mutex> guard(lock_);
  recallLocked();
}

void QueueOwnership::recallLocked() {
  if (aside_.empty()) return;
  recalled_ = true;
  for (FutexToken* sleeper : aside_) sleeper->unpark();
}

}  // namespace headrace
