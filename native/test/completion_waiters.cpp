// Sleepers and their numbers (queues/completion_waiters.h), without threads: an unlinked sleeper was woken.
#include "queues/completion_waiters.h"

#include "machine.h"

namespace headrace::test {
namespace {

Add passed("a sleeper is woken by a number that passes its own, also where numbers wrap (H7)", [] {
  for (const std::int32_t start : {0, INT32_MAX - 4}) {
    const auto plus = [&](std::int32_t n) {
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(start) +
                                       static_cast<std::uint32_t>(n));
    };
    FutexToken sleeper;
    CompletionWaiters watch;
    CompletionWaiter near{plus(3), &sleeper};
    CompletionWaiter far{plus(9), &sleeper};
    watch.add(near);
    watch.add(far);
    watch.reached(plus(2));
    CHECK(near.linked && far.linked);
    // Several commands ended at once: their numbers are published in one step.
    watch.reached(plus(7));
    CHECK(!near.linked && far.linked);
    watch.reached(plus(9));
    CHECK(!far.linked);
  }
});

}  // namespace
}  // namespace headrace::test
