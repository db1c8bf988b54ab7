/*
 * The C interface of kernels: the input of a kernel, its result, and the way in which a shared object offers
 * kernels to Headrace. A kernel owns nothing; the runtime has ordered it after the writers of its data.
 *
 * A kernel is a plain C function `int32_t kernel(const headrace_task*)`. It returns
 *   0                      done,
 *   a positive number      its own failure code (potrf: the failing pivot, counted from 1),
 *   a HEADRACE_* value     the arguments make no sense; no data was touched.
 * A non-zero result cancels the run that the task belongs to. No C++ exception may leave a kernel.
 *
 * The kind of its registration decides where it runs:
 *   HEADRACE_KERNEL_HOST   called when its turn has come, on a host worker or on an emulated GPU;
 *   HEADRACE_KERNEL_CUDA   called on the thread of a CUDA device, its context current; must enqueue all its
 *   HEADRACE_KERNEL_HIP    work on `task->stream` and return without waiting for it (same with HIP).
 * One name may be registered once per kind; the runtime picks the variant that fits the device.
 */
#ifndef HEADRACE_KERNEL_H
#define HEADRACE_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Raised when the layout of a struct below changes. 2: `headrace_task.lengths`. A library made with ABI 1 works as before.
 * One made with this header exports its `headrace_register` under another name. A runtime of ABI 1 does not find it and
 * refuses the library, whose kernels might read fields that such a runtime does not have.
 */
#define HEADRACE_KERNEL_ABI 2
#define headrace_register headrace_register_2

/* Results that a kernel may return besides 0 and its own positive codes (contract.ts, Status). */
#define HEADRACE_OUT_OF_RANGE (-3)
#define HEADRACE_DEVICE_LOST (-4)
#define HEADRACE_DRIVER_ERROR (-5)
#define HEADRACE_BAD_ARGUMENTS (-6)

/* The kernel's view of its task. Valid only during the call. */
typedef struct headrace_task {
  /* Addresses of the task's data in the space of the device, in the order of the task's flows. */
  void* const* flows;
  /* The numeric parameters after the flows. */
  const double* params;
  int32_t flow_count;
  int32_t param_count;
  /* CUstream or hipStream_t on those devices, NULL if the kernel does the work itself. */
  void* stream;
  /* First byte and size of the memory space: a kernel can check that its addresses lie inside. */
  void* space_base;
  uint64_t space_bytes;
  /* 0 host, 1 emulated, 2 cuda, 3 hip (contract.ts, SpaceKind). */
  int32_t space_kind;
  /* Number of the GPU in this runtime, or -1 on a host worker. */
  int32_t gpu;
  /* Id of the task in the engine; for messages only. */
  int32_t task;
  /* Number of the kernel in the runtime; for the runtime only. */
  int32_t kernel;
  /* Number of elements of each datum, in the order of `flows`; NULL in kernels that are built in or made with ABI 1. */
  const double* lengths;
} headrace_task;

typedef int32_t (*headrace_kernel)(const headrace_task* task);

enum { HEADRACE_KERNEL_HOST = 0, HEADRACE_KERNEL_CUDA = 1, HEADRACE_KERNEL_HIP = 2 };

/*
 * The launch of device code (instead of a function that enqueues): `plan` runs on a GPU's thread before every
 * launch and fills grid, block and the argument list from the task. `plan`, like a function that enqueues, finds the
 * context of the task's GPU current and must not change it. The thread may be that of another GPU, and may differ from
 * launch to launch.
 */
typedef struct headrace_launch {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared_bytes;
  /* `arguments[i]` points to the i-th kernel argument, as cuLaunchKernel wants it. Point into `storage`
   * or at the task's own arrays; both outlive the launch. */
  void* arguments[32];
  uint64_t storage[32];
} headrace_launch;

typedef int32_t (*headrace_plan)(const headrace_task* task, headrace_launch* launch);

/* Given to `headrace_register`; valid only during the call. All strings are copied. */
typedef struct headrace_registry {
  int32_t abi; /* HEADRACE_KERNEL_ABI of the runtime */
  int32_t reserved;
  void* state;
  /* Offers a kernel; returns 0, or -1 if the name or kind is not acceptable. */
  int32_t (*add)(struct headrace_registry* registry, const char* name, int32_t kind,
                 headrace_kernel kernel);
  /* Offers device code: `image` is PTX, a cubin or a fat binary and must stay mapped; `symbol` names the
   * function in it. It is loaded on each device when the runtime opens or the library is loaded. */
  int32_t (*add_device)(struct headrace_registry* registry, const char* name, int32_t kind,
                        const void* image, uint64_t image_bytes, const char* symbol,
                        headrace_plan plan);
} headrace_registry;

/*
 * A kernel library defines this function; `loadKernels(path)` calls it once.
 * It returns 0, or a positive number, which is reported as the reason why the library cannot be used.
 */
#define HEADRACE_REGISTER headrace_register
typedef int32_t (*headrace_register_function)(headrace_registry* registry);

#ifdef __cplusplus
}
#endif

#endif
