// no torch
#include "io/file_kind.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>

namespace gradstep {
namespace {

struct Kind {
  std::string_view begin;
  const char* name;
};

constexpr std::array kKinds{
    Kind{"version https://git-lfs", "a Git LFS pointer, not the file itself (run 'git lfs pull')"},
    Kind{"PK\x03\x04", "a zip archive, as torch.save writes"},
    Kind{"\x80\x02", "a Python pickle, as older torch.save writes"},
    Kind{"\x1f\x8b", "gzip data"},
    Kind{"\xfd"
         "7zXZ",
         "xz data"},
    Kind{"\x28\xb5\x2f\xfd", "zstd data"},
    Kind{"\x93NUMPY", "a NumPy array"},
    Kind{"\x89PNG", "a PNG picture"},
    Kind{"\xff\xd8\xff", "a JPEG picture"},
    Kind{"\x7f"
         "ELF",
         "a program"},
    Kind{"GGUF", "a GGUF model"},
    Kind{"{", "JSON text"}};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

}  // namespace

std::string file_kind(std::string_view head) {
  if (head.empty()) return "an empty file";
  for (const Kind& kind : kKinds) {
    if (head.starts_with(kind.begin)) return kind.name;
  }
  const size_t first = std::min(head.find_first_not_of(" \t\r\n\xef\xbb\xbf"), head.size());
  const std::string text = lower(head.substr(first, 16));
  if (text.starts_with("<!doctype html") || text.starts_with("<html")) return "an HTML page";
  if (text.starts_with("<?xml")) return "an XML page";
  const auto is_text = [](unsigned char c) {
    return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\r' || c == '\t';
  };
  return std::ranges::all_of(head, is_text) ? "a text file" : "";
}

std::string file_kind_at(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 256> head{};
  file.read(head.data(), head.size());
  if (!file.is_open() || file.bad()) return {};
  return file_kind({head.data(), static_cast<size_t>(file.gcount())});
}

std::string file_kind_hint(const std::string& path) {
  const std::string kind = file_kind_at(path);
  return kind.empty() ? "" : ": it is " + kind;
}

}  // namespace gradstep
