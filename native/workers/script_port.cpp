// Serving the queues of script workers: see workers/script_port.h.
#include "workers/script_port.h"

#include <pthread.h>

#include "core/clock.h"
#include "core/core_error.h"
#include "queues/feed.h"
#include "queues/spin.h"

namespace headrace {

namespace {

/// The event loop of a server that always has work turns at this interval.
constexpr std::int64_t kTurn = 5'000'000;

/// The queue whose event the next record awaits, or null when it can start.
Queue* awaited(Runtime& runtime, const Command& command) {
  Queue* target = runtime.queue(command.waitQueue());
  return target == nullptr || target->hasCompleted(command.waitSequence()) ? nullptr : target;
}

}  // namespace

ScriptPort::ScriptPort(Runtime& runtime, Queue& queue) : runtime_(runtime), queue_(queue) {
  sleeper_.setCall(callServer, this);
  queue.setOwner(&sleeper_);
}

ScriptPort::~ScriptPort() {
  sleeper_.unpark();
  if (refusing_.joinable()) refusing_.join();
  std::unique_lock<std::mutex> guard(lock_);
  left_.wait(guard, [this] { return !served_; });
}

void ScriptPort::callServer(void* port) {
  auto* self = static_cast<ScriptPort*>(port);
  std::lock_guard<std::mutex> guard(self->lock_);
  if (self->call_) self->call_();
}

bool ScriptPort::takeThrown(std::int32_t sequence, std::string& bytes) {
  std::lock_guard<std::mutex> guard(lock_);
  const auto found = thrown_.find(sequence);
  if (found == thrown_.end()) return false;
  bytes = std::move(found->second);
  thrown_.erase(found);
  return true;
}

void ScriptPort::setThrown(std::int32_t sequence, std::string bytes) {
  std::lock_guard<std::mutex> guard(lock_);
  thrown_[sequence] = std::move(bytes);
}

void ScriptPort::refuse(const std::string& thrown) {
  std::lock_guard<std::mutex> guard(lock_);
  if (served_ || refusing_.joinable() || runtime_.closing.load(std::memory_order_seq_cst)) return;
  queue_.setServing(Serving::refused);
  refusing_ = std::thread([this, thrown] { refuseAll(thrown); });
}

void ScriptPort::refuseAll(const std::string& thrown) {
  pthread_setname_np(pthread_self(), "headrace-refuse");
  StolenTime stolen(runtime_.stolen);
  Executor executor(runtime_, stolen);
  executor.begin(queue_);
  for (;;) {
    if (executor.empty()) {
      queue_.setSleeping(true);
      const bool isEmpty =
          queue_.published(std::memory_order_seq_cst) == executor.done() && !feedIsReady(queue_);
      if (isEmpty && runtime_.closing.load(std::memory_order_seq_cst)) break;
      if (isEmpty) sleeper_.park(-1);
      queue_.setSleeping(false);
      continue;
    }
    bool givenUp = false;
    Queue* target = awaited(runtime_, executor.head());
    if (target != nullptr) {
      CompletionWaiter watcher;
      watcher.target = executor.head().waitSequence();
      watcher.sleeper = &sleeper_;
      target->completion.add(watcher);
      while (!target->hasCompleted(watcher.target, std::memory_order_seq_cst) &&
             !(givenUp = runtime_.abandoned(*target, watcher.target))) {
        sleeper_.park(-1);
      }
      target->completion.remove(watcher);
    }
    if (!executor.start(givenUp)) continue;
    setThrown(executor.startedSequence(), thrown);
    executor.finish(Status::threw);
  }
  executor.end();
}

ScriptServer::ScriptServer(ScriptPort& port, std::function<void()> call)
    : port_(port),
      runtime_(port.runtime_),
      stolen_(port.runtime_.stolen),
      executor_(port.runtime_, stolen_) {
  std::lock_guard<std::mutex> guard(port.lock_);
  if (runtime_.closing.load(std::memory_order_seq_cst)) {
    throw CoreError("CLOSED", "the native core is closed");
  }
  if (port.served_ || port.refusing_.joinable()) {
    throw CoreError("CLOSED", "another thread serves the queue");
  }
  port.served_ = true;
  port.call_ = std::move(call);
  port.queue_.setServing(Serving::script);
  port.queue_.setSleeping(false);
  port.sleeper_.comeBack();
  executor_.begin(port.queue_);
  turnedAt_ = now();
}

/// True when `next` has something to do.
bool ScriptServer::isReady() {
  if (port_.queue_.published(std::memory_order_seq_cst) == executor_.done()) {
    return feedIsReady(port_.queue_) || runtime_.closing.load(std::memory_order_seq_cst);
  }
  if (executor_.empty()) return false;
  const Command head = executor_.head();
  const Queue* target = runtime_.queue(head.waitQueue());
  return target == nullptr ||
         target->hasCompleted(head.waitSequence(), std::memory_order_seq_cst) ||
         runtime_.abandoned(*target, head.waitSequence());
}

void ScriptServer::wakeUp() {
  if (!resting_) return;
  resting_ = false;
  if (watched_ != nullptr) watched_->completion.remove(watcher_);
  watched_ = nullptr;
  port_.queue_.setSleeping(false);
  port_.sleeper_.comeBack();
  executor_.becomeBusy();
  turnedAt_ = now();
}

std::int32_t ScriptServer::next(std::int32_t status) {
  if (!held_) return ScriptNext::end;
  if (running_) {
    running_ = false;
    executor_.finish(status);
  }
  wakeUp();
  const std::int64_t time = now();
  if (time - turnedAt_ > kTurn) {
    turnedAt_ = time;
    return ScriptNext::turn;
  }
  for (;;) {
    if (executor_.empty() || awaited(runtime_, executor_.head()) != nullptr) {
      bool idle = false;
      const bool ready = spin(
          runtime_.spinNanoseconds, [this] { return isReady(); },
          [&](std::int64_t since) { executor_.becomeIdle(since), idle = true; });
      if (!ready) return ScriptNext::rest;
      if (idle) executor_.becomeBusy();
      if (executor_.empty()) {
        if (guards.playKeepsServer && !runtime_.closing.load(std::memory_order_seq_cst)) continue;
        letGo();
        return ScriptNext::end;
      }
    }
    const Command head = executor_.head();
    const Queue* target = awaited(runtime_, head);
    // What a play has handed over meanwhile has an event of its own to wait for.
    if (guards.playAwaits && target != nullptr &&
        !runtime_.abandoned(*target, head.waitSequence())) {
      continue;
    }
    if (!executor_.start(target != nullptr)) continue;
    running_ = true;
    return executor_.started().kernel();
  }
}

/// The thread leaves and *then* looks whether there is something to do; others make something to do and *then* unpark.
bool ScriptServer::rest() {
  if (!held_ || running_) return false;
  resting_ = true;
  port_.queue_.setSleeping(true);
  if (!executor_.empty()) {
    const Command head = executor_.head();
    watched_ = runtime_.queue(head.waitQueue());
    if (watched_ != nullptr) {
      watcher_.target = head.waitSequence();
      watcher_.sleeper = &port_.sleeper_;
      watched_->completion.add(watcher_);
    }
  }
  if (port_.sleeper_.leave() && !(guards.restLooksAgain && isReady())) return true;
  wakeUp();
  return false;
}

void ScriptServer::setThrown(std::string bytes) {
  if (running_) port_.setThrown(executor_.startedSequence(), std::move(bytes));
}

void ScriptServer::letGo() {
  if (!held_) return;
  held_ = false;
  wakeUp();
  {
    // From here on nobody calls the thread.
    std::lock_guard<std::mutex> guard(port_.lock_);
    port_.call_ = nullptr;
  }
  if (running_) {
    running_ = false;
    if (!lastWords_.empty()) port_.setThrown(executor_.startedSequence(), lastWords_);
    executor_.finish(Status::workerEnded);
  }
  executor_.end();
  std::lock_guard<std::mutex> guard(port_.lock_);
  port_.queue_.setServing(Serving::ended);
  port_.served_ = false;
  port_.left_.notify_all();
}

}  // namespace headrace
