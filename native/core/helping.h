// A thread that serves the lanes of the message layer while it waits (headrace/lanes.h).
#pragma once

#include "core/runtime.h"

namespace headrace {

class Helping {
 public:
  explicit Helping(const Runtime& runtime) : runtime_(runtime) {}

  /// There are lanes that this thread could serve.
  bool isPossible() const { return helper() != nullptr; }
  /// Serves the lanes once, if no other thread does.
  void help() {
    const headrace_helper* other = helper();
    if (other != nullptr && other->help(other->self) != 0) helped_ = true;
  }
  /// It does not serve them for some time.
  void stop() {
    const headrace_helper* other = helper();
    if (helped_ && other != nullptr) other->leave(other->self);
    helped_ = false;
  }

 private:
  const headrace_helper* helper() const { return runtime_.helper.load(std::memory_order_acquire); }

  const Runtime& runtime_;
  /// It has served lanes since `stop`.
  bool helped_ = false;
};

}  // namespace headrace
