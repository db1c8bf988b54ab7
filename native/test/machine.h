// The equipment of the native tests: a core with its shared memory, an engine that writes records, and checks.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/core.h"

namespace headrace::test {

struct Test {
  const char* name;
  std::function<void()> body;
};

/// All tests; each file adds its own through a static `Add`.
std::vector<Test>& tests();

struct Add {
  Add(const char* name, std::function<void()> body) { tests().push_back({name, std::move(body)}); }
};

/// A test that cannot run here calls it before it returns: it counts as skipped.
void leaveOut(const char* needs);

inline void check(bool good, const char* text, const char* file, int line) {
  if (good) return;
  std::fprintf(stderr, "%s:%d: not true: %s\n", file, line, text);
  std::exit(1);
}

#define CHECK(condition) ::headrace::test::check((condition), #condition, __FILE__, __LINE__)

struct Event {
  std::int32_t queue = -1;
  std::int32_t sequence = 0;
};

/// The engine's side of a core, as the TypeScript backend does it.
class Machine {
 public:
  explicit Machine(CoreOptions options, std::int32_t first = 0) {
    auto queues = Core::queuesOf(options);
    records_ = options.ringRecords;
    rings_.resize(queues.size());
    times_.assign(queues.size(), std::vector<double>(records_ * Times::doubles));
    control_.resize(queues.size() * Control::words + 16);
    shared_.resize(Shared::words + 16);
    issued_.assign(queues.size(), first);
    for (std::size_t q = 0; q < queues.size(); ++q) {
      rings_[q].resize(static_cast<std::size_t>(records_) * Record::words + 16);
      queues[q].ring = aligned(rings_[q]);
      queues[q].times = times_[q].data();
      for (const int word : {Control::published, Control::completed, Control::submitted}) {
        aligned(control_)[q * Control::words + static_cast<std::size_t>(word)] = first;
      }
    }
    core = std::make_unique<Core>(options, queues, aligned(control_), aligned(shared_));
  }
  ~Machine() { core->close(); }

  std::unique_ptr<Core> core;
  /// The engine's activity while it waits; by default it blocks on the doorbell.
  std::function<void()> pause;

  Word& control(std::int32_t queue, std::int32_t word) {
    return reinterpret_cast<Word*>(aligned(control_))[queue * Control::words + word];
  }
  Word& shared(std::int32_t word) { return reinterpret_cast<Word*>(aligned(shared_))[word]; }

  Event put(std::int32_t queue, std::int32_t opcode, std::int32_t kernel, std::int32_t flows,
            const std::vector<double>& arguments, Event wait = {}, std::int32_t run = -1) {
    const auto count = static_cast<std::int32_t>(arguments.size());
    const bool continues = opcode == Opcode::exec || opcode == Opcode::send ||
                           opcode == Opcode::offer || opcode == Opcode::deliver;
    const std::int32_t more = continues && count > Record::inlineArguments
                                  ? (count - Record::inlineArguments + 7) / 8
                                  : 0;
    while (ahead(issued_[queue], completed(queue)) + 1 + more > static_cast<int>(records_)) {
      publish();  // all: this queue may wait for another
      sched_yield();
    }
    std::int32_t* words = next(queue);
    const std::int32_t sequence = issued_[queue];
    words[Record::head] = opcode | (flows << 8) | (count << 20);
    words[Record::kernel] = (kernel & 0xffff) | ((wait.queue + 1) << 16);
    words[Record::task] = sequence;
    words[Record::run] = run;
    words[Record::waitSeq] = wait.sequence;
    words[Record::status] = 0;
    auto* doubles = reinterpret_cast<double*>(words) + Record::argument;
    int room = Record::inlineArguments;
    for (const double value : arguments) {
      if (room-- == 0) {
        doubles = reinterpret_cast<double*>(next(queue));
        room = Record::doubles - 1;
      }
      *doubles++ = value;
    }
    return {queue, sequence};
  }
  Event exec(std::int32_t queue, const char* name, std::int32_t flows,
             std::initializer_list<double> arguments, Event wait = {}, std::int32_t run = -1) {
    return put(queue, Opcode::exec, Registry::instance().find(name, -1), flows, arguments, wait,
               run);
  }
  Event hold(std::int32_t queue, Event wait) { return put(queue, Opcode::wait, 0, 0, {}, wait); }
  Event copy(std::int32_t queue, std::int32_t to, double toOffset, std::int32_t from,
             double fromOffset, double bytes, Event wait = {}) {
    return put(queue, Opcode::copy, to | (from << 8), 0, {toOffset, fromOffset, bytes}, wait);
  }
  Event fill(std::int32_t queue, double offset, double bytes, double value, Event wait = {}) {
    return put(queue, Opcode::fill, 0, 0, {offset, bytes, value}, wait);
  }

  void publish(std::int32_t queue) {
    control(queue, Control::published).store(issued_[queue], std::memory_order_seq_cst);
    if (control(queue, Control::sleeping).load(std::memory_order_seq_cst) != 0) core->wake(queue);
  }
  void publish() {
    for (std::size_t q = 0; q < issued_.size(); ++q) publish(static_cast<std::int32_t>(q));
  }
  std::int32_t completed(std::int32_t queue) {
    return control(queue, Control::completed).load(std::memory_order_acquire);
  }
  std::int32_t issued(std::int32_t queue) const { return issued_[queue]; }
  /// A play of the queue is over: its records count as issued.
  void passPlay(std::int32_t queue) { issued_[queue] = completed(queue); }
  /// Nanoseconds during which the queue has had work up to now, as contract.ts says.
  std::int64_t busy(std::int32_t queue) {
    const auto* word = reinterpret_cast<std::atomic<std::int64_t>*>(&control(queue, Control::busy));
    const std::int64_t value = word->load();
    return value < 0 ? value + now() : value;
  }
  bool done(Event event) { return ahead(completed(event.queue), event.sequence) >= 0; }

  /// Publishes everything and blocks on the doorbell until the event has happened.
  void finish(Event event) {
    publish();
    const std::int64_t limit = now() + std::int64_t{60} * 1000000000;
    while (!done(event)) {
      control(event.queue, Control::doorbellAt).store(event.sequence);
      control(event.queue, Control::doorbellArmed).store(1);
      if (pause) {
        pause();
      } else {
        core->waitForDoorbell(1e6);
      }
      if (now() > limit) {
        std::fprintf(stderr, "queue %d never completed %d (at %d)\n", event.queue, event.sequence,
                     completed(event.queue));
        std::exit(1);
      }
    }
  }
  void finish() {
    publish();
    for (std::size_t q = 0; q < issued_.size(); ++q) {
      finish({static_cast<std::int32_t>(q), issued_[q]});
    }
  }

  std::int32_t* record(Event event) {
    return aligned(rings_[event.queue]) +
           ((static_cast<std::uint32_t>(event.sequence) - 1) & (records_ - 1)) * Record::words;
  }
  const double* times(Event event) {
    const std::uint32_t slot = (static_cast<std::uint32_t>(event.sequence) - 1) & (records_ - 1);
    return times_[event.queue].data() + slot * Times::doubles;
  }
  std::int32_t status(Event event) { return record(event)[Record::status]; }
  template <typename T>
  T* at(std::int32_t space, double offset) {
    return reinterpret_cast<T*>(core->runtime().spaces[space].pointer(offset));
  }

 private:
  static std::int32_t* aligned(std::vector<std::int32_t>& words) {
    const auto address = reinterpret_cast<std::uintptr_t>(words.data());
    return words.data() + ((64 - (address & 63)) & 63) / 4;
  }
  std::int32_t* next(std::int32_t queue) {
    issued_[queue] = static_cast<std::int32_t>(static_cast<std::uint32_t>(issued_[queue]) + 1);
    std::int32_t* words = record({queue, issued_[queue]});
    return words;
  }
  std::uint32_t records_ = 0;
  std::vector<std::vector<std::int32_t>> rings_;
  std::vector<std::vector<double>> times_;
  std::vector<std::int32_t> control_;
  std::vector<std::int32_t> shared_;
  std::vector<std::int32_t> issued_;
};

// Every value depends on the two neighbours of the step before, on other queues: any missing edge shows.
inline void crossWaits(Machine& machine, int queues, int steps) {
  std::vector<Event> before(static_cast<std::size_t>(queues));
  for (int step = 0; step < steps; ++step) {
    std::vector<Event> current(before);
    for (int q = 0; q < queues; ++q) {
      const int other = (q + 1) % queues;
      // Two halves of host memory by turns; the column of q is at 64 * q.
      const double mine = (step % 2) * 4096 + 64 * q;
      const double from = ((step + 1) % 2) * 4096 + 64 * other;
      // The other must have done the step before (its value), and must have read the value that is overwritten now.
      machine.hold(q, before[static_cast<std::size_t>((q + queues - 1) % queues)]);
      machine.exec(q, "copy_bytes", 2, {mine, from, 8}, before[static_cast<std::size_t>(other)]);
      current[static_cast<std::size_t>(q)] = machine.exec(q, "add_f64", 2, {mine, 8192, 1, 1});
    }
    before = current;
    if (step % 5 == 0) machine.publish();
  }
  machine.finish();
}

inline CoreOptions small(std::int32_t workers, std::int32_t gpus = 0) {
  CoreOptions options;
  options.workers = workers;
  options.gpus = gpus;
  options.gpuBytes = 1 << 20;
  options.hostBytes = 1 << 20;
  options.ringRecords = 64;
  return options;
}

}  // namespace headrace::test
