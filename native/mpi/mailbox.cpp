// Letters through memory of two processes: see mailbox.h.
#include "mailbox.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "core/guards.h"
#include "process_files.h"

namespace headrace::mpi {
namespace {

/// In place of the bytes of a letter: the record at this position begins at the ring's start.
constexpr std::uint32_t kSkip = UINT32_MAX;
constexpr std::size_t kHead = sizeof(std::uint64_t);
constexpr std::size_t kMostBytes = kMostMailLines * kMailLine - kHead;

/// A mailbox begins with the number of ranks that have written to it and with its own number, which end the first line, and a
/// mark for each rank that has written; then the rings.
constexpr std::size_t kNumber = kMailLine - sizeof(std::uint64_t);
constexpr std::size_t kMarks = kMailLine;
constexpr std::uint8_t kWritten = 1;
constexpr std::uint8_t kListed = 2;
std::size_t ringsAt(std::int32_t ranks) {
  const std::size_t marks = (static_cast<std::size_t>(ranks) + kMailLine - 1) / kMailLine;
  return kMarks + marks * kMailLine;
}
std::size_t sizeFor(std::int32_t ranks) {
  return ringsAt(ranks) + static_cast<std::size_t>(ranks) * sizeof(MailRing);
}
std::atomic<std::uint8_t>& markOf(std::uint8_t* box, std::int32_t rank) {
  return *reinterpret_cast<std::atomic<std::uint8_t>*>(box + kMarks + rank);
}
std::size_t ringAt(std::int32_t ranks, std::int32_t rank) {
  return ringsAt(ranks) + static_cast<std::size_t>(rank) * sizeof(MailRing);
}
std::atomic<std::uint32_t>& writersOf(std::uint8_t* box) {
  return *reinterpret_cast<std::atomic<std::uint32_t>*>(box);
}

std::uint8_t* mapPages(int file, std::size_t from, std::size_t bytes) {
  void* pages =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(from));
  return pages == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(pages);
}

std::uint8_t* lineOf(MailRing& ring, std::uint32_t position) {
  return ring.lines[position & (kMailLines - 1)];
}
std::atomic<std::uint64_t>& headOf(MailRing& ring, std::uint32_t position) {
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(lineOf(ring, position));
}
/// Never 0, which is what fresh memory and cleared lines have.
std::uint64_t headFor(std::uint32_t position, std::uint32_t bytes) {
  return static_cast<std::uint64_t>(bytes) << 32 | (position | 1u << 31);
}
std::uint32_t linesOf(std::size_t bytes) {
  return static_cast<std::uint32_t>((kHead + bytes + kMailLine - 1) / kMailLine);
}
/// Lines from `position` to the end of the ring.
std::uint32_t leftBehind(std::uint32_t position) {
  return kMailLines - (position & (kMailLines - 1));
}

}  // namespace

// --- Rings --------------------------------------------------------------------------------------------------------

bool MailWriter::hasRoom(std::uint32_t lines) {
  if (!guards.mailRoom || next_ + lines - taken_ <= kMailLines) return true;
  taken_ = ring_.taken.load(std::memory_order_acquire);
  return next_ + lines - taken_ <= kMailLines;
}

bool MailWriter::put(const double* values, std::size_t bytes) {
  if (bytes > kMostBytes) return false;
  const std::uint32_t lines = linesOf(bytes);
  const std::uint32_t left = leftBehind(next_);
  const std::uint32_t skip = lines > left ? left : 0;
  if (!hasRoom(skip + lines)) return false;
  if (skip > 0) {
    headOf(ring_, next_).store(headFor(next_, kSkip), std::memory_order_release);
    next_ += skip;
  }
  const std::uint64_t head = headFor(next_, static_cast<std::uint32_t>(bytes));
  if (!guards.mailOrder) headOf(ring_, next_).store(head, std::memory_order_release);
  if (bytes > 0) std::memcpy(lineOf(ring_, next_) + kHead, values, bytes);
  headOf(ring_, next_).store(head, std::memory_order_release);
  next_ += lines;
  return true;
}

const double* MailReader::look(std::size_t& bytes) {
  std::uint64_t head = headOf(ring_, next_).load(std::memory_order_acquire);
  if (head == headFor(next_, kSkip)) {
    next_ += leftBehind(next_);
    head = headOf(ring_, next_).load(std::memory_order_acquire);
  }
  bytes = static_cast<std::size_t>(head >> 32);
  if (isBroken_ || head != headFor(next_, static_cast<std::uint32_t>(bytes))) return nullptr;
  lines_ = linesOf(bytes);
  isBroken_ = bytes > kMostBytes || lines_ > leftBehind(next_);
  return isBroken_ ? nullptr : reinterpret_cast<const double*>(lineOf(ring_, next_) + kHead);
}

void MailReader::taken() {
  for (std::uint32_t i = 0; i < lines_ && guards.mailClears; ++i) {
    headOf(ring_, next_ + i).store(0, std::memory_order_relaxed);
  }
  next_ += lines_;
  ring_.taken.store(next_, std::memory_order_release);
}

// --- Mailboxes ----------------------------------------------------------------------------------------------------

Mailbox::Mailbox(std::int32_t ranks) : ranks_(ranks) {
  fd_ = ::memfd_create("headrace-mailbox", MFD_CLOEXEC);
  if (fd_ < 0) return;
  const auto size = static_cast<off_t>(sizeFor(ranks));
  const bool named = ::getrandom(&number_, sizeof number_, 0) == sizeof number_;
  box_ = named && ::ftruncate(fd_, size) == 0 ? mapPages(fd_, 0, sizeFor(ranks)) : nullptr;
  if (box_ != nullptr) {
    std::memcpy(box_ + kNumber, &number_, sizeof number_);
    return;
  }
  ::close(fd_);
  fd_ = -1;
}

Mailbox::~Mailbox() {
  if (box_ == nullptr) return;
  ::munmap(box_, sizeFor(ranks_));
  ::close(fd_);
}

std::atomic<std::uint32_t>& Mailbox::wroteFirst() { return writersOf(box_); }

/// Finds the ranks that have written since the last look.
void Mailbox::open() {
  seen_ = wroteFirst().load(std::memory_order_acquire);
  for (std::int32_t rank = 0; rank < ranks_; ++rank) {
    std::atomic<std::uint8_t>& mark = markOf(box_, rank);
    if (mark.load(std::memory_order_acquire) != kWritten) continue;
    mark.store(kListed, std::memory_order_relaxed);
    auto* ring = reinterpret_cast<MailRing*>(box_ + ringAt(ranks_, rank));
    writers_.push_back({rank, MailReader(*ring)});
  }
}

PeerMailbox::PeerMailbox(PeerMailbox&& other) noexcept
    : self_(other.self_),
      head_(std::exchange(other.head_, {})),
      ring_(std::exchange(other.ring_, {})),
      hasWritten_(other.hasWritten_),
      writer_(std::move(other.writer_)) {}

PeerMailbox::~PeerMailbox() {
  for (const Pages& pages : {head_, ring_}) {
    if (pages.at != nullptr) ::munmap(pages.at, pages.bytes);
  }
}

/// Maps the pages with `bytes` bytes from `from` on, and finds these; pages without an address when that fails.
PeerMailbox::Pages PeerMailbox::map(int file, std::size_t from, std::size_t bytes,
                                    std::uint8_t*& found) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t first = from / page * page;
  const Pages pages{mapPages(file, first, from - first + bytes), from - first + bytes};
  found = pages.at == nullptr ? nullptr : pages.at + (from - first);
  return pages;
}

bool PeerMailbox::open(std::int32_t pid, std::int32_t fd, std::uint64_t number, std::int32_t self,
                       std::int32_t ranks) {
  const int file = openDescriptor(pid, fd);
  if (file < 0) return false;
  struct stat found {};
  const bool fits =
      ::fstat(file, &found) == 0 && static_cast<std::size_t>(found.st_size) == sizeFor(ranks);
  std::uint8_t* head = nullptr;
  std::uint8_t* ring = nullptr;
  if (fits) {
    head_ = map(file, 0, ringsAt(ranks), head);
    ring_ = map(file, ringAt(ranks, self), sizeof(MailRing), ring);
  }
  ::close(file);
  if (head == nullptr || ring == nullptr) return false;
  if (std::memcmp(head + kNumber, &number, sizeof number) != 0) return false;
  self_ = self;
  writer_.emplace(*reinterpret_cast<MailRing*>(ring));
  return true;
}

bool PeerMailbox::put(const double* values, std::size_t bytes) {
  if (!writer_.has_value() || !writer_->put(values, bytes)) return false;
  if (hasWritten_) return true;
  hasWritten_ = true;
  markOf(head_.at, self_).store(kWritten, std::memory_order_release);
  writersOf(head_.at).fetch_add(1, std::memory_order_release);
  return true;
}

}  // namespace headrace::mpi
