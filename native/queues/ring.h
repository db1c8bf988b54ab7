// Reading command records: the fields of one record and the arguments of an exec, which may continue in further
// records and around the end of the ring.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/contract.h"
#include "queues/queue.h"

namespace headrace {

/// One command record in place. Valid until the engine sees it completed.
class Command {
 public:
  explicit Command(std::int32_t* words) : words_(words) {}

  std::int32_t opcode() const { return words_[Record::head] & (Record::timed - 1); }
  bool isTimed() const { return (words_[Record::head] & Record::timed) != 0; }
  std::int32_t flowCount() const { return (words_[Record::head] >> 8) & 0xfff; }
  std::int32_t argumentCount() const {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(words_[Record::head]) >> 20);
  }
  std::int32_t kernel() const { return words_[Record::kernel] & 0xffff; }
  std::int32_t destinationSpace() const { return words_[Record::kernel] & 0xff; }
  std::int32_t sourceSpace() const { return (words_[Record::kernel] >> 8) & 0xff; }
  std::int32_t task() const { return words_[Record::task]; }
  std::int32_t run() const { return words_[Record::run] < 0 ? -1 : words_[Record::run] & 0xff; }
  /// Number of the list of lengths (core/length_table.h); 0: they are behind the parameters.
  std::int32_t lengths() const { return words_[Record::run] < 0 ? 0 : words_[Record::run] >> 8; }
  /// -1 without one.
  std::int32_t waitQueue() const { return (words_[Record::kernel] >> 16) - 1; }
  std::int32_t waitSequence() const { return words_[Record::waitSeq]; }
  std::int32_t* status() const { return words_ + Record::status; }
  double* doubles() const { return reinterpret_cast<double*>(words_); }
  double argument(int i) const { return doubles()[Record::argument + i]; }

  /// Records this command takes, its continuations included.
  std::int32_t span() const {
    const bool continues = opcode() == Opcode::exec || opcode() == Opcode::send ||
                           opcode() == Opcode::offer || opcode() == Opcode::deliver;
    if (!continues) return 1;
    const std::int32_t more = argumentCount() - Record::inlineArguments;
    return more <= 0 ? 1 : 1 + (more + Record::doubles - 1) / Record::doubles;
  }

  /// Leaves the line alone when the value is the same: the engine wrote 0 and will read it.
  void setStatus(std::int32_t status) const {
    if (words_[Record::status] != status) words_[Record::status] = status;
  }
  const std::int32_t* words() const { return words_; }

 private:
  std::int32_t* words_;
};

/// The arguments of the exec at `sequence` as one array: in place when they do not go around the end of the ring,
/// else copied to `scratch`.
inline const double* arguments(const Queue& queue, std::int32_t sequence, std::int32_t count,
                               std::int32_t span, std::vector<double>& scratch) {
  const double* first = reinterpret_cast<const double*>(queue.record(sequence)) + Record::argument;
  if (queue.slot(sequence) + static_cast<std::uint32_t>(span) <= queue.mask() + 1) return first;
  scratch.resize(static_cast<std::size_t>(count));
  std::int32_t i = 0;
  for (; i < count && i < Record::inlineArguments; ++i) scratch[i] = first[i];
  for (std::int32_t s = 1; i < count; ++s) {
    const double* more = reinterpret_cast<const double*>(
        queue.record(static_cast<std::int32_t>(static_cast<std::uint32_t>(sequence) + s)));
    for (int k = 0; k < Record::doubles && i < count; ++k, ++i) scratch[i] = more[k];
  }
  return scratch.data();
}

}  // namespace headrace
