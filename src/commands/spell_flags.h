// How this program's users read what the library says about an option.
#pragma once

#include <string>

namespace gradstep {

// The library knows no flags: its errors, warnings and events name an option by its key in backticks.
// Replaces each `key` that belongs to a flag of this program by that flag, `max_rollbacks` by
// --max-rollbacks, and leaves every other word as it is. All that the library says passes it on the way to
// the terminal; files such as metrics.jsonl keep the text of the library.
[[nodiscard]] std::string spell_flags(const std::string& text);

}  // namespace gradstep
