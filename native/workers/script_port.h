// The queue of a script worker: JavaScript on a worker thread serves it, and lets go of it when its thread ends.
//
// Invariants:
// - at most one thread serves the queue at a time, and only that one uses its Executor;
// - a record that has begun is completed: by its server, or with `workerEnded` when the server lets go of the queue;
// - no call of a server blocks for longer than a moment (queues/spin.h). A server that has nothing to do sleeps in its
//   event loop, so Node can end its thread at any time;
// - a play (queues/feed.h) hands its list to whoever serves the queue. The feed becomes ready at the begin of the play, and when the
//   last queue comes to a barrier: both make it ready and *then* unpark, asleep or not. A server looks at the feed and *then*
//   leaves, and between the two nothing takes a token away. So it either finds the records or does not leave. It need not look
//   at `sleeping`, as for a record of the engine;
// - a feed that was ready may have moved on without a record to execute: at a barrier, or because the rest of the play was skipped.
//   Only a core that closes ends a server. And the record that it hands over may wait for an event: a record begins when its own event
//   has happened, whatever the server has waited for before;
// - a port lives as long as its core, which closes when no server is left.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

#include "core/runtime.h"
#include "core/stolen_time.h"
#include "queues/completion_waiters.h"
#include "queues/futex_token.h"
#include "workers/executor.h"

namespace headrace {

class ScriptPort {
 public:
  ScriptPort(Runtime& runtime, Queue& queue);
  ScriptPort(const ScriptPort&) = delete;
  ScriptPort& operator=(const ScriptPort&) = delete;
  /// The core must be closing. Waits until no server is left.
  ~ScriptPort();

  Queue& queue() const { return queue_; }
  /// Serves the queue on a thread of its own from now on: every body fails with `thrown`.
  void refuse(const std::string& thrown);
  /// What the body of the record threw; false: nothing. Forgets it.
  bool takeThrown(std::int32_t sequence, std::string& bytes);

 private:
  friend class ScriptServer;

  void setThrown(std::int32_t sequence, std::string bytes);
  void refuseAll(const std::string& thrown);
  static void callServer(void* port);

  Runtime& runtime_;
  Queue& queue_;
  FutexToken sleeper_;
  std::mutex lock_;
  std::condition_variable left_;
  /// The server is there; its wake-up call.
  bool served_ = false;
  std::function<void()> call_;
  std::unordered_map<std::int32_t, std::string> thrown_;
  std::thread refusing_;
};

/// A thread's hold on the queue of a port. Only that thread uses it.
class ScriptServer {
 public:
  /// `call` wakes the thread from its event loop; any thread. Throws CoreError.
  ScriptServer(ScriptPort& port, std::function<void()> call);
  ~ScriptServer() { letGo(); }

  /// Ends the body that has begun, if any, and begins the next one; ScriptNext or a kernel number.
  std::int32_t next(std::int32_t status);
  /// Sleeps until the call; false: there is something to do.
  bool rest();
  Executor& executor() { return executor_; }
  void setThrown(std::string bytes);
  void setLastWords(std::string bytes) { lastWords_ = std::move(bytes); }
  /// Gives up the queue. Idempotent.
  void letGo();

 private:
  bool isReady();
  void wakeUp();

  ScriptPort& port_;
  Runtime& runtime_;
  StolenTime stolen_;
  Executor executor_;
  CompletionWaiter watcher_;
  Queue* watched_ = nullptr;
  bool resting_ = false;
  bool running_ = false;
  bool held_ = true;
  std::int64_t turnedAt_ = 0;
  std::string lastWords_;
};

}  // namespace headrace
