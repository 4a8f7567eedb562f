// shown_points: the curves that TensorBoard shows of a folder with event files, by its rules.
// no torch
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "report/event_file.h"
#include "report/protobuf.h"

namespace gradstep::testing {

using Curve = std::vector<std::pair<int64_t, float>>;  // step and value, as they stand in the files

struct Shown {
  std::map<std::string, Curve> curves;
  std::map<std::string, std::string> texts;  // the newest of each tag
};

// The field of a message that comes once; empty: it is not there.
inline std::string_view proto_bytes(std::string_view message, uint64_t field) {
  for (ProtoReader reader(message); reader.next();) {
    if (reader.field() == field) return reader.bytes();
  }
  return {};
}

inline void take_point(std::string_view value, int64_t step, Shown& shown) {
  const std::string tag(proto_bytes(value, 1));
  const std::string_view number = proto_bytes(value, 2);
  float real = 0;
  if (number.size() == sizeof real) {
    std::memcpy(&real, number.data(), sizeof real);
    shown.curves[tag].emplace_back(step, real);
  } else {
    shown.texts[tag] = proto_bytes(proto_bytes(value, 8), 8);
  }
}

// A start event drops what is not before its step.
inline Shown shown_points(const std::string& folder) {
  Shown shown;
  for (const std::string& path : event_files(folder)) {
    for_each_record(path, [&](std::string_view record) {
      int64_t step = 0;
      for (ProtoReader event(record); event.next();) {
        if (event.field() == 2) step = event.integer();
        if (event.field() == 7) {
          for (auto& [tag, curve] : shown.curves)
            std::erase_if(curve, [&](auto& at) { return at.first >= step; });
        }
        if (event.field() != 5) continue;
        for (ProtoReader summary(event.bytes()); summary.next();) take_point(summary.bytes(), step, shown);
      }
    });
  }
  return shown;
}

}  // namespace gradstep::testing
