// Plays that get more iterations while they are under way.
#include <algorithm>
#include <thread>

#include "machine.h"
#include "play_list.h"

namespace headrace::test {
namespace {

/// Iterations for whose parameters there is room.
constexpr std::int64_t kRoom = 512;

/// A list per queue that adds the parameter of each iteration to a number of its own. Every other queue begins a step after its
/// neighbour.
std::vector<List> adding(int queues) {
  std::vector<List> lists(static_cast<std::size_t>(queues));
  for (int q = 0; q < queues; ++q) {
    List& list = lists[static_cast<std::size_t>(q)];
    const std::int32_t at =
        list.exec("add_f64", 2, {64.0 * q, 8192, 1, 0}, q % 2 == 1 ? Event{q - 1, 1} : Event{});
    list.open = {at, Record::argument + 3, 0};
  }
  return lists;
}

/// The engine's part: the parameter of iteration i is i + 1.
class Growing {
 public:
  Growing(Machine& machine, const std::vector<List>& lists, std::int64_t times)
      : machine_(machine), values_(kRoom) {
    machine.at<double>(0, 8192)[0] = 1;
    PlayOptions options;
    options.times = times;
    options.room = kRoom;
    options.run = 3;
    options.parameters = values_.data();
    options.slots = 1;
    take(times);
    begin(machine, lists, options);
  }

  std::int64_t times() const { return times_; }

  /// Adds iterations in place of those that are over; false: the play takes none.
  bool grow(std::int64_t most) {
    Play& play = *machine_.core->play;
    std::int64_t over = times_;
    for (const auto& feed : play.feeds()) {
      const std::int64_t done = ahead(machine_.completed(feed->queue().index), feed->base());
      over = std::min(over, done / feed->length());
    }
    const std::int64_t times = std::min(most, over + kRoom);
    if (times == times_) return true;
    const std::int64_t before = times_;
    take(times);
    if (play.extend(times)) return true;
    times_ = before;
    return false;
  }

 private:
  void take(std::int64_t times) {
    for (; times_ < times; ++times_) {
      values_[static_cast<std::size_t>(times_ % kRoom)] = static_cast<double>(times_ + 1);
    }
  }

  Machine& machine_;
  std::vector<double> values_;
  std::int64_t times_ = 0;
};

Add grows("a play gets more iterations while it is under way, each with its parameters", [] {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr std::int64_t kTimes = 5000;
#else
  constexpr std::int64_t kTimes = 100000;
#endif
  for (const int workers : {1, 2, 3}) {
    for (const std::int64_t first : {std::int64_t{1}, std::int64_t{130}, kRoom}) {
      // Sequence numbers wrap in the middle of the play.
      Machine machine(small(workers), INT32_MAX - 1000);
      const std::vector<List> lists = adding(workers);
      Growing play(machine, lists, first);
      while (play.times() < kTimes && play.grow(kTimes)) std::this_thread::yield();
      end(machine);
      const auto times = static_cast<double>(play.times());
      for (int q = 0; q < workers; ++q) {
        CHECK(machine.at<double>(0, 64.0 * q)[0] == times * (times + 1) / 2);
      }
      for (const auto& feed : machine.core->play->feeds()) {
        double succeeded = 0;
        std::int32_t status = 1;
        feed->outcome(succeeded, status);
        CHECK(succeeded == times * feed->length() && status == Status::ok);
        CHECK(feed->queue().feed() == nullptr);
      }
    }
  }
});

Add final("a play whose last iteration a queue has written gets no more", [] {
  Machine machine(small(2));
  std::vector<List> lists(2);
  lists[0].exec("empty", 0, {});
  lists[1].exec("spin", 0, {5000});
  PlayOptions options;
  options.times = 2;
  options.room = 100;
  begin(machine, lists, options);
  while (machine.completed(0) < 2) std::this_thread::yield();
  CHECK(!machine.core->play->extend(3));
  end(machine);
  CHECK(machine.completed(1) == 2);
  CHECK(machine.core->play->iterations() == 2);
});

Add cancelled("a play that is cancelled while it gets more iterations ends", [] {
  for (int round = 0; round < 40; ++round) {
    Machine machine(small(3));
    const std::vector<List> lists = adding(3);
    Growing play(machine, lists, 200);
    std::thread canceller([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(20 * round));
      machine.shared(Shared::cancel + 3).store(1);
    });
    while (play.grow(INT32_MAX)) std::this_thread::yield();
    end(machine);
    canceller.join();
    CHECK(machine.core->play->iterations() == play.times());
  }
});

}  // namespace
}  // namespace headrace::test
