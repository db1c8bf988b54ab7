// The part of NVRTC that Headrace uses: it "compiles" by finding the kernels in the source. A line with `#error` fails with
// the log that NVRTC would write; HEADRACE_STUB_NVRTC_LOG, if set, names a file that gets a line per compilation.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#define NVRTC_EXPORT extern "C" __attribute__((visibility("default"))) int

namespace {

struct Program {
  std::string source;
  std::string name;
  std::string log;
  std::string code;
  std::vector<std::string> expressions;
};

Program* program(void* handle) { return static_cast<Program*>(handle); }

}  // namespace

NVRTC_EXPORT nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}

extern "C" __attribute__((visibility("default"))) const char* nvrtcGetErrorString(int code) {
  return code == 6 ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR";
}

NVRTC_EXPORT nvrtcCreateProgram(void** result, const char* source, const char* name, int,
                                const char* const*, const char* const*) {
  *result = new Program{source, name, "", "", {}};
  return 0;
}

NVRTC_EXPORT nvrtcDestroyProgram(void** handle) {
  delete program(*handle);
  *handle = nullptr;
  return 0;
}

NVRTC_EXPORT nvrtcAddNameExpression(void* handle, const char* expression) {
  program(handle)->expressions.emplace_back(expression);
  return 0;
}

NVRTC_EXPORT nvrtcCompileProgram(void* handle, int count, const char* const* options) {
  Program& of = *program(handle);
  if (const char* path = std::getenv("HEADRACE_STUB_NVRTC_LOG")) {
    if (std::FILE* file = std::fopen(path, "a")) {
      std::fprintf(file, "compiled %s with %d options\n", of.name.c_str(), count);
      std::fclose(file);
    }
  }
  std::string line;
  int number = 1;
  for (const char c : of.source + "\n") {
    if (c != '\n') {
      line += c;
      continue;
    }
    if (line.find("#error") != std::string::npos) {
      of.log = of.name + "(" + std::to_string(number) + "): error: " + line + "\n";
      return 6;
    }
    line.clear();
    ++number;
  }
  of.code = "// stub";
  for (int i = 0; i < count; ++i) of.code += std::string(" ") + options[i];
  of.code += "\n";
  for (const std::string& expression : of.expressions) {
    if (of.source.find(expression + "(") == std::string::npos) {
      of.log = of.name + "(1): error: no kernel " + expression + "\n";
      return 6;
    }
    of.code += ".visible .entry " + expression + "(\n";
  }
  return 0;
}

NVRTC_EXPORT nvrtcGetLoweredName(void* handle, const char* expression, const char** name) {
  for (const std::string& each : program(handle)->expressions) {
    if (each == expression) {
      *name = each.c_str();
      return 0;
    }
  }
  return 9;
}

NVRTC_EXPORT nvrtcGetProgramLogSize(void* handle, std::size_t* bytes) {
  *bytes = program(handle)->log.size() + 1;
  return 0;
}
NVRTC_EXPORT nvrtcGetProgramLog(void* handle, char* log) {
  std::strcpy(log, program(handle)->log.c_str());
  return 0;
}
NVRTC_EXPORT nvrtcGetCUBINSize(void* handle, std::size_t* bytes) {
  *bytes = program(handle)->code.size() + 1;
  return 0;
}
NVRTC_EXPORT nvrtcGetCUBIN(void* handle, char* code) {
  std::strcpy(code, program(handle)->code.c_str());
  return 0;
}
NVRTC_EXPORT nvrtcGetPTXSize(void* handle, std::size_t* bytes) {
  return nvrtcGetCUBINSize(handle, bytes);
}
NVRTC_EXPORT nvrtcGetPTX(void* handle, char* code) { return nvrtcGetCUBIN(handle, code); }
