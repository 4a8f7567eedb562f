// Writes inputs to begin with: seeds FOLDER makes FOLDER/<target>/<n>, small sound files of each kind.
#include <torch/torch.h>

#include <filesystem>
#include <fstream>

#include "app/run_settings.h"
#include "checkpoint/manifest.h"
#include "checkpoint/state_json.h"
#include "fuzz.h"
#include "gradstep/io/file_system.h"
#include "gradstep/io/safetensors.h"
#include "incident/black_box.h"
#include "incident/black_box_json.h"
#include "io/hash.h"
#include "report/event_file.h"
#include "report/protobuf.h"
#include "support/archives.h"
#include "support/full_state.h"
#include "support/gradstep_program.h"

namespace gradstep {
namespace {

class Seeds {
 public:
  explicit Seeds(const std::string& folder) : folder_(folder) {}
  std::string next(const std::string& target) {
    const std::filesystem::path folder = folder_ / target;
    std::filesystem::create_directories(folder);
    return folder / std::to_string(number_++);
  }
  void add(const std::string& target, const std::string& bytes) {
    std::ofstream(next(target), std::ios::binary) << bytes;
  }

 private:
  const std::filesystem::path folder_;
  int number_ = 0;
};

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void add_safetensors(Seeds& seeds) {
  const TrainState state = testing::full_state();
  const std::string path = seeds.next("safetensors");
  write_safetensors(posix_file_system(), path, state.model, {{"note", "text"}});
  const std::string file = bytes_of(path);
  const auto header_bytes = static_cast<size_t>(static_cast<unsigned char>(file[0])) |
                            static_cast<size_t>(static_cast<unsigned char>(file[1])) << 8;
  const auto data_bytes = static_cast<char>(file.size() - 8 - header_bytes);
  seeds.add("safetensors_header", data_bytes + file.substr(8, header_bytes));
  write_black_box(posix_file_system(), seeds.next("safetensors"),
                  BlackBox{.model = state.model, .engine = state.engine});
  seeds.add("black_box", black_box_json(BlackBox{
                             .modules = {{"fc1", 1, 2, 0}}, .ids = {1, 2}, .scale_history = {{1, 4}}}));
  seeds.add("state_json", format_state(state));
}

void add_data(Seeds& seeds) {
  const std::string pictures(
      "\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x01"
      "abcd",
      20);
  const std::string labels(
      "\0\0\x08\x01\0\0\0\x03"
      "\0\x01\x02",
      11);
  for (const std::string& plain : {pictures, labels}) {
    seeds.add("idx", plain);
    seeds.add("idx", testing::gzip(plain));
    seeds.add("gzip", testing::gzip(plain));
  }
  seeds.add("gzip", testing::gzip("a") + testing::gzip("b"));
  const std::string archive =
      testing::tar_entry("folder/a.bin", "hello") + testing::tar_entry("other", "x") + testing::tar_end();
  seeds.add("tar", archive);
  seeds.add("tar", testing::gzip(archive));
  seeds.add("cifar", std::string("\1") + std::string(3073, '\2'));
}

void add_texts(Seeds& seeds) {
  const std::string sealed = format_manifest({{"state.json", 7, "0123456789abcdef"}});
  seeds.add("manifest", sealed);
  seeds.add("manifest", sealed.substr(0, sealed.size() - 27));
  seeds.add("config_file", RunSettings(program().catalog).toml({}));
  seeds.add("config_file",
            "lr = 1e-3\nbatch-size = 64 # note\nopt = \"sgd\"\nnesterov = true\nmax_steps = 10\n");
  for (const char* text : {"12", "-1", "1.5e-3", "8g", "1.5k", "10m", "2h", "1ep", "none", "auto", "true",
                           "cuda:0", "0x10", "adamw", "nan", "rollback", "val_loss"}) {
    seeds.add("texts", text);
  }
  const std::string row = R"({"window":1,"update":1,"epoch":0,"loss":2.5,"lr":0.1,"skipped":false})";
  const std::string rows = row + "\n" + R"({"event":"end","update":1})" + "\n";
  seeds.add("rows", rows + std::string(1, '\0') + rows);
}

void add_events(Seeds& seeds) {
  ProtoWriter value, summary, event;
  value.bytes(1, "val/loss");
  value.real(2, 0.5F);
  summary.bytes(1, value.message());
  event.real(1, 1.5);
  event.integer(2, 7);
  event.bytes(5, summary.message());
  seeds.add("event_file", event.message());
  const std::string folder = std::filesystem::temp_directory_path() / ("events-" + std::to_string(getpid()));
  EventFile file(folder);
  file.append(event.message());
  file.flush();
  for (const std::string& path : event_files(folder)) seeds.add("event_file", bytes_of(path));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gradstep

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  gradstep::Seeds seeds(argv[1]);
  gradstep::add_safetensors(seeds);
  gradstep::add_data(seeds);
  gradstep::add_texts(seeds);
  gradstep::add_events(seeds);
  return 0;
}
