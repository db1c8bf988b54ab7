// Event loops in place of those of script workers.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

#include "machine.h"

namespace headrace::test {

/// An event loop with nothing but calls.
class Loop {
 public:
  void call() {
    std::lock_guard<std::mutex> guard(lock_);
    ++calls_;
    called_.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> guard(lock_);
    called_.wait(guard, [this] { return calls_ > 0; });
    calls_ = 0;
  }

 private:
  std::mutex lock_;
  std::condition_variable called_;
  int calls_ = 0;
};

/// Serves the queue until the core closes; `body` is called with each body that has begun.
inline void serveInLoop(Machine& machine, std::int32_t queue,
                        const std::function<void(ScriptServer&)>& body) {
  Loop loop;
  ScriptServer server(*machine.core->scriptPort(queue), [&] { loop.call(); });
  for (;;) {
    const std::int32_t next = server.next(Status::ok);
    if (next == ScriptNext::end) return;
    if (next == ScriptNext::rest) {
      if (server.rest()) loop.wait();
    } else if (next >= 0) {
      body(server);
    }
  }
}

}  // namespace headrace::test
