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

/// headrace_invert_triangles: inverses of the blocks of 64 rows on the diagonal of a lower triangle.
template <typename T>
bool invertTriangles(Machine& machine, Context& context, const std::uint64_t* a) {
  const std::uint64_t row = a[1], column = a[2], outRow = a[5], outColumn = a[6], width = a[7];
  const std::uint64_t order = a[8], side = 64;
  const T* from = array<T>(machine, context, a[0], (order - 1) * (row + column) + 1);
  T* out = array<T>(machine, context, a[4], order * width);
  if (from == nullptr || out == nullptr) return true;
  for (std::uint64_t at = 0; at < order; at += side) {
    const T* block = from + at * (row + column);
    T* to = out + at / width * width * width + at % width * (outRow + outColumn);
    for (std::uint64_t j = 0; j < side; ++j) {
      for (std::uint64_t i = 0; i < side; ++i) {
        T sum = i == j ? 1 : 0;
        for (std::uint64_t k = j; k < i; ++k)
          sum -= block[i * row + k * column] * to[k * outRow + j * outColumn];
        const T diagonal = a[3] != 0 ? T(1) : block[i * (row + column)];
        to[i * outRow + j * outColumn] = i < j ? T(0) : sum / diagonal;
      }
    }
  }
  return true;
}

/// headrace_join_inverses: pairs of inverted blocks of `half` rows become one, in two steps.
template <typename T>
bool joinInverses(Machine& machine, Context& context, const std::uint64_t* a) {
  const std::uint64_t row = a[1], column = a[2], outRow = a[4], outColumn = a[5], width = a[6];
  const std::uint64_t half = a[7], order = a[10];
  const T* from = array<T>(machine, context, a[0], (order - 1) * (row + column) + 1);
  T* out = array<T>(machine, context, a[3], order * width);
  T* between = array<T>(machine, context, a[8], order / 2 * half);
  if (from == nullptr || out == nullptr || between == nullptr) return true;
  for (std::uint64_t at = 0; at < order; at += 2 * half, between += half * half) {
    const T* below = from + (at + half) * row + at * column;
    T* first = out + at / width * width * width + at % width * (outRow + outColumn);
    const T* second = first + half * (outRow + outColumn);
    for (std::uint64_t j = 0; j < half; ++j) {
      for (std::uint64_t i = 0; i < half; ++i) {
        T sum = 0;
        for (std::uint64_t k = 0; k < half; ++k) {
          sum += a[9] == 0 ? below[i * row + k * column] * first[k * outRow + j * outColumn]
                           : second[i * outRow + k * outColumn] * between[k + j * half];
        }
        if (a[9] == 0) {
          between[i + j * half] = sum;
        } else {
          first[(half + i) * outRow + j * outColumn] = -sum;
          first[i * outRow + (half + j) * outColumn] = 0;
        }
      }
    }
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
      {"headrace_invert_triangles_f64", {8, 8, 8, 8, 8, 8, 8, 8, 8}, invertTriangles<double>},
      {"headrace_invert_triangles_f32", {8, 8, 8, 8, 8, 8, 8, 8, 8}, invertTriangles<float>},
      {"headrace_join_inverses_f64", {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}, joinInverses<double>},
      {"headrace_join_inverses_f32", {8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}, joinInverses<float>},
      {"scale", {8, 4, 4, 8}, scale},
      {"stencil_1d_f64", {8, 8, 8, 8, 8, 4, 4, 4}, stencil},
  };
  for (const KernelModel& model : models) {
    if (name == model.name) return &model;
  }
  return nullptr;
}

}  // namespace headrace::stub
