// Reading a thread's time on run queues: see stolen_time.h.
#include "core/stolen_time.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace headrace {

void StolenLog::add(const StolenSpan& span) {
  std::lock_guard<std::mutex> guard(lock_);
  if (spans_.size() < kMost) spans_.push_back(span);
}

std::size_t StolenLog::take(StolenSpan* into, std::size_t most) {
  std::lock_guard<std::mutex> guard(lock_);
  const std::size_t count = std::min(most, spans_.size());
  const auto end = spans_.begin() + static_cast<std::ptrdiff_t>(count);
  std::copy(spans_.begin(), end, into);
  spans_.erase(spans_.begin(), end);
  return count;
}

StolenTime::~StolenTime() {
  if (file_ >= 0) ::close(file_);
}

/// Nanoseconds that the calling thread has waited for a core so far; false if the kernel does not count them.
bool StolenTime::read(std::int64_t& waited) {
  if (missing_) return false;
  if (file_ < 0) file_ = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  char text[96];
  const ssize_t bytes = file_ < 0 ? -1 : ::pread(file_, text, sizeof text - 1, 0);
  if (bytes <= 0) {
    missing_ = true;
    return false;
  }
  text[bytes] = '\0';
  // "<nanoseconds run> <nanoseconds waited> <turns>"
  char* rest = nullptr;
  std::strtoll(text, &rest, 10);
  waited = std::strtoll(rest, nullptr, 10);
  return true;
}

void StolenTime::look(std::int64_t time, std::int32_t queue) {
  const std::int64_t before = lookedAt_;
  lookedAt_ = time;
  std::int64_t waited = 0;
  if (!read(waited)) return;
  if (logged_ < 0) {
    logged_ = waited;
    return;
  }
  if (waited - logged_ < kLeast) return;
  const std::int64_t from = std::max(time - (waited - logged_), before);
  logged_ = waited;
  if (from < time) log_.add({queue, from, time});
}

}  // namespace headrace
