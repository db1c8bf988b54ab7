// One stream of a GPU and the queue that it serves: the submitted records, and the event by which each is known to be
// finished.
//
// Invariants: the record in slot i is finished when `slots[i].done` (of its last continuation) has happened; an
// event is recorded for every command, so an event that is waited for was always recorded. Another GPU's thread may
// look an event up only under `lock`, after checking that the record is submitted and not yet completed: the lock
// keeps the owner from recording the slot's event anew for a later record meanwhile.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "gpu/driver.h"
#include "queues/queue.h"

namespace headrace {

class DeviceThread;

struct StreamSlot {
  EventHandle plain = nullptr;  // without time
  EventHandle begin = nullptr;  // with time, created when timing is first used
  EventHandle end = nullptr;
  EventHandle done = nullptr;  // plain or end: happens when the command is finished
  std::int32_t last = 0;       // sequence number of the command's last record
  bool timed = false;
  std::int64_t submitted = 0;     // time of submission, if timed
  std::vector<void*> flows;       // addresses of the command's flows while it is in flight
  std::vector<double> arguments;  // its arguments, if they went around the end of the ring
};

class StreamQueue {
 public:
  explicit StreamQueue(Queue& queue) : queue(queue), slots(queue.mask() + 1) {
    next = finished = queue.completed();
  }

  StreamSlot& slot(std::int32_t sequence) { return slots[queue.slot(sequence)]; }

  Queue& queue;
  std::int32_t device = 0;
  DeviceThread* thread = nullptr;
  StreamHandle stream = nullptr;
  std::vector<StreamSlot> slots;
  std::mutex lock;
  std::int32_t next = 0;      // last record submitted
  std::int32_t finished = 0;  // last record known to be finished
  bool stopped = false;
  /// The event for which the next record is held.
  Queue* holdQueue = nullptr;
  std::int32_t holdSequence = 0;
  bool holdForSubmission = false;
};

}  // namespace headrace
