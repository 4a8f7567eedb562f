// Autocast on and off, with the cache that nobody else clears in C++.
#include "gradstep/step/precision.h"

#include <ATen/autocast_mode.h>

#include "gradstep/base/error.h"

namespace gradstep {

std::string to_string(Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return "fp32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp16:
      return "fp16";
  }
  return "?";
}

Precision parse_precision(const std::string& text) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
    if (text == to_string(precision)) return precision;
  }
  throw ConfigError("precision \"" + text + "\" is not one of fp32, bf16, fp16");
}

AutocastGuard::AutocastGuard(c10::DeviceType device, Precision precision, bool cache)
    : device_(device),
      former_enabled_(at::autocast::is_autocast_enabled(device)),
      former_cache_(at::autocast::is_autocast_cache_enabled()),
      former_dtype_(at::autocast::get_autocast_dtype(device)) {
  const bool enabled = precision != Precision::kFp32;
  at::autocast::increment_nesting();
  at::autocast::set_autocast_enabled(device, enabled);
  at::autocast::set_autocast_cache_enabled(enabled && cache);
  if (enabled)
    at::autocast::set_autocast_dtype(device, precision == Precision::kBf16 ? at::kBFloat16 : at::kHalf);
}

AutocastGuard::~AutocastGuard() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(device_, former_enabled_);
  at::autocast::set_autocast_cache_enabled(former_cache_);
  at::autocast::set_autocast_dtype(device_, former_dtype_);
}

}  // namespace gradstep
