// Puts one thread to sleep and wakes it: a futex with a token.
//
// Invariant: an `unpark` is never lost. If the thread is awake it leaves a token and the next `park` returns at once.
// If the thread sleeps it wakes. `park` may also return without reason: callers check their condition again.
// A thread that sleeps elsewhere, in an event loop, `leave`s: the next `unpark` makes one call instead.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <ctime>

namespace headrace {

class FutexToken {
 public:
  /// `processes`: the token lies in memory that several processes map, and all of them may wake the thread.
  enum class Scope : std::int32_t { process, processes };
  explicit FutexToken(Scope scope = Scope::process)
      : flag_(scope == Scope::process ? FUTEX_PRIVATE_FLAG : 0) {}

  /// Sleeps until `unpark`, for at most `nanoseconds` (negative: without limit). True when there was an `unpark`.
  bool park(std::int64_t nanoseconds) {
    if (state_.fetch_sub(1, std::memory_order_seq_cst) == kToken) return true;
    timespec limit{static_cast<time_t>(nanoseconds / 1000000000),
                   static_cast<long>(nanoseconds % 1000000000)};
    syscall(SYS_futex, &state_, FUTEX_WAIT | flag_, kParked, nanoseconds < 0 ? nullptr : &limit,
            nullptr, 0);
    return state_.exchange(kEmpty, std::memory_order_seq_cst) == kToken;
  }

  /// Takes the token of an `unpark` without sleeping; true when there was one.
  bool poll() {
    return state_.load(std::memory_order_relaxed) == kToken &&
           state_.exchange(kEmpty, std::memory_order_seq_cst) == kToken;
  }

  void unpark() {
    const std::int32_t was = state_.exchange(kToken, std::memory_order_seq_cst);
    if (was == kParked) {
      syscall(SYS_futex, &state_, FUTEX_WAKE | flag_, 1, nullptr, nullptr, 0);
    } else if (was == kAway) {
      call_(of_);
    }
  }

  /// The function that wakes a thread which has left, on the thread that wakes it. Before any other call.
  void setCall(void (*call)(void*), void* of) {
    call_ = call;
    of_ = of;
  }
  /// The thread sleeps elsewhere until the call. False when there was an `unpark`: it stays.
  bool leave() {
    std::int32_t empty = kEmpty;
    if (state_.compare_exchange_strong(empty, kAway, std::memory_order_seq_cst)) return true;
    state_.store(kEmpty, std::memory_order_seq_cst);
    return false;
  }
  /// The thread is awake again, whatever woke it.
  void comeBack() { state_.store(kEmpty, std::memory_order_seq_cst); }

 private:
  static constexpr std::int32_t kEmpty = 0;
  static constexpr std::int32_t kToken = 1;
  static constexpr std::int32_t kParked = -1;
  static constexpr std::int32_t kAway = -2;
  static_assert(sizeof(std::atomic<std::int32_t>) == 4, "a futex is a 32-bit word");
  std::atomic<std::int32_t> state_{kEmpty};
  const std::int32_t flag_;
  void (*call_)(void*) = nullptr;
  void* of_ = nullptr;
};

}  // namespace headrace
