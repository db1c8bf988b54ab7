// The queues of script workers, served by plain threads with event loops: no lost wake-up, and nothing lost when a thread ends.
#include <string>
#include <thread>

#include "loops.h"
#include "machine.h"

namespace headrace::test {
namespace {

CoreOptions scripts(std::int32_t workers, std::int32_t scriptWorkers) {
  CoreOptions options = small(workers);
  options.scriptWorkers = scriptWorkers;
  return options;
}

/// Serves until the core closes. A body expects its first argument in its datum and adds one.
void serve(Machine& machine, std::int32_t queue) {
  serveInLoop(machine, queue, [&machine](ScriptServer& server) {
    const double* arguments = server.executor().startedArguments();
    double& value = *machine.at<double>(0, arguments[0]);
    CHECK(value == arguments[1]);
    value = arguments[1] + 1;
  });
}

Add order("queues of script workers and of host workers that wait for each other lose no wake-up",
          [] {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
            constexpr int kSteps = 2000;
#else
  constexpr int kSteps = 20000;
#endif
            Machine machine(scripts(1, 2));
            std::thread first([&] { serve(machine, 1); });
            std::thread second([&] { serve(machine, 2); });
            machine.at<double>(0, 64)[0] = 1;
            Event before;
            for (int step = 0; step < kSteps; ++step) {
              const std::int32_t queue = step % 3;
              before = queue == 0 ? machine.exec(0, "add_f64", 2, {0, 64, 1, 1}, before)
                                  : machine.put(queue, Opcode::exec, 0, 1,
                                                {0, static_cast<double>(step)}, before);
              machine.publish(queue);
              // Now and then all of them sleep.
              if (step % 50 == 0) machine.finish(before);
            }
            machine.finish(before);
            CHECK(machine.at<double>(0, 0)[0] == kSteps);
            machine.core->close();
            first.join();
            second.join();
          });

Add looksAgain("a script worker that goes to its event loop looks again", [] {
  Machine machine(scripts(1, 1));
  ScriptServer server(*machine.core->scriptPort(1), [] {});
  CHECK(server.next(Status::ok) == ScriptNext::rest);
  // The queue does not sleep yet, so nobody wakes it.
  machine.put(1, Opcode::exec, 5, 0, {});
  machine.publish();
  CHECK(!server.rest());
  CHECK(server.next(Status::ok) == 5);
  server.next(Status::ok);
  CHECK(machine.completed(1) == 1);
  server.letGo();
});

Add ends("a script worker that ends fails the body that runs, and another one goes on", [] {
  Machine machine(scripts(1, 1));
  ScriptPort& port = *machine.core->scriptPort(1);
  const Event lost = machine.put(1, Opcode::exec, 0, 0, {});
  const Event kept = machine.put(1, Opcode::exec, 7, 0, {});
  machine.publish();
  {
    ScriptServer server(port, [] {});
    bool refused = false;
    try {
      ScriptServer another(port, [] {});
    } catch (const CoreError&) {
      refused = true;
    }
    CHECK(refused);
    CHECK(server.next(Status::ok) == 0);
    server.setLastWords("last words");
  }
  CHECK(machine.done(lost) && machine.status(lost) == Status::workerEnded);
  CHECK(!machine.done(kept));
  CHECK(machine.control(1, Control::serving).load() == Serving::ended);
  std::string words;
  CHECK(port.takeThrown(lost.sequence, words) && words == "last words");
  CHECK(!port.takeThrown(lost.sequence, words));
  ScriptServer server(port, [] {});
  CHECK(server.next(Status::ok) == 7);
  server.setThrown("thrown");
  server.next(Status::threw);
  CHECK(machine.status(kept) == Status::threw);
  CHECK(port.takeThrown(kept.sequence, words) && words == "thrown");
});

Add refuses("without a script worker every body fails, and waits are kept", [] {
  Machine machine(scripts(1, 1));
  ScriptPort& port = *machine.core->scriptPort(1);
  machine.at<double>(0, 64)[0] = 1;
  port.refuse("no worker");
  const Event first = machine.put(1, Opcode::exec, 0, 0, {});
  machine.finish(first);
  const Event before = machine.exec(0, "spin", 0, {2000});
  const Event second = machine.put(1, Opcode::exec, 0, 0, {}, before);
  machine.finish(second);
  CHECK(machine.done(before));
  std::string words;
  for (const Event& event : {first, second}) {
    CHECK(machine.status(event) == Status::threw);
    CHECK(port.takeThrown(event.sequence, words) && words == "no worker");
  }
});

Add cancels("a cancelled run's bodies do not run on script workers", [] {
  Machine machine(scripts(1, 1));
  ScriptServer server(*machine.core->scriptPort(1), [] {});
  const Event cancelled = machine.put(1, Opcode::exec, 0, 0, {}, {}, 3);
  const Event other = machine.put(1, Opcode::exec, 9, 0, {}, {}, 4);
  machine.shared(Shared::cancel + 3).store(1);
  machine.publish();
  CHECK(server.next(Status::ok) == 9);
  CHECK(machine.status(cancelled) == Status::cancelled);
  server.next(Status::ok);
  CHECK(machine.done(other) && machine.status(other) == Status::ok);
});

}  // namespace
}  // namespace headrace::test
