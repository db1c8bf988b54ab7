// Payloads of a session: whole messages, staged chunks, reads of mapped memory, flushes (see session.h).
#include <algorithm>
#include <cstring>

#include "core/clock.h"
#include "core/guards.h"
#include "session.h"

namespace headrace::mpi {
namespace {

/// The comm thread itself makes copies in host memory up to this size.
constexpr std::int64_t kShortCopy = 32768;
/// MPI counts are int: longer transfers go in chunks.
constexpr std::int64_t kLongest = std::int64_t{1} << 30;
/// Time for the news that a rank died to come, in nanoseconds.
constexpr std::int64_t kDoubtPatience = 1'000'000'000;
constexpr std::int32_t kToHostLane = 0;
constexpr std::int32_t kToDeviceLane = 1;

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

}  // namespace

// --- Beginning ----------------------------------------------------------------------------------------------------

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
  const SpaceView& view = options_.spaces[space];
  const bool staged = command.word(NetRecord::status) == NetMode::staged;
  if (!staged && !view.direct) {
    done(command.word(NetRecord::request), NetStatus::library, now());
    return;
  }
  const std::int32_t index = newTransfer(command);
  Transfer& transfer = transfers_[index];
  transfer.send = send;
  transfer.data = data;
  transfer.staged = staged;
  transfer.device = view.kind != 0;
  transfer.mover = moverOf(view);
  startTransfer(index);
}

void Session::startTransfer(std::int32_t index) {
  Transfer& transfer = transfers_[index];
  if (transfer.staged || transfer.bytes > kLongest) {
    transfer.listed = true;
    chunked_.push_back(index);
    return;
  }
  // An MPI library that takes device pointers works in the context that is current on its thread (H10).
  if (transfer.mover != nullptr) transfer.mover->gpu().makeCurrent();
  MPI_Request request;
  const auto count = static_cast<int>(transfer.bytes);
  const int code =
      transfer.send
          ? MPI_Isend(transfer.data, count, MPI_BYTE, transfer.rank, transfer.tag, comm_, &request)
          : MPI_Irecv(transfer.data, count, MPI_BYTE, transfer.rank, transfer.tag, comm_, &request);
  if (transfer.send) tokens_.wake(transfer.rank);
  if (code != MPI_SUCCESS) {
    transfer.status = NetStatus::library;
    finish(index);
    return;
  }
  add(request, {Kind::whole, index, -1});
}

void Session::beginIpc(const Record& command, bool onLane) {
  const std::int32_t rank = command.word(NetRecord::rank);
  const std::int32_t space = command.word(NetRecord::remoteSpace);
  const double bytes = command.number(NetRecord::size);
  const double from = command.number(NetRecord::remoteOffset);
  const std::int32_t here = command.word(NetRecord::space);
  std::uint8_t* to = locate(here, command.number(NetRecord::offset), bytes);
  const Hello& peer = peers_[static_cast<std::size_t>(rank)];
  const bool inside = to != nullptr && space >= 0 && space < peer.spaces && from >= 0 &&
                      from + bytes <= static_cast<double>(peer.space[space].bytes);
  if (!inside) {
    endRead(command, onLane, NetStatus::outOfRange);
    return;
  }
  if (peer.space[space].shared) {
    readMapped(command, options_.spaces[here], to, onLane);
    return;
  }
  std::string error;
  const std::uint8_t* base =
      imports_.map(rank, space, peer.pid, peer.space[space].fd, peer.space[space].bytes, error);
  if (base == nullptr || options_.spaces[here].gpu != nullptr) {
    endRead(command, onLane, NetStatus::mapping);
    return;
  }
  const std::int32_t index = newTransfer(command);
  Transfer& transfer = transfers_[index];
  transfer.onLane = onLane;
  transfer.copied = true;
  transfer.next = transfer.bytes;
  transfer.inFlight = 1;
  copy(to, base + static_cast<std::uint64_t>(from), {index, -1, 0, transfer.bytes});
}

/// A mapped read ends that has not begun, for instance because the memory could not be opened.
void Session::endRead(const Record& command, bool onLane, std::int32_t status) {
  Transfer transfer;
  transfer.onLane = onLane;
  transfer.request = command.word(NetRecord::request);
  transfer.rank = command.word(NetRecord::rank);
  transfer.start = now();
  tellEnd(transfer, status);
}

/// Reads memory of a peer's real GPU: straight into a GPU here, whose stream drives the copy, or into host memory through
/// staging buffers, since only those are sure to be page-locked.
void Session::readMapped(const Record& command, const SpaceView& to, std::uint8_t* data,
                         bool onLane) {
  const std::int32_t rank = command.word(NetRecord::rank);
  const GpuExport& exported =
      peers_[static_cast<std::size_t>(rank)].space[command.word(NetRecord::remoteSpace)].exported;
  const Gpu* reader = to.gpu != nullptr ? to.gpu : bound_;
  const std::uint64_t base = reader == nullptr ? 0 : gpuImports_.find(rank, exported, *reader);
  if (base == 0) {
    endRead(command, onLane, NetStatus::mapping);
    return;
  }
  const std::int32_t index = newTransfer(command);
  Transfer& transfer = transfers_[index];
  transfer.onLane = onLane;
  transfer.copied = true;
  transfer.data = data;
  transfer.from = base + static_cast<std::uint64_t>(command.number(NetRecord::remoteOffset));
  transfer.mover = movers_[reader].get();
  transfer.bounced = to.gpu == nullptr;
  if (transfer.bounced) {
    transfer.listed = true;
    chunked_.push_back(index);
    return;
  }
  transfer.next = transfer.bytes;
  transfer.inFlight = 1;
  const Chunk whole{index, -1, 0, transfer.bytes};
  submit(*transfer.mover,
         {GpuMover::Kind::onDevice, laneOf(rank), 0, address(data), transfer.from,
          static_cast<std::uint64_t>(transfer.bytes), 0},
         {false, whole, 0, false, {}});
}

void Session::cancelBytes(std::int32_t lane) {
  for (std::size_t t = 0; t < transfers_.size(); ++t) {
    Transfer& transfer = transfers_[t];
    const bool isMeant = transfer.live && transfer.onLane && transfer.request == lane &&
                         !transfer.send && !transfer.copied;
    if (!isMeant) continue;
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

// --- Chunks -------------------------------------------------------------------------------------------------------

bool Session::moveChunks() {
  bool moved = false;
  chunkedNow_.swap(chunked_);
  for (const std::int32_t index : chunkedNow_) {
    const auto unfinished = [&] {
      return transfers_[index].live && transfers_[index].next < transfers_[index].bytes;
    };
    while (unfinished() && transfers_[index].inFlight < options_.chunksInFlight &&
           postChunk(index)) {
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

/// Posts the next chunk of a transfer, or starts the copy before it; false when no buffer is free.
bool Session::postChunk(std::int32_t index) {
  Transfer& transfer = transfers_[index];
  const std::int32_t buffer = staging_.take(transfer.send);
  if (buffer < 0) return false;
  const std::int64_t bytes = std::min(transfer.bytes - transfer.next, options_.chunkBytes);
  const Chunk chunk{index, buffer, transfer.next, bytes};
  staging_.bytes(buffer) = bytes;
  staging_.offset(buffer) = chunk.offset;
  transfer.next += bytes;
  ++transfer.inFlight;
  if (transfer.mover != nullptr && (transfer.send || transfer.bounced)) {
    const std::uint64_t from = transfer.bounced ? transfer.from : address(transfer.data);
    const std::int32_t lane = transfer.bounced ? laneOf(transfer.rank) : kToHostLane;
    submit(*transfer.mover,
           {GpuMover::Kind::toHost, lane, 0, address(staging_.data(buffer)),
            from + static_cast<std::uint64_t>(chunk.offset), static_cast<std::uint64_t>(bytes), 0},
           {false, chunk, 0, false, {}});
    return true;
  }
  if (transfer.send && transfer.device) {
    copy(staging_.data(buffer), transfer.data + chunk.offset, chunk);
    return true;
  }
  if (transfer.send) {
    sendChunk(chunk, bytes);
    return true;
  }
  MPI_Request request;
  std::uint8_t* where = transfer.device ? staging_.data(buffer) : transfer.data + chunk.offset;
  const int code = MPI_Irecv(where, static_cast<int>(bytes), MPI_BYTE, transfer.rank, transfer.tag,
                             comm_, &request);
  if (code == MPI_SUCCESS)
    add(request, {Kind::chunkIn, index, buffer});
  else
    chunkOver(chunk, NetStatus::library);
  return true;
}

/// A received chunk of device memory is in its staging buffer.
void Session::chunkArrived(const Chunk& chunk) {
  Transfer& transfer = transfers_[chunk.transfer];
  if (transfer.mover == nullptr) {
    copy(transfer.data + chunk.offset, staging_.data(chunk.buffer), chunk);
    return;
  }
  submit(*transfer.mover,
         {GpuMover::Kind::toDevice, kToDeviceLane, 0, address(transfer.data + chunk.offset),
          address(staging_.data(chunk.buffer)), static_cast<std::uint64_t>(chunk.bytes), 0},
         {false, chunk, 0, false, {}});
}

/// Copies in host memory; `chunkCopied` follows. Does not overtake earlier copies: chunks are posted in order.
void Session::copy(void* to, const void* from, const Chunk& chunk) {
  if (chunk.bytes <= kShortCopy && copies_.empty()) {
    std::memcpy(to, from, static_cast<std::size_t>(chunk.bytes));
    chunkCopied(chunk);
    return;
  }
  copies_.push_back({copier_.copy(to, from, static_cast<std::uint64_t>(chunk.bytes)), chunk});
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

/// The copy of a chunk is over: a send continues to the network, a receive or a mapped read is finished.
void Session::chunkCopied(const Chunk& chunk) {
  if (transfers_[chunk.transfer].send)
    sendChunk(chunk, chunk.bytes);
  else
    chunkOver(chunk, NetStatus::ok);
}

/// Fewer bytes than the chunk has tell the receiver that this side failed.
void Session::sendChunk(const Chunk& chunk, std::int64_t bytes) {
  Transfer& transfer = transfers_[chunk.transfer];
  const std::uint8_t* from =
      transfer.device ? staging_.data(chunk.buffer) : transfer.data + chunk.offset;
  MPI_Request request;
  const int code = MPI_Isend(from, static_cast<int>(bytes), MPI_BYTE, transfer.rank, transfer.tag,
                             comm_, &request);
  tokens_.wake(transfer.rank);
  if (code == MPI_SUCCESS)
    add(request, {Kind::chunkOut, chunk.transfer, chunk.buffer});
  else
    chunkOver(chunk, NetStatus::library);
}

void Session::chunkOver(const Chunk& chunk, std::int32_t status) {
  Transfer& transfer = transfers_[chunk.transfer];
  if (chunk.buffer >= 0) staging_.give(chunk.buffer, transfer.send);
  transfer.finished += chunk.bytes;
  --transfer.inFlight;
  if (status != NetStatus::ok && transfer.status == NetStatus::ok) {
    transfer.status = status;
    // After a failure of the GPU here the rest is still received: the sender does not know of it.
    if (!transfer.send && status != NetStatus::device) transfer.next = transfer.bytes;
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
  // `moveChunks` returns a listed row: two lists must not name it for different transfers.
  if (!transfer.listed) freeTransfers_.push_back(index);
  tellEnd(Transfer(transfer), transfer.status);
}

/// The end of a transfer is told at once, unless a peer that died may be the cause.
void Session::tellEnd(const Transfer& transfer, std::int32_t status) {
  if (!Doubts<Transfer>::explains(status)) {
    tellNow(transfer, status);
    return;
  }
  doubts_.add(transfer, status, now() + kDoubtPatience);
  ++live_;
}

/// Nobody died who would explain these ends.
bool Session::tellDoubts() {
  return doubts_.tellDue(now(), [this](const Transfer& transfer, std::int32_t status) {
    --live_;
    tellNow(transfer, status);
  });
}

/// The lane server or the engine learns of the end of a transfer.
void Session::tellNow(const Transfer& transfer, std::int32_t status) {
  if (!transfer.onLane)
    done(transfer.request, status, transfer.start);
  else if (transfer.send)
    laneServer_->sent(transfer.request, status, static_cast<double>(transfer.start),
                      static_cast<double>(now()));
  else if (status == NetStatus::ok && transfer.scope != NetScope::none) {
    Unflushed& batch = unflushed_[static_cast<std::size_t>(transfer.space)];
    batch.lanes.push_back(transfer.request);
    batch.scope = std::max(batch.scope, transfer.scope);
  } else
    laneServer_->fetched(transfer.request, status);
}

// --- Real GPUs ----------------------------------------------------------------------------------------------------

void Session::submit(GpuMover& mover, GpuMover::Job job, const GpuTask& task) {
  job.ticket = static_cast<std::int32_t>(gpuTasks_.size());
  if (freeGpuTasks_.empty()) {
    gpuTasks_.push_back(task);
  } else {
    job.ticket = freeGpuTasks_.back();
    freeGpuTasks_.pop_back();
    gpuTasks_[static_cast<std::size_t>(job.ticket)] = task;
  }
  if (task.flush) flushing_.push_back(job.ticket);
  mover.submit(job);
}

void Session::flushOver(const GpuTask& task, std::int32_t status) {
  if (task.late) return;
  --live_;
  for (const std::int32_t lane : task.lanes) laneServer_->fetched(lane, status);
}

/// A flush that does not return must not hold up the run for ever (H16): it fails at its deadline.
void Session::answerLateFlushes() {
  if (flushing_.empty() || !guards.flushDeadline) return;
  const std::int64_t limit = now() - options_.flushNanoseconds;
  for (const std::int32_t ticket : flushing_) {
    GpuTask& task = gpuTasks_[static_cast<std::size_t>(ticket)];
    if (task.start > limit) return;
    if (task.late) continue;
    flushOver(task, NetStatus::flushTimeout);
    task.late = true;
  }
}

bool Session::takeGpuTasks() {
  answerLateFlushes();
  finished_.clear();
  for (const auto& [gpu, mover] : movers_) mover->take(finished_);
  for (const GpuMover::Finished& finished : finished_) {
    const GpuTask task = gpuTasks_[static_cast<std::size_t>(finished.ticket)];
    freeGpuTasks_.push_back(finished.ticket);
    if (task.flush) {
      flushing_.erase(std::find(flushing_.begin(), flushing_.end(), finished.ticket));
      flushOver(task, finished.code == 0 ? NetStatus::ok : NetStatus::flush);
      continue;
    }
    Transfer& transfer = transfers_[task.chunk.transfer];
    if (finished.code != 0) {
      if (transfer.send) {
        transfer.status = NetStatus::device;
        sendChunk(task.chunk, 0);
      } else {
        chunkOver(task.chunk, NetStatus::device);
      }
    } else if (transfer.bounced) {
      copy(transfer.data + task.chunk.offset, staging_.data(task.chunk.buffer), task.chunk);
    } else {
      chunkCopied(task.chunk);
    }
  }
  return !finished_.empty();
}

}  // namespace headrace::mpi
