// The functions of a core's lanes: see core/lanes.h.
#include "core/lanes.h"

#include "queues/feed.h"
#include "queues/ring.h"

namespace headrace {

Lanes::Lanes(Runtime& runtime, std::int32_t first) : runtime_(runtime), first_(first), table_{} {
  table_.self = this;
  table_.count = static_cast<std::int32_t>(runtime.queues.size()) - first;
  table_.published = [](void* self, std::int32_t number) {
    const Lanes& lanes = of(self);
    const Queue& queue = lanes.lane(number);
    // A core that closes does not wait for other ranks: its lanes end where they are.
    const bool closing = lanes.runtime_.closing.load(std::memory_order_acquire);
    return closing ? queue.completed() : queue.published();
  };
  table_.completed = [](void* self, std::int32_t number) {
    return of(self).lane(number).completed();
  };
  table_.record = [](void* self, std::int32_t number,
                     std::int32_t sequence) -> const std::int32_t* {
    return of(self).lane(number).record(sequence);
  };
  table_.happened = [](void* self, std::int32_t queue, std::int32_t sequence) -> std::int32_t {
    const Queue* target = of(self).runtime_.queue(queue);
    return target == nullptr || target->hasCompleted(sequence, std::memory_order_seq_cst) ? 1 : 0;
  };
  table_.cancelled = [](void* self, std::int32_t run) -> std::int32_t {
    const Word* word = of(self).runtime_.cancelWord(run);
    return word != nullptr && word->load(std::memory_order_seq_cst) != 0 ? 1 : 0;
  };
  table_.unhandled = [](void* self) -> std::int32_t {
    return of(self).runtime_.unhandled() ? 1 : 0;
  };
  table_.complete = [](void* self, std::int32_t number, std::int32_t sequence, std::int32_t status,
                       double start, double end) {
    Lanes& lanes = of(self);
    lanes.complete(lanes.lane(number), sequence, status, start, end);
  };
  table_.timing = [](void* self) -> std::int32_t { return of(self).runtime_.timing() ? 1 : 0; };
  watches_.resize(static_cast<std::size_t>(table_.count));
  table_.watch = [](void* self, std::int32_t number, std::int32_t queue, std::int32_t sequence,
                    void* sleeper) -> std::int32_t {
    if (queue < 0) return of(self).watchFeed(number, *static_cast<FutexToken*>(sleeper)) ? 1 : 0;
    Queue* target = of(self).runtime_.queue(queue);
    if (target == nullptr) return 1;
    return of(self).watch(number, *target, sequence, *static_cast<FutexToken*>(sleeper)) ? 1 : 0;
  };
  table_.unwatch = [](void* self, std::int32_t number) { of(self).unwatch(number); };
  table_.refill = [](void* self, std::int32_t number) -> std::int32_t {
    Lanes& lanes = of(self);
    if (lanes.runtime_.closing.load(std::memory_order_acquire)) return 0;
    return lanes.refill(lanes.lane(number));
  };
  table_.reached = [](void* self, std::int32_t queue) -> std::int32_t {
    const Queue* target = of(self).runtime_.queue(queue);
    return target == nullptr ? 0 : target->completed();
  };
  table_.setArgument = [](void* self, std::int32_t number, std::int32_t sequence,
                          std::int32_t argument, double value) {
    if (argument < 0 || argument >= Record::inlineArguments) return;
    auto* numbers = reinterpret_cast<double*>(of(self).lane(number).record(sequence));
    numbers[Record::argument + argument] = value;
  };
  table_.prefetch = [](void* self, std::int32_t number) {
    of(self).lane(number).prefetchPublished();
  };
}

Lanes::~Lanes() {
  for (std::int32_t i = 0; i < table_.count; ++i) unwatch(i);
}

std::int32_t Lanes::refill(Queue& queue) {
  Feed* feed = queue.feed();
  const std::int32_t before = queue.completed();
  if (feed == nullptr) return 0;
  // All records are complete, so the ring has room: only a condition holds the feed back.
  if (!feed->refill()) return 2;
  const std::int32_t now = queue.completed();
  if (now == before) return 1;
  // The rest of the play was skipped.
  runtime_.shared[Shared::arrivals].fetch_add(1, std::memory_order_seq_cst);
  queue.announce(now);
  return 1;
}

/// Invariant: the play wakes the owners of its queues after it has decided, and the server looks for the decision after it has
/// become the owner. So it sees the decision, or is woken.
bool Lanes::watchFeed(std::int32_t number, FutexToken& sleeper) {
  unwatch(number);
  Queue& queue = lane(number);
  watches_[static_cast<std::size_t>(number)].owns = true;
  if (guards.laneLooks) queue.setOwner(&sleeper);
  if (!feedIsReady(queue)) return false;
  unwatch(number);
  return true;
}

/// True when the record is complete already.
bool Lanes::watch(std::int32_t lane, Queue& queue, std::int32_t sequence, FutexToken& sleeper) {
  unwatch(lane);
  Watch& watch = watches_[static_cast<std::size_t>(lane)];
  watch.waiter.target = sequence;
  watch.waiter.sleeper = &sleeper;
  watch.queue = &queue;
  queue.completion.add(watch.waiter);
  if (!queue.hasCompleted(sequence, std::memory_order_seq_cst)) return false;
  unwatch(lane);
  return true;
}

void Lanes::unwatch(std::int32_t number) {
  Watch& watch = watches_[static_cast<std::size_t>(number)];
  if (watch.queue != nullptr) watch.queue->completion.remove(watch.waiter);
  watch.queue = nullptr;
  if (watch.owns) lane(number).setOwner(nullptr);
  watch.owns = false;
}

void Lanes::complete(Queue& queue, std::int32_t sequence, std::int32_t status, double start,
                     double end) {
  std::int32_t first = after(queue.completed(), 1);
  for (;;) {
    const Command command(queue.record(first));
    const std::int32_t next = after(first, command.span());
    if (ahead(next, sequence) > 0) break;
    command.setStatus(Status::ok);
    first = next;
  }
  const Command command(queue.record(first));
  if (runtime_.timing()) queue.setTimes(command.words(), start, end);
  command.setStatus(status);
  if (status != Status::ok) {
    queue.addFailure();
    Word* cancel = runtime_.failureWord(command.run());
    if (status != Status::cancelled && cancel != nullptr) {
      cancel->store(1, std::memory_order_release);
    }
  }
  queue.setSubmitted(sequence, std::memory_order_relaxed);
  queue.setCompleted(sequence);
  runtime_.shared[Shared::arrivals].fetch_add(1, std::memory_order_seq_cst);
  queue.announce(sequence);
}

}  // namespace headrace
