// Loaded before an MPI library (LD_PRELOAD), it makes the library claim that it takes device pointers. With the stub
// driver, whose device memory is host memory, the claim is true. With HEADRACE_STUB_AWARE=lie messages from device memory
// are lost on the way, as with a library that has no transport for it.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdlib>
#include <cstring>

#define STUB_EXPORT extern "C" __attribute__((visibility("default"))) int

STUB_EXPORT MPIX_Query_cuda_support() { return 1; }

namespace {

bool isDevice(const void* pointer) {
  using Attribute = int (*)(void*, int, unsigned long);
  static const auto attribute = [] {
    const char* name = std::getenv("HEADRACE_CUDA_LIBRARY");
    void* driver = name == nullptr ? nullptr : dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    return driver == nullptr ? nullptr
                             : reinterpret_cast<Attribute>(dlsym(driver, "cuPointerGetAttribute"));
  }();
  unsigned type = 0;
  return attribute != nullptr && attribute(&type, 2, reinterpret_cast<unsigned long>(pointer)) == 0;
}

}  // namespace

STUB_EXPORT MPI_Isend(const void* from, int count, MPI_Datatype type, int rank, int tag,
                      MPI_Comm comm, MPI_Request* request) {
  using Isend = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  static const auto real = reinterpret_cast<Isend>(dlsym(RTLD_NEXT, "MPI_Isend"));
  static const char* mode = std::getenv("HEADRACE_STUB_AWARE");
  if (mode == nullptr || std::strcmp(mode, "lie") != 0 || !isDevice(from)) {
    return real(from, count, type, rank, tag, comm, request);
  }
  static char nothing[1 << 23];
  return real(nothing, count, type, rank, tag, comm, request);
}
