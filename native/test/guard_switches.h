// The guards of builds for tests: the environment variable HEADRACE_WITHOUT names one that does not hold.
// Invariant: it is read once, when the library is loaded.
#pragma once

#include <cstdlib>
#include <string>

#include "core/guards.h"

namespace headrace {

inline Guards guardsOfEnvironment() {
  const char* name = std::getenv("HEADRACE_WITHOUT");
  const std::string without = name == nullptr ? "" : name;
  return {
      without != "closeImports",       without != "importGeneration", without != "wakePassed",
      without != "nonBlockingStreams", without != "launchPause",      without != "lockPatience",
      without != "flushDeadline",      without != "laneFailures",     without != "laneCancel",
      without != "laneAwaitsBytes",    without != "laneLooks",        without != "playPassed",
      without != "failureRings",       without != "graphOrder",       without != "graphOutcome",
      without != "graphWatch",         without != "restLooksAgain",   without != "playKeepsServer",
      without != "playAwaits",         without != "playFinal",        without != "mailOrder",
      without != "mailRoom",           without != "mailClears",       without != "doubtFailures"};
}

inline const Guards guards = guardsOfEnvironment();

}  // namespace headrace
