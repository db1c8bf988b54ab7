// Kernels that users give as CUDA C source, PTX or cubin: their declarations, and the compiled result.
#pragma once

#include <string>
#include <vector>

#include "gpu/launch_rules.h"

namespace headrace {

struct KernelDeclaration {
  std::string name;    // by which tasks ask for it
  std::string symbol;  // in the source: a function's name, or an expression such as scale<double>
  LaunchRules rules;
};

struct KernelSource {
  std::string name;    // of the file, as it appears in messages of the compiler
  std::string source;  // CUDA C; or, if `image`, PTX or a cubin
  bool image = false;
  std::vector<std::string> options;  // of the compiler
  std::vector<KernelDeclaration> kernels;
};

struct CompiledKernels {
  std::string image;
  std::vector<std::string>
      symbols;  // as they are called in the image, in the order of the declarations
  bool cached = false;
};

struct CompilerReport {
  bool found;
  std::string library;
  std::string reason;
  int major;
  int minor;
};

/// Looks for NVRTC (once per process).
CompilerReport compilerReport();

/// Compiles for GPUs of one architecture (a cubin), or of several, of which `major`.`minor` is the oldest (PTX). Keeps
/// results on disk (HEADRACE_CACHE, else XDG_CACHE_HOME/headrace, else ~/.cache/headrace; "off" for nowhere).
/// Throws CoreError: KERNEL_SOURCE with the compiler's log, whose lines are those of the user's source.
CompiledKernels compileKernels(const KernelSource& source, int major, int minor,
                               bool oneArchitecture);

}  // namespace headrace
