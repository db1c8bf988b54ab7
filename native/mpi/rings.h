// The comm thread's side of the shared memory: record rings, byte rings and words. The engine's side is native/mpi.ts.
// Invariant: one producer and one consumer per ring; a record is complete before `published` passes it (seq_cst), and
// the consumer moves `taken` only when it has finished with it.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>

#include "contract.h"
#include "queues/sequence.h"

namespace headrace::mpi {

using Word = std::atomic<std::int32_t>;
static_assert(sizeof(Word) == 4, "words are shared with JavaScript");

/// One 64-byte record in place.
struct Record {
  union {
    std::int32_t words[NetRecord::words];
    double doubles[NetRecord::doubles];
  };
  std::int32_t word(int i) const { return words[i]; }
  double number(int i) const { return doubles[i]; }
};
static_assert(sizeof(Record) == NetRecord::bytes, "records are 64 bytes");

struct SharedMemory {
  Word* words = nullptr;
  Record* commands = nullptr;
  Record* events = nullptr;
  std::uint8_t* outbox = nullptr;
  std::uint8_t* inbox = nullptr;
  /// A NetMode per rank, memory space there, and memory space here.
  const std::uint8_t* ways = nullptr;

  Word& word(int i) const { return words[i]; }
};

/// Writes events; keeps those that do not fit until the engine has made room, so that no code here waits for the engine.
class EventWriter {
 public:
  explicit EventWriter(const SharedMemory& memory) : memory_(memory) {
    published_ = memory.word(NetWord::eventsPublished).load();
  }

  void push(const Record& record) {
    if (waiting_.empty() && room())
      write(record);
    else
      waiting_.push_back(record);
  }
  /// Makes the pushed events visible; true when there were new ones.
  bool publish() {
    while (!waiting_.empty() && room()) {
      write(waiting_.front());
      waiting_.pop_front();
    }
    if (!dirty_) return false;
    dirty_ = false;
    memory_.word(NetWord::eventsPublished).store(published_, std::memory_order_seq_cst);
    return true;
  }
  bool full() const { return !waiting_.empty(); }

 private:
  bool room() const {
    return ahead(published_, memory_.word(NetWord::eventsTaken).load(std::memory_order_acquire)) <
           NetLimit::records;
  }
  void write(const Record& record) {
    memory_.events[static_cast<std::uint32_t>(published_) & (NetLimit::records - 1)] = record;
    published_ = after(published_, 1);
    dirty_ = true;
  }

  const SharedMemory& memory_;
  std::int32_t published_ = 0;
  bool dirty_ = false;
  std::deque<Record> waiting_;
};

/// Appends control messages to the inbox.
class InboxWriter {
 public:
  explicit InboxWriter(const SharedMemory& memory) : memory_(memory) {}

  /// Copies a message in; false when the engine has to read others first. Fills offset and position of the event.
  bool write(const void* bytes, std::int32_t length, Record& event) {
    const std::int32_t padded = (length + 7) & ~7;
    const std::int32_t at = position_ & (NetLimit::ring - 1);
    const std::int32_t skip = at + padded > NetLimit::ring ? NetLimit::ring - at : 0;
    const std::int32_t used =
        ahead(position_, memory_.word(NetWord::inboxFreed).load(std::memory_order_acquire));
    if (used + skip + padded > NetLimit::ring) return false;
    const std::int32_t offset = skip > 0 ? 0 : at;
    std::memcpy(memory_.inbox + offset, bytes, static_cast<std::size_t>(length));
    position_ = after(position_, skip + padded);
    event.doubles[NetRecord::offset] = offset;
    event.doubles[NetRecord::size] = length;
    event.words[NetRecord::position] = position_;
    return true;
  }

 private:
  const SharedMemory& memory_;
  std::int32_t position_ = 0;
};

}  // namespace headrace::mpi
