// Tile kernels on GPUs give the results of the host kernels, and potrf's failure arrives although no task waits for it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "gpu_machine.h"

namespace headrace::test {
namespace {

constexpr int kTile = 24;
constexpr double kBytes = kTile * kTile * 8;

/// A symmetric positive definite tile, column-major.
void spd(double* a) {
  for (int j = 0; j < kTile; ++j) {
    for (int i = 0; i < kTile; ++i)
      a[j * kTile + i] = i == j ? kTile + 1 : 1.0 / (1 + std::abs(i - j));
  }
}

bool close(const double* a, const double* b, int count) {
  for (int i = 0; i < count; ++i) {
    if (std::abs(a[i] - b[i]) > 1e-10 * (1 + std::abs(b[i]))) return false;
  }
  return true;
}

CoreOptions tileOptions() { return gpuOptions(1, 4 << 20); }

AddGpu operations("gemm, syrk, trsm and potrf agree with the host, in both precisions", 1, [] {
  Machine machine(tileOptions());
  const Layout layout{1};
  for (const char* name : {"gemm_f64", "syrk_f64", "trsm_f64", "potrf_f64"}) {
    CHECK(machine.core->kernel(name, 1) >= 0);
  }
  auto* host = machine.at<double>(0, 0);
  spd(host);
  for (int i = 0; i < kTile * kTile; ++i) {
    host[kTile * kTile + i] = std::sin(i);
    host[2 * kTile * kTile + i] = std::cos(i);
  }
  const Event in = machine.copy(layout.in(1), 1, 0, 0, 0, 3 * kBytes);
  Event gpu = in;
  Event cpu = in;  // the host's own tiles are read by the copy before they change
  const double n = kTile;
  const auto both = [&](const char* name, int flows, std::initializer_list<double> arguments) {
    gpu = machine.exec(layout.compute(1), name, flows, arguments, gpu);
    cpu = machine.exec(0, name, flows, arguments, cpu);
  };
  both("gemm_f64", 3, {kBytes, 0, 2 * kBytes, n, n, n, 0, 1, -1, 0.5, n, n, n});
  both("syrk_f64", 2, {kBytes, 0, n, n, 0, 0, 0.25, 1, n, n});
  both("potrf_f64", 1, {0, n, 0, n});
  both("trsm_f64", 2, {0, 2 * kBytes, n, n, 1, 0, 1, 0, 1, n, n});
  expect(machine, cpu);
  const Event out = machine.copy(layout.out(1), 0, 4 * kBytes, 1, 0, 3 * kBytes, gpu);
  expect(machine, out);
  CHECK(machine.status(gpu) == Status::ok);
  CHECK(close(machine.at<double>(0, 4 * kBytes), host, 3 * kTile * kTile));

  auto* single = machine.at<float>(0, 0);
  for (int i = 0; i < 64; ++i) single[i] = static_cast<float>(i % 7);
  Event event = machine.copy(layout.in(1), 1, 0, 0, 0, 1024);
  event = machine.exec(layout.compute(1), "gemm_f32", 3, {0, 0, 512, 8, 8, 8, 0, 0, 1, 0, 8, 8, 8},
                       event);
  event = machine.copy(layout.out(1), 0, 2048, 1, 512, 256, event);
  expect(machine, event);
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) {
      float sum = 0;
      for (int k = 0; k < 8; ++k) sum += single[k * 8 + i] * single[j * 8 + k];
      CHECK(std::abs(machine.at<float>(0, 2048)[j * 8 + i] - sum) < 1e-3f);
    }
  }
});

/// Largest |op(A) X - alpha B| or |X op(A) - alpha B| in units of rounding.
template <typename T>
double residual(const std::vector<T>& a, const std::vector<T>& x, const std::vector<T>& b, int m,
                int n, bool right, bool upper, bool trans, bool unit, double alpha) {
  const int order = right ? n : m;
  const auto element = [&](int i, int j) -> double {
    if (trans) std::swap(i, j);
    if (i == j) return unit ? 1 : a[j * order + i];
    return (i < j) == upper ? a[j * order + i] : 0;
  };
  double worst = 0;
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; i += 1 + m / 40) {
      double sum = -alpha * b[j * m + i];
      double size = std::abs(sum);
      for (int k = 0; k < order; ++k) {
        const double term = right ? x[k * m + i] * element(k, j) : element(i, k) * x[j * m + k];
        sum += term;
        size += std::abs(term);
      }
      worst = std::max(worst, std::abs(sum) / size);
    }
  }
  return worst / std::numeric_limits<T>::epsilon();
}

/// Solves with every triangle, side and diagonal, or with every `step`-th combination.
template <typename T>
void solves(Machine& machine, const char* kernel, int order, int rightSides, int step = 1) {
  const Layout layout{1};
  for (int variant = 0; variant < 16; variant += step) {
    const bool right = (variant & 1) != 0;
    const bool upper = (variant & 2) != 0;
    const bool trans = (variant & 4) != 0;
    const bool unit = (variant & 8) != 0;
    const int m = right ? rightSides : order;
    const int n = right ? order : rightSides;
    std::vector<T> a(static_cast<std::size_t>(order) * order);
    std::vector<T> b(static_cast<std::size_t>(m) * n);
    std::vector<T> x(b.size());
    // What is not part of the triangle must not be read: it is huge.
    for (int j = 0; j < order; ++j) {
      for (int i = 0; i < order; ++i) {
        const bool outside = i == j ? unit : (i < j) != upper;
        a[j * order + i] = static_cast<T>(outside  ? 1e30
                                          : i == j ? 2 + i % 3
                                                   : std::sin(i + 3 * j) / order);
      }
    }
    for (std::size_t i = 0; i < b.size(); ++i)
      b[i] = static_cast<T>(std::cos(static_cast<double>(i)));
    const double bytesA = a.size() * sizeof(T);
    const double bytesB = b.size() * sizeof(T);
    std::memcpy(machine.at<T>(0, 0), a.data(), a.size() * sizeof(T));
    std::memcpy(machine.at<T>(0, bytesA), b.data(), b.size() * sizeof(T));
    Event event = machine.copy(layout.in(1), 1, 0, 0, 0, bytesA + bytesB);
    const double side = right ? 1 : 0;
    event = machine.exec(layout.compute(1), kernel, 2,
                         {0, bytesA, static_cast<double>(m), static_cast<double>(n), side,
                          upper ? 1.0 : 0.0, trans ? 1.0 : 0.0, unit ? 1.0 : 0.0, 2,
                          static_cast<double>(order), static_cast<double>(m)},
                         event);
    event = machine.copy(layout.out(1), 0, bytesA, 1, bytesA, bytesB, event);
    expect(machine, event);
    std::memcpy(x.data(), machine.at<T>(0, bytesA), x.size() * sizeof(T));
    const double worst = residual(a, x, b, m, n, right, upper, trans, unit, 2);
    if (!(worst < 50)) {
      std::printf("%s order %d, variant %d: residual of %g units\n", kernel, order, variant, worst);
    }
    CHECK(worst < 50);
  }
}

AddGpu triangles(
    "trsm in blocks: every triangle and side, orders with and without a rest, both precisions", 1,
    [] {
      Machine machine(gpuOptions(1, 24 << 20));
      CHECK(machine.core->kernel("trsm_f64", 1) >= 0);
      CHECK(machine.core->kernel("trsm_f32", 1) >= 0);
      solves<double>(machine, "trsm_f64", 256, 64);
      solves<double>(machine, "trsm_f64", 300, 70, 3);
      solves<float>(machine, "trsm_f32", 300, 64, 3);
      solves<double>(machine, "trsm_f64", 1100, 64, 7);
    });

AddGpu pivot(
    "potrf of a tile that is not positive definite returns the pivot and cancels its run", 1, [] {
      Machine machine(tileOptions());
      const Layout layout{1};
      machine.core->kernel("potrf_f64", 1);
      auto* a = machine.at<double>(0, 0);
      spd(a);
      a[5 * kTile + 5] = -1;
      Event event = machine.copy(layout.in(1), 1, 0, 0, 0, kBytes);
      const Event bad =
          machine.exec(layout.compute(1), "potrf_f64", 1, {0, kTile, 0, kTile}, event, 6);
      machine.finish(bad);
      CHECK(machine.status(bad) == 6);
      CHECK(machine.shared(Shared::cancel + 6).load() != 0);
      // As many in flight as a stream may hold, several times over: every one reports its own outcome.
      spd(machine.at<double>(0, kBytes));
      std::vector<Event> events;
      for (int i = 0; i < 700; ++i) {
        const double source = i % 5 == 3 ? 0 : kBytes;
        event = machine.copy(layout.compute(1), 1, 0, 0, source, kBytes);
        events.push_back(machine.exec(layout.compute(1), "potrf_f64", 1, {0, kTile, 0, kTile}));
        if (i % 300 != 299 && i != 699) continue;
        machine.finish(events.back());
        for (std::size_t k = 0; k < events.size(); ++k) {
          const int index = i + 1 - static_cast<int>(events.size()) + static_cast<int>(k);
          CHECK(machine.status(events[k]) == (index % 5 == 3 ? 6 : 0));
        }
        events.clear();
      }
    });

AddGpu arguments("wrong sizes and tiles outside the memory are refused before a library sees them",
                 1, [] {
                   Machine machine(tileOptions());
                   const Layout layout{1};
                   machine.core->kernel("gemm_f64", 1);
                   const double n = kTile;
                   expect(machine, machine.exec(layout.compute(1), "potrf_f64", 1, {0, n, 2, n}),
                          Status::badArguments);
                   expect(
                       machine,
                       machine.exec(layout.compute(1), "potrf_f64", 1, {(4 << 20) - 64, n, 0, n}),
                       Status::outOfRange);
                 });

AddGpu unprepared("a tile kernel whose libraries were never asked for says so", 1, [] {
  Machine machine(tileOptions());
  const Layout layout{1};
  const double n = kTile;
  expect(machine, machine.exec(layout.compute(1), "potrf_f64", 1, {0, n, 0, n}), Status::driver);
  CHECK(machine.core->lastError(layout.compute(1)).find("cuBLAS") != std::string::npos);
});

AddGpu late(
    "tile kernels are prepared between kernels when they are first asked for in the middle of work",
    2, [] {
      Machine machine(gpuOptions(2));
      const Layout layout{2};
      for (int gpu = 1; gpu <= 2; ++gpu) {
        for (int i = 0; i < 20; ++i) machine.exec(layout.compute(gpu), "spin", 0, {100});
      }
      machine.publish();
      while (machine.control(layout.compute(2), Control::submitted).load() == 0) sched_yield();
      CHECK(machine.core->kernel("gemm_f64", 2) >= 0);
      for (int gpu = 1; gpu <= 2; ++gpu) {
        expect(machine, machine.exec(layout.compute(gpu), "gemm_f64", 3,
                                     {0, 0, 4096, 8, 8, 8, 0, 1, 1, 0, 8, 8, 8}));
      }
      machine.finish();
    });

}  // namespace
}  // namespace headrace::test
