// The traffic of one runtime: see session.h.
#include "session.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "clock.h"

namespace headrace::mpi {
namespace {

constexpr int kControlTag = 0;
constexpr std::int32_t kControlSlots = 8;
/// Staging buffers for sends, and as many for receives: with one pool, receives that wait for each other's ranks could
/// take every buffer that the sends need. The engine asks for no more data than receives have buffers for.
constexpr std::int32_t kBuffers = NetLimit::buffers;
/// Copies up to this size are done by the comm thread itself.
constexpr std::int64_t kShortCopy = 32768;
/// MPI counts are int: longer transfers go in chunks of this size.
constexpr std::int64_t kLongest = std::int64_t{1} << 30;

}  // namespace

Session::Session(SessionOptions options, MPI_Comm comm, int rank, std::vector<Hello> peers,
                 Parker& parker)
    : options_(std::move(options)),
      comm_(comm),
      rank_(rank),
      peers_(std::move(peers)),
      events_(options_.memory),
      inbox_(options_.memory),
      copier_(parker) {
  slots_.resize(kControlSlots);
  for (std::int32_t i = 0; i < kControlSlots; ++i) {
    slots_[i].bytes.resize(NetLimit::message);
    postSlot(i);
  }
}

Session::~Session() {
  if (isLost_) return;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL || owners_[i].kind != Kind::controlIn) continue;
    MPI_Cancel(&requests_[i]);
    MPI_Wait(&requests_[i], MPI_STATUS_IGNORE);
  }
  imports_.clear();
  MPI_Comm_free(&comm_);
}

bool Session::commandsWaiting() const {
  return word(NetWord::commandsPublished).load(std::memory_order_seq_cst) !=
         word(NetWord::commandsTaken).load(std::memory_order_relaxed);
}

bool Session::tick() {
  bool moved = takeCommands();
  if (!isLost_) {
    moved |= testRequests();
    moved |= handOverMessages();
    if (copies_.size() > 0) moved |= takeCopies();
    if (chunked_.size() > 0) moved |= moveChunks();
  }
  if (events_.publish() && options_.doorbell != nullptr) {
    options_.doorbell->ring(options_.doorbell->self);
    moved = true;
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
    taken = plus(taken, 1);
    word(NetWord::commandsTaken).store(taken, std::memory_order_release);
    perform(command);
  } while (taken != published);
  return true;
}

void Session::perform(const Record& command) {
  const std::int32_t kind = command.word(NetRecord::kind);
  if (isLost_) {
    const bool answers = kind == NetCommand::send || kind == NetCommand::receive ||
                         kind == NetCommand::ipcRead || kind == NetCommand::flush;
    if (answers) done(command.word(NetRecord::request), NetStatus::lost, now());
    return;
  }
  switch (kind) {
    case NetCommand::message:
      beginMessage(command);
      break;
    case NetCommand::send:
      beginTransfer(command, true);
      break;
    case NetCommand::receive:
      beginTransfer(command, false);
      break;
    case NetCommand::ipcRead:
      beginIpc(command);
      break;
    case NetCommand::cancel:
      cancel(command.word(NetRecord::request));
      break;
    case NetCommand::flush: {
      ++flushes_;
      word(NetWord::flushes).store(flushes_, std::memory_order_relaxed);
      const bool fails = options_.failFlush > 0 && flushes_ >= options_.failFlush;
      done(command.word(NetRecord::request), fails ? NetStatus::flush : NetStatus::ok, now());
      break;
    }
    case NetCommand::close: {
      imports_.clear();
      MPI_Request request;
      MPI_Ibarrier(comm_, &request);
      add(request, {Kind::barrier, 0, -1});
      break;
    }
    default:
      break;
  }
}

void Session::beginMessage(const Record& command) {
  const auto offset = static_cast<std::int64_t>(command.number(NetRecord::offset));
  const auto bytes = static_cast<int>(command.number(NetRecord::size));
  MPI_Request request;
  const int code = MPI_Isend(options_.memory.outbox + offset, bytes, MPI_BYTE,
                             command.word(NetRecord::rank), kControlTag, comm_, &request);
  messages_.push_back({command.word(NetRecord::position), code != MPI_SUCCESS});
  Word& sent = word(NetWord::messagesSent);
  sent.store(plus(sent.load(std::memory_order_relaxed), 1), std::memory_order_relaxed);
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

std::uint8_t* Session::locate(std::int32_t space, double offset, double bytes) {
  if (space < 0 || static_cast<std::size_t>(space) >= options_.spaces.size()) return nullptr;
  const SpaceView& view = options_.spaces[space];
  if (!(offset >= 0) || !(bytes >= 0) || offset > view.bytes || bytes > view.bytes - offset) {
    return nullptr;
  }
  return view.base + static_cast<std::uint64_t>(offset);
}

std::int32_t Session::newTransfer(const Record& command) {
  std::int32_t index = static_cast<std::int32_t>(transfers_.size());
  if (freeTransfers_.empty()) {
    transfers_.emplace_back();
  } else {
    index = freeTransfers_.back();
    freeTransfers_.pop_back();
  }
  Transfer& transfer = transfers_[index];
  transfer = Transfer{};
  transfer.live = true;
  transfer.request = command.word(NetRecord::request);
  transfer.rank = command.word(NetRecord::rank);
  transfer.tag = command.word(NetRecord::tag);
  transfer.bytes = static_cast<std::int64_t>(command.number(NetRecord::size));
  transfer.start = now();
  ++live_;
  return index;
}

void Session::beginTransfer(const Record& command, bool send) {
  const std::int32_t space = command.word(NetRecord::space);
  std::uint8_t* data =
      locate(space, command.number(NetRecord::offset), command.number(NetRecord::size));
  if (data == nullptr) {
    done(command.word(NetRecord::request), NetStatus::outOfRange, now());
    return;
  }
  const std::int32_t index = newTransfer(command);
  Transfer& transfer = transfers_[index];
  transfer.send = send;
  transfer.data = data;
  transfer.staged = command.word(NetRecord::status) == NetMode::staged;
  transfer.device = options_.spaces[space].kind != 0;
  if (transfer.staged || transfer.bytes > kLongest) {
    transfer.listed = true;
    chunked_.push_back(index);
    return;
  }
  MPI_Request request;
  const auto count = static_cast<int>(transfer.bytes);
  const int code =
      send ? MPI_Isend(data, count, MPI_BYTE, transfer.rank, transfer.tag, comm_, &request)
           : MPI_Irecv(data, count, MPI_BYTE, transfer.rank, transfer.tag, comm_, &request);
  if (code != MPI_SUCCESS) {
    transfer.status = NetStatus::library;
    finish(index);
    return;
  }
  add(request, {Kind::whole, index, -1});
}

void Session::beginIpc(const Record& command) {
  const std::int32_t rank = command.word(NetRecord::rank);
  const std::int32_t space = command.word(NetRecord::remoteSpace);
  const double bytes = command.number(NetRecord::size);
  const double from = command.number(NetRecord::remoteOffset);
  std::uint8_t* to = locate(command.word(NetRecord::space), command.number(NetRecord::offset), bytes);
  const Hello& peer = peers_[static_cast<std::size_t>(rank)];
  const bool inside = to != nullptr && space >= 0 && space < peer.spaces && from >= 0 &&
                      from + bytes <= static_cast<double>(peer.space[space].bytes);
  if (!inside) {
    done(command.word(NetRecord::request), NetStatus::outOfRange, now());
    return;
  }
  std::string error;
  const std::uint8_t* base = imports_.map(rank, space, peer.pid, peer.space[space].fd,
                                          peer.space[space].bytes, error);
  word(NetWord::mappings).store(imports_.made(), std::memory_order_relaxed);
  if (base == nullptr) {
    done(command.word(NetRecord::request), NetStatus::mapping, now());
    return;
  }
  const std::int32_t index = newTransfer(command);
  Transfer& transfer = transfers_[index];
  transfer.copied = true;
  transfer.next = transfer.bytes;
  transfer.inFlight = 1;
  const Chunk chunk{index, -1, 0, transfer.bytes};
  const std::uint8_t* source = base + static_cast<std::uint64_t>(from);
  if (transfer.bytes <= kShortCopy) {
    std::memcpy(to, source, static_cast<std::size_t>(transfer.bytes));
    chunkOver(chunk, NetStatus::ok);
  } else {
    copies_.push_back({copier_.copy(to, source, static_cast<std::uint64_t>(transfer.bytes)), chunk});
  }
}

void Session::cancel(std::int32_t request) {
  for (std::size_t t = 0; t < transfers_.size(); ++t) {
    Transfer& transfer = transfers_[t];
    if (!transfer.live || transfer.request != request || transfer.send || transfer.copied) continue;
    transfer.status = NetStatus::cancelled;
    transfer.next = transfer.bytes;  // no further chunks
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      const Kind kind = owners_[i].kind;
      if ((kind == Kind::whole || kind == Kind::chunkIn) &&
          owners_[i].index == static_cast<std::int32_t>(t) && requests_[i] != MPI_REQUEST_NULL) {
        MPI_Cancel(&requests_[i]);
      }
    }
    endIfOver(static_cast<std::int32_t>(t));
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
    case Kind::whole:
    case Kind::chunkIn:
    case Kind::chunkOut: {
      Transfer& transfer = transfers_[owner.index];
      std::int32_t outcome = failed ? NetStatus::library : NetStatus::ok;
      const bool whole = owner.kind == Kind::whole;
      const std::int64_t bytes =
          whole ? transfer.bytes : chunkSizes_[static_cast<std::size_t>(owner.buffer)];
      if (!failed && !transfer.send) {
        int cancelled = 0;
        int count = 0;
        MPI_Test_cancelled(&status, &cancelled);
        MPI_Get_count(&status, MPI_BYTE, &count);
        if (cancelled != 0) outcome = NetStatus::cancelled;
        else if (count != bytes) outcome = NetStatus::truncated;
      }
      if (whole) {
        if (outcome != NetStatus::ok || transfer.status == NetStatus::cancelled) {
          transfer.status = outcome;
        }
        finish(owner.index);
        break;
      }
      const Chunk chunk{owner.index, owner.buffer,
                        chunkOffsets_[static_cast<std::size_t>(owner.buffer)], bytes};
      const bool copy = owner.kind == Kind::chunkIn && transfer.device && outcome == NetStatus::ok;
      if (!copy) {
        chunkOver(chunk, outcome);
      } else if (bytes <= kShortCopy) {
        std::memcpy(transfer.data + chunk.offset, buffers_[chunk.buffer].get(),
                    static_cast<std::size_t>(bytes));
        chunkOver(chunk, outcome);
      } else {
        copies_.push_back({copier_.copy(transfer.data + chunk.offset, buffers_[chunk.buffer].get(),
                                        static_cast<std::uint64_t>(bytes)),
                           chunk});
      }
      break;
    }
    case Kind::barrier: {
      Record event{};
      event.words[NetRecord::kind] = NetEvent::closed;
      events_.push(event);
      break;
    }
    case Kind::over:
      break;
  }
}

// --- Control messages in ------------------------------------------------------------------------------------------

void Session::postSlot(std::int32_t slot) {
  Slot& each = slots_[slot];
  each.arrived = false;
  MPI_Request request;
  MPI_Irecv(each.bytes.data(), NetLimit::message, MPI_BYTE, MPI_ANY_SOURCE, kControlTag, comm_,
            &request);
  add(request, {Kind::controlIn, slot, -1});
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
    received.store(plus(received.load(std::memory_order_relaxed), 1), std::memory_order_relaxed);
    postSlot(nextSlot_);
    nextSlot_ = (nextSlot_ + 1) % kControlSlots;
    moved = true;
  }
}

// --- Transfers in chunks ------------------------------------------------------------------------------------------

std::int32_t Session::takeBuffer(bool send) {
  std::vector<std::int32_t>& free = freeBuffers_[send ? 1 : 0];
  if (free.empty()) {
    std::int32_t& made = buffersMade_[send ? 1 : 0];
    if (made >= kBuffers) return -1;
    ++made;
    buffers_.emplace_back(new std::uint8_t[static_cast<std::size_t>(options_.chunkBytes)]);
    chunkSizes_.push_back(0);
    chunkOffsets_.push_back(0);
    return static_cast<std::int32_t>(buffers_.size()) - 1;
  }
  const std::int32_t buffer = free.back();
  free.pop_back();
  return buffer;
}

bool Session::moveChunks() {
  bool moved = false;
  chunkedNow_.swap(chunked_);
  for (const std::int32_t index : chunkedNow_) {
    const auto unfinished = [&] {
      return transfers_[index].live && transfers_[index].next < transfers_[index].bytes;
    };
    while (unfinished() && transfers_[index].inFlight < options_.chunksInFlight && postChunk(index)) {
      moved = true;
    }
    if (unfinished()) {
      chunked_.push_back(index);
    } else {
      transfers_[index].listed = false;
      if (!transfers_[index].live) freeTransfers_.push_back(index);
    }
  }
  chunkedNow_.clear();
  return moved;
}

/// Posts the next chunk of a transfer, or starts the copy that comes before; false when no buffer is free.
bool Session::postChunk(std::int32_t index) {
  Transfer& transfer = transfers_[index];
  const std::int32_t buffer = takeBuffer(transfer.send);
  if (buffer < 0) return false;
  const std::int64_t bytes = std::min(transfer.bytes - transfer.next, options_.chunkBytes);
  const Chunk chunk{index, buffer, transfer.next, bytes};
  chunkSizes_[static_cast<std::size_t>(buffer)] = bytes;
  chunkOffsets_[static_cast<std::size_t>(buffer)] = chunk.offset;
  transfer.next += bytes;
  ++transfer.inFlight;
  if (transfer.send && transfer.device) {
    // Not past copies that come before: chunks are posted in order.
    if (bytes <= kShortCopy && copies_.empty()) {
      std::memcpy(buffers_[buffer].get(), transfer.data + chunk.offset,
                  static_cast<std::size_t>(bytes));
      chunkCopied(chunk);
    } else {
      copies_.push_back({copier_.copy(buffers_[buffer].get(), transfer.data + chunk.offset,
                                      static_cast<std::uint64_t>(bytes)),
                         chunk});
    }
    return true;
  }
  MPI_Request request;
  std::uint8_t* where = transfer.device ? buffers_[buffer].get() : transfer.data + chunk.offset;
  const auto count = static_cast<int>(bytes);
  const int code =
      transfer.send
          ? MPI_Isend(where, count, MPI_BYTE, transfer.rank, transfer.tag, comm_, &request)
          : MPI_Irecv(where, count, MPI_BYTE, transfer.rank, transfer.tag, comm_, &request);
  if (code == MPI_SUCCESS) {
    add(request, {transfer.send ? Kind::chunkOut : Kind::chunkIn, index, buffer});
  } else {
    chunkOver(chunk, NetStatus::library);
  }
  return true;
}

bool Session::takeCopies() {
  bool moved = false;
  const std::uint64_t done = copier_.done();
  while (!copies_.empty() && copies_.front().number <= done) {
    const Chunk chunk = copies_.front().chunk;
    copies_.pop_front();
    chunkCopied(chunk);
    moved = true;
  }
  return moved;
}

/// The copy of a chunk is over: a send goes on to the network, a receive or a mapped read is finished.
void Session::chunkCopied(const Chunk& chunk) {
  Transfer& transfer = transfers_[chunk.transfer];
  if (!transfer.send) {
    chunkOver(chunk, NetStatus::ok);
    return;
  }
  MPI_Request request;
  const int code = MPI_Isend(buffers_[chunk.buffer].get(), static_cast<int>(chunk.bytes), MPI_BYTE,
                             transfer.rank, transfer.tag, comm_, &request);
  if (code == MPI_SUCCESS) add(request, {Kind::chunkOut, chunk.transfer, chunk.buffer});
  else chunkOver(chunk, NetStatus::library);
}

void Session::chunkOver(const Chunk& chunk, std::int32_t status) {
  Transfer& transfer = transfers_[chunk.transfer];
  if (chunk.buffer >= 0) freeBuffers_[transfer.send ? 1 : 0].push_back(chunk.buffer);
  transfer.finished += chunk.bytes;
  --transfer.inFlight;
  if (status != NetStatus::ok && transfer.status == NetStatus::ok) {
    transfer.status = status;
    if (!transfer.send) transfer.next = transfer.bytes;
  }
  endIfOver(chunk.transfer);
}

void Session::endIfOver(std::int32_t index) {
  const Transfer& transfer = transfers_[index];
  const bool chunked = transfer.staged || transfer.copied || transfer.bytes > kLongest;
  if (chunked && transfer.next >= transfer.bytes && transfer.inFlight == 0) finish(index);
}

void Session::finish(std::int32_t index) {
  Transfer& transfer = transfers_[index];
  transfer.live = false;
  --live_;
  done(transfer.request, transfer.status, transfer.start);
  // A listed row is given back by `moveChunks`: two lists must not name it for different transfers.
  if (!transfer.listed) freeTransfers_.push_back(index);
}

void Session::done(std::int32_t request, std::int32_t status, std::int64_t start) {
  Record event{};
  event.words[NetRecord::kind] = NetEvent::done;
  event.words[NetRecord::request] = request;
  event.words[NetRecord::status] = status;
  event.doubles[NetRecord::start] = static_cast<double>(start);
  event.doubles[NetRecord::end] = static_cast<double>(now());
  events_.push(event);
}

void Session::lost(int rank) {
  if (isLost_) return;
  isLost_ = true;
  // Jobs of the copier may still touch memory of this session.
  while (copier_.busy()) pauseProcessor();
  Record event{};
  event.words[NetRecord::kind] = NetEvent::lost;
  event.words[NetRecord::rank] = rank;
  events_.push(event);
  for (Transfer& transfer : transfers_) {
    if (!transfer.live) continue;
    transfer.live = false;
    done(transfer.request, NetStatus::lost, transfer.start);
  }
  live_ = 0;
  messages_.clear();
}

}  // namespace headrace::mpi
