/* Your own kernels, in C: compile them into a shared object and give its path to runtime.loadKernels. */
#include <headrace/kernel.h>

/*
 * One block of a one-dimensional stencil.
 *   flows   to, left, middle, right, weights (all double)
 *   params  radius, elements of left, elements of middle
 */
static int32_t stencil_1d(const headrace_task* task) {
  if (task->flow_count != 5 || task->param_count != 3) return HEADRACE_BAD_ARGUMENTS;
  double* to = (double*)task->flows[0];
  const double* left = (const double*)task->flows[1];
  const double* middle = (const double*)task->flows[2];
  const double* right = (const double*)task->flows[3];
  const double* weights = (const double*)task->flows[4];
  const long radius = (long)task->params[0];
  const long left_count = (long)task->params[1];
  const long count = (long)task->params[2];
  for (long i = 0; i < count; ++i) {
    double sum = 0;
    for (long k = -radius; k <= radius; ++k) {
      const long at = i + k;
      const double value =
          at < 0 ? left[left_count + at] : (at < count ? middle[at] : right[at - count]);
      sum += weights[k + radius] * value;
    }
    to[i] = sum;
  }
  return 0;
}

int32_t headrace_register(headrace_registry* registry) {
  return registry->add(registry, "stencil_1d_f64", HEADRACE_KERNEL_HOST, stencil_1d);
}
