// The traffic of one runtime: see session.h.
#include "session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/clock.h"

namespace headrace::mpi {
namespace {

constexpr int kControlTag = 0;
constexpr std::int32_t kControlSlots = 8;
/// Of the rounds in a hurry, one in so many looks at all requests.
constexpr std::uint32_t kHurriedRounds = 16;
/// And one in so many asks MPI for a letter, once so many rounds have brought none.
constexpr std::uint32_t kLetterRounds = 8;
constexpr std::uint32_t kFewLetters = 10000;
/// Streams of a mover: to and from staging buffers, then those that read memory of peers.
constexpr std::int32_t kPeerLanes = 8;
/// Time for copies under way to end after a rank was lost.
constexpr std::int64_t kLostPatience = 1'000'000'000;

}  // namespace

Session::Session(SessionOptions options, MPI_Comm comm, int rank, std::vector<Hello> peers,
                 std::uint64_t host, const Gpu* bound, FutexToken& sleeper,
                 std::unique_ptr<Mailbox> mailbox)
    : options_(std::move(options)),
      comm_(comm),
      rank_(rank),
      peers_(std::move(peers)),
      events_(options_.memory),
      inbox_(options_.memory),
      bound_(bound),
      gpuImports_(bound),
      staging_(options_.chunkBytes, bound),
      copier_(sleeper, options_.spinNanoseconds),
      sleeper_(sleeper),
      tokens_(static_cast<std::int32_t>(peers_.size())),
      mailbox_(std::move(mailbox)) {
  for (const SpaceView& space : options_.spaces) {
    if (space.gpu == nullptr || movers_.count(space.gpu) != 0) continue;
    movers_[space.gpu] = std::make_unique<GpuMover>(*space.gpu, 2 + kPeerLanes, sleeper);
  }
  for (std::size_t r = 0; r < peers_.size(); ++r) {
    const Hello& peer = peers_[r];
    std::vector<bool>& row = mappable_.emplace_back(static_cast<std::size_t>(peer.spaces), false);
    const auto owner = static_cast<std::int32_t>(r);
    const bool wakes =
        owner == rank_ || (peer.host == host && tokens_.open(owner, peer.pid, peer.tokenFd));
    isWoken_ = isWoken_ && wakes;
    // Memory of this process itself needs no mapping.
    for (std::int32_t s = 0; s < peer.spaces && owner != rank_ && peer.host == host; ++s) {
      row[static_cast<std::size_t>(s)] = peer.space[s].fd >= 0;
      if (!peer.space[s].shared || movers_.empty()) continue;
      bool all = true;
      for (const auto& [gpu, mover] : movers_) {
        all = all && gpuImports_.open(owner, peer.space[s].exported, *gpu, mappingProblem_) != 0;
      }
      row[static_cast<std::size_t>(s)] = all;
    }
  }
  openMailboxes(host);
  slots_.resize(kControlSlots);
  for (std::int32_t i = 0; i < kControlSlots; ++i) {
    slots_[i].bytes.resize(NetLimit::message);
    postSlot(i);
  }
  openLetters();
}

Session::~Session() {
  // Streams first: they may still use staging buffers and mapped memory.
  for (auto& [gpu, mover] : movers_) {
    if (!mover->isStuck(options_.flushNanoseconds)) continue;
    // The flush got its answer at its deadline; waiting for the driver here would hang the process (H16).
    mover->orphan();
    mover.release();
  }
  movers_.clear();
  if (isLost_) return;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const Kind kind = owners_[i].kind;
    if (requests_[i] == MPI_REQUEST_NULL || (kind != Kind::controlIn && kind != Kind::letterIn)) {
      continue;
    }
    MPI_Cancel(&requests_[i]);
    MPI_Wait(&requests_[i], MPI_STATUS_IGNORE);
  }
  endLetters();
  imports_.clear();
  gpuImports_.clear();
  MPI_Comm_free(&comm_);
}

bool Session::mappable(int rank, int space) const {
  const auto& row = mappable_[static_cast<std::size_t>(rank)];
  return space >= 0 && static_cast<std::size_t>(space) < row.size() &&
         row[static_cast<std::size_t>(space)];
}

GpuMover* Session::moverOf(const SpaceView& space) {
  return space.gpu == nullptr ? nullptr : movers_[space.gpu].get();
}

std::int32_t Session::laneOf(std::int32_t rank) const { return 2 + rank % kPeerLanes; }

bool Session::commandsWaiting() const {
  return word(NetWord::commandsPublished).load(std::memory_order_seq_cst) !=
             word(NetWord::commandsTaken).load(std::memory_order_relaxed) ||
         word(NetWord::lanesPublished).load(std::memory_order_seq_cst) != lanesSeen_;
}

/// Where letters come through the mailbox, most rounds need not ask MPI.
bool Session::asksForLetter() {
  if (sinceLetter_ >= kFewLetters) return rounds_ % kLetterRounds == 0;
  ++sinceLetter_;
  return true;
}

bool Session::tick(bool hurries) {
  bool moved = takeCommands();
  if (!isLost_) {
    // Letters come first: tasks wait for them.
    moved |= emptyMailbox();
    // While bytes move, all requests are tested in each round: asking MPI twice would only delay the next chunk.
    if (hurries && live_ == 0 && asksForLetter()) moved |= testOldestLetter();
    const bool isMore = live_ > 0 || requests_.size() > kControlSlots + letterSlots_.size();
    if (!hurries || isMore || ++rounds_ % kHurriedRounds == 0) moved |= testRequests();
    moved |= handOverMessages();
    if (copies_.size() > 0) moved |= takeCopies();
    if (!movers_.empty()) moved |= takeGpuTasks();
    if (chunked_.size() > 0) moved |= moveChunks();
    if (!doubts_.empty()) moved |= tellDoubts();
  }
  moved |= serveLanes();
  if (events_.publish() && options_.doorbell != nullptr) {
    options_.doorbell->ring(options_.doorbell->self);
    moved = true;
  }
  if (!isLost_) {
    postEmptied();
    postLetterSlots();
  }
  return moved;
}

// --- Commands -----------------------------------------------------------------------------------------------------

bool Session::takeCommands() {
  std::int32_t taken = word(NetWord::commandsTaken).load(std::memory_order_relaxed);
  const std::int32_t published = word(NetWord::commandsPublished).load(std::memory_order_seq_cst);
  if (taken == published) return false;
  do {
    const Record command =
        options_.memory.commands[static_cast<std::uint32_t>(taken) & (NetLimit::records - 1)];
    taken = after(taken, 1);
    word(NetWord::commandsTaken).store(taken, std::memory_order_release);
    perform(command);
  } while (taken != published);
  return true;
}

void Session::perform(const Record& command) {
  const std::int32_t kind = command.word(NetRecord::kind);
  if (isLost_) {
    // Receives that wait for other ranks still end.
    if (kind == NetCommand::withdraw) tellLanes(command);
    return;
  }
  switch (kind) {
    case NetCommand::message: beginMessage(command); break;
    case NetCommand::close: {
      imports_.clear();
      gpuImports_.clear();
      MPI_Request request;
      MPI_Ibarrier(comm_, &request);
      isClosing_ = true;
      add(request, {Kind::barrier, 0, -1});
      break;
    }
    default: tellLanes(command); break;
  }
}

void Session::beginMessage(const Record& command) {
  const auto offset = static_cast<std::int64_t>(command.number(NetRecord::offset));
  const auto bytes = static_cast<int>(command.number(NetRecord::size));
  MPI_Request request;
  const int code = MPI_Isend(options_.memory.outbox + offset, bytes, MPI_BYTE,
                             command.word(NetRecord::rank), kControlTag, comm_, &request);
  tokens_.wake(command.word(NetRecord::rank));
  messages_.push_back({command.word(NetRecord::position), code != MPI_SUCCESS});
  Word& sent = word(NetWord::messagesSent);
  sent.store(after(sent.load(std::memory_order_relaxed), 1), std::memory_order_relaxed);
  if (code == MPI_SUCCESS) {
    const auto number = firstMessage_ + static_cast<std::int32_t>(messages_.size()) - 1;
    add(request, {Kind::controlOut, number, -1});
  } else {
    freeOutbox();
  }
}

void Session::freeOutbox() {
  while (!messages_.empty() && messages_.front().left) {
    word(NetWord::outboxFreed).store(messages_.front().position, std::memory_order_release);
    messages_.pop_front();
    ++firstMessage_;
  }
}

// --- Requests -----------------------------------------------------------------------------------------------------

void Session::add(MPI_Request request, Owner owner) {
  requests_.push_back(request);
  owners_.push_back(owner);
}

bool Session::testRequests() {
  const int count = static_cast<int>(requests_.size());
  indices_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int finished = 0;
  const int code =
      MPI_Testsome(count, requests_.data(), &finished, indices_.data(), statuses_.data());
  if (finished == MPI_UNDEFINED || finished <= 0) return false;
  // Finished ones leave the table first: handling one may add others.
  over_.clear();
  for (int i = 0; i < finished; ++i) {
    const auto at = static_cast<std::size_t>(indices_[i]);
    over_.push_back(owners_[at]);
    owners_[at].kind = Kind::over;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (owners_[i].kind == Kind::over) continue;
    requests_[kept] = requests_[i];
    owners_[kept] = owners_[i];
    ++kept;
  }
  requests_.resize(kept);
  owners_.resize(kept);
  for (std::size_t i = 0; i < over_.size(); ++i) {
    const bool failed = code == MPI_ERR_IN_STATUS && statuses_[i].MPI_ERROR != MPI_SUCCESS;
    completed(over_[i], statuses_[i], failed);
  }
  return true;
}

void Session::completed(const Owner& owner, const MPI_Status& status, bool failed) {
  switch (owner.kind) {
    case Kind::controlIn: {
      Slot& slot = slots_[owner.index];
      slot.arrived = true;
      slot.rank = status.MPI_SOURCE;
      slot.length = 0;
      if (!failed) MPI_Get_count(&status, MPI_BYTE, &slot.length);
      break;
    }
    case Kind::controlOut:
      messages_[static_cast<std::size_t>(owner.index - firstMessage_)].left = true;
      freeOutbox();
      break;
    case Kind::letterIn: letterArrived(owner.index, status, failed); break;
    case Kind::letterOut: letterLeft(owner.index); break;
    case Kind::whole:
    case Kind::chunkIn:
    case Kind::chunkOut: {
      Transfer& transfer = transfers_[owner.index];
      std::int32_t outcome = failed ? NetStatus::library : NetStatus::ok;
      const bool whole = owner.kind == Kind::whole;
      const std::int64_t bytes = whole ? transfer.bytes : staging_.bytes(owner.buffer);
      if (!failed && !transfer.send) {
        int cancelled = 0;
        int count = 0;
        MPI_Test_cancelled(&status, &cancelled);
        MPI_Get_count(&status, MPI_BYTE, &count);
        if (cancelled != 0)
          outcome = NetStatus::cancelled;
        else if (count != bytes)
          outcome = NetStatus::truncated;
      }
      if (whole) {
        if (outcome != NetStatus::ok || transfer.status == NetStatus::cancelled) {
          transfer.status = outcome;
        }
        finish(owner.index);
        break;
      }
      const Chunk chunk{owner.index, owner.buffer, staging_.offset(owner.buffer), bytes};
      const bool arrived = owner.kind == Kind::chunkIn && transfer.device &&
                           outcome == NetStatus::ok && transfer.status == NetStatus::ok;
      if (arrived)
        chunkArrived(chunk);
      else
        chunkOver(chunk, outcome);
      break;
    }
    case Kind::barrier: {
      Record event{};
      event.words[NetRecord::kind] = NetEvent::closed;
      events_.push(event);
      break;
    }
    case Kind::over: break;
  }
}

bool Session::movesBytes() const {
  return std::any_of(owners_.begin(), owners_.end(), [](const Owner& owner) {
    return owner.kind == Kind::whole || owner.kind == Kind::chunkIn || owner.kind == Kind::chunkOut;
  });
}

// --- Control messages in ------------------------------------------------------------------------------------------

void Session::postSlot(std::int32_t slot) {
  Slot& each = slots_[slot];
  MPI_Request request;
  MPI_Irecv(each.bytes.data(), NetLimit::message, MPI_BYTE, MPI_ANY_SOURCE, kControlTag, comm_,
            &request);
  add(request, {Kind::controlIn, slot, -1});
}

/// The engine gets messages before their slots are posted again.
void Session::postEmptied() {
  for (; emptied_ > 0; --emptied_) {
    postSlot((nextSlot_ + kControlSlots - emptied_) % kControlSlots);
  }
}

bool Session::handOverMessages() {
  bool moved = false;
  for (;;) {
    Slot& slot = slots_[nextSlot_];
    if (!slot.arrived || events_.full()) return moved;
    Record event{};
    event.words[NetRecord::kind] = NetEvent::message;
    event.words[NetRecord::rank] = slot.rank;
    if (!inbox_.write(slot.bytes.data(), slot.length, event)) return moved;
    events_.push(event);
    Word& received = word(NetWord::messagesReceived);
    received.store(after(received.load(std::memory_order_relaxed), 1), std::memory_order_relaxed);
    slot.arrived = false;
    ++emptied_;
    nextSlot_ = (nextSlot_ + 1) % kControlSlots;
    moved = true;
  }
}

// --- The end ----------------------------------------------------------------------------------------------------

void Session::lost(int rank) {
  if (isLost_) return;
  isLost_ = true;
  // Copies under way still touch memory of this session.
  while (copier_.busy()) pauseProcessor();
  const std::int64_t until = now() + kLostPatience;
  for (const auto& [gpu, mover] : movers_) {
    while (mover->outstanding() > 0 && now() < until) mover->take(finished_);
  }
  Record event{};
  event.words[NetRecord::kind] = NetEvent::lost;
  event.words[NetRecord::rank] = rank;
  events_.push(event);
  if (laneServer_ != nullptr) laneServer_->lost();
  for (Transfer& transfer : transfers_) {
    if (!transfer.live) continue;
    transfer.live = false;
    tellNow(transfer, NetStatus::lost);
  }
  doubts_.tellAll([this](const Transfer& transfer) { tellNow(transfer, NetStatus::lost); });
  for (const std::int32_t ticket : flushing_) {
    flushOver(gpuTasks_[static_cast<std::size_t>(ticket)], NetStatus::lost);
  }
  flushing_.clear();
  for (Unflushed& batch : unflushed_) {
    for (const std::int32_t lane : batch.lanes) laneServer_->fetched(lane, NetStatus::lost);
    batch.lanes.clear();
  }
  live_ = 0;
  messages_.clear();
}

}  // namespace headrace::mpi
