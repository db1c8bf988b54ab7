/* Kernels of the examples of plans: plan-heat.ts and plan-conjugate-gradient.ts. */
#include <headrace/kernel.h>

/*
 * One time step of the heat equation on a block of rows; the plate ends at the first and at the last column.
 *   flows   to, its first row, its last row, from, the row above it, the row below it (all double)
 *   params  rows, columns, share of the difference to the four neighbours that flows
 */
static int32_t heat(const headrace_task* task) {
  if (task->flow_count != 6 || task->param_count != 3) return HEADRACE_BAD_ARGUMENTS;
  double* to = (double*)task->flows[0];
  double* first = (double*)task->flows[1];
  double* last = (double*)task->flows[2];
  const double* from = (const double*)task->flows[3];
  const double* above = (const double*)task->flows[4];
  const double* below = (const double*)task->flows[5];
  const long rows = (long)task->params[0];
  const long columns = (long)task->params[1];
  const double share = task->params[2];
  for (long i = 0; i < rows; ++i) {
    const double* row = from + i * columns;
    const double* up = i > 0 ? row - columns : above;
    const double* down = i + 1 < rows ? row + columns : below;
    for (long j = 0; j < columns; ++j) {
      const double left = j > 0 ? row[j - 1] : 0;
      const double right = j + 1 < columns ? row[j + 1] : 0;
      to[i * columns + j] = row[j] + share * (up[j] + down[j] + left + right - 4 * row[j]);
    }
  }
  for (long j = 0; j < columns; ++j) {
    first[j] = to[j];
    last[j] = to[(rows - 1) * columns + j];
  }
  return 0;
}

/* flows to (one number), a, b; params elements. The dot product of a and b. */
static int32_t dot(const headrace_task* task) {
  if (task->flow_count != 3 || task->param_count != 1) return HEADRACE_BAD_ARGUMENTS;
  const double* a = (const double*)task->flows[1];
  const double* b = (const double*)task->flows[2];
  double sum = 0;
  for (long i = 0; i < (long)task->params[0]; ++i) sum += a[i] * b[i];
  *(double*)task->flows[0] = sum;
  return 0;
}

/* flows to, then any number of others (one number each). Their sum. */
static int32_t sum(const headrace_task* task) {
  double total = 0;
  for (int32_t i = 1; i < task->flow_count; ++i) total += *(const double*)task->flows[i];
  *(double*)task->flows[0] = total;
  return 0;
}

/* flows to, a, b (one number each). to = a / b. */
static int32_t divide(const headrace_task* task) {
  if (task->flow_count != 3) return HEADRACE_BAD_ARGUMENTS;
  *(double*)task->flows[0] = *(const double*)task->flows[1] / *(const double*)task->flows[2];
  return 0;
}

/* flows y, x, a (one number); params elements, factor. y = y + factor a x. */
static int32_t axpy(const headrace_task* task) {
  if (task->flow_count != 3 || task->param_count != 2) return HEADRACE_BAD_ARGUMENTS;
  double* y = (double*)task->flows[0];
  const double* x = (const double*)task->flows[1];
  const double a = task->params[1] * *(const double*)task->flows[2];
  for (long i = 0; i < (long)task->params[0]; ++i) y[i] += a * x[i];
  return 0;
}

/* flows y, x, a (one number); params elements, factor. y = x + factor a y. */
static int32_t xpay(const headrace_task* task) {
  if (task->flow_count != 3 || task->param_count != 2) return HEADRACE_BAD_ARGUMENTS;
  double* y = (double*)task->flows[0];
  const double* x = (const double*)task->flows[1];
  const double a = task->params[1] * *(const double*)task->flows[2];
  for (long i = 0; i < (long)task->params[0]; ++i) y[i] = x[i] + a * y[i];
  return 0;
}

int32_t headrace_register(headrace_registry* registry) {
  const struct {
    const char* name;
    headrace_kernel kernel;
  } kernels[] = {{"heat_f64", heat},     {"dot_f64", dot},   {"sum_f64", sum},
                 {"divide_f64", divide}, {"axpy_f64", axpy}, {"xpay_f64", xpay}};
  for (unsigned i = 0; i < sizeof kernels / sizeof *kernels; ++i) {
    const int32_t status =
        registry->add(registry, kernels[i].name, HEADRACE_KERNEL_HOST, kernels[i].kernel);
    if (status != 0) return status;
  }
  return 0;
}
