// Fuzz target: metrics.jsonl of two runs, as verify-resume compares them: the input is cut in two at its
// first zero byte.
#include "commands/compare_rows.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace gradstep;
  const std::string text = fuzz::text_of(bytes, size);
  const size_t cut = text.find('\0');
  const std::string first = text.substr(0, cut);
  const std::string second = cut == std::string::npos ? first : text.substr(cut + 1);
  fuzz::require(
      compare_rows(first, second).difference.empty() == compare_rows(second, first).difference.empty(),
      "two runs differ one way round only");
  return 0;
}
