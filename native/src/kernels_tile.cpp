// Tile kernels (filled in next).
#include "kernels.h"
namespace headrace {
std::int32_t registerTileKernels(headrace_registry*) { return 0; }
void prepareTileKernels() {}
}  // namespace headrace
