#!/usr/bin/env bash
# Builds the unit tests of every room under AddressSanitizer and UBSan in build-asan/ and runs them. ROOMS="io data" picks rooms.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tools/setup.sh
tools/configure.sh build-asan -DCMAKE_BUILD_TYPE=RelWithDebInfo -DGRADSTEP_SANITIZE=address,undefined -DGRADSTEP_BUILD_BENCH=OFF
targets=()
pattern=""
for room in ${ROOMS:-base io data model dist report step run cli}; do
  if compgen -G "tests/$room/*_test.cpp" >/dev/null; then
    targets+=("gradstep_${room}_test")
    pattern+="${pattern:+|}$room"
  fi
done
ninja -C build-asan -j "$(num_jobs)" "${targets[@]}"

# libtorch itself is not instrumented: it leaks by design at exit, and containers and allocations that cross its border look wrong.
# A small quarantine of freed memory lets the tests of flat memory mean something; an allocation that cannot be is refused, not fatal.
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0:quarantine_size_mb=4:detect_container_overflow=0:alloc_dealloc_mismatch=0:detect_odr_violation=0
export UBSAN_OPTIONS=print_stacktrace=1
exec ctest --test-dir build-asan --output-on-failure -j "$(nproc)" -R "^($pattern)[.][A-Z]" "$@"
