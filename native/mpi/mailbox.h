// Letters between ranks of one host, through memory that both map.
//
// The message of an MPI library takes three quarters of a microsecond inside a host, most of the time of a dependency. So each
// rank has a mailbox: a ring for every other rank of the host, which that one writes. A short letter is one line of the cache.
// Long letters, and those that find no room, go by MPI: no letter needs to come before another (lane_server.h).
//
// A record of a ring is a head and the letter's values, in whole lines without a gap; one that does not fit before the end of
// the ring begins at its start again. The head has the record's position, so it tells that the record is whole.
//
// Invariants:
// - one thread writes a ring, and one reads it;
// - the values are written before the head can be seen;
// - no line is written before its last record was taken;
// - a line that no record begins with has no head that could be taken for one: the reader clears those that had values;
// - a rank that writes the first time says so, and then wakes the reader; a reader looks at rings that were written only;
// - a rank writes only into the mailbox that the other one has named by its number, which is random: a descriptor of the same
//   number may be another file, or belong to another machine that calls itself the same.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace headrace::mpi {

constexpr std::size_t kMailLine = 64;
constexpr std::uint32_t kMailLines = 512;
/// Lines of the longest record: a version of 4 KiB with its header, and some ranks to which it goes on.
constexpr std::uint32_t kMostMailLines = 80;

/// One ring, in memory of both ranks.
struct alignas(kMailLine) MailRing {
  /// Lines that were taken, by the reader. Positions count from 0 and wrap.
  std::atomic<std::uint32_t> taken;
  alignas(kMailLine) std::uint8_t lines[kMailLines][kMailLine];
};

/// Writes the ring of one other rank.
class MailWriter {
 public:
  explicit MailWriter(MailRing& ring, std::uint32_t position = 0)
      : ring_(ring), next_(position), taken_(position) {}
  /// False: the letter is too long, or there is no room now.
  bool put(const double* values, std::size_t bytes);

 private:
  bool hasRoom(std::uint32_t lines);

  MailRing& ring_;
  std::uint32_t next_;
  /// Lines that were taken, as last seen.
  std::uint32_t taken_;
};

/// Reads the ring that one other rank writes.
class MailReader {
 public:
  explicit MailReader(MailRing& ring, std::uint32_t position = 0) : ring_(ring), next_(position) {}
  /// The next letter, or null; it stays until `taken`. Lengths that make no sense end the ring.
  const double* look(std::size_t& bytes);
  void taken();

 private:
  MailRing& ring_;
  std::uint32_t next_;
  std::uint32_t lines_ = 0;
  bool isBroken_ = false;
};

/// The mailbox of this process, for a number of ranks of its host.
class Mailbox {
 public:
  explicit Mailbox(std::int32_t ranks);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// Descriptor of the memory, for the other processes; -1: there is none, and they write to this one by MPI.
  std::int32_t fd() const { return fd_; }
  std::uint64_t number() const { return number_; }
  /// Takes some letters: `take(rank, values, bytes)` with the writer's number on the host. True when there were any.
  template <typename Take>
  bool empty(Take take) {
    if (box_ == nullptr) return false;
    if (wroteFirst().load(std::memory_order_acquire) != seen_) open();
    bool some = false;
    for (Writer& writer : writers_) {
      std::size_t bytes = 0;
      for (int i = 0; i < kAtATime; ++i) {
        const double* values = writer.reader.look(bytes);
        if (values == nullptr) break;
        take(writer.rank, values, bytes);
        writer.reader.taken();
        some = true;
      }
    }
    return some;
  }

 private:
  /// Letters of one rank in one round: lanes should not wait for all of a flood.
  static constexpr int kAtATime = 8;
  struct Writer {
    std::int32_t rank;
    MailReader reader;
  };

  void open();
  std::atomic<std::uint32_t>& wroteFirst();

  std::int32_t ranks_;
  std::int32_t fd_ = -1;
  std::uint64_t number_ = 0;
  std::uint8_t* box_ = nullptr;
  /// Ranks that have written, as last seen.
  std::uint32_t seen_ = 0;
  std::vector<Writer> writers_;
};

/// The mailbox of another process of this host, for letters of this rank.
class PeerMailbox {
 public:
  PeerMailbox() = default;
  ~PeerMailbox();
  PeerMailbox(PeerMailbox&& other) noexcept;
  PeerMailbox(const PeerMailbox&) = delete;
  PeerMailbox& operator=(const PeerMailbox&) = delete;

  /// Maps what this rank writes of the mailbox behind a descriptor of process `pid`. `self`: this rank's number among the
  /// `ranks` of the host. False when that is not possible, or when the mailbox has another number.
  bool open(std::int32_t pid, std::int32_t fd, std::uint64_t number, std::int32_t self,
            std::int32_t ranks);
  /// False: the letter goes by MPI. After true, the rank must be woken.
  bool put(const double* values, std::size_t bytes);

 private:
  /// Pages of a mailbox.
  struct Pages {
    std::uint8_t* at = nullptr;
    std::size_t bytes = 0;
  };
  static Pages map(int file, std::size_t from, std::size_t bytes, std::uint8_t*& found);

  std::int32_t self_ = 0;
  /// The beginning of the mailbox, with its marks, and this rank's ring.
  Pages head_;
  Pages ring_;
  bool hasWritten_ = false;
  std::optional<MailWriter> writer_;
};

}  // namespace headrace::mpi
