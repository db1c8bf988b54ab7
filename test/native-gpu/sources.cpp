// Kernels given as source: compiled, kept, checked against their declaration, launched as declared.
#include <cstdlib>

#include "gpu_machine.h"

namespace headrace::test {
namespace {

const char* const kScale =
    R"CUDA(extern "C" __global__ void scale(double* to, float factor, int count, long long offset) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = to[i] * factor + offset;
}
)CUDA";

KernelSource scaleSource() {
  KernelSource source;
  source.name = "scale.cu";
  source.source = kScale;
  KernelDeclaration kernel;
  kernel.name = "scale";
  kernel.symbol = "scale";
  kernel.rules.signature = {ArgumentType::pointer, ArgumentType::f32, ArgumentType::i32,
                            ArgumentType::i64};
  kernel.rules.grid[0] = {1, 128};
  kernel.rules.block[0] = {-1, 128};
  source.kernels = {kernel};
  return source;
}

std::string errorOf(Machine& machine, const KernelSource& source) {
  std::vector<std::string> names;
  try {
    machine.core->compileKernels(source, names);
  } catch (const CoreError& error) {
    CHECK(std::string(error.code()) == "KERNEL_SOURCE");
    return error.what();
  }
  return "";
}

AddGpu runs("a kernel from source runs with its numbers converted and its grid from a parameter", 1,
            [] {
              Machine machine(gpuOptions(1));
              const Layout layout{1};
              std::vector<std::string> names;
              machine.core->compileKernels(scaleSource(), names);
              CHECK(names.size() == 1 && machine.core->kernel("scale", 1) >= 0);
              auto* values = machine.at<double>(0, 0);
              for (int i = 0; i < 1000; ++i) values[i] = i;
              Event event = machine.copy(layout.in(1), 1, 0, 0, 0, 8000);
              event = machine.exec(layout.compute(1), "scale", 1, {0, 1.5, 1000, -3}, event);
              event = machine.copy(layout.out(1), 0, 16384, 1, 0, 8000, event);
              expect(machine, event);
              for (int i = 0; i < 1000; ++i) CHECK(machine.at<double>(0, 16384)[i] == i * 1.5 - 3);
              // Zero elements are no launch at all, and no error.
              expect(machine, machine.exec(layout.compute(1), "scale", 1, {0, 1, 0, 0}));
            });

AddGpu named("arguments may be bound by position in any order", 1, [] {
  Machine machine(gpuOptions(1));
  const Layout layout{1};
  KernelSource source = scaleSource();
  source.kernels[0].name = "scale_named";
  source.kernels[0].rules.signature = {{ArgumentType::pointer, 1},
                                       {ArgumentType::f32, 2},
                                       {ArgumentType::i32, 0},
                                       {ArgumentType::i64, 1}};
  source.kernels[0].rules.grid[0] = {0, 128};
  CHECK(errorOf(machine, source).empty());
  Event event = machine.exec(layout.compute(1), "fill_f64", 1, {4096, 100, 4});
  event = machine.exec(layout.compute(1), "scale_named", 2, {0, 4096, 100, 7, 0.5}, event);
  event = machine.copy(layout.out(1), 0, 0, 1, 4096, 800, event);
  expect(machine, event);
  CHECK(machine.at<double>(0, 0)[0] == 9 && machine.at<double>(0, 0)[99] == 9);
});

AddGpu mismatch("arguments that do not fit the signature are refused", 1, [] {
  Machine machine(gpuOptions(1));
  const Layout layout{1};
  std::vector<std::string> names;
  machine.core->compileKernels(scaleSource(), names);
  const std::int32_t queue = layout.compute(1);
  expect(machine, machine.exec(queue, "scale", 1, {0, 1, 2.5, 0}), Status::badArguments);
  expect(machine, machine.exec(queue, "scale", 1, {0, 1, 1e10, 0}), Status::badArguments);
  expect(machine, machine.exec(queue, "scale", 1, {0, 1, 10}), Status::badArguments);
  expect(machine, machine.exec(queue, "scale", 2, {0, 0, 1, 10, 0}), Status::badArguments);
});

AddGpu declared("a declaration that differs from the source is found when it is compiled", 1, [] {
  Machine machine(gpuOptions(1));
  KernelSource source = scaleSource();
  source.kernels[0].rules.signature[1].type = ArgumentType::f64;
  CHECK(errorOf(machine, source).find("parameter 2 has 4 bytes") != std::string::npos);
  source.kernels[0].rules.signature = {ArgumentType::pointer};
  CHECK(errorOf(machine, source).find("more parameters") != std::string::npos);
  source = scaleSource();
  source.kernels[0].symbol = "missing";
  CHECK(!errorOf(machine, source).empty());
});

AddGpu log("a source that does not compile gives the compiler's log with the user's lines", 1, [] {
  Machine machine(gpuOptions(1));
  KernelSource source = scaleSource();
  source.source = "// one\n// two\n#error made to fail\n";
  // NVRTC calls this one a catastrophic error.
  const std::string text = errorOf(machine, source);
  CHECK(text.find("scale.cu(3): ") != std::string::npos && text.find("error") != std::string::npos);
});

AddGpu image("PTX that is given is used as it is", 1, [] {
  Machine machine(gpuOptions(1));
  KernelSource source;
  source.name = "nothing.ptx";
  source.image = true;
  source.source =
      ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry nothing(\n)\n{\n ret;\n}\n";
  KernelDeclaration kernel;
  kernel.name = "nothing";
  kernel.symbol = "nothing";
  source.kernels = {kernel};
  CHECK(errorOf(machine, source).empty());
  expect(machine, machine.exec(Layout{1}.compute(1), "nothing", 0, {}));
  source.source = "this is not PTX";
  CHECK(errorOf(machine, source).find("nothing") != std::string::npos);
});

}  // namespace
}  // namespace headrace::test
