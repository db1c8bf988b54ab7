// The copy engine: see copier.h.
#include "copier.h"

#include <pthread.h>

#include <cstring>

#include "queues/spin.h"

namespace headrace::mpi {

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
  ++submitted_;
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  sleeper_.unpark();
  return submitted_;
}

void Copier::run() {
  pthread_setname_np(pthread_self(), "hr-net-copy");
  for (;;) {
    Job job{};
    bool have = false;
    {
      std::lock_guard<std::mutex> guard(lock_);
      have = !jobs_.empty();
      if (have) {
        job = jobs_.front();
        jobs_.pop_front();
      }
    }
    if (have) {
      std::memcpy(job.to, job.from, job.bytes);
      done_.fetch_add(1, std::memory_order_seq_cst);
      comm_.unpark();
      continue;
    }
    if (ending_.load(std::memory_order_seq_cst)) return;
    sleeper_.park(-1);
  }
}

}  // namespace headrace::mpi
