// The runtime clock and the processor's pause. Every time in records and reports is CLOCK_MONOTONIC nanoseconds.
#pragma once

#include <time.h>

#include <cstdint>

namespace headrace {

inline std::int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
}

/// Nanoseconds of processor time that the calling thread has used.
inline std::int64_t workTime() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1000000000 + time.tv_nsec;
}

/// Tells the processor that the thread spins, so that it saves power and does not speculate on memory order.
inline void pauseProcessor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

}  // namespace headrace
