// Ends of transfers that are kept back until it is clear that their peer lives (mpi/doubts.h).
#include "mpi/doubts.h"

#include <vector>

#include "machine.h"

namespace headrace::test {
namespace {

using mpi::Doubts;

struct Told {
  int end;
  std::int32_t status;
};

/// A transfer's owner: an end that may be due to a death waits, every other is told at once.
struct Owner {
  Doubts<int> doubts;
  std::vector<Told> told;

  void ends(int end, std::int32_t status, std::int64_t until) {
    if (Doubts<int>::explains(status))
      doubts.add(end, status, until);
    else
      told.push_back({end, status});
  }
  bool due(std::int64_t time) {
    return doubts.tellDue(time, [this](int end, std::int32_t s) { told.push_back({end, s}); });
  }
  void lost() {
    doubts.tellAll([this](int end) { told.push_back({end, NetStatus::lost}); });
  }
};

Add death("a failure that a death explains is told as that death", [] {
  Owner owner;
  owner.ends(1, NetStatus::mapping, 100);
  owner.ends(2, NetStatus::library, 101);
  owner.ends(3, NetStatus::device, 102);
  CHECK(owner.told.size() == 1 && owner.told[0].end == 3);
  CHECK(!owner.due(99));
  owner.lost();
  CHECK(owner.told.size() == 3);
  for (std::size_t i = 1; i < owner.told.size(); ++i) {
    CHECK(owner.told[i].end == static_cast<int>(i));
    CHECK(owner.told[i].status == NetStatus::lost);
  }
  owner.lost();
  CHECK(!owner.due(1000) && owner.told.size() == 3 && owner.doubts.empty());
});

Add alive("a failure of a peer that lives keeps its own reason, and is told in time", [] {
  Owner owner;
  owner.ends(1, NetStatus::mapping, 100);
  owner.ends(2, NetStatus::library, 200);
  CHECK(owner.due(100));
  CHECK(owner.told.size() == 1 && owner.told[0].status == NetStatus::mapping);
  CHECK(!owner.due(199) && !owner.doubts.empty());
  CHECK(owner.due(250));
  CHECK(owner.told.size() == 2 && owner.told[1].status == NetStatus::library);
  CHECK(owner.doubts.empty());
});

}  // namespace
}  // namespace headrace::test
