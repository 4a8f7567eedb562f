// for_each_piece: the bytes of a file in pieces, for hashes.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace gradstep {

// Calls `use` with each piece of the file, in order. Throws std::system_error if the file cannot be read.
void for_each_piece(const std::string& path, const std::function<void(std::string_view)>& use);

}  // namespace gradstep
