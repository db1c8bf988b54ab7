// Letters through memory of two ranks (mpi/mailbox.h).
#include "mpi/mailbox.h"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "machine.h"

namespace headrace::test {
namespace {

using mpi::kMailLines;
using mpi::Mailbox;
using mpi::MailReader;
using mpi::MailRing;
using mpi::MailWriter;
using mpi::PeerMailbox;

constexpr std::size_t kLongest = mpi::kMostMailLines * mpi::kMailLine / sizeof(double) - 1;

/// One ring with both of its ends.
struct Pair {
  explicit Pair(std::uint32_t position = 0)
      : ring(std::make_unique<MailRing>()), writer(*ring, position), reader(*ring, position) {
    ring->taken.store(position);
  }

  bool put(double first, std::size_t values) {
    std::vector<double> letter(values);
    for (std::size_t i = 0; i < values; ++i) letter[i] = first + static_cast<double>(i);
    return writer.put(letter.data(), values * sizeof(double));
  }
  /// The number of values of the next letter, all of which are as `put` wrote them; -1: there is none, -2: others.
  int take(double first) {
    std::size_t bytes = 0;
    const double* values = reader.look(bytes);
    if (values == nullptr) return -1;
    const std::size_t count = bytes / sizeof(double);
    for (std::size_t i = 0; i < count; ++i) {
      if (values[i] != first + static_cast<double>(i)) return -2;
    }
    reader.taken();
    return static_cast<int>(count);
  }

  std::unique_ptr<MailRing> ring;
  MailWriter writer;
  MailReader reader;
};

Add mailOrder("the head of a letter is written behind its values", [] {
  Pair pair;
  // The only value is the place of the head, as it was when the value was written.
  CHECK(pair.writer.put(reinterpret_cast<const double*>(pair.ring->lines[0]), sizeof(double)));
  std::size_t bytes = 0;
  const double* values = pair.reader.look(bytes);
  CHECK(values != nullptr && bytes == sizeof(double));
  std::uint64_t head = 1;
  std::memcpy(&head, values, sizeof head);
  CHECK(head == 0);
});

Add mailStream("letters of all lengths come whole and in order, on two threads", [] {
  Pair pair(UINT32_MAX - 1000);
  constexpr int kLetters = 200000;
  const auto lengthOf = [](int i) { return static_cast<std::size_t>(i * 7919) % (kLongest + 1); };
  std::atomic<bool> isOver{false};
  std::thread writer([&] {
    for (int i = 0; i < kLetters && !isOver.load(); ++i) {
      while (!pair.put(i, lengthOf(i)) && !isOver.load()) std::this_thread::yield();
    }
  });
  int wrong = 0;
  for (int i = 0; i < kLetters && wrong == 0; ++i) {
    int found = -1;
    while ((found = pair.take(i)) == -1) std::this_thread::yield();
    wrong += found != static_cast<int>(lengthOf(i)) ? 1 : 0;
  }
  isOver.store(true);
  writer.join();
  CHECK(wrong == 0);
});

Add mailRoom("a letter without room is refused, and overwrites none", [] {
  Pair pair;
  int put = 0;
  for (; put <= static_cast<int>(kMailLines) && pair.put(put, 5); ++put) {
  }
  CHECK(put == static_cast<int>(kMailLines));
  for (int i = 0; i < put; ++i) CHECK(pair.take(i) == 5);
  CHECK(pair.take(0) == -1);
  // Room at the end of the ring is of no use to a letter that needs more than that.
  for (int i = 0; i < static_cast<int>(kMailLines) - 3; ++i)
    CHECK(pair.put(i, 7) && pair.take(i) == 7);
  CHECK(pair.put(1, 7) && pair.put(2, 30) && pair.take(1) == 7 && pair.take(2) == 30);
});

Add mailClears("values of letters that were taken are not taken for a letter", [] {
  Pair pair;
  // The second line of this record begins with what the head of a letter at that place will be, one lap on.
  const std::uint64_t head = 8ull << 32 | 1u << 31 | (kMailLines + 1);
  std::vector<double> letter(10, 1.0);
  std::memcpy(&letter[7], &head, sizeof head);
  CHECK(pair.writer.put(letter.data(), letter.size() * sizeof(double)));
  std::size_t bytes = 0;
  CHECK(pair.reader.look(bytes) != nullptr && bytes == 80);
  pair.reader.taken();
  for (std::uint32_t i = 2; i <= kMailLines; ++i) CHECK(pair.put(i, 3) && pair.take(i) == 3);
  CHECK(pair.reader.look(bytes) == nullptr);
});

Add mailLimits("a letter that is too long is refused, and a broken length ends the ring", [] {
  Pair pair;
  CHECK(pair.put(1, kLongest) && !pair.put(1, kLongest + 1));
  CHECK(pair.take(1) == static_cast<int>(kLongest));
  const std::uint64_t head = 80000ull << 32 | 1u << 31 | mpi::kMostMailLines;
  std::memcpy(pair.ring->lines[mpi::kMostMailLines], &head, sizeof head);
  std::size_t bytes = 0;
  CHECK(pair.reader.look(bytes) == nullptr && pair.reader.look(bytes) == nullptr);
});

Add mailbox("a mailbox finds the ranks that write to it, and refuses those that expect another",
            [] {
              Mailbox box(3);
              CHECK(box.fd() >= 0);
              std::vector<std::pair<int, double>> came;
              const auto empty = [&] {
                return box.empty([&](std::int32_t rank, const double* values, std::size_t bytes) {
                  CHECK(bytes == sizeof(double));
                  came.emplace_back(rank, values[0]);
                });
              };
              PeerMailbox first;
              PeerMailbox last;
              PeerMailbox other;
              const auto open = [&](PeerMailbox& peer, std::int32_t rank) {
                return peer.open(getpid(), box.fd(), box.number(), rank, 3);
              };
              CHECK(open(first, 0) && open(last, 2));
              CHECK(!other.open(getpid(), box.fd(), box.number(), 1, 4));
              CHECK(!other.open(getpid(), box.fd(), box.number() + 1, 1, 3));
              CHECK(!other.open(getpid(), -1, box.number(), 1, 3));
              const double value = 5;
              CHECK(!other.put(&value, sizeof value) && !empty());
              PeerMailbox moved(std::move(last));
              CHECK(moved.put(&value, sizeof value) && empty() && !empty());
              CHECK(first.put(&value, sizeof value) && moved.put(&value, sizeof value) && empty());
              CHECK(came.size() == 3 && came[0].first == 2 && came[1].first + came[2].first == 2);
            });

}  // namespace
}  // namespace headrace::test
