// Whose turn it is to make MPI's calls: that of the comm thread, or of a worker that waits for a version and makes rounds meanwhile.
// A message then reaches the next kernel, and the end of a kernel the next message, without another thread.
//
// Invariants:
// - one thread at a time makes rounds, and the next one sees all that it did;
// - the comm thread sleeps for long only while all that a round would find unparks it. A worker's round may begin to wait for more than
//   that, so the first one wakes the comm thread, which stands by from then on;
// - the comm thread, standing by, takes the turn back when no worker has made a round for a while: messages wait neither for a long
//   kernel nor for a worker that sleeps. It does so at once when a worker finds that a round is not for workers.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "core/clock.h"
#include "core/guards.h"
#include "queues/futex_token.h"

namespace headrace::mpi {

class Turn {
 public:
  /// Time without a round of a worker after which the comm thread takes its turn back: if it spins meanwhile, and if it sleeps.
  static constexpr std::int64_t kPatience = 1000;
  static constexpr std::int64_t kNap = 100'000;

  // --- Workers ---

  /// Makes a round if it is nobody's turn; true when it did. `round()` is false if rounds are for the comm thread now: that thread goes
  /// on. If it is the comm thread's turn, that thread is asked for it.
  template <typename Round>
  bool help(Round round) {
    std::int32_t state = state_.load(std::memory_order_relaxed);
    if (state == kOwn) state_.compare_exchange_strong(state, kAsked, std::memory_order_relaxed);
    if (state != kOpen) return false;
    if (!guards.oneHelps) {
      state_.store(kHelped, std::memory_order_relaxed);
    } else if (!state_.compare_exchange_strong(state, kHelped, std::memory_order_acquire)) {
      return false;
    }
    const bool helped = round();
    if (helped) {
      rounds_.store(rounds() + 1, std::memory_order_relaxed);
      if (asleep_ != nullptr && guards.helpWakes) asleep_->unpark();
      asleep_ = nullptr;
    }
    state_.store(kOpen, std::memory_order_release);
    if (!helped) standing_.unpark();
    return helped;
  }
  /// A worker that has helped makes no rounds for some time.
  void leave() {
    if (state_.load(std::memory_order_relaxed) == kOpen) standing_.unpark();
  }

  // --- The comm thread, which has the turn at first ---

  /// A worker asks for the turn, or has made rounds in the last sleep.
  bool isWanted() const {
    return state_.load(std::memory_order_relaxed) == kAsked || rounds() != seen_;
  }
  /// Keeps the turn that a worker asks for.
  void refuse() {
    state_.store(kOwn, std::memory_order_relaxed);
    seen_ = rounds();
  }
  /// Leaves the rounds to workers until they make none, or `until()`, which is asked now and then. If the thread does not spin, it
  /// sleeps for `nap` nanoseconds at a time.
  template <typename Until>
  void standBy(bool spins, Until until, std::int64_t nap = kNap) {
    open();
    seen_ = rounds();
    std::int64_t since = now();
    for (bool isOver = false; !isOver;) {
      bool called = false;
      if (spins) {
        for (int i = 0; i < 8; ++i) pauseProcessor();
      } else {
        called = standing_.park(nap);
      }
      const std::int64_t time = now();
      const std::uint32_t made = rounds();
      if (made != seen_) since = time;
      seen_ = made;
      isOver = called || time - since >= (spins ? kPatience : nap) || until(time);
    }
    takeBack();
    seen_ = rounds();
  }
  /// Sleeps on `sleeper`, which all that a round would find unparks. Workers may make rounds meanwhile.
  void sleep(FutexToken& sleeper, std::int64_t nanoseconds) {
    asleep_ = &sleeper;
    open();
    sleeper.park(nanoseconds);
    takeBack();
    asleep_ = nullptr;
  }

 private:
  static constexpr std::int32_t kOwn = 0;
  static constexpr std::int32_t kAsked = 1;
  static constexpr std::int32_t kOpen = 2;
  static constexpr std::int32_t kHelped = 3;

  std::uint32_t rounds() const { return rounds_.load(std::memory_order_relaxed); }
  void open() { state_.store(kOpen, std::memory_order_release); }
  void takeBack() {
    std::int32_t state = kOpen;
    while (!state_.compare_exchange_weak(state, kOwn, std::memory_order_acquire)) {
      // The thread that makes a round may have lost its core.
      sched_yield();
      state = kOpen;
    }
  }

  alignas(64) std::atomic<std::int32_t> state_{kOwn};
  /// Rounds of workers.
  std::atomic<std::uint32_t> rounds_{0};
  /// The comm thread sleeps on it, and no worker has made a round since. Belongs to whose turn it is.
  FutexToken* asleep_ = nullptr;
  /// The comm thread stands by on it.
  FutexToken standing_;
  /// Rounds that the comm thread knows of.
  std::uint32_t seen_ = 0;
};

}  // namespace headrace::mpi
