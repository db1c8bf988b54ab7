// The tiled Cholesky factorisation by hand, in fp64 on one GPU: cuBLAS and cuSOLVER on tiles, dealt to streams in turn, in
// order by events. As Headrace does it, without a runtime. With --graph 1 the calls are captured once as a CUDA graph, which
// is launched.
//
// build: nvcc -O2 -std=c++17 bench/peers/gpu_tiles.cu -o gpu_tiles -lcusolver -lcublas
// usage: gpu_tiles N [--block B] [--streams S] [--graph 0|1] [--repeats R]
#include <vector>

#include "gpu_common.cuh"

namespace {

__global__ void fillTile(double* a, Size n, Size rows, Size columns, Size row, Size column) {
  const Size step = static_cast<Size>(gridDim.x) * blockDim.x;
  for (Size at = static_cast<Size>(blockIdx.x) * blockDim.x + threadIdx.x; at < rows * columns; at += step) {
    a[at] = row + at % rows == column + at / rows ? static_cast<double>(n) : 1.0;
  }
}

struct Lane {
  cudaStream_t stream;
  cublasHandle_t blas;
  cusolverDnHandle_t solver;
  double* work;
  int length;
  int* info;
};

class Tiles {
 public:
  Tiles(Size n, Size block, int streams) : n_(n), block_(block), count_((n + block - 1) / block), lanes_(streams) {
    tiles_.resize(count_ * count_);
    written_.resize(count_ * count_);
    for (Size j = 0; j < count_; ++j) {
      for (Size i = j; i < count_; ++i) {
        tiles_[i + j * count_] = deviceMatrix(order(i) * order(j));
        check(cudaEventCreateWithFlags(&written_[i + j * count_], cudaEventDisableTiming), "cudaEventCreate");
      }
    }
    for (Lane& lane : lanes_) open(lane);
    check(cudaEventCreateWithFlags(&fork_, cudaEventDisableTiming), "cudaEventCreate");
  }

  void fill() {
    for (Size j = 0; j < count_; ++j) {
      for (Size i = j; i < count_; ++i) {
        fillTile<<<512, 256>>>(at(i, j), n_, order(i), order(j), i * block_, j * block_);
      }
    }
    check(cudaGetLastError(), "fillTile");
  }

  /// Right-looking, column by column: each task follows the last writers of its tiles.
  void factor() {
    touched_.assign(written_.size(), false);
    next_ = 0;
    check(cudaEventRecord(fork_, lanes_[0].stream), "cudaEventRecord");
    for (Lane& lane : lanes_) check(cudaStreamWaitEvent(lane.stream, fork_, 0), "cudaStreamWaitEvent");
    const double one = 1;
    const double minus = -1;
    for (Size k = 0; k < count_; ++k) {
      Lane& diagonal = take({{k, k}});
      check(cusolverDnDpotrf(diagonal.solver, CUBLAS_FILL_MODE_LOWER, size(k), at(k, k), size(k), diagonal.work,
                             diagonal.length, diagonal.info),
            "potrf");
      wrote(diagonal, k, k);
      for (Size i = k + 1; i < count_; ++i) {
        Lane& lane = take({{k, k}, {i, k}});
        check(cublasDtrsm(lane.blas, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, size(i),
                          size(k), &one, at(k, k), size(k), at(i, k), size(i)),
              "trsm");
        wrote(lane, i, k);
      }
      for (Size j = k + 1; j < count_; ++j) {
        Lane& own = take({{j, k}, {j, j}});
        check(cublasDsyrk(own.blas, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, size(j), size(k), &minus, at(j, k), size(j), &one,
                          at(j, j), size(j)),
              "syrk");
        wrote(own, j, j);
        for (Size i = j + 1; i < count_; ++i) {
          Lane& lane = take({{i, k}, {j, k}, {i, j}});
          check(cublasDgemm(lane.blas, CUBLAS_OP_N, CUBLAS_OP_T, size(i), size(j), size(k), &minus, at(i, k), size(i),
                            at(j, k), size(j), &one, at(i, j), size(i)),
                "gemm");
          wrote(lane, i, j);
        }
      }
    }
    for (std::size_t l = 1; l < lanes_.size(); ++l) {
      check(cudaEventRecord(fork_, lanes_[l].stream), "cudaEventRecord");
      check(cudaStreamWaitEvent(lanes_[0].stream, fork_, 0), "cudaStreamWaitEvent");
    }
  }

  cudaGraphExec_t capture() {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    check(cudaStreamBeginCapture(lanes_[0].stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
    factor();
    check(cudaStreamEndCapture(lanes_[0].stream, &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
    return exec;
  }

  void launch(cudaGraphExec_t graph) { check(cudaGraphLaunch(graph, lanes_[0].stream), "cudaGraphLaunch"); }

  double last() {
    const Size order = this->order(count_ - 1);
    return elementAt(at(count_ - 1, count_ - 1), order * order - 1);
  }

 private:
  struct Place {
    Size i;
    Size j;
  };

  void open(Lane& lane) {
    check(cudaStreamCreateWithFlags(&lane.stream, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cublasCreate(&lane.blas), "cublasCreate");
    check(cublasSetStream(lane.blas, lane.stream), "cublasSetStream");
    check(cublasSetWorkspace(lane.blas, deviceMatrix(Size{4} << 20), std::size_t{32} << 20), "cublasSetWorkspace");
    check(cusolverDnCreate(&lane.solver), "cusolverDnCreate");
    check(cusolverDnSetStream(lane.solver, lane.stream), "cusolverDnSetStream");
    check(cusolverDnDpotrf_bufferSize(lane.solver, CUBLAS_FILL_MODE_LOWER, size(0), at(0, 0), size(0), &lane.length),
          "cusolverDnDpotrf_bufferSize");
    lane.work = deviceMatrix(std::max(1, lane.length));
    check(cudaMalloc(reinterpret_cast<void**>(&lane.info), sizeof(int)), "cudaMalloc");
  }

  Size order(Size i) const { return std::min(block_, n_ - i * block_); }
  int size(Size i) const { return static_cast<int>(order(i)); }
  double* at(Size i, Size j) { return tiles_[i + j * count_]; }

  Lane& take(std::initializer_list<Place> used) {
    Lane& lane = lanes_[next_++ % lanes_.size()];
    for (const Place& each : used) {
      const Size tile = each.i + each.j * count_;
      if (touched_[tile]) check(cudaStreamWaitEvent(lane.stream, written_[tile], 0), "cudaStreamWaitEvent");
    }
    return lane;
  }

  void wrote(Lane& lane, Size i, Size j) {
    touched_[i + j * count_] = true;
    check(cudaEventRecord(written_[i + j * count_], lane.stream), "cudaEventRecord");
  }

  const Size n_;
  const Size block_;
  const Size count_;
  std::vector<double*> tiles_;
  std::vector<cudaEvent_t> written_;
  std::vector<bool> touched_;
  std::vector<Lane> lanes_;
  cudaEvent_t fork_;
  std::size_t next_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const char* usage = "usage: gpu_tiles N [--block B] [--streams S] [--graph 0|1] [--repeats R]";
  if (argc < 2) fail(usage);
  const Size n = std::atoll(argv[1]);
  Size block = 1024;
  int streams = 8;
  int repeats = 3;
  bool graph = false;
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--block") block = std::atoll(argv[i + 1]);
    else if (name == "--streams") streams = std::atoi(argv[i + 1]);
    else if (name == "--graph") graph = std::atoi(argv[i + 1]) != 0;
    else if (name == "--repeats") repeats = std::atoi(argv[i + 1]);
    else fail(usage);
  }
  if (n < 2 || block < 1 || streams < 1 || repeats < 1) fail(usage);
  Tiles tiles(n, block, streams);
  cudaGraphExec_t captured = nullptr;
  const auto prepare = [&] { tiles.fill(); };
  if (graph) {
    prepare();
    tiles.factor();
    synchronizeAll(1);
    captured = tiles.capture();
  }
  const double time = best(1, repeats, prepare, [&] {
    if (graph) tiles.launch(captured);
    else tiles.factor();
  });
  expect(tiles.last(), lastOfFactor(n), "the last diagonal element");
  report(graph ? "peer/tiles-graph/cholesky" : "peer/tiles-streams/cholesky", choleskyFlops(n), time, 1, n, block);
  return 0;
}
