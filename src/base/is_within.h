// is_within: whether an enum has one of its values. A cast of an integer can give it any other.
#pragma once

namespace gradstep {

// For an enum whose values follow each other.
template <class Enum>
[[nodiscard]] constexpr bool is_within(Enum value, Enum first, Enum last) {
  return value >= first && value <= last;
}

}  // namespace gradstep
