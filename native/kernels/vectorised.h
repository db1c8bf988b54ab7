// Marks a function for which the compiler makes one version per vector width; the loader picks one at run time.
// Sanitizers start before such choices can be made, so their builds have the plain version only.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define HEADRACE_VECTORISED \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HEADRACE_VECTORISED
#endif
