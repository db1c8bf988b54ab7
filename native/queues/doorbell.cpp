// The doorbell: see queues/doorbell.h for the protocol.
#include "queues/doorbell.h"

namespace headrace {

void Doorbell::ring() {
  engine_.unpark();
  if (shared_[Shared::engineAsleep].load(std::memory_order_seq_cst) == 2 && call_ &&
      !called_.exchange(true, std::memory_order_seq_cst)) {
    call_();
  }
}

}  // namespace headrace
