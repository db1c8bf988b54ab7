// Rings, waits between queues, sleeping and waking, the doorbell, cancellation and failures.
#include <atomic>
#include <thread>

#include "machine.h"

namespace headrace::test {
namespace {

Add wrapAround("a ring wraps, sequence numbers wrap as int32, arguments go around the end", [] {
  Machine machine(small(1), INT32_MAX - 100);
  for (int i = 0; i < 100; ++i) machine.at<double>(0, 800)[i] = 0;
  // 7 parameters: exec + 1 continuation, so that records also straddle the end of the ring.
  Event last;
  for (int i = 0; i < 500; ++i) {
    if (i % 3 == 0) machine.put(0, Opcode::nop, 0, 0, {});
    last = machine.exec(0, "add_f64", 2, {0, 800, 100, 1, 0, 0, 0});
  }
  machine.finish();
  CHECK(machine.completed(0) < 0);
  Event sum = machine.exec(0, "fill_f64", 1, {0, 100, 2.5});
  machine.finish(sum);
  CHECK(machine.at<double>(0, 0)[99] == 2.5);
  CHECK(machine.status(sum) == Status::ok);
});

Add wrapGpu("a stream's ring wraps as well", [] {
  Machine machine(small(0, 1), INT32_MAX - 50);
  machine.fill(0, 0, 1600, 0);
  machine.exec(0, "fill_f64", 1, {800, 100, 1});
  for (int i = 0; i < 500; ++i) machine.exec(0, "add_f64", 2, {0, 800, 100, 1, 0, 0, 0});
  machine.finish();
  CHECK(machine.at<double>(1, 0)[42] == 500);
});

Add crossed("queues that wait for each other at every step lose nothing (lost wake-ups, order)",
            [] {
              Machine machine(small(3));
              machine.at<double>(0, 8192)[0] = 1;
              crossWaits(machine, 3, 20000);
              for (int q = 0; q < 3; ++q) CHECK(machine.at<double>(0, 4096 + 64 * q)[0] == 20000);
            });

Add slowProducer("a sleeper is woken by the exact event, from host and from GPU", [] {
  Machine machine(small(2, 1));
  for (int round = 0; round < 20; ++round) {
    const Event slow = machine.exec(0, "spin", 0, {200.0 * (round % 3)});
    const Event gpu = machine.exec(2, "empty", 0, {}, slow);
    const Event last = machine.exec(1, "empty", 0, {}, gpu);
    machine.publish();
    machine.finish(last);
    CHECK(machine.done(slow) && machine.done(gpu));
  }
});

Add several("all sleepers of the same event are woken by it", [] {
  Machine machine(small(3, 2));
  for (int round = 0; round < 20; ++round) {
    const Event slow = machine.exec(0, "spin", 0, {1000});
    for (const int queue : {1, 2, 3, 7}) machine.exec(queue, "empty", 0, {}, slow);
    machine.finish();
  }
});

Add sleepWake("a queue that sleeps is woken by every publication", [] {
  Machine machine(small(1, 1));
  for (int round = 0; round < 300; ++round) {
    const Event a = machine.exec(0, "empty", 0, {});
    const Event b = machine.exec(1, "empty", 0, {});
    machine.publish();
    machine.finish(a);
    machine.finish(b);
    if (round % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
});

// Without the spinning that hides it elsewhere: a number whose store is overtaken by the look for sleepers loses a
// wake-up about twice in a million rounds. On a machine whose cores others use, a round takes as long as a turn of the
// scheduler: there the time ends the test.
Add noLostWakeUp("no sleeper misses its completion", [] {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr std::int32_t kRounds = 100000;
#else
  constexpr std::int32_t kRounds = 1500000;
#endif
  constexpr std::int64_t kLongest = 10'000'000'000;
  constexpr std::int64_t kPatience = 2'000'000'000;
  std::vector<Word> control(Control::words);
  std::vector<Word> shared(Shared::words);
  Doorbell doorbell(shared.data());
  Queue queue(0, QueueKind::worker, 0, -1, nullptr, nullptr, 64, control.data(), shared.data(),
              &doorbell);
  std::atomic<std::int32_t> seen{0};
  std::atomic<std::int32_t> last{kRounds};
  std::thread sleeper([&] {
    FutexToken sleeper;
    CompletionWaiter watcher;
    watcher.sleeper = &sleeper;
    for (std::int32_t round = 1; round <= last.load(std::memory_order_seq_cst); ++round) {
      watcher.target = round;
      queue.completion.add(watcher);
      while (!queue.hasCompleted(round, std::memory_order_seq_cst)) {
        // The thread that has stored the number may have lost its core before it wakes this one. If it never wakes this
        // one, the number was forgotten.
        if (!sleeper.park(kPatience) && queue.hasCompleted(round)) CHECK(sleeper.park(kPatience));
      }
      queue.completion.remove(watcher);
      seen.store(round, std::memory_order_seq_cst);
    }
  });
  const std::int64_t until = now() + kLongest;
  for (std::int32_t round = 1; round <= kRounds; ++round) {
    // The last round is named before it is published: the sleeper goes on to the next one only after it.
    if (round % 64 == 0 && now() > until) last.store(round, std::memory_order_seq_cst);
    for (int look = 0; seen.load(std::memory_order_seq_cst) != round - 1; ++look) {
      if (look < 1000)
        pauseProcessor();
      else
        sched_yield();
    }
    for (int i = round % 64; i > 0; --i) asm volatile("nop");
    queue.publish(round);
    if (round == last.load(std::memory_order_relaxed)) break;
  }
  sleeper.join();
});

Add doorbell("the doorbell wakes a blocked engine and calls a sleeping one once", [] {
  Machine machine(small(1));
  std::atomic<int> calls{0};
  machine.core->runtime().doorbell.setCall([&] { ++calls; });
  for (int round = 0; round < 50; ++round) {
    const Event event = machine.exec(0, "spin", 0, {100});
    machine.control(0, Control::doorbellAt).store(event.sequence);
    machine.control(0, Control::doorbellArmed).store(1);
    machine.shared(Shared::engineAsleep).store(2);
    machine.publish();
    while (calls.load() == 0) sched_yield();
    CHECK(machine.done(event));
    CHECK(machine.control(0, Control::doorbellArmed).load() == 0);
    machine.shared(Shared::engineAsleep).store(0);
    machine.core->runtime().doorbell.answered();
    CHECK(calls.exchange(0) == 1);
  }
  // Awake: no queue rings, and blocking afterwards does not wait.
  const Event event = machine.exec(0, "empty", 0, {});
  machine.control(0, Control::doorbellAt).store(event.sequence);
  machine.control(0, Control::doorbellArmed).store(1);
  machine.publish();
  while (!machine.done(event)) sched_yield();
  CHECK(machine.control(0, Control::doorbellArmed).load() == 1);
  const std::int64_t start = now();
  CHECK(machine.core->waitForDoorbell(5e6));
  CHECK(now() - start < 1000000000);
  machine.control(0, Control::doorbellArmed).store(0);
  machine.core->runtime().doorbell.setCall(nullptr);
});

Add spinning("an engine that spins sees the ring of an armed event, and the end of its time", [] {
  Machine machine(small(1));
  for (int round = 0; round < 50; ++round) {
    const Event event = machine.exec(0, "spin", 0, {round % 5 * 20.0});
    machine.control(0, Control::doorbellAt).store(event.sequence);
    machine.control(0, Control::doorbellArmed).store(1);
    machine.publish();
    while (!machine.core->spinForDoorbell(5e6)) continue;
    CHECK(machine.shared(Shared::engineAsleep).load() == 0);
    // A ring of an earlier round may be left.
    while (!machine.done(event)) machine.core->spinForDoorbell(5e6);
    machine.control(0, Control::doorbellArmed).store(0);
  }
  machine.core->spinForDoorbell(0);
  const std::int64_t start = now();
  CHECK(!machine.core->spinForDoorbell(1000));
  CHECK(now() - start >= 1000000);
});

Add cancelled("a cancelled run's kernels complete in order without running", [] {
  Machine machine(small(1, 1));
  machine.shared(Shared::cancel + 3).store(1);
  for (int queue = 0; queue < 2; ++queue) {
    const Event skipped = machine.exec(queue, "fill_f64", 1, {0, 1, 7}, {}, 3);
    const Event other = machine.exec(queue, "fill_f64", 1, {8, 1, 9}, {}, 4);
    machine.finish(other);
    CHECK(machine.status(skipped) == Status::cancelled);
    CHECK(machine.status(other) == Status::ok);
    CHECK(machine.at<double>(queue, 0)[0] == 0 && machine.at<double>(queue, 8)[0] == 9);
    CHECK(machine.control(queue, Control::failures).load() == 1);
  }
});

Add failing("a failing kernel cancels its run before anything that depends on it starts", [] {
  for (int round = 0; round < 200; ++round) {
    Machine machine(small(2, 2));
    const int first = round % 4 < 2    ? round % 4
                      : round % 4 == 2 ? 2
                                       : 6;  // workers 0, 1; computes 2, 6
    const Event bad = machine.exec(first, "fail", 0, {17}, {}, 5);
    std::vector<Event> followers;
    for (const int queue : {0, 1, 2, 6}) {
      followers.push_back(machine.exec(queue, "fill_f64", 1, {0, 1, 7}, bad, 5));
    }
    machine.finish();
    CHECK(machine.status(bad) == 17);
    for (const Event& event : followers) CHECK(machine.status(event) == Status::cancelled);
    for (int space = 0; space < 3; ++space) CHECK(machine.at<double>(space, 0)[0] == 0);
    CHECK(machine.shared(Shared::cancel + 5).load() == 1);
  }
});

Add refusals("a meaningless command is refused with its own status", [] {
  Machine machine(small(1, 1));
  const double bytes = 1 << 20;
  for (int queue = 0; queue < 2; ++queue) {
    const int space = queue;
    const Event unknown = machine.put(queue, Opcode::exec, 99999, 0, {});
    const Event outside = machine.exec(queue, "fill_f64", 1, {bytes + 8, 1, 1});
    const Event negative = machine.exec(queue, "fill_f64", 1, {-8, 1, 1});
    const Event extent = machine.exec(queue, "fill_f64", 1, {bytes - 8, 2, 1});
    const Event few = machine.exec(queue, "fill_f64", 1, {0, 1});
    const Event copy = machine.copy(queue, space, bytes - 8, 0, 0, 16);
    const Event nowhere = machine.copy(queue, 7, 0, space, 0, 16);
    const Event fill = machine.fill(queue, 8, bytes, 1);
    const Event nan = machine.fill(queue, 0.0 / 0.0, 8, 1);
    const Event good = machine.fill(queue, 0, bytes, 0);
    machine.finish();
    CHECK(machine.status(unknown) == Status::unknownKernel);
    for (const Event& event : {outside, negative, extent, copy, nowhere, fill, nan}) {
      CHECK(machine.status(event) == Status::outOfRange);
    }
    CHECK(machine.status(few) == Status::badArguments);
    CHECK(machine.status(good) == Status::ok);
    CHECK(machine.control(queue, Control::failures).load() == 9);
  }
});

Add leftOver("a status left in a slot by an earlier record does not count for the new record", [] {
  Machine machine(small(1, 1));
  for (int queue = 0; queue < 2; ++queue) {
    const Event hold = machine.hold(queue, {});
    const Event work = machine.exec(queue, "empty", 0, {});
    for (const Event& event : {hold, work}) machine.record(event)[Record::status] = 17;
    machine.finish();
    CHECK(machine.status(hold) == Status::ok && machine.status(work) == Status::ok);
    CHECK(machine.control(queue, Control::failures).load() == 0);
  }
});

Add timing("with timing on, every record has its run time, inside the time it was under way", [] {
  Machine machine(small(1, 1));
  machine.shared(Shared::timing).store(1);
  for (int queue = 0; queue < 2; ++queue) {
    const auto before = static_cast<double>(now());
    const Event first = machine.exec(queue, "spin", 0, {300});
    const Event second = machine.exec(queue, "spin", 0, {300});
    machine.finish();
    const double* a = machine.times(first);
    const double* b = machine.times(second);
    CHECK(a[Times::start] >= before && b[Times::end] <= static_cast<double>(now()));
    CHECK(a[Times::end] - a[Times::start] >= 290000);
    CHECK(b[Times::start] >= a[Times::end]);
  }
});

Add asked("with timing off, the records that ask for it have their run time, and others have none",
          [] {
            Machine machine(small(1, 1));
            for (int queue = 0; queue < 2; ++queue) {
              const Event before = machine.exec(queue, "spin", 0, {50});
              const Event asks = machine.exec(queue, "spin", 0, {50});
              machine.record(asks)[Record::head] |= Record::timed;
              const Event after = machine.exec(queue, "spin", 0, {50});
              machine.finish();
              const double* times = machine.times(asks);
              CHECK(times[Times::start] > 0 && times[Times::end] - times[Times::start] >= 49000);
              for (const Event& other : {before, after})
                CHECK(machine.times(other)[Times::end] == 0);
            }
          });

Add busy("busy time is visible as soon as the completion is, without timing", [] {
  Machine machine(small(1, 1));
  for (int queue = 0; queue < 2; ++queue) {
    machine.exec(queue, "spin", 0, {3000});
    machine.finish();
    CHECK(machine.busy(queue) >= 2900000);
  }
});

Add busyMeanwhile(
    "busy time grows while work goes on, never faster than the clock, and stands still without",
    [] {
      // A thread that has just started counts from its start, if it finds work at once.
      const std::int64_t begin = now();
      Machine machine(small(1, 1));
      for (int queue = 0; queue < 2; ++queue) {
        // A counter that is brought up to date only at the end stands still until the kernel is over. A machine may keep this
        // thread from looking for the time of a whole kernel.
        bool hasGrown = false;
        for (int kernels = 0; !hasGrown; ++kernels) {
          CHECK(kernels < 100);
          const std::int64_t start = machine.busy(queue);
          const Event slow = machine.exec(queue, "spin", 0, {20000});
          machine.publish();
          std::int64_t before = start;
          while (!hasGrown && !machine.done(slow)) {
            const std::int64_t busy = machine.busy(queue);
            CHECK(busy >= before && busy <= now() - begin);
            before = busy;
            hasGrown = busy - start >= 5000000 && !machine.done(slow);
          }
          machine.finish(slow);
        }
        const std::int64_t after = machine.busy(queue);
        CHECK(after <= now() - begin);
        const std::int64_t until = now() + 1000000;
        while (now() < until) CHECK(machine.busy(queue) == after);
      }
    });

Add closing(
    "close finishes published records and gives up waits for records that were never published",
    [] {
      for (int round = 0; round < 20; ++round) {
        auto machine = std::make_unique<Machine>(small(2, 2));
        for (int queue = 0; queue < 12; ++queue) {
          if (queue == 4 || queue == 5 || queue == 8 || queue == 9)
            continue;  // not there or copies only
          if (queue >= static_cast<int>(machine->core->runtime().queues.size())) break;
          for (int i = 0; i < 20; ++i) machine->exec(queue, "spin", 0, {5});
        }
        const Event never{0, machine->issued(0) + 1000};
        machine->hold(1, never);
        const Event behind = machine->exec(1, "empty", 0, {});
        machine->hold(2, behind);
        machine->publish();
        if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        machine->core->close();
        machine->core->close();
        CHECK(machine->done(behind));
        CHECK(machine->completed(0) == machine->issued(0));
      }
    });

Add stop("stop ends a queue after everything before it", [] {
  Machine machine(small(1, 1));
  for (int queue = 0; queue < 2; ++queue) {
    const Event before = machine.exec(queue, "spin", 0, {50});
    const Event end = machine.put(queue, Opcode::stop, 0, 0, {});
    machine.finish(end);
    CHECK(machine.done(before));
  }
});

}  // namespace
}  // namespace headrace::test
