// GRADSTEP_CPU_CLONES: compiles a function for several x86-64 levels; the loader picks the best one for the processor.
#pragma once

// Sanitizers run before the loader has resolved such functions, so there the plain one serves.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define GRADSTEP_CPU_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define GRADSTEP_CPU_CLONES
#endif
