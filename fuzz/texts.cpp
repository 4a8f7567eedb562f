// Fuzz target: numbers, sizes, intervals and every flag of train as text. What a flag takes it gives back as
// text that it takes again.
#include "base/byte_count.h"
#include "config/flag_table.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace gradstep;
  const std::string text = fuzz::text_of(bytes, size);
  if (const auto amount = parse_byte_count(text)) fuzz::require(*amount > 0, "an amount below one byte");
  if (const auto value = parse_integer(text)) {
    fuzz::require(parse_integer(std::to_string(*value)) == value, "another integer after writing it");
  }
  (void)parse_unsigned(text);
  (void)parse_switch(text);
  (void)is_device_text(text);
  if (const auto value = parse_real(text)) {
    fuzz::require(parse_real(shortest(*value)) == value, "another number after writing it");
  }
  fuzz::taken(
      [&] {
        const Interval interval = parse_interval(text);
        fuzz::require(parse_interval(to_string(interval)) == interval, "another interval after writing it");
      },
      fuzz::Quotes::kInput);
  for (const Flag<RunConfig>& flag : train_flags()) {
    RunConfig config;
    bool set = false;
    if (!fuzz::taken([&] { set = flag.set(config, text); }, fuzz::Quotes::kInput)) continue;
    if (!set) {
      fuzz::require(config == RunConfig{}, "a flag that refuses a text and yet changes the settings");
      continue;
    }
    RunConfig again;
    fuzz::require(flag.set(again, flag.get(config)) && again == config, "another setting after writing it");
  }
  return 0;
}
