// Digests of files as publishers of data sets give them: MD5 and SHA-256, by OpenSSL.
#pragma once

#include <string>

namespace gradstep {

// Lower-case hexadecimal. Reads the file in pieces; throws std::system_error if it cannot be read.
[[nodiscard]] std::string md5_file(const std::string& path);
// As md5_file.
[[nodiscard]] std::string sha256_file(const std::string& path);

}  // namespace gradstep
