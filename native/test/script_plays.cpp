// Plays on the queues of script workers, served by plain threads with event loops.
#include <chrono>
#include <string>
#include <thread>

#include "loops.h"
#include "machine.h"
#include "play_list.h"

namespace headrace::test {
namespace {

CoreOptions scripts(std::int32_t scriptWorkers) {
  CoreOptions options = small(1);
  options.scriptWorkers = scriptWorkers;
  return options;
}

/// A chain over queue 0, of a host worker, and two queues of script workers: each adds 1 to the same datum. A body looks whether it
/// is its turn.
std::vector<List> chain() {
  std::vector<List> lists(3);
  lists[0].hold({2, 0});
  lists[0].exec("add_f64", 2, {0, 64, 1, 1});
  lists[1].body(0, 1, {0, 1}, {0, 2});
  lists[2].body(0, 1, {0, 2}, {1, 1});
  return lists;
}

/// Serves until the core closes.
void serve(Machine& machine, std::int32_t queue) {
  serveInLoop(machine, queue, [&machine](ScriptServer& server) {
    const double* arguments = server.executor().startedArguments();
    double& value = *machine.at<double>(0, arguments[0]);
    CHECK(static_cast<std::int64_t>(value) % 3 == static_cast<std::int64_t>(arguments[1]));
    value += 1;
  });
}

Add order("script workers and host workers feed themselves in plays, and lose no wake-up", [] {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr std::int64_t kTimes = 500;
#else
  constexpr std::int64_t kTimes = 10000;
#endif
  // Sequence numbers wrap in the middle of the play.
  Machine machine(scripts(2), INT32_MAX - 300);
  std::thread first([&] { serve(machine, 1); });
  std::thread second([&] { serve(machine, 2); });
  const std::vector<List> lists = chain();
  machine.at<double>(0, 64)[0] = 1;
  PlayOptions options;
  options.times = kTimes;
  begin(machine, lists, options);
  end(machine);
  CHECK(machine.at<double>(0, 0)[0] == 3 * kTimes);
  // All queues meet after each iteration.
  options.condition.value = machine.at<double>(0, 0);
  options.condition.below = true;
  for (std::int64_t round = 1; round <= 200; ++round) {
    const auto limit = static_cast<double>(3 * (kTimes + 10 * round));
    options.condition.limit = limit;
    begin(machine, lists, options);
    end(machine);
    CHECK(machine.at<double>(0, 0)[0] == limit);
    CHECK(machine.core->play->iterations() == 10);
    // Now and then all of them sleep.
    if (round % 20 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  machine.core->close();
  first.join();
  second.join();
});

/// Workers that stay at a barrier until the last one comes.
CoreOptions patient(std::int32_t scriptWorkers) {
  CoreOptions options = scripts(scriptWorkers);
  options.spinNanoseconds = 300000000;
  return options;
}

/// The next body, or what comes in its place.
std::int32_t nextOf(ScriptServer& server) {
  std::int32_t next = ScriptNext::turn;
  while (next == ScriptNext::turn || (next == ScriptNext::rest && !server.rest())) {
    next = server.next(Status::ok);
  }
  return next;
}

/// Begins a play whose queues meet after each iteration. It goes on while `number` is above 0, and comes to `times` iterations at most.
void beginWhile(Machine& machine, const std::vector<List>& lists, std::int64_t times,
                const double& number) {
  PlayOptions options;
  options.times = times;
  options.condition.value = &number;
  begin(machine, lists, options);
}

Add awaits("a body behind a barrier of a play waits for what it reads", [] {
  Machine machine(patient(2));
  std::thread reader([&] { serveInLoop(machine, 1, [](ScriptServer&) {}); });
  ScriptServer writer(*machine.core->scriptPort(2), [] {});
  std::vector<List> lists(3);
  lists[0].exec("empty", 0, {});
  lists[1].body(5, 0, {}, {2, 1});
  lists[2].body(6, 0, {});
  lists[2].body(7, 0, {});
  const double number = 1;
  beginWhile(machine, lists, 2, number);
  CHECK(nextOf(writer) == 6);
  CHECK(nextOf(writer) == 7);
  while (machine.completed(1) == 0) std::this_thread::yield();
  // The reader comes to the barrier, and waits there for the writer.
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK(nextOf(writer) == 6);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  CHECK(machine.completed(1) == 1);
  CHECK(nextOf(writer) == 7);
  writer.letGo();
  end(machine);
  CHECK(machine.completed(1) == 2);
  machine.core->close();
  reader.join();
});

Add keeps("a script worker keeps its queue when a play ends at its barrier", [] {
  Machine machine(patient(1));
  ScriptServer server(*machine.core->scriptPort(1), [] {});
  std::vector<List> lists(2);
  lists[0].exec("spin", 0, {3000});
  lists[1].body(5, 0, {});
  const double number = 0;
  beginWhile(machine, lists, 1000, number);
  CHECK(nextOf(server) == 5);
  // The play is over, and the engine's next record comes.
  std::thread engine([&] {
    end(machine);
    machine.passPlay(1);
    machine.put(1, Opcode::exec, 7, 0, {});
    machine.publish(1);
  });
  const std::int32_t next = nextOf(server);
  engine.join();
  CHECK(next == 7);
  server.letGo();
});

Add ends("a script worker that ends in a play ends the play, and the next one skips the rest", [] {
  Machine machine(scripts(1));
  ScriptPort& port = *machine.core->scriptPort(1);
  std::vector<List> lists(2);
  lists[0].exec("spin", 0, {10}, {1, 0});
  lists[1].body(5, 0, {});
  PlayOptions options;
  options.times = 1000000;
  options.run = 3;
  begin(machine, lists, options);
  {
    ScriptServer server(port, [] {});
    CHECK(server.next(Status::ok) == 5);
    CHECK(server.next(Status::ok) == 5);
    server.setLastWords("last words");
  }
  ScriptServer server(port, [] {});
  CHECK(server.next(Status::ok) == ScriptNext::rest);
  end(machine);
  double succeeded = 0;
  std::int32_t status = 0;
  machine.core->play->feeds()[1]->outcome(succeeded, status);
  CHECK(succeeded == 1 && status == Status::workerEnded);
  std::string words;
  CHECK(port.takeThrown(2, words) && words == "last words");
});

Add refuses("without a script worker the first body of a play fails", [] {
  Machine machine(scripts(1));
  ScriptPort& port = *machine.core->scriptPort(1);
  port.refuse("no worker");
  std::vector<List> lists(2);
  lists[0].exec("spin", 0, {10}, {1, 0});
  lists[1].body(5, 0, {});
  PlayOptions options;
  options.times = 1000;
  options.run = 3;
  begin(machine, lists, options);
  end(machine);
  double succeeded = 0;
  std::int32_t status = 0;
  machine.core->play->feeds()[1]->outcome(succeeded, status);
  CHECK(succeeded == 0 && status == Status::threw);
  std::string words;
  CHECK(port.takeThrown(1, words) && words == "no worker");
});

}  // namespace
}  // namespace headrace::test
