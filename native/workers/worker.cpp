// The loop of a host worker: see workers/worker.h.
#include "workers/worker.h"

#include <pthread.h>

#include <cstdio>

#include "queues/feed.h"
#include "queues/spin.h"

namespace headrace {

Worker::Worker(Runtime& runtime, Queue& queue)
    : runtime_(runtime), first_(queue), stolen_(runtime.stolen), executor_(runtime, stolen_) {
  runtime.ownership.join(queue, sleeper_);
}

Worker::~Worker() {
  sleeper_.unpark();
  if (thread_.joinable()) thread_.join();
}

void Worker::start() {
  thread_ = std::thread([this] { run(); });
}

void Worker::run() {
  char name[16];
  std::snprintf(name, sizeof name, "headrace-w%d", first_.index);
  pthread_setname_np(pthread_self(), name);
  const QueueOwnership& ownership = runtime_.ownership;
  executor_.begin(first_);
  while (!executor_.stopped()) {
    if (__builtin_expect(ownership.crowded(), 0)) changeQueue();
    Next next = Next::execute;
    if (executor_.empty()) {
      next = waitForWork();
    } else if (executor_.head().waitQueue() >= 0) {
      next = waitForEvent();
    }
    if (next == Next::end) break;
    if (next != Next::look) executor_.execute(next == Next::giveUp);
  }
  executor_.end();
}

/// Makes room for the engine, or takes a queue with work for one without. True when another queue is held now.
bool Worker::changeQueue() {
  Queue* held = &executor_.queue();
  Queue* other = nullptr;
  if (runtime_.ownership.crowded()) {
    if (!runtime_.ownership.inTheWay(crowdedSince_)) return false;
    crowdedSince_ = 0;
    executor_.end();
    other = runtime_.ownership.stepAside(held, sleeper_);
    executor_.begin(other == nullptr ? *held : *other);
    return other != nullptr;
  }
  crowdedSince_ = 0;
  other = runtime_.ownership.take(&sleeper_);
  if (other == nullptr) return false;
  executor_.end();
  runtime_.ownership.giveBack(held);
  executor_.begin(*other);
  return true;
}

/// The queue is empty: `look` again, or `end` when the core closes.
Worker::Next Worker::waitForWork() {
  Queue& queue = executor_.queue();
  const std::int32_t done = executor_.done();
  bool idle = false;
  bool changed = false;
  const auto ready = [&] {
    return queue.published() != done || feedIsReady(queue) || (changed = changeQueue());
  };
  if (!spin(runtime_.spinNanoseconds, ready,
            [&](std::int64_t time) { executor_.becomeIdle(time), idle = true; })) {
    runtime_.ownership.fallAsleep();
    // The engine publishes and then reads `sleeping`; here it is the other way round (both seq_cst), so either it
    // sees that this thread sleeps and wakes it, or this thread sees the new record.
    queue.setSleeping(true);
    while (queue.published(std::memory_order_seq_cst) == done && !feedIsReady(queue)) {
      if (runtime_.closing.load(std::memory_order_seq_cst)) {
        runtime_.ownership.wakeUp();
        return Next::end;
      }
      sleeper_.park(-1);
      queue.setSleeping(true);
    }
    queue.setSleeping(false);
    runtime_.ownership.wakeUp();
  }
  if (idle && !changed) executor_.becomeBusy();
  return Next::look;
}

/// The next record waits for an event: `execute` when it has happened, `giveUp` when it never will.
Worker::Next Worker::waitForEvent() {
  const Command command = executor_.head();
  Queue* target = runtime_.queue(command.waitQueue());
  const std::int32_t sequence = command.waitSequence();
  if (target == nullptr || target->hasCompleted(sequence)) return Next::execute;
  bool idle = false;
  bool changed = false;
  bool happened = spin(
      runtime_.spinNanoseconds,
      [&] { return target->hasCompleted(sequence) || (changed = changeQueue()); },
      [&](std::int64_t time) { executor_.becomeIdle(time), idle = true; });
  if (changed) return Next::look;
  if (!happened) {
    runtime_.ownership.fallAsleep();
    CompletionWaiter watcher;
    watcher.target = sequence;
    watcher.sleeper = &sleeper_;
    target->completion.add(watcher);
    while (!(happened = target->hasCompleted(sequence, std::memory_order_seq_cst)) &&
           !runtime_.abandoned(*target, sequence)) {
      sleeper_.park(-1);
    }
    target->completion.remove(watcher);
    runtime_.ownership.wakeUp();
  }
  if (idle) executor_.becomeBusy();
  return happened ? Next::execute : Next::giveUp;
}

}  // namespace headrace
