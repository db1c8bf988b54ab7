// The wait of a thread before it goes to sleep: a microsecond of spinning, then yielding for a while, then
// sleep. Two facts decide the numbers (2 cores, 2 workers that wait for each other at every step, and the engine):
// - waking a sleeping thread costs the waker several microseconds, in which the woken one gets ahead and, with a
//   short wait, falls asleep in its turn: the two sleep and wake each other at every step (4 us of spinning: 650 ns
//   per empty task and 65000 sleeps; 1 us + 50 us of yielding: 36 ns and next to none);
// - plain spinning for that long takes the core from the engine, which then cannot refill the rings (20 us of
//   spinning: 57 ns). sched_yield lets it run at once when it can.
// So each time an idle thread runs dry, it costs at most 50 us that no other thread wanted. If ranks wait
// for each other and every thread has a core, it spins longer than that: waking a thread costs more than a message.
#pragma once

#include <sched.h>

#include <cstdint>

#include "core/clock.h"

namespace headrace {

inline constexpr std::int64_t kSpinNanoseconds = 1000;
inline constexpr std::int64_t kYieldNanoseconds = 50000;

/// Waits until `ready()` or the time is over, the first `nanoseconds` of it spinning; true when ready. `onIdle(time)` is
/// called once, after the first moments of the wait.
template <typename Ready, typename OnIdle>
bool spin(std::int64_t nanoseconds, Ready ready, OnIdle onIdle) {
  for (int i = 0; i < 16; ++i) {
    if (ready()) return true;
    pauseProcessor();
  }
  const std::int64_t start = now();
  onIdle(start);
  while (now() - start < nanoseconds) {
    for (int i = 0; i < 8; ++i) {
      if (ready()) return true;
      pauseProcessor();
    }
  }
  do {
    if (ready()) return true;
    sched_yield();
  } while (now() - start < nanoseconds + kYieldNanoseconds);
  return false;
}

}  // namespace headrace
