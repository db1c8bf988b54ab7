// Lets threads sleep until a sequence number is reached. The thread that advances the number needs no system call and no
// lock while no thread sleeps, and it wakes no thread before that thread's number is reached.
//
// Invariant (no lost wake-up): the advancing thread stores the new number and *then* loads `nearest_`; a sleeper
// lowers `nearest_` and *then* loads the number. Both use sequentially consistent accesses, so at least one of the
// two sees the other: either the sleeper sees the number and does not sleep, or the advancer sees the sleeper.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "core/guards.h"
#include "queues/futex_token.h"
#include "queues/sequence.h"

namespace headrace {

/// One thread's interest in one number. The sleeper owns it; it is linked into at most one `CompletionWaiters`.
struct CompletionWaiter {
  std::int32_t target = 0;
  FutexToken* sleeper = nullptr;
  CompletionWaiter* next = nullptr;
  bool linked = false;
};

class alignas(64) CompletionWaiters {
 public:
  /// Call it after storing (seq_cst) that the watched number is now `sequence`.
  void reached(std::int32_t sequence) {
    const std::int64_t nearest = nearest_.load(std::memory_order_seq_cst);
    if (__builtin_expect(nearest != kNone, 0) &&
        ahead(sequence, static_cast<std::int32_t>(nearest)) >= 0) {
      notify(sequence);
    }
  }

  /// Registers; the caller must read the number (seq_cst) after this and before it parks.
  void add(CompletionWaiter& watcher) {
    std::lock_guard<std::mutex> guard(lock_);
    watcher.next = first_;
    watcher.linked = true;
    first_ = &watcher;
    updateNearest();
  }

  /// Call it before the watcher is destroyed, whether it was notified or not.
  void remove(CompletionWaiter& watcher) {
    std::lock_guard<std::mutex> guard(lock_);
    if (!watcher.linked) return;
    for (CompletionWaiter** link = &first_; *link != nullptr; link = &(*link)->next) {
      if (*link == &watcher) {
        *link = watcher.next;
        break;
      }
    }
    watcher.linked = false;
    updateNearest();
  }

 private:
  static constexpr std::int64_t kNone = INT64_MIN;

  void notify(std::int32_t sequence) {
    std::lock_guard<std::mutex> guard(lock_);
    for (CompletionWaiter** link = &first_; *link != nullptr;) {
      CompletionWaiter* watcher = *link;
      const std::int32_t past = ahead(sequence, watcher->target);
      if (past >= 0 && (past == 0 || guards.wakePassed)) {
        *link = watcher->next;
        watcher->linked = false;
        watcher->sleeper->unpark();  // under the lock: the watcher cannot go away meanwhile
      } else {
        link = &watcher->next;
      }
    }
    updateNearest();
  }

  void updateNearest() {
    std::int64_t nearest = kNone;
    for (CompletionWaiter* watcher = first_; watcher != nullptr; watcher = watcher->next) {
      if (nearest == kNone || ahead(static_cast<std::int32_t>(nearest), watcher->target) > 0) {
        nearest = watcher->target;
      }
    }
    nearest_.store(nearest, std::memory_order_seq_cst);
  }

  std::atomic<std::int64_t> nearest_{kNone};  // smallest target of a linked watcher
  std::mutex lock_;
  CompletionWaiter* first_ = nullptr;
};

}  // namespace headrace
