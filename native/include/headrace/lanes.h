// The lanes of a core, for the message layer. A lane is an in-order queue without a thread of the core: the engine writes
// its records, the message layer takes them, and completes them in the order of the lane.
//
// To lose no completion: `complete` makes the record finished for waiting queues, for the engine and for its doorbell.
// Only one thread calls these functions.
#pragma once

#include <cstdint>

extern "C" {

/// Layout shared by separately built addons: append only.
struct headrace_lanes {
  void* self;
  /// Number of lanes; they are numbered from 0.
  std::int32_t count;
  /// Sequence number of the last record that the engine has published to a lane.
  std::int32_t (*published)(void* self, std::int32_t lane);
  /// Sequence number of the last record of a lane that is complete.
  std::int32_t (*completed)(void* self, std::int32_t lane);
  /// The 64 bytes of a record (headrace/contract.h). Valid until it is completed.
  const std::int32_t* (*record)(void* self, std::int32_t lane, std::int32_t sequence);
  /// Whether record `sequence` of `queue` is complete (nonzero). Everything that it wrote is visible then.
  std::int32_t (*happened)(void* self, std::int32_t queue, std::int32_t sequence);
  /// Whether the run of that number was cancelled or has failed (nonzero).
  std::int32_t (*cancelled)(void* self, std::int32_t run);
  /// Whether some record has failed that the engine has not handled yet (nonzero).
  std::int32_t (*unhandled)(void* self);
  /// Completes all commands of a lane up to the one whose last record is `sequence`. `status` and the times (nanoseconds)
  /// are those of that one; the others end well.
  void (*complete)(void* self, std::int32_t lane, std::int32_t sequence, std::int32_t status,
                   double start, double end);
  /// Times of records are wanted (nonzero).
  std::int32_t (*timing)(void* self);
  /// Wakes `sleeper`, a headrace::FutexToken, once record `sequence` of `queue` is complete. Each lane has one such wish at a
  /// time. Nonzero: the record is complete already, and there is no wish. `queue` -1: for a lane that waits in a play, once the
  /// play goes on.
  std::int32_t (*watch)(void* self, std::int32_t lane, std::int32_t queue, std::int32_t sequence,
                        void* sleeper);
  /// Withdraws the wish of a lane, if it has one.
  void (*unwatch)(void* self, std::int32_t lane);
  /// Sequence number of the last record of any queue that is complete; 0 for a queue that does not exist.
  std::int32_t (*reached)(void* self, std::int32_t queue);
  /// For a lane whose published records are all complete: takes the next ones of a play (queues/feed.h), or ends it. 1:
  /// `published` or `completed` has moved. 2: the play waits for a condition, and the lane must be looked at again.
  std::int32_t (*refill)(void* self, std::int32_t lane);
  /// Replaces an argument of the command whose first record is `sequence` and that is not complete: one of those in that record. The engine
  /// finds it there when the command is complete.
  void (*setArgument)(void* self, std::int32_t lane, std::int32_t sequence, std::int32_t argument,
                      double value);
  /// Loads what `published` reads into the cache of this processor, without waiting.
  void (*prefetch)(void* self, std::int32_t lane);
};
}
