// The codes that kill a context, and the words for codes and devices: the same numbers in CUDA and HIP.
#include "gpu/api.h"

#include <cstdio>

namespace headrace {

bool gpuLost(int code) {
  switch (code) {
    case 4:    // deinitialised: the process is going away
    case 46:   // device unavailable
    case 214:  // uncorrectable memory error
    case 220:  // uncorrectable NVLink error
    case 226:  // contained error: the work of this context was ended
    case 700:  // illegal address
    case 702:  // launch timed out
    case 709:  // context is destroyed
    case 710:  // assertion in a kernel
    case 714:  // hardware stack error
    case 715:  // illegal instruction
    case 716:  // misaligned address
    case 717:  // invalid address space
    case 718:  // invalid program counter
    case 719:  // launch failed
      return true;
    default: return false;
  }
}

std::string gpuErrorText(const GpuApi& api, int code) {
  const char* name = nullptr;
  const char* text = nullptr;
  api.errorName(code, &name);
  api.errorString(code, &text);
  return std::string(name != nullptr ? name : "error") + " (" + std::to_string(code) + ")" +
         (text != nullptr ? std::string(": ") + text : "");
}

std::string gpuUuidText(const unsigned char* bytes) {
  std::string text = "GPU-";
  char hex[3];
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    std::snprintf(hex, sizeof hex, "%02x", bytes[i]);
    text += hex;
  }
  return text;
}

}  // namespace headrace
