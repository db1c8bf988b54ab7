// The loop of a GPU's thread: see gpu/device_thread.h. Opening and closing the device is in gpu/device_open.cpp.
#include "gpu/device_thread.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cstdio>

#include "queues/feed.h"
#include "queues/spin.h"

namespace headrace {

namespace {

/// Commands that one ring submits before the other rings get their turn.
constexpr int kTurn = 16;
/// Pauses of the processor between two checks of a thread whose GPU another thread serves.
constexpr int kAsidePauses = 128;
/// How long the thread of a driver that works by itself sleeps between two questions to its events.
constexpr std::int64_t kPollNanoseconds = 20000;

}  // namespace

void DeviceThread::run() {
  char name[16];
  std::snprintf(name, sizeof name, "headrace-g%d", gpu_);
  pthread_setname_np(pthread_self(), name);
  prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);  // short sleeps that end on time
  for (;;) {
    if (runCalls() || pass()) continue;
    if (ended()) return;
    if (!spin(
            runtime_.spinNanoseconds, [this] { return pass(); }, [](std::int64_t) {}))
      sleep();
  }
}

/// The work of the thread for its own GPU, or else for one that its own waits for. True when anything moved, or when
/// other threads will move it.
bool DeviceThread::pass() {
  if (turn_.ownerIsAside() || !turn_.tryTake()) {
    for (int i = 0; i < kAsidePauses; ++i) pauseProcessor();
    return true;
  }
  if (bind(*this) != DriverStatus::ok) lost_ = true;
  // Before it serves, the thread may have waited for a core to begin; afterwards, in the middle of a kernel.
  lookForStolen();
  const bool moved = serve(kTurn) || helpOthers(*this);
  if (moved) lookForStolen();
  turn_.giveBack();
  return moved;
}

/// All queues of a GPU share the thread: its first one stands for them.
void DeviceThread::lookForStolen() {
  if (!runtime_.timing() || streams_.empty()) return;
  const std::int64_t time = now();
  if (stolen_.due(time)) stolen_.look(time, streams_.front()->queue.index);
}

/// One turn for every ring, for the device, and for every stream's completions. True when anything moved.
bool DeviceThread::serve(int turn) {
  bool moved = false;
  for (auto& stream : streams_) moved |= submit(*stream, turn);
  if (device_ != nullptr) moved |= driver_.progress(device_) > 0;
  for (auto& stream : streams_) moved |= retire(*stream);
  return moved;
}

/// Submits, on the thread of `helper`, for the GPUs whose next commands hold rings of this one. The locks taken
/// on the way are kept, so it ends. Not for a driver whose kernels run on the calling thread.
bool DeviceThread::helpOthers(DeviceThread& helper) {
  if (!driver_.asynchronous) return false;
  bool moved = false;
  for (auto& stream : streams_) {
    const Queue* target = stream->holdForSubmission ? stream->holdQueue : nullptr;
    if (target != nullptr) moved |= target->stream->thread->serveFor(helper);
  }
  return moved;
}

/// On another GPU's thread: one command of every ring of this one, and its completions. Its own thread need not
/// wake: the event that lets a ring continue wakes it (see `sleep`). A lost GPU is left to its own thread.
bool DeviceThread::serveFor(DeviceThread& helper) {
  if (!turn_.tryTake()) return false;
  const bool alive = !lost_ && helper.bind(*this) == DriverStatus::ok;
  const bool moved = alive && (serve(1) || helpOthers(helper));
  if (moved) turn_.keepOwnerAside();
  turn_.giveBack();
  return moved;
}

/// Makes the context of `served` current on the calling thread.
DriverStatus DeviceThread::bind(DeviceThread& served) {
  if (bound_ == &served || served.device_ == nullptr) return DriverStatus::ok;
  const DriverStatus status = driver_.bind(served.device_);
  bound_ = status == DriverStatus::ok ? &served : nullptr;
  return status;
}

bool DeviceThread::ended() {
  if (!ending_.load(std::memory_order_acquire) || !turn_.tryTake()) return false;
  const bool finished = finishedAll();
  turn_.giveBack();
  return finished;
}

bool DeviceThread::finishedAll() const {
  for (const auto& stream : streams_) {
    if (stream->finished != stream->next) return false;
    if (!stream->stopped && stream->queue.published() != stream->next) return false;
  }
  return true;
}

bool DeviceThread::inFlight() const {
  for (const auto& stream : streams_) {
    if (stream->finished != stream->next) return true;
  }
  return false;
}

// Before it parks, the thread (1) registers with every event that could let a held ring or a waiting stream continue,
// (2) sets `sleeping` on all its queues, and only then (3) checks all of it once more. A thread that causes one of these
// events does so first and looks for sleepers afterwards, so no event is missed. The check takes the GPU's lock. A
// thread that holds the lock later, in this thread's sleep, can only move work that such an event has released, and that
// event wakes this thread, too.
void DeviceThread::sleep() {
  if (!turn_.tryTake()) return;
  const std::size_t waits = foreign_.size();
  foreign_.erase(
      std::remove_if(foreign_.begin(), foreign_.end(),
                     [](const auto& wait) { return wait.first->hasCompleted(wait.second); }),
      foreign_.end());
  // An event that happened since the last pass lets a stream continue: a thread that sleeps must not forget it.
  if (foreign_.size() != waits) return turn_.giveBack();
  std::vector<std::pair<CompletionWaiters*, CompletionWaiter>>& watching = watching_;
  watching.clear();
  for (auto& stream : streams_) {
    Queue* target = stream->holdQueue;
    if (target == nullptr || target->owner() == &sleeper_) continue;
    watching.emplace_back(stream->holdForSubmission ? &target->submission : &target->completion,
                          CompletionWaiter{stream->holdSequence, &sleeper_, nullptr, false});
  }
  for (auto& wait : foreign_) {
    watching.emplace_back(&wait.first->completion,
                          CompletionWaiter{wait.second, &sleeper_, nullptr, false});
  }
  for (auto& entry : watching) entry.first->add(entry.second);
  for (auto& stream : streams_) stream->queue.setSleeping(true);
  const bool awake = somethingToDo();
  const std::int64_t limit = driver_.asynchronous && inFlight() ? kPollNanoseconds : -1;
  turn_.giveBack();
  if (!awake) sleeper_.park(limit);
  for (auto& stream : streams_) stream->queue.setSleeping(false);
  for (auto& entry : watching) entry.first->remove(entry.second);
}

bool DeviceThread::somethingToDo() {
  if (ending_.load(std::memory_order_seq_cst) && finishedAll()) return true;
  for (auto& stream : streams_) {
    if (Queue* target = stream->holdQueue) {
      const std::int32_t sequence = stream->holdSequence;
      if (target->hasCompleted(sequence, std::memory_order_seq_cst) ||
          runtime_.abandoned(*target, sequence)) {
        return true;
      }
      if (stream->holdForSubmission && target->hasSubmitted(sequence, std::memory_order_seq_cst)) {
        return true;
      }
    } else if (!stream->stopped && ahead(stream->next, stream->finished) < kMaxInFlight &&
               (stream->queue.published(std::memory_order_seq_cst) != stream->next ||
                feedIsReady(stream->queue))) {
      return true;
    }
  }
  for (auto& wait : foreign_) {
    if (wait.first->hasCompleted(wait.second, std::memory_order_seq_cst)) return true;
  }
  return callsWaiting_.load(std::memory_order_seq_cst);
}

}  // namespace headrace
