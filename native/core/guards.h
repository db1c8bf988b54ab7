// The guards of the native part, by name: rules of cold paths whose absence would corrupt data or hang. They are
// constants. Only a build for tests (HEADRACE_TEST_SWITCHES) can leave one out, to prove that a test fails without it
// (devices/guards.ts has those of the engine; docs/reliability.md has the table).
#pragma once

namespace headrace {

struct Guards {
  /// Memory opened by its handle is closed before its owner may free it (H6).
  bool closeImports = true;
  /// An allocation is another one when its generation differs, whatever its address (H6, H17).
  bool importGeneration = true;
  /// A thread that sleeps for a number wakes when the count passes it, not only when it meets it (H7).
  bool wakePassed = true;
  /// Streams that work in the NULL stream does not block (H8).
  bool nonBlockingStreams = true;
  /// Calls that wait for kernels are made only while none can be running (H8).
  bool launchPause = true;
  /// In the middle of a run memory is page-locked, too: a copy waits for the kernels that run, for a limited time.
  bool lockPatience = true;
  /// A flush that does not return gets an answer at its deadline (H16).
  bool flushDeadline = true;
  /// A lane sends nothing while a failure is not handled: the bytes may have been computed from it (H15).
  bool laneFailures = true;
  /// A lane's commands of a cancelled run end, and send nothing (H12).
  bool laneCancel = true;
  /// A cancelled receive does not end while its bytes may still come: its memory is used for something else then (H12).
  bool laneAwaitsBytes = true;
  /// The server of lanes that wait for the condition of a play is woken when the play goes on (H7).
  bool laneLooks = true;
  /// A GPU's thread passes over the slots behind the end of a play that ended early: they hold old records (H4).
  bool playPassed = true;
  /// A failed record wakes the engine, armed or not: lanes wait until it is handled (H7).
  bool failureRings = true;
  /// A captured command follows those of other streams that it waits for (H4).
  bool graphOrder = true;
  /// A graph is launched again only after the outcomes of its last launch were delivered (H15).
  bool graphOutcome = true;
  /// While a graph works on several GPUs, all of them are asked whether they are alive.
  bool graphWatch = true;
  /// A script worker that goes to its event loop looks for records again once others know that they must wake it (H7).
  bool restLooksAgain = true;
  /// A script worker keeps its queue when a play has moved on without a record for it (H7).
  bool playKeepsServer = true;
  /// A body that a play hands to a script worker waits for its own event, whatever the worker has waited for (H2).
  bool playAwaits = true;
  /// A play gets no more iterations once a queue has written the last one of those that it has (H7).
  bool playFinal = true;
  /// A letter in memory of another rank is seen only when all of it is written (H4).
  bool mailOrder = true;
  /// It is written over no letter that was not taken (H4).
  bool mailRoom = true;
  /// Values of letters that were taken are not mistaken for the head of one (H4).
  bool mailClears = true;
  /// The end of a transfer that the death of its peer would explain is told when there was time to learn of a death.
  bool doubtFailures = true;
};

}  // namespace headrace

#ifdef HEADRACE_TEST_SWITCHES
#include "test/guard_switches.h"
#else
namespace headrace {
inline constexpr Guards guards{};
}
#endif
