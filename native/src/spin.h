// A short, bounded spin before a thread goes to sleep: waking a sleeping thread costs tens of microseconds, so
// waiting a few for something that is about to happen is cheaper; waiting longer takes a core from the others.
#pragma once

#include <cstdint>

#include "clock.h"

namespace headrace {

/// Nanoseconds a thread spins before it sleeps.
inline constexpr std::int64_t kSpinNanoseconds = 4000;

/// Spins until `ready()` or the time is over; true when ready. `onIdle(time)` is called once when the wait turns out
/// not to be momentary.
template <typename Ready, typename OnIdle>
bool spin(Ready ready, OnIdle onIdle) {
  for (int i = 0; i < 16; ++i) {
    if (ready()) return true;
    pauseProcessor();
  }
  const std::int64_t start = now();
  onIdle(start);
  do {
    for (int i = 0; i < 8; ++i) {
      if (ready()) return true;
      pauseProcessor();
    }
  } while (now() - start < kSpinNanoseconds);
  return false;
}

}  // namespace headrace
