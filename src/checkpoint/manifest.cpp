// no torch
// The manifest: written line by line, read as JSON once its seal is whole.
#include "checkpoint/manifest.h"

#include <algorithm>
#include <set>

#include "checkpoint/json_object.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "io/hash.h"
#include "io/read_file.h"
#include "report/json_text.h"

namespace gradstep {
namespace {

constexpr uint64_t kMaxManifestBytes = 1'000'000;
constexpr std::string_view kHexDigits = "0123456789abcdef";

std::string seal_of(std::string_view text) {
  return "\"xxh3\":\"" + xxh3(text.data(), text.size()) + "\"}\n";
}

// A name that can only mean a file beside the manifest.
bool is_plain(const std::string& name) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !name.empty() && name.size() <= 100 && name.front() != '.' && name != kManifestName &&
         name.find_first_not_of(kLetters) == std::string::npos;
}

}  // namespace

std::string format_manifest(const std::vector<ManifestFile>& files) {
  std::string text = "{\"format\":" + std::to_string(kCheckpointFormat) + ",\"files\":[\n";
  for (const ManifestFile& file : files) {
    JsonLine line(text);
    line.add("name", file.name);
    line.add("bytes", static_cast<int64_t>(file.bytes));
    line.add("xxh3", file.xxh3);
    line.close();
    text += &file == &files.back() ? "\n" : ",\n";
  }
  text += "],\n";
  return text + seal_of(text);
}

std::vector<ManifestFile> parse_manifest(const std::string& path, std::string_view text) {
  const size_t seal_bytes = seal_of("").size();
  if (text.size() < seal_bytes ||
      text.substr(text.size() - seal_bytes) != seal_of(text.substr(0, text.size() - seal_bytes))) {
    throw CheckpointError(path + ": its own hash is not right: damaged, use another checkpoint");
  }
  const JsonObject object = JsonObject::parse(path, text);
  const int64_t format = object.integer("format", 1);
  if (format > kCheckpointFormat) {
    throw NewerFormat(path + ": a checkpoint of format " + std::to_string(format) +
                      "; this gradstep reads up to " + std::to_string(kCheckpointFormat) +
                      ": use a newer gradstep");
  }
  std::vector<ManifestFile> files;
  std::set<std::string> names;
  for (const JsonObject& entry : object.objects("files")) {
    ManifestFile file{.name = entry.text("name"),
                      .bytes = static_cast<uint64_t>(entry.integer("bytes")),
                      .xxh3 = entry.text("xxh3")};
    if (!is_plain(file.name)) entry.fail("name", "not a plain file name");
    if (!names.insert(file.name).second) entry.fail("name", file.name + " is listed twice");
    if (file.xxh3.size() != 16 || file.xxh3.find_first_not_of(kHexDigits) != std::string::npos) {
      entry.fail("xxh3", "expected 16 hexadecimal digits");
    }
    files.push_back(std::move(file));
  }
  return files;
}

std::vector<ManifestFile> read_manifest(const std::string& path) {
  return parse_manifest(path, read_text_file(path, kMaxManifestBytes));
}

}  // namespace gradstep
