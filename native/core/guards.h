// The guards of the native part, by name: rules of cold paths whose absence would corrupt data or hang. All hold,
// except where a test has set HEADRACE_MUTATIONS=1 and HEADRACE_WITHOUT=<name> to prove that something turns red without
// one (devices/guards.ts has those of the engine; docs/reliability.md the table).
// Invariant: they are read once, when the library is loaded, and do not change.
#pragma once

#include <cstdlib>
#include <string>

namespace headrace {

struct Guards {
  /// Memory opened by its handle is closed before its owner may free it (H6).
  bool closeImports;
  /// An allocation is another one when its generation differs, whatever its address (H6, H17).
  bool importGeneration;
  /// Who sleeps for a number is woken when it is passed, not only when it is met (H7).
  bool wakePassed;
  /// Streams that work in the NULL stream does not hold up (H8).
  bool nonBlockingStreams;
  /// Calls that wait for kernels are made while none can be running (H8).
  bool launchPause;
  /// A flush that does not return is answered at its deadline (H16).
  bool flushDeadline;

  static Guards read() {
    const char* allowed = std::getenv("HEADRACE_MUTATIONS");
    const char* name = std::getenv("HEADRACE_WITHOUT");
    const std::string without =
        allowed != nullptr && std::string(allowed) == "1" && name != nullptr ? name : "";
    return {without != "closeImports", without != "importGeneration",
            without != "wakePassed",   without != "nonBlockingStreams",
            without != "launchPause",  without != "flushDeadline"};
  }
};

inline const Guards guards = Guards::read();

}  // namespace headrace
