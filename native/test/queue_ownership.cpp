// Workers that take all cores: the servers of each queue, and that no queue is ever left alone.
#include <random>
#include <thread>

#include "machine.h"

namespace headrace::test {
namespace {

CoreOptions crowded(std::int32_t workers, std::int32_t cores) {
  CoreOptions options = small(workers);
  options.cores = cores;
  return options;
}

/// The backend does this with every pass.
void beat(Machine& machine) {
  machine.shared(Shared::beat).fetch_add(1, std::memory_order_relaxed);
}

void spinFor(std::int64_t nanoseconds) {
  const std::int64_t until = now() + nanoseconds;
  while (now() < until) pauseProcessor();
}

Add anyone("whatever the engine does meanwhile, queues that wait for each other lose nothing", [] {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kSteps = 1000;
#else
  constexpr int kSteps = 4000;
#endif
  for (const auto& [workers, cores] : {std::pair{1, 1}, {2, 1}, {2, 2}, {3, 2}, {3, 3}}) {
    Machine machine(crowded(workers, cores));
    CHECK(machine.core->runtime().ownership.full());
    std::mt19937 random(7);
    machine.at<double>(0, 8192)[0] = 1;
    machine.pause = [&] {
      beat(machine);
      switch (random() % 5) {
        case 0: machine.core->serveUntilDoorbell(2000); break;
        case 1: machine.core->serveUntilDoorbell(20); break;
        case 2: machine.core->waitForDoorbell(300); break;
        case 3: spinFor(50000); break;
        default:
          machine.shared(Shared::engineAsleep).store(2);
          machine.core->runtime().ownership.recall();
          std::this_thread::sleep_for(std::chrono::microseconds(100));
          machine.shared(Shared::engineAsleep).store(0);
      }
    };
    for (int part = 1; part <= 4; ++part) {
      crossWaits(machine, workers, kSteps);
      const double steps = static_cast<double>(kSteps);
      for (int q = 0; q < workers; ++q) {
        CHECK(machine.at<double>(0, 4096 + 64 * q)[0] == steps);
        machine.at<double>(0, 4096 + 64 * q)[0] = 0;
      }
    }
  }
});

Add serves("on one core the worker steps aside and the engine's thread executes its commands", [] {
  Machine machine(crowded(1, 1));
  std::vector<Event> events;
  bool aside = false;
  for (int round = 0; round < 200 && !aside; ++round) {
    for (int i = 0; i < 40; ++i) events.push_back(machine.exec(0, "spin", 0, {20}));
    machine.publish();
    while (!machine.done(events.back())) {
      beat(machine);
      machine.core->serveUntilDoorbell(100);
      if (machine.shared(Shared::aside).load() == 1) aside = true;
    }
  }
  CHECK(aside);
  // An engine that blocks calls it back.
  machine.finish(machine.exec(0, "empty", 0, {}));
});

Add silence("a worker comes back by itself when the engine is busy with something else", [] {
  Machine machine(crowded(2, 2));
  for (int round = 0; round < 10; ++round) {
    std::vector<Event> events;
    for (int i = 0; i < 40; ++i) {
      for (int q = 0; q < 2; ++q) events.push_back(machine.exec(q, "spin", 0, {50}));
    }
    beat(machine);
    machine.publish();
    // The engine neither sleeps nor gives a sign: both queues must still be emptied.
    const std::int64_t limit = now() + std::int64_t{20} * 1000000000;
    for (const Event& event : events) {
      while (!machine.done(event)) {
        CHECK(now() < limit);
        sched_yield();
      }
    }
  }
});

Add passing("queues are emptied while the engine passes again and again and serves none of them",
            [] {
              for (const std::int32_t workers : {1, 2}) {
                Machine machine(crowded(workers, workers));
                for (int round = 0; round < 5; ++round) {
                  std::vector<Event> events;
                  for (int i = 0; i < 40; ++i) {
                    for (int q = 0; q < workers; ++q)
                      events.push_back(machine.exec(q, "spin", 0, {50}));
                  }
                  beat(machine);
                  machine.publish();
                  // Like an engine that timers of other code keep awake.
                  const std::int64_t limit = now() + std::int64_t{5} * 1000000000;
                  for (const Event& event : events) {
                    while (!machine.done(event)) {
                      CHECK(now() < limit);
                      beat(machine);
                      std::this_thread::sleep_for(std::chrono::microseconds(200));
                    }
                  }
                }
              }
            });

Add closing("a core closes with its queues emptied, whoever is aside", [] {
  for (int round = 0; round < 50; ++round) {
    auto machine = std::make_unique<Machine>(crowded(2, 2));
    for (int i = 0; i < 30; ++i) {
      for (int q = 0; q < 2; ++q) machine->exec(q, "spin", 0, {10});
    }
    beat(*machine);
    machine->publish();
    if (round % 2 == 0) machine->core->serveUntilDoorbell(50);
    machine->core->close();
    for (int q = 0; q < 2; ++q) CHECK(machine->completed(q) == machine->issued(q));
  }
});

Add roomy("with a core to spare nobody steps aside and the engine serves nothing", [] {
  Machine machine(crowded(2, 3));
  CHECK(!machine.core->runtime().ownership.full());
  for (int i = 0; i < 40; ++i) machine.exec(i % 2, "spin", 0, {20});
  beat(machine);
  machine.publish();
  CHECK(!machine.core->serveUntilDoorbell(100));
  CHECK(machine.shared(Shared::aside).load() == 0);
  machine.finish();
});

}  // namespace
}  // namespace headrace::test
