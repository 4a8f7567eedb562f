// Checks a RunConfig as a whole, and writes it as a config file.
// no torch
#include "config/run_config.h"

#include <algorithm>

#include "base/number_text.h"
#include "base/utf8.h"
#include "config/flag_table.h"
#include "gradstep/base/error.h"

namespace gradstep {
namespace {

constexpr int64_t kWarmupSteps = 100;
constexpr int64_t kMostSamples = int64_t{1} << 31;  // of an update, which checkpoints can hold

void reject(const std::string& message) { throw ConfigError(message); }

void check_length(const RunConfig& config) {
  if (config.max_time > 0 && !config.epochs && !config.max_steps && config.sched != "constant") {
    reject("--max-time alone says no length for --sched " + config.sched +
           " to end at; give --epochs or --max-steps too, or --sched constant");
  }
}

void check_batch(const RunConfig& config) {
  const int64_t samples = config.global_batch(/*world_size=*/1);
  if (samples <= kMostSamples) return;
  reject("--batch-size " + std::to_string(config.batch_size) + " x --grad-accum-steps " +
         std::to_string(config.grad_accum_steps) + " is " + std::to_string(samples) +
         " samples an update; give at most " + std::to_string(kMostSamples));
}

void check_spikes(const RunConfig& config) {
  if (config.on_spike != OnTrouble::kOff && config.spike_zscore == 0)
    reject(
        "--spike-zscore 0: finds no spike, which --on-spike asks for; give a number above 0, or --on-spike "
        "off");
}

void check_resume(const RunConfig& config) {
  if (config.resume == "auto" && config.output_dir.empty()) {
    reject("--resume auto looks into --output-dir, which is not given; name the folder of the run");
  }
}

// TOML wants a point or an exponent in a float, and has 64-bit signed integers only.
std::string toml_value(ValueKind kind, const std::string& text) {
  if (kind == ValueKind::kSwitch) return text;
  if (kind == ValueKind::kInteger && parse_integer(text)) return text;
  if (kind == ValueKind::kReal) return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
  std::string quoted = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (code < 0x20 || code == 0x7f) {
      constexpr char kHex[] = "0123456789ABCDEF";
      quoted += {'\\', 'u', '0', '0', kHex[code >> 4], kHex[code & 15]};
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace

int64_t RunConfig::warmup_steps_of(int64_t total_updates) const {
  if (warmup_steps) return *warmup_steps;
  return total_updates > 0 ? std::min(kWarmupSteps, total_updates / 10) : kWarmupSteps;
}

void validate(const RunConfig& config) {
  for (const Flag<RunConfig>& flag : train_flags()) {
    if (!flag.valid(config)) reject(complaint(flag_spelling(flag.info.key), flag.get(config), flag.info));
  }
  check_length(config);
  check_batch(config);
  check_spikes(config);
  check_resume(config);
  if (config.early_stop_patience > 0 && config.eval_interval.value == 0) {
    reject("--early-stop-patience " + std::to_string(config.early_stop_patience) +
           " needs evaluations on the way; give an --eval-interval such as 1ep");
  }
}

std::string config_toml(const std::vector<std::pair<FlagInfo, std::string>>& settings,
                        const std::string& program, const std::string& version,
                        const std::string& git_commit) {
  std::string text = "# The settings of this run. To repeat it: " + program +
                     " train --config <this file> -o <new folder>\n";
  text += "# gradstep " + version + ", commit " + git_commit + "\n";
  std::string group;
  for (const auto& [info, value] : settings) {
    if (info.group != group) text += "\n# " + (group = info.group) + "\n";
    if (!is_utf8(value)) text += "# Not UTF-8, which this file cannot hold; give it as a flag: ";
    text += info.key + " = " + toml_value(info.kind, to_utf8(value)) + "\n";
  }
  return text;
}

}  // namespace gradstep
