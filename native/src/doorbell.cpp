// The doorbell: see doorbell.h for the protocol.
#include "doorbell.h"

namespace headrace {

void Doorbell::ring() {
  engine_.unpark();
  if (shared_[Shared::engineAsleep].load(std::memory_order_seq_cst) == 2 && call_ &&
      !called_.exchange(true, std::memory_order_seq_cst)) {
    call_();
  }
}

bool Doorbell::wait(std::int64_t nanoseconds) {
  shared_[Shared::engineAsleep].store(1, std::memory_order_seq_cst);
  const bool rang = engine_.park(nanoseconds);
  shared_[Shared::engineAsleep].store(0, std::memory_order_seq_cst);
  return rang;
}

}  // namespace headrace
