// The thread that moves bytes of one GPU for the message layer: see gpu_mover.h.
#include "gpu_mover.h"

#include <pthread.h>
#include <sched.h>

#include <cstdio>
#include <stdexcept>

#include "core/clock.h"
#include "queues/spin.h"

namespace headrace::mpi {
namespace {

/// Limit of copies in streams; more wait here.
constexpr std::size_t kEvents = 64;
/// Questions to events before the thread yields.
constexpr int kLooks = 64;
constexpr int kUnsupported = 801;  // CUDA_ERROR_NOT_SUPPORTED

}  // namespace

GpuMover::GpuMover(const Gpu& gpu, std::int32_t lanes, FutexToken& comm) : gpu_(gpu), comm_(comm) {
  lanes_.resize(static_cast<std::size_t>(lanes));
  thread_ = std::thread([this] { run(); });
  while (ready_.load(std::memory_order_acquire) < 0) sched_yield();
  const int code = ready_.load(std::memory_order_acquire);
  if (code == 0) return;
  thread_.join();
  throw std::runtime_error("no streams for the network on GPU " + gpu.uuid + ": " +
                           gpuErrorText(*gpu.api, code));
}

GpuMover::~GpuMover() {
  ending_.store(true, std::memory_order_seq_cst);
  sleeper_.unpark();
  if (thread_.joinable()) thread_.join();
}

bool GpuMover::isStuck(std::int64_t nanoseconds) const {
  const std::int64_t since = flushingSince_.load(std::memory_order_relaxed);
  return since != 0 && now() - since > nanoseconds;
}

void GpuMover::orphan() {
  std::lock_guard<std::mutex> guard(lock_);
  orphaned_ = true;
}

void GpuMover::submit(const Job& job) {
  ++outstanding_;
  {
    std::lock_guard<std::mutex> guard(lock_);
    jobs_.push_back(job);
  }
  waiting_.store(true, std::memory_order_seq_cst);
  sleeper_.unpark();
}

bool GpuMover::take(std::vector<Finished>& finished) {
  if (!some_.load(std::memory_order_acquire)) return false;
  std::lock_guard<std::mutex> guard(lock_);
  some_.store(false, std::memory_order_relaxed);
  outstanding_ -= static_cast<std::int32_t>(finished_.size());
  finished.insert(finished.end(), finished_.begin(), finished_.end());
  finished_.clear();
  return true;
}

// --- The thread ---------------------------------------------------------------------------------------------------

int GpuMover::prepare() {
  int code = gpu_.makeCurrent();
  for (Lane& lane : lanes_) {
    if (code == 0) code = gpu_.api->streamCreate(&lane.stream, gpuStreamFlags(), 0);
  }
  while (code == 0 && events_.size() < kEvents) {
    void* event = nullptr;
    code = gpu_.api->eventCreate(&event, gpu::kEventNoTiming);
    if (code == 0) events_.push_back(event);
  }
  return code;
}

void GpuMover::dismantle() {
  for (void* event : events_) gpu_.api->eventDestroy(event);
  for (Lane& lane : lanes_) {
    if (lane.stream != nullptr) gpu_.api->streamDestroy(lane.stream);
  }
  gpu_.api->contextSetCurrent(nullptr);
}

void GpuMover::run() {
  char name[16];
  std::snprintf(name, sizeof name, "hr-net-gpu%d", gpu_.ordinal);
  pthread_setname_np(pthread_self(), name);
  const int code = prepare();
  ready_.store(code, std::memory_order_release);
  if (code != 0) return dismantle();
  int looks = 0;
  for (;;) {
    bool moved = false;
    if (waiting_.exchange(false, std::memory_order_seq_cst)) {
      std::lock_guard<std::mutex> guard(lock_);
      accepted_.insert(accepted_.end(), jobs_.begin(), jobs_.end());
      jobs_.clear();
    }
    while (!accepted_.empty() && begin(accepted_.front())) {
      accepted_.pop_front();
      moved = true;
    }
    {
      std::lock_guard<std::mutex> guard(lock_);
      if (orphaned_) return;
    }
    if (running_ > 0) moved |= look();
    if (moved) {
      looks = 0;
    } else if (running_ > 0) {
      if (++looks < kLooks)
        pauseProcessor();
      else
        sched_yield();
    } else if (!waiting_.load(std::memory_order_seq_cst)) {
      if (ending_.load(std::memory_order_seq_cst)) break;
      sleeper_.park(-1);
    }
  }
  dismantle();
}

/// False when no event is free: the job waits.
bool GpuMover::begin(const Job& job) {
  if (job.kind == Kind::flush) {
    const auto flush = gpu_.api->flushRemoteWrites;
    flushingSince_.store(now(), std::memory_order_relaxed);
    const int code = flush == nullptr ? kUnsupported : flush(cuda::kFlushCurrentContext, job.scope);
    flushingSince_.store(0, std::memory_order_relaxed);
    finish(job.ticket, code);
    return true;
  }
  if (events_.empty()) return false;
  Lane& lane = lanes_[static_cast<std::size_t>(job.lane)];
  void* event = events_.back();
  int code = enqueue(job, lane);
  if (code == 0) code = gpu_.api->eventRecord(event, lane.stream);
  if (code != 0) {
    // Only a dead context can have a copy in the stream without an event behind it.
    finish(job.ticket, code);
    return true;
  }
  events_.pop_back();
  lane.running.emplace_back(event, job.ticket);
  ++running_;
  return true;
}

int GpuMover::enqueue(const Job& job, Lane& lane) {
  const GpuApi& api = *gpu_.api;
  switch (job.kind) {
    case Kind::toHost:
      return api.copyToHost(reinterpret_cast<void*>(job.to), job.from, job.bytes, lane.stream);
    case Kind::toDevice:
      return api.copyToDevice(job.to, reinterpret_cast<const void*>(job.from), job.bytes,
                              lane.stream);
    default: return api.copyOnDevice(job.to, job.from, job.bytes, lane.stream);
  }
}

bool GpuMover::look() {
  bool moved = false;
  for (Lane& lane : lanes_) {
    while (!lane.running.empty()) {
      const auto [event, ticket] = lane.running.front();
      const int code = gpu_.api->eventQuery(event);
      if (code == gpu::kNotReady) break;
      lane.running.pop_front();
      events_.push_back(event);
      --running_;
      finish(ticket, code);
      moved = true;
    }
  }
  return moved;
}

void GpuMover::finish(std::int32_t ticket, int code) {
  std::lock_guard<std::mutex> guard(lock_);
  finished_.push_back({ticket, code});
  some_.store(true, std::memory_order_release);
  // Under the lock: the thread that orphans the mover may be gone, and the comm thread with it, as soon as it has the lock.
  if (!orphaned_) comm_.unpark();
}

}  // namespace headrace::mpi
