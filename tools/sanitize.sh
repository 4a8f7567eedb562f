#!/usr/bin/env bash
# Builds unit tests under sanitizers and runs them: sanitize.sh is AddressSanitizer and UBSan over every room, in build-asan/; sanitize.sh thread is
# ThreadSanitizer over the tests that use threads, in build-tsan/. ROOMS="io data" picks rooms. Further words go to ctest.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tools/setup.sh
rooms=${ROOMS:-$(awk '/^[a-z]/ { print $1 }' src/rooms.txt)}
if [[ ${1:-} == thread ]]; then
  shift
  folder=build-tsan
  sanitizers=thread
  # Those that start threads themselves, and those of the parts that have some.
  mapfile -t files < <(grep -lE 'std::j?thread|support/thread_world[.]h|[cC]heckpointer|\bLoader\b|[bB]est_?[eE]ffort' tests/*/*_test.cpp)
  only=$(printf '%s\n' "${files[@]}" | sed 's#^tests/##' | paste -sd '|')
  # One OpenMP thread: libgomp's own locks are not visible to ThreadSanitizer. An allocation that cannot be is refused, not fatal.
  # tools/tsan_suppressions.txt gives the reasons for the rest.
  export OMP_NUM_THREADS=1
  export TSAN_OPTIONS="suppressions=$PWD/tools/tsan_suppressions.txt allocator_may_return_null=1 second_deadlock_stack=1 history_size=4"
else
  folder=build-asan
  sanitizers=address,undefined
  only=""
  # libtorch itself is not instrumented: it leaks by design at exit, and containers and allocations that cross its border look wrong.
  # A small quarantine of freed memory lets the tests of flat memory mean something; an allocation that cannot be is refused, not fatal.
  export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0:quarantine_size_mb=4:detect_container_overflow=0:alloc_dealloc_mismatch=0:detect_odr_violation=0
  export UBSAN_OPTIONS=print_stacktrace=1
fi

tools/configure.sh "$folder" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DGRADSTEP_SANITIZE=$sanitizers -DGRADSTEP_BUILD_BENCH=OFF \
  "-DGRADSTEP_TEST_FILES=$only"
targets=()
pattern=""
for room in $rooms; do
  if compgen -G "tests/$room/*_test.cpp" >/dev/null && [[ -z $only || $only =~ (^|\|)$room/ ]]; then
    targets+=("gradstep_${room}_test")
    pattern+="${pattern:+|}$room"
  fi
done
ninja -C "$folder" -j "$(num_jobs)" "${targets[@]}"
exec ctest --test-dir "$folder" --output-on-failure -j "$(nproc)" -R "^($pattern)[.][A-Z]" "$@"
