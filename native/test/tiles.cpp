// Tile kernels against triple loops, with the built-in code and with the BLAS library of the machine; Task Bench's
// checks.
#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/blas.h"
#include "kernels/kernels.h"
#include "kernels/lapack.h"
#include "machine.h"

namespace headrace::test {
namespace {

template <typename T>
struct Matrix {
  int rows, columns, leading;
  std::vector<T> data;
  Matrix(int rows, int columns, std::mt19937& random)
      : rows(rows), columns(columns), leading(std::max(rows, 1) + 3), data(leading * columns + 1) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (T& value : data) value = static_cast<T>(uniform(random));
  }
  T& at(int i, int j) { return data[static_cast<std::size_t>(i + j * leading)]; }
  double op(int i, int j, bool trans) { return trans ? at(j, i) : at(i, j); }
  int lead() const { return leading; }
};

template <typename T>
double tolerance(int depth) {
  return std::numeric_limits<T>::epsilon() * 40 * (depth + 4);
}

template <typename T>
void gemmCase(const BlasTable<T>& blas, std::mt19937& random, int m, int n, int k, bool ta,
              bool tb) {
  Matrix<T> a(ta ? k : m, ta ? m : k, random), b(tb ? n : k, tb ? k : n, random), c(m, n, random);
  Matrix<T> before = c;
  const T alpha = T(1.5), beta = T(-0.5);
  blas.gemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, alpha, a.data.data(), a.leading, b.data.data(),
            b.leading, beta, c.data.data(), c.leading);
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; ++i) {
      double sum = 0;
      for (int l = 0; l < k; ++l) sum += a.op(i, l, ta) * b.op(l, j, tb);
      CHECK(std::abs(alpha * sum + beta * before.at(i, j) - c.at(i, j)) < tolerance<T>(k));
    }
    for (int i = m; i < c.leading; ++i) CHECK(c.at(i, j) == before.at(i, j));
  }
}

template <typename T>
void syrkCase(const BlasTable<T>& blas, std::mt19937& random, int n, int k, bool upper,
              bool trans) {
  Matrix<T> a(trans ? k : n, trans ? n : k, random), c(n, n, random);
  Matrix<T> before = c;
  blas.syrk(upper ? 'U' : 'L', trans ? 'T' : 'N', n, k, T(-1), a.data.data(), a.leading, T(1),
            c.data.data(), c.leading);
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < n; ++i) {
      double expected = before.at(i, j);
      if (upper ? i <= j : i >= j) {
        for (int l = 0; l < k; ++l) expected -= a.op(i, l, trans) * a.op(j, l, trans);
      }
      CHECK(std::abs(expected - c.at(i, j)) < tolerance<T>(k));
    }
  }
}

template <typename T>
void trsmCase(const BlasTable<T>& blas, std::mt19937& random, int m, int n, bool right, bool upper,
              bool trans, bool unit) {
  const int order = right ? n : m;
  Matrix<T> a(order, order, random), b(m, n, random);
  for (int i = 0; i < order; ++i) {
    for (int j = 0; j < order; ++j) a.at(i, j) /= T(order);
    a.at(i, i) = T(2);
  }
  Matrix<T> x = b;
  blas.trsm(right ? 'R' : 'L', upper ? 'U' : 'L', trans ? 'T' : 'N', unit ? 'U' : 'N', m, n, T(2),
            a.data.data(), a.leading, x.data.data(), x.leading);
  // op(A) X (or X op(A)) must give back 2 B.
  const auto element = [&](int i, int j) -> double {
    if (trans) std::swap(i, j);
    if (i == j) return unit ? 1.0 : static_cast<double>(a.at(i, i));
    return (upper ? i < j : i > j) ? static_cast<double>(a.at(i, j)) : 0.0;
  };
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; ++i) {
      double sum = 0;
      for (int l = 0; l < order; ++l) {
        sum += right ? x.at(i, l) * element(l, j) : element(i, l) * x.at(l, j);
      }
      CHECK(std::abs(sum - 2 * b.at(i, j)) < 10 * tolerance<T>(order));
    }
  }
}

template <typename T>
void potrfCase(const BlasTable<T>& blas, std::mt19937& random, int n, bool upper, int bad) {
  Matrix<T> g(n, n, random), a(n, n, random);
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < n; ++i) {
      double sum = i == j ? n : 0;
      for (int l = 0; l < n; ++l) sum += g.at(i, l) * g.at(j, l);
      a.at(i, j) = T(sum);
    }
  }
  if (bad >= 0) a.at(bad, bad) = T(-1);
  Matrix<T> f = a;
  const int info = blas.potrf(upper ? 'U' : 'L', n, f.data.data(), f.leading);
  CHECK(info == bad + 1);
  if (bad >= 0) return;
  for (int j = 0; j < n; ++j) {
    for (int i = j; i < n; ++i) {
      double sum = 0;
      for (int l = 0; l <= j; ++l) {
        sum += upper ? double(f.at(l, i)) * f.at(l, j) : double(f.at(i, l)) * f.at(j, l);
      }
      CHECK(std::abs(sum - a.at(i, j)) < n * tolerance<T>(n));
    }
  }
}

/// Rows exchanged as pivots say, from the first to the last.
template <typename T>
void swapRows(Matrix<T>& a, const std::vector<int>& pivots) {
  for (std::size_t i = 0; i < pivots.size(); ++i) {
    for (int j = 0; j < a.columns; ++j)
      std::swap(a.at(static_cast<int>(i), j), a.at(pivots[i] - 1, j));
  }
}

template <typename T>
void getrfCase(const LapackTable<T>& lapack, std::mt19937& random, int m, int n, int zero) {
  Matrix<T> a(m, n, random);
  if (zero >= 0) {
    for (int i = 0; i < m; ++i) a.at(i, zero) = T(0);
  }
  Matrix<T> f = a;
  const int k = std::min(m, n);
  std::vector<int> pivots(static_cast<std::size_t>(k));
  CHECK(lapack.getrf(m, n, f.data.data(), f.leading, pivots.data()) == zero + 1);
  swapRows(a, pivots);
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; ++i) {
      double sum = 0;
      for (int l = 0; l <= std::min({i, j, k - 1}); ++l) {
        CHECK(l == i || std::abs(f.at(i, l)) <= 1);
        sum += (l == i ? 1.0 : static_cast<double>(f.at(i, l))) * f.at(l, j);
      }
      CHECK(std::abs(sum - a.at(i, j)) < m * tolerance<T>(k));
    }
  }
}

/// The larger of |Q^T Q - I| and |Q^T A - R|, where `apply` is C := Q^T C for matrices of `rows` rows.
template <typename T, typename Apply>
void checkQ(int rows, Matrix<T> a, Matrix<T> r, std::mt19937& random, Apply apply) {
  Matrix<T> q(rows, rows, random);
  for (int j = 0; j < rows; ++j) {
    for (int i = 0; i < rows; ++i) q.at(i, j) = T(i == j ? 1 : 0);
  }
  apply('T', q);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < rows; ++j) {
      double sum = 0;
      for (int l = 0; l < rows; ++l) sum += static_cast<double>(q.at(i, l)) * q.at(j, l);
      CHECK(std::abs(sum - (i == j)) < tolerance<T>(rows));
    }
  }
  apply('N', q);
  for (int j = 0; j < rows; ++j) {
    for (int i = 0; i < rows; ++i) CHECK(std::abs(q.at(i, j) - (i == j)) < tolerance<T>(rows));
  }
  apply('T', a);
  for (int j = 0; j < a.columns; ++j) {
    for (int i = 0; i < rows; ++i) {
      const double expected = i <= j ? static_cast<double>(r.at(i, j)) : 0.0;
      CHECK(std::abs(a.at(i, j) - expected) < rows * tolerance<T>(rows));
    }
  }
}

template <typename T>
void geqrtCase(const LapackTable<T>& lapack, std::mt19937& random, int m, int n, int nb) {
  Matrix<T> a(m, n, random);
  Matrix<T> v = a;
  const int k = std::min(m, n);
  Matrix<T> t(nb, k, random);
  lapack.geqrt(m, n, nb, v.data.data(), v.leading, t.data.data(), t.leading);
  checkQ<T>(m, a, v, random, [&](char trans, Matrix<T>& c) {
    lapack.gemqrt(trans, m, c.columns, k, nb, v.data.data(), v.leading, t.data.data(), t.leading,
                  c.data.data(), c.leading);
  });
}

template <typename T>
void tpqrtCase(const LapackTable<T>& lapack, std::mt19937& random, int m, int n, int nb) {
  // The stack of an upper triangle, n x n, and of a matrix with m rows.
  Matrix<T> a(n + m, n, random);
  for (int j = 0; j < n; ++j) {
    for (int i = j + 1; i < n; ++i) a.at(i, j) = T(0);
  }
  Matrix<T> v = a;
  // What lies below the diagonal belongs to others.
  for (int j = 0; j < n; ++j) {
    for (int i = j + 1; i < n; ++i) v.at(i, j) = T(7);
  }
  Matrix<T> t(nb, n, random);
  T* lower = v.data.data() + n;
  lapack.tpqrt(m, n, nb, v.data.data(), v.leading, lower, v.leading, t.data.data(), t.leading);
  for (int j = 0; j < n; ++j) {
    for (int i = j + 1; i < n; ++i) CHECK(v.at(i, j) == T(7));
  }
  checkQ<T>(n + m, a, v, random, [&](char trans, Matrix<T>& c) {
    lapack.tpmqrt(trans, m, c.columns, n, nb, lower, v.leading, t.data.data(), t.leading,
                  c.data.data(), c.leading, c.data.data() + n, c.leading);
  });
}

template <typename T>
void factorCases(const LapackTable<T>& lapack) {
  std::mt19937 random(11);
  for (const int s : {1, 5, 24, 70}) {
    getrfCase<T>(lapack, random, s, s, -1);
    getrfCase<T>(lapack, random, 2 * s, s, -1);
    getrfCase<T>(lapack, random, 2 * s, s, s - 1);
    for (const int nb : {1, 4, 32}) {
      if (nb > s) continue;
      geqrtCase<T>(lapack, random, s, s, nb);
      geqrtCase<T>(lapack, random, s + 3, s, nb);
      tpqrtCase<T>(lapack, random, s, s, nb);
      tpqrtCase<T>(lapack, random, s / 2 + 1, s, nb);
    }
  }
}

template <typename T>
void allCases(const BlasTable<T>& blas) {
  std::mt19937 random(7);
  for (const int s : {0, 1, 3, 64, 70, 150}) {
    for (int flags = 0; flags < 4; ++flags) {
      const bool p = (flags & 1) != 0, q = (flags & 2) != 0;
      gemmCase<T>(blas, random, s, (s + 1) / 2 + 1, s == 150 ? 300 : s, p, q);
      if (s > 0) syrkCase<T>(blas, random, s, s / 2 + 1, p, q);
      if (s > 0) trsmCase<T>(blas, random, s, 5, false, p, q, s % 2 == 0);
      if (s > 0) trsmCase<T>(blas, random, 7, s, true, p, q, s % 2 == 1);
    }
    if (s > 0) {
      for (const bool upper : {false, true}) {
        potrfCase<T>(blas, random, s, upper, -1);
        potrfCase<T>(blas, random, s, upper, s - 1);
        potrfCase<T>(blas, random, s, upper, s / 2);
      }
    }
  }
}

Add plain("our own BLAS equals triple loops, in double and single precision", [] {
  allCases<double>(plainBlas<double>());
  allCases<float>(plainBlas<float>());
});

Add library("the BLAS in use equals triple loops", [] {
  const BlasReport report = blasReport();
  std::printf("  %s %s\n", report.library.c_str(), report.reason.c_str());
  allCases<double>(blas<double>());
  allCases<float>(blas<float>());
});

Add plainFactors("our own LU and QR give factors of the matrix, in double and single precision",
                 [] {
                   factorCases<double>(plainLapack<double>());
                   factorCases<float>(plainLapack<float>());
                 });

Add libraryFactors("the LAPACK in use gives factors of the matrix", [] {
  factorCases<double>(lapack<double>());
  factorCases<float>(lapack<float>());
});

Add bench("taskbench accepts the right inputs and names the wrong one", [] {
  CoreOptions options = small(2, 1);
  Machine machine(options);
  // Three columns, periodic stencil, two rows by turns; column p of row r at (r * 3 + p) * 64.
  std::vector<Event> before(3);
  const auto at = [](int row, int column) { return (row % 2 * 3 + column) * 64.0; };
  for (int column = 0; column < 3; ++column) {
    before[column] =
        machine.exec(column % 2, "taskbench", 1, {at(0, column), 0, 1.0 * column, 5, 32, 0});
  }
  for (int t = 1; t < 300; ++t) {
    for (const Event& event : before) {
      machine.hold(0, event);
      machine.hold(1, event);
    }
    for (int p = 0; p < 3; ++p) {
      const double left = (p + 2) % 3, right = (p + 1) % 3;
      before[p] = machine.exec(p % 2, "taskbench", 4,
                               {at(t, p), at(t - 1, int(left)), at(t - 1, p), at(t - 1, int(right)),
                                1.0 * t, 1.0 * p, 5, 32, 1, left, 1.0 * p, right});
    }
  }
  for (const Event& event : before) {
    machine.finish(event);
    CHECK(machine.status(event) == 0);
  }
  const double row = at(299, 0), next = at(300, 0);
  // Wrong step, epoch, column; wrong number of producers.
  const Event step = machine.exec(0, "taskbench", 2, {next, row, 299, 0, 5, 32, 0, 0});
  const Event epoch = machine.exec(0, "taskbench", 2, {next, row, 300, 0, 6, 32, 0, 0});
  const Event column = machine.exec(0, "taskbench", 3, {next, row, row, 300, 0, 5, 32, 0, 0, 1});
  const Event number = machine.exec(0, "taskbench", 2, {next, row, 300, 0, 5, 32, 0, 0, 1});
  const Event right = machine.exec(0, "taskbench", 2, {next, row, 300, 0, 5, 32, 0, 0});
  machine.finish();
  CHECK(machine.status(step) == 1 && machine.status(epoch) == 1 && machine.status(column) == 2);
  CHECK(machine.status(number) == Status::badArguments && machine.status(right) == 0);
});

}  // namespace
}  // namespace headrace::test
