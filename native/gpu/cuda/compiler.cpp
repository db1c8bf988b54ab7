// Compiling CUDA C at run time with NVRTC, and keeping the results: see core/kernel_source.h.
//
// Invariant: a kept result is used only if all its inputs are the same: source, name, options, symbols,
// architecture and compiler version are stored with it and compared, not only hashed. Sources that include files by
// "name" are not kept, since those files may change.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/core_error.h"
#include "core/kernel_source.h"
#include "core/shared_library.h"

namespace headrace {

namespace {

struct Compiler {
  CompilerReport report{false, "", "", 0, 0};
  int (*version)(int*, int*);
  const char* (*errorString)(int);
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*);
  int (*destroy)(void**);
  int (*addName)(void*, const char*);
  int (*compile)(void*, int, const char* const*);
  int (*loweredName)(void*, const char*, const char**);
  int (*logBytes)(void*, std::size_t*);
  int (*log)(void*, char*);
  int (*cubinBytes)(void*, std::size_t*);
  int (*cubin)(void*, char*);
  int (*ptxBytes)(void*, std::size_t*);
  int (*ptx)(void*, char*);
};

Compiler load() {
  Compiler found{};
  SharedLibrary library(std::getenv("HEADRACE_NVRTC_LIBRARY"),
                        {"libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64/libnvrtc.so.13",
                         "/usr/local/cuda/lib64/libnvrtc.so.12"});
  if (library.found() && library.get("nvrtcVersion", found.version) &&
      library.get("nvrtcGetErrorString", found.errorString) &&
      library.get("nvrtcCreateProgram", found.create) &&
      library.get("nvrtcDestroyProgram", found.destroy) &&
      library.get("nvrtcAddNameExpression", found.addName) &&
      library.get("nvrtcCompileProgram", found.compile) &&
      library.get("nvrtcGetLoweredName", found.loweredName) &&
      library.get("nvrtcGetProgramLogSize", found.logBytes) &&
      library.get("nvrtcGetProgramLog", found.log) &&
      library.get("nvrtcGetCUBINSize", found.cubinBytes) &&
      library.get("nvrtcGetCUBIN", found.cubin) && library.get("nvrtcGetPTXSize", found.ptxBytes) &&
      library.get("nvrtcGetPTX", found.ptx) &&
      found.version(&found.report.major, &found.report.minor) == 0) {
    found.report.found = true;
    found.report.library = library.name();
  } else {
    found.report.reason = library.reason();
  }
  return found;
}

const Compiler& compiler() {
  static const Compiler* found = new Compiler(load());
  return *found;
}

[[noreturn]] void fail(const KernelSource& source, const std::string& text) {
  throw CoreError("KERNEL_SOURCE", source.name + ": " + text);
}

// -- the cache ------------------------------------------------------------------------------------------------------

std::string cacheFolder() {
  const char* given = std::getenv("HEADRACE_CACHE");
  if (given != nullptr && *given != '\0') return std::string(given) == "off" ? "" : given;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::string(cache) + "/headrace";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.cache/headrace" : "";
}

void makeFolders(const std::string& path) {
  for (std::size_t at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1)) {
    mkdir(path.substr(0, at).c_str(), 0777);
  }
  mkdir(path.c_str(), 0777);
}

std::uint64_t hash(const std::string& text, std::uint64_t seed) {
  std::uint64_t value = 14695981039346656037ull ^ seed;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return value;
}

void put(std::string& to, const std::string& text) {
  to += std::to_string(text.size()) + "\n" + text;
}

bool get(std::istream& from, std::string& text) {
  std::size_t bytes = 0;
  if (!(from >> bytes) || from.get() != '\n' || bytes > (std::size_t{1} << 30)) return false;
  text.resize(bytes);
  return static_cast<bool>(from.read(&text[0], static_cast<std::streamsize>(bytes)));
}

class Kept {
 public:
  Kept(const KernelSource& source, const std::vector<std::string>& options) {
    const CompilerReport report = compilerReport();
    put(key_, "headrace kernels 1");
    put(key_, std::to_string(report.major) + "." + std::to_string(report.minor));
    put(key_, source.name);
    for (const std::string& option : options) put(key_, option);
    for (const KernelDeclaration& kernel : source.kernels) put(key_, kernel.symbol);
    put(key_, source.source);
    const std::string folder = cacheFolder();
    if (folder.empty() || source.source.find("#include \"") != std::string::npos) return;
    char name[64];
    std::snprintf(name, sizeof name, "/%016llx%016llx.kernels",
                  static_cast<unsigned long long>(hash(key_, 0)),
                  static_cast<unsigned long long>(hash(key_, 0x9e3779b97f4a7c15ull)));
    folder_ = folder;
    path_ = folder + name;
  }

  bool read(CompiledKernels& compiled, std::size_t symbols) const {
    if (path_.empty()) return false;
    std::ifstream file(path_, std::ios::binary);
    std::string key;
    if (!file || !get(file, key) || key != key_) return false;
    compiled.symbols.resize(symbols);
    for (std::string& symbol : compiled.symbols) {
      if (!get(file, symbol)) return false;
    }
    compiled.cached = get(file, compiled.image);
    return compiled.cached;
  }

  /// Writes the file completely or not at all: another process may read it at any time. A failure here is not an error.
  void write(const CompiledKernels& compiled) const {
    if (path_.empty()) return;
    makeFolders(folder_);
    const std::string temporary = path_ + "." + std::to_string(getpid());
    std::string text;
    put(text, key_);
    for (const std::string& symbol : compiled.symbols) put(text, symbol);
    put(text, compiled.image);
    std::ofstream file(temporary, std::ios::binary);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.close();
    if (!file || std::rename(temporary.c_str(), path_.c_str()) != 0) unlink(temporary.c_str());
  }

 private:
  std::string key_;
  std::string folder_;
  std::string path_;
};

// -- compiling ------------------------------------------------------------------------------------------------------

class Program {
 public:
  explicit Program(const KernelSource& source) : source_(source) {
    check(compiler().create(&handle_, source.source.c_str(), source.name.c_str(), 0, nullptr,
                            nullptr),
          "nvrtcCreateProgram");
    for (const KernelDeclaration& kernel : source.kernels) {
      check(compiler().addName(handle_, kernel.symbol.c_str()), "nvrtcAddNameExpression");
    }
  }
  ~Program() {
    if (handle_ != nullptr) compiler().destroy(&handle_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void compile(const std::vector<std::string>& options) {
    std::vector<const char*> texts;
    for (const std::string& option : options) texts.push_back(option.c_str());
    const int code = compiler().compile(handle_, static_cast<int>(texts.size()), texts.data());
    if (code == 0) return;
    std::size_t bytes = 0;
    std::string log;
    if (compiler().logBytes(handle_, &bytes) == 0 && bytes > 1) {
      log.resize(bytes);
      compiler().log(handle_, &log[0]);
      log.resize(bytes - 1);
    }
    fail(source_, log.empty() ? compiler().errorString(code) : "does not compile\n" + log);
  }

  void result(bool cubin, CompiledKernels& compiled) {
    std::size_t bytes = 0;
    check(cubin ? compiler().cubinBytes(handle_, &bytes) : compiler().ptxBytes(handle_, &bytes),
          "nvrtcGet...Size");
    compiled.image.resize(bytes);
    check(cubin ? compiler().cubin(handle_, &compiled.image[0])
                : compiler().ptx(handle_, &compiled.image[0]),
          "nvrtcGet...");
    for (const KernelDeclaration& kernel : source_.kernels) {
      const char* lowered = nullptr;
      check(compiler().loweredName(handle_, kernel.symbol.c_str(), &lowered),
            "nvrtcGetLoweredName");
      compiled.symbols.emplace_back(lowered);
    }
  }

 private:
  void check(int code, const char* call) {
    if (code != 0) fail(source_, std::string(call) + ": " + compiler().errorString(code));
  }
  const KernelSource& source_;
  void* handle_ = nullptr;
};

}  // namespace

CompilerReport compilerReport() { return compiler().report; }

CompiledKernels compileKernels(const KernelSource& source, int major, int minor,
                               bool oneArchitecture) {
  CompiledKernels compiled;
  if (source.image) {
    compiled.image = source.source;
    for (const KernelDeclaration& kernel : source.kernels)
      compiled.symbols.push_back(kernel.symbol);
    return compiled;
  }
  if (!compiler().report.found) {
    fail(source, "cannot be compiled, NVRTC was not found (" + compiler().report.reason +
                     "): install it, or give PTX or a cubin");
  }
  std::vector<std::string> options = source.options;
  options.push_back(std::string("--gpu-architecture=") + (oneArchitecture ? "sm_" : "compute_") +
                    std::to_string(major * 10 + minor));
  const Kept kept(source, options);
  if (kept.read(compiled, source.kernels.size())) return compiled;
  compiled = {};
  Program program(source);
  program.compile(options);
  program.result(oneArchitecture, compiled);
  kept.write(compiled);
  return compiled;
}

}  // namespace headrace
