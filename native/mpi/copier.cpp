// The copy engine: see copier.h.
#include "copier.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>

#include "queues/spin.h"

namespace headrace::mpi {
namespace {

/// Limit for the spinning: longer than the time between two chunks, and between two versions that go back and forth.
constexpr std::int64_t kMostSpin = 1'000'000;

}  // namespace

Copier::Copier(FutexToken& comm, std::int64_t spinNanoseconds)
    : comm_(comm), spinNanoseconds_(std::min(spinNanoseconds, kMostSpin)) {}

Copier::~Copier() {
  if (!thread_.joinable()) return;
  ending_.store(true, std::memory_order_seq_cst);
  sleeper_.unpark();
  thread_.join();
}

std::uint64_t Copier::copy(void* to, const void* from, std::uint64_t bytes) {
  {
    std::lock_guard<std::mutex> guard(lock_);
    jobs_.push_back({to, from, bytes});
  }
  const std::uint64_t number = submitted_.fetch_add(1, std::memory_order_seq_cst) + 1;
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  sleeper_.unpark();
  return number;
}

/// The next job; false when there is none.
bool Copier::take(Job& job) {
  std::lock_guard<std::mutex> guard(lock_);
  if (jobs_.empty()) return false;
  job = jobs_.front();
  jobs_.pop_front();
  return true;
}

void Copier::run() {
  pthread_setname_np(pthread_self(), "hr-net-copy");
  const auto ready = [this] { return busy() || ending_.load(std::memory_order_relaxed); };
  for (;;) {
    Job job{};
    // Before the look at the list: what was submitted before the end is found there.
    const bool ends = ending_.load(std::memory_order_seq_cst);
    if (take(job)) {
      std::memcpy(job.to, job.from, job.bytes);
      done_.fetch_add(1, std::memory_order_seq_cst);
      comm_.unpark();
      continue;
    }
    if (ends) return;
    if (!spin(spinNanoseconds_, ready, [](std::int64_t) {})) sleeper_.park(-1);
  }
}

}  // namespace headrace::mpi
