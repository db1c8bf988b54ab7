// The list of drivers in this build.
#include <cstring>

#include "gpu/driver.h"

namespace headrace {

const DriverTable* const* allDrivers() {
  static const DriverTable* const drivers[] = {emulatedDriver(), cudaDriver(), hipDriver(),
                                               nullptr};
  return drivers;
}

const DriverTable* findDriver(const char* name) {
  for (const DriverTable* const* driver = allDrivers(); *driver != nullptr; ++driver) {
    if (std::strcmp((*driver)->name, name) == 0) return *driver;
  }
  return nullptr;
}

}  // namespace headrace
