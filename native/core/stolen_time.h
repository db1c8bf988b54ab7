// Stolen time: time in which a thread wanted to run but had no core. It stretches kernels and delays the next work of the
// thread, and no clock in a record tells it from work.
//
// The operating system counts it for every thread (/proc/thread-self/schedstat: nanoseconds on a run queue). Each thread
// reads its own count after it has run or waited, at most every `kInterval`: a reading costs 1 to 2 us. The time stolen
// since the reading before lies directly before the reading, because a thread that gets its core back continues at once.
//
// Invariants: only its own thread uses a `StolenTime`; the spans of one thread do not overlap and are in order. Threads
// read the count only while records are timed.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

namespace headrace {

/// A span on the runtime clock (nanoseconds) in which the thread that serves `queue` had no core; queue -1: the
/// engine's thread.
struct StolenSpan {
  std::int32_t queue;
  std::int64_t from;
  std::int64_t to;
};

/// Spans on their way from all threads to the tracer.
class StolenLog {
 public:
  void add(const StolenSpan& span);
  /// Moves up to `most` spans out, oldest first; returns their number.
  std::size_t take(StolenSpan* into, std::size_t most);

 private:
  /// No tracer takes the spans of a run whose trace has ended: then the latest are dropped.
  static constexpr std::size_t kMost = 16384;
  std::mutex lock_;
  std::vector<StolenSpan> spans_;
};

/// The stolen time of one thread.
class StolenTime {
 public:
  explicit StolenTime(StolenLog& log) : log_(log) {}
  ~StolenTime();
  StolenTime(const StolenTime&) = delete;
  StolenTime& operator=(const StolenTime&) = delete;

  /// True when a reading at `time` is worth its cost.
  bool due(std::int64_t time) const { return time - lookedAt_ >= kInterval; }
  /// Reads, and logs the time stolen since the last reading as time of `queue`. The first reading only begins to count.
  void look(std::int64_t time, std::int32_t queue);

 private:
  static constexpr std::int64_t kInterval = 200'000;
  /// Shorter waits (another thread's few microseconds) add up until they are worth a span.
  static constexpr std::int64_t kLeast = 10'000;

  bool read(std::int64_t& waited);

  StolenLog& log_;
  std::int64_t lookedAt_ = 0;
  /// Time on run queues that is logged already; -1: before the first reading.
  std::int64_t logged_ = -1;
  int file_ = -1;
  bool missing_ = false;
};

}  // namespace headrace
