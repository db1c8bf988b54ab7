// The kernels of the tests, on host memory, and their numbers of steps.
#include <cstring>

#include "stub_machine.h"

namespace headrace::stub {

namespace {

double number(std::uint64_t bits) {
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Device memory as an array, or null (and a dead context) when it is not.
template <typename T>
T* array(Machine& machine, Context& context, std::uint64_t address, std::uint64_t count) {
  bool reachable = machine.inDevice(address, count * sizeof(T), context.device);
  for (const Context* peer : context.peers) {
    reachable = reachable || machine.inDevice(address, count * sizeof(T), peer->device);
  }
  if (reachable) return reinterpret_cast<T*>(address);
  machine.die(context, kIllegalAddress);
  return nullptr;
}

bool empty(Machine&, Context&, const std::uint64_t*) { return true; }

bool fill(Machine& machine, Context& context, const std::uint64_t* a) {
  auto* to = array<double>(machine, context, a[0], a[1]);
  for (std::uint64_t i = 0; to != nullptr && i < a[1]; ++i) to[i] = number(a[2]);
  return true;
}

bool add(Machine& machine, Context& context, const std::uint64_t* a) {
  auto* to = array<double>(machine, context, a[0], a[2]);
  const auto* from = array<double>(machine, context, a[1], a[2]);
  for (std::uint64_t i = 0; to != nullptr && from != nullptr && i < a[2]; ++i) {
    to[i] += number(a[3]) * from[i];
  }
  return true;
}

bool spin(Machine& machine, Context&, const std::uint64_t*) { return machine.adversary() % 8 == 0; }

bool awaitWord(Machine& machine, Context& context, const std::uint64_t* a) {
  const auto* word = array<std::uint64_t>(machine, context, a[0], 1);
  auto* seen = array<std::uint64_t>(machine, context, a[1], 1);
  if (word == nullptr || seen == nullptr) return true;
  if (*word != a[2]) return false;
  *seen = *word;
  return true;
}

bool illegal(Machine& machine, Context& context, const std::uint64_t* a) {
  array<double>(machine, context, a[0], 1);
  return true;
}

struct Pair {
  std::int64_t step;
  std::int64_t column;
};

bool taskBench(Machine& machine, Context& context, const std::uint64_t* a) {
  const std::uint64_t pairs = a[1];
  const Pair mine{static_cast<std::int64_t>(a[2]), static_cast<std::int64_t>(a[3])};
  const auto* columns = reinterpret_cast<const std::int32_t*>(a + 7 + 16);
  for (std::uint64_t i = 0; i < a[5]; ++i) {
    const auto* input = array<Pair>(machine, context, a[7 + i], pairs);
    if (input == nullptr) return true;
    for (std::uint64_t k = 0; k < pairs; ++k) {
      if (input[k].step == mine.step - 1 && input[k].column == columns[i]) continue;
      *reinterpret_cast<std::int32_t*>(a[6]) = static_cast<std::int32_t>(i) + 1;
      return true;
    }
  }
  auto* output = array<Pair>(machine, context, a[0], pairs);
  for (std::uint64_t k = 0; output != nullptr && k < pairs; ++k) output[k] = mine;
  return true;
}

/// scale(double* to, float factor, int count, long long offset): a user's kernel in the tests.
bool scale(Machine& machine, Context& context, const std::uint64_t* a) {
  float factor;
  std::memcpy(&factor, &a[1], sizeof factor);
  std::int32_t count;
  std::memcpy(&count, &a[2], sizeof count);
  auto* to = array<double>(machine, context, a[0], static_cast<std::uint64_t>(count));
  for (std::int32_t i = 0; to != nullptr && i < count; ++i) {
    to[i] = to[i] * factor + static_cast<double>(static_cast<std::int64_t>(a[3]));
  }
  return true;
}

/// The stencil of algorithms/stencil.ts.
bool stencil(Machine& machine, Context& context, const std::uint64_t* a) {
  const auto integer = [&](int i) {
    std::int32_t value;
    std::memcpy(&value, &a[i], sizeof value);
    return value;
  };
  const std::int32_t radius = integer(5);
  const std::int32_t leftCount = integer(6);
  const std::int32_t count = integer(7);
  auto* to = array<double>(machine, context, a[0], static_cast<std::uint64_t>(count));
  const auto* left = array<double>(machine, context, a[1], static_cast<std::uint64_t>(leftCount));
  const auto* middle = array<double>(machine, context, a[2], static_cast<std::uint64_t>(count));
  const auto* right = array<double>(machine, context, a[3], static_cast<std::uint64_t>(radius));
  const auto* weights =
      array<double>(machine, context, a[4], static_cast<std::uint64_t>(2 * radius + 1));
  if (!to || !left || !middle || !right || !weights) return true;
  for (std::int32_t i = 0; i < count; ++i) {
    double sum = 0;
    for (std::int32_t k = -radius; k <= radius; ++k) {
      const std::int32_t at = i + k;
      const double product = weights[k + radius] * (at < 0       ? left[leftCount + at]
                                                    : at < count ? middle[at]
                                                                 : right[at - count]);
      sum += product;
    }
    to[i] = sum;
  }
  return true;
}

}  // namespace

const KernelModel* kernelModel(const std::string& name) {
  static const KernelModel models[] = {
      {"headrace_empty", {}, empty},
      {"headrace_fill_f64", {8, 8, 8}, fill},
      {"headrace_add_f64", {8, 8, 8, 8}, add},
      {"headrace_spin", {8}, spin},
      {"headrace_compute_bound", {8, 8}, empty},
      {"headrace_await_word", {8, 8, 8}, awaitWord},
      {"headrace_illegal_address", {8}, illegal},
      {"headrace_taskbench", {8, 8, 8, 8, 8, 8, 8, 192}, taskBench},
      {"scale", {8, 4, 4, 8}, scale},
      {"stencil_1d_f64", {8, 8, 8, 8, 8, 4, 4, 4}, stencil},
  };
  for (const KernelModel& model : models) {
    if (name == model.name) return &model;
  }
  return nullptr;
}

}  // namespace headrace::stub
