// What comes behind a play on the same queue.
#include <functional>

#include "play_list.h"

namespace headrace::test {
namespace {

/// Calls a function on the thread that moves a number of the queue past `target`.
class Hook {
 public:
  Hook(CompletionWaiters& waiters, std::int32_t target, std::function<void()> call)
      : waiters_(waiters), call_(std::move(call)) {
    token_.setCall([](void* of) { (*static_cast<std::function<void()>*>(of))(); }, &call_);
    CHECK(token_.leave());
    waiter_.target = target;
    waiter_.sleeper = &token_;
    waiters_.add(waiter_);
  }
  ~Hook() { waiters_.remove(waiter_); }

 private:
  CompletionWaiters& waiters_;
  std::function<void()> call_;
  FutexToken token_;
  CompletionWaiter waiter_;
};

Add skipped("records behind a play that ended early come next on a GPU, not those of its slots",
            [] {
              Machine machine(small(1, 1));
              constexpr std::int32_t kCompute = 1;
              machine.at<double>(1, 512)[0] = 1;
              List list;
              list.exec("add_f64", 2, {0, 512, 1, 1});
              PlayOptions options;
              options.times = 30;
              options.condition.value = machine.at<double>(1, 0);
              // It never holds: the play ends after one iteration.
              options.condition.limit = 1e9;
              Queue& queue = *machine.core->runtime().queues[kCompute];
              for (int round = 1; round <= 3; ++round) {
                machine.core->play = std::make_unique<Play>(options, nullptr);
                machine.core->play->add(queue, list.records.data(), list.length(), nullptr, 0);
                const std::int32_t last = machine.core->play->feeds()[0]->last();
                // The engine is fast: it publishes the next record while the thread of the GPU is in the call that ends the play.
                Hook hook(queue.submission, last, [&] {
                  machine.passPlay(kCompute);
                  machine.exec(kCompute, "add_f64", 2, {1024, 512, 1, 1});
                  machine.publish(kCompute);
                });
                machine.core->play->begin();
                end(machine);
                const std::int64_t limit = now() + std::int64_t{60} * 1000000000;
                while (machine.completed(kCompute) == last) {
                  std::this_thread::yield();
                  CHECK(now() < limit);
                }
                CHECK(machine.at<double>(1, 0)[0] == round);
                CHECK(machine.at<double>(1, 1024)[0] == round);
              }
            });

}  // namespace
}  // namespace headrace::test
