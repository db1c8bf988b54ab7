// The state that the threads of one core share: its queues, its spaces, the shared words, and whether it is closing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/length_table.h"
#include "core/memory.h"
#include "core/registry.h"
#include "core/stolen_time.h"
#include "headrace/contract.h"
#include "queues/doorbell.h"
#include "queues/queue.h"
#include "queues/queue_ownership.h"

namespace headrace {

struct Runtime {
  Runtime(Word* sharedWords, std::int32_t cores, std::int64_t spinning)
      : shared(sharedWords),
        doorbell(sharedWords),
        ownership(*this, sharedWords, cores),
        spinNanoseconds(spinning) {}

  Word* const shared;
  Doorbell doorbell;
  QueueOwnership ownership;
  /// How long an idle thread spins before it yields (queues/spin.h).
  const std::int64_t spinNanoseconds;
  std::vector<std::unique_ptr<Queue>> queues;
  std::vector<Space> spaces;
  Registry& registry = Registry::instance();
  LengthTable lengths;
  StolenLog stolen;
  /// Threads end when their rings are empty; waits for commands that were never published are given up.
  std::atomic<bool> closing{false};

  /// A record has failed that the engine has not handled.
  bool unhandled() const {
    return shared[Shared::failed].load(std::memory_order_seq_cst) !=
           shared[Shared::failuresHandled].load(std::memory_order_seq_cst);
  }

  bool timing() const { return shared[Shared::timing].load(std::memory_order_relaxed) != 0; }

  /// The cancel word of a run, or null for a command that belongs to none.
  Word* cancelWord(std::int32_t run) const {
    return static_cast<std::uint32_t>(run) < static_cast<std::uint32_t>(Shared::runs)
               ? shared + Shared::cancel + run
               : nullptr;
  }

  /// The word that a failed command of a run sets. Null for slot 0, that of the runtime's own tasks: they are not cancelled with one of
  /// them.
  Word* failureWord(std::int32_t run) const { return run > 0 ? cancelWord(run) : nullptr; }

  Queue* queue(std::int32_t index) const {
    return static_cast<std::uint32_t>(index) < queues.size() ? queues[index].get() : nullptr;
  }
  const Space* space(std::int32_t index) const {
    return static_cast<std::uint32_t>(index) < spaces.size() ? &spaces[index] : nullptr;
  }

  /// True when waiting for `sequence` of `queue` may never end because the core closes: no thread published it, or
  /// it waits for another rank.
  bool abandoned(const Queue& queue, std::int32_t sequence) const {
    return closing.load(std::memory_order_acquire) &&
           (queue.kind == QueueKind::lane || ahead(queue.published(), sequence) < 0);
  }
};

}  // namespace headrace
