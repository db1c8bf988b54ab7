// The lists of a plan in the tests of plays.
#pragma once

#include <algorithm>
#include <thread>
#include <vector>

#include "machine.h"
#include "queues/feed.h"

namespace headrace::test {

/// The list of one queue, as the planner writes it.
struct List {
  std::vector<std::int32_t> records;
  std::vector<std::int32_t> open;

  std::int32_t length() const { return static_cast<std::int32_t>(records.size() / Record::words); }

  /// Appends a kernel; returns the index of its first record. `wait`: queue and relative number.
  std::int32_t exec(const char* kernel, std::int32_t flows, const std::vector<double>& arguments,
                    Event wait = {}) {
    return body(Registry::instance().find(kernel, -1), flows, arguments, wait);
  }
  /// The same for the body of a class, by its number.
  std::int32_t body(std::int32_t number, std::int32_t flows, const std::vector<double>& arguments,
                    Event wait = {}) {
    const std::int32_t at = length();
    const auto count = static_cast<std::int32_t>(arguments.size());
    std::int32_t* words = next();
    words[Record::head] = Opcode::exec | (flows << 8) | (count << 20);
    words[Record::kernel] = number | ((wait.queue + 1) << 16);
    words[Record::task] = at;
    words[Record::waitSeq] = wait.sequence;
    std::size_t i = 0;
    for (; i < arguments.size() && i < Record::inlineArguments; ++i) {
      reinterpret_cast<double*>(words)[Record::argument + i] = arguments[i];
    }
    while (i < arguments.size()) {
      words = next();
      for (int k = 0; k < Record::doubles && i < arguments.size(); ++k, ++i) {
        reinterpret_cast<double*>(words)[k] = arguments[i];
      }
    }
    return at;
  }
  /// Appends a command of a lane.
  std::int32_t message(std::int32_t opcode, const std::vector<double>& arguments, Event wait = {}) {
    const std::int32_t at = length();
    std::int32_t* words = next();
    words[Record::head] = opcode | (static_cast<std::int32_t>(arguments.size()) << 20);
    words[Record::kernel] = (wait.queue + 1) << 16;
    words[Record::waitSeq] = wait.sequence;
    std::copy(arguments.begin(), arguments.end(),
              reinterpret_cast<double*>(words) + Record::argument);
    return at;
  }
  void hold(Event wait) {
    std::int32_t* words = next();
    words[Record::head] = Opcode::wait;
    words[Record::kernel] = (wait.queue + 1) << 16;
    words[Record::waitSeq] = wait.sequence;
  }

 private:
  std::int32_t* next() {
    records.resize(records.size() + Record::words);
    return &records[records.size() - Record::words];
  }
};

/// `times`: takes the times of all records, per list.
inline void begin(Machine& machine, const std::vector<List>& lists, const PlayOptions& options,
                  std::vector<std::vector<double>>* times = nullptr) {
  Runtime& runtime = machine.core->runtime();
  machine.core->play = std::make_unique<Play>(options, runtime.cancelWord(options.run));
  for (std::size_t q = 0; q < lists.size(); ++q) {
    machine.core->play->add(*runtime.queues[q], lists[q].records.data(), lists[q].length(),
                            lists[q].open.data(),
                            static_cast<std::int32_t>(lists[q].open.size()) / PlanOpen::words,
                            times == nullptr ? nullptr : (*times)[q].data());
  }
  machine.core->play->begin();
}

/// Waits until the last record of every queue has completed.
inline void end(Machine& machine) {
  const std::int64_t limit = now() + std::int64_t{60} * 1000000000;
  for (const auto& feed : machine.core->play->feeds()) {
    const Event last{feed->queue().index, feed->last()};
    while (!machine.done(last)) {
      if (machine.pause) {
        machine.pause();
      } else {
        std::this_thread::yield();
      }
      CHECK(now() < limit);
    }
  }
}

}  // namespace headrace::test
