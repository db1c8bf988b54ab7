// The work of a session on real GPUs: copies of chunks, and flushes of what the network has written (see session.h).
#include <algorithm>
#include <utility>

#include "core/clock.h"
#include "core/guards.h"
#include "session.h"

namespace headrace::mpi {

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

/// Makes the network's writes for lanes visible: one flush per space and round covers all bytes that have come.
void Session::flushForLanes() {
  for (std::size_t space = 0; space < unflushed_.size(); ++space) {
    Unflushed& batch = unflushed_[space];
    if (batch.lanes.empty()) continue;
    std::vector<std::int32_t> lanes;
    lanes.swap(batch.lanes);
    const std::int32_t scope = batch.scope;
    batch.scope = 0;
    ++flushes_;
    word(NetWord::flushes).store(flushes_, std::memory_order_relaxed);
    GpuMover* mover = moverOf(options_.spaces[space]);
    const GpuTask task{true, {}, now(), false, std::move(lanes)};
    ++live_;
    if (mover == nullptr) {
      flushOver(task, NetStatus::ok);
    } else {
      submit(*mover, {GpuMover::Kind::flush, 0, 0, 0, 0, 0, scope}, task);
    }
  }
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
