#!/usr/bin/env bash
# Fuzzes the readers with libFuzzer in build-fuzz/: fuzz.sh [TARGET] [libFuzzer's flags]. Without a target each gets -max_total_time=20. What a target has learnt
# stays in build-fuzz/corpus/TARGET, and an input that breaks it in build-fuzz/crashes/; repeat that one with fuzz.sh TARGET -runs=1 build-fuzz/crashes/FILE.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tools/setup.sh clang
clang=$(find_clang)
CXX=$clang tools/configure.sh build-fuzz -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER="$clang" -DGRADSTEP_BUILD_FUZZ=ON \
  -DGRADSTEP_SANITIZE=address,undefined,fuzzer-no-link -DGRADSTEP_BUILD_TESTS=OFF -DGRADSTEP_BUILD_BENCH=OFF -DGRADSTEP_BUILD_EXAMPLES=OFF

targets=()
for file in fuzz/*.cpp; do
  name=$(basename "$file" .cpp)
  if [[ $name != seeds ]]; then targets+=("$name"); fi
done
flags=("$@")
if (($# > 0)) && [[ $1 != -* ]]; then
  if [[ ! " ${targets[*]} " == *" $1 "* ]]; then fail 2 "there is no fuzz target $1; there are: ${targets[*]}"; fi
  targets=("$1")
  flags=("${@:2}")
fi
if [[ ! " ${flags[*]} " == *" -max_total_time="* && ! " ${flags[*]} " == *" -runs="* ]]; then flags+=(-max_total_time=20); fi

ninja -C build-fuzz -j "$(num_jobs)" gradstep_fuzz_seeds "${targets[@]/#/gradstep_fuzz_}"
build-fuzz/fuzz/seeds build-fuzz/seeds
mkdir -p build-fuzz/crashes
# As in tools/sanitize.sh: libtorch is not instrumented.
export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0:detect_container_overflow=0:alloc_dealloc_mismatch=0:detect_odr_violation=0
export UBSAN_OPTIONS=print_stacktrace=1
failed=()
for target in "${targets[@]}"; do
  say "fuzzes $target"
  mkdir -p "build-fuzz/corpus/$target"
  # An input that is named is run alone.
  corpora=("build-fuzz/corpus/$target" "build-fuzz/seeds/$target")
  for word in "${flags[@]}"; do if [[ -f $word ]]; then corpora=(); fi; done
  log=build-fuzz/crashes/$target.log
  if ! OMP_NUM_THREADS=1 "build-fuzz/fuzz/$target" -artifact_prefix="build-fuzz/crashes/$target-" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
    "${flags[@]}" "${corpora[@]}" >"$log" 2>&1; then
    failed+=("$target")
    tail -n 40 "$log"
  fi
  grep -E 'number_of_executed_units|new_units_added' "$log" || true
done
if ((${#failed[@]} > 0)); then fail 1 "fuzz: inputs that break ${failed[*]} are in build-fuzz/crashes/"; fi
say "no input broke ${targets[*]}"
