// Rebuilds the model from its file and measures it as it was trained.
#include "commands/eval_command.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/make_job.h"
#include "app/saved_run.h"
#include "base/utf8.h"
#include "checkpoint/checkpoint_files.h"
#include "checkpoint/finite.h"
#include "checkpoint/number_json.h"
#include "commands/terminal.h"
#include "gradstep/base/error.h"
#include "gradstep/checkpoint/model_file.h"
#include "gradstep/run/evaluator.h"
#include "io/atomic_write.h"
#include "io/read_file.h"
#include "report/format.h"

namespace gradstep {
namespace {

// The model file of a run or a checkpoint. A checkpoint is verified first, since a model file has no hash.
std::string model_file_of(const std::string& path) {
  if (!std::filesystem::is_directory(status_of(path))) return path;
  if (is_checkpoint(path)) verify_checkpoint(path);
  const std::string file = path + "/model.safetensors";
  if (std::filesystem::exists(status_of(file))) return file;
  throw CheckpointError(path +
                        ": no model.safetensors there, which a run leaves at its end; give one of its "
                        "checkpoints (step-...)");
}

// The data to measure on, and what they are called.
struct Source {
  std::shared_ptr<const Dataset> data;
  std::string name;
  std::string folder;
  std::string part;
};

Source open_data(const RunSettings& settings) {
  const RunConfig& config = settings.config;
  Source source{.data = load_split(settings, Split::kEval),
                .name = config.dataset,
                .folder = {},
                .part = split_off_name(config)};
  if (source.part.empty()) source.part = "evaluation part";
  if (!source.data) {
    throw DataError("data set " + config.dataset +
                    ": has no evaluation part; train with --val-fraction, or give other data");
  }
  source.folder = settings.dataset().folder();
  return source;
}

// What was recorded of the data is what the model was built for.
void check_fit(const ModelInfo& info, const Source& source, const std::string& path) {
  const DatasetSpec& spec = source.data->spec();
  const auto differs = [&](const char* key, const std::string& now) {
    const auto found = info.settings.find(key);
    return found != info.settings.end() && found->second != now;
  };
  if (!differs("input_shape", input_shape_text(spec.input_shape)) &&
      !differs("num_classes", std::to_string(spec.num_classes)) &&
      !differs("vocab_size", std::to_string(spec.vocab_size))) {
    return;
  }
  throw ConfigError("--dataset " + source.name + ": its " + samples_text(spec.kind) + " or " +
                    (spec.kind == SampleKind::kTokens ? "vocabulary" : "classes") + " are not those that " +
                    path + " was trained on (" + info.settings.at("dataset") +
                    "); choose a data set of the same shape");
}

// Of other data another part is held out, which may have samples that the model was trained on.
void check_samples(const ModelInfo& info, const Source& source, const RunConfig& config, bool accepted,
                   const std::string& path) {
  if (info.eval_data.empty() || info.eval_data == to_utf8(source.data->fingerprint())) return;
  if (config.val_fraction > 0 && !accepted)
    throw DataError(
        path + ": the data are not those of its run, whose " + split_off_name(config) +
        " was held out; the part drawn now may have samples that it was trained on: give the data "
        "of the run with --data-dir, or --force to measure all the same");
  write_warning("the samples are not those that the run of " + path + " was evaluated on");
}

// One line a sample: number, target, prediction and its probability.
class PredictionTable {
 public:
  void add(int64_t first, const at::Tensor& scores, const at::Tensor& targets) {
    const auto [confidence, predicted] = scores.softmax(1).cpu().max(1);
    const at::Tensor host_targets = targets.cpu();
    const float* probability = confidence.const_data_ptr<float>();
    const int64_t* prediction = predicted.const_data_ptr<int64_t>();
    const int64_t* target = host_targets.const_data_ptr<int64_t>();
    char line[96];
    for (int64_t i = 0; i < targets.size(0); ++i) {
      std::snprintf(line, sizeof line, "%lld,%lld,%lld,%.6f\n", static_cast<long long>(first + i),
                    static_cast<long long>(target[i]), static_cast<long long>(prediction[i]),
                    static_cast<double>(probability[i]));
      text_ += line;
    }
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_ = "sample,target,prediction,probability\n";
};

// The table of classification_task(): its sums are counts. Its keys in the JSON are older than other tables.
bool is_accuracy_of_classes(const MetricTable& table) {
  return table.name == "accuracy" && table.rows_of == "class";
}

nlohmann::ordered_json table_json(const MetricTable& table) {
  nlohmann::ordered_json json{{"rows", table.rows_of}};
  for (size_t i = 0; i < table.sums.size(); ++i) {
    json["sums"].push_back(number_json(table.sums[i]));
    json["weights"].push_back(number_json(table.weights[i]));
    json["values"].push_back(number_json(table.values[i]));
  }
  return json;
}

void print_json(const EvalResult& result, const Source& source, Precision precision,
                const std::string& path) {
  nlohmann::ordered_json json{{"model", path},
                              {"dataset", source.name},
                              {"part", source.part},
                              {"precision", to_string(precision)},
                              {"samples", result.samples},
                              {"val_loss", number_json(result.loss)}};
  for (const MetricValue& metric : result.metrics) json["val_" + metric.name] = number_json(metric.value);
  for (const MetricTable& table : result.tables) {
    if (is_accuracy_of_classes(table)) {
      for (size_t i = 0; i < table.sums.size(); ++i) {
        json["class_samples"].push_back(std::llround(table.weights[i]));
        json["class_hits"].push_back(std::llround(table.sums[i]));
      }
    } else {
      json["tables"][table.name] = table_json(table);
    }
  }
  // Dumped without throwing on a path that is not UTF-8.
  std::printf("%s\n", json.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

// A sample may have several targets, such as the words of a text.
void print_table(const MetricTable& table, int64_t num_samples) {
  const double total = std::accumulate(table.weights.begin(), table.weights.end(), 0.0);
  std::printf("%-12s %s   %s\n", table.rows_of.c_str(),
              total > static_cast<double>(num_samples) ? "targets" : "samples", table.name.c_str());
  for (size_t i = 0; i < table.values.size(); ++i) {
    const std::string value = table.weights[i] > 0 ? fixed_text(table.values[i], 4) : "-";
    std::printf("  %-10zu %7.0f     %s\n", i, table.weights[i], value.c_str());
  }
}

void print_lines(const EvalResult& result, const Source& source, Precision precision, const std::string& path,
                 bool quiet) {
  if (!quiet) {
    std::printf("model        %s\n", path.c_str());
    const std::string data = source.name + (source.folder.empty() ? "" : " in " + source.folder);
    std::printf("data         %s, %s: %lld samples\n", data.c_str(), source.part.c_str(),
                static_cast<long long>(result.samples));
    std::printf("precision    %s\n", to_string(precision).c_str());
    for (const MetricTable& table : result.tables) print_table(table, result.samples);
  }
  std::string last = "val_loss " + fixed_text(result.loss, 4);
  // The first metric is the most important one and goes last, where readers look.
  for (auto metric = result.metrics.rbegin(); metric != result.metrics.rend(); ++metric)
    last += " | val_" + metric->name + " " + fixed_text(metric->value, 4);
  std::printf("%s\n", last.c_str());
}

// Before the work is done.
void check_predictions_place(const EvalOptions& options) {
  const std::string& path = options.predictions_path;
  if (path.empty()) return;
  if (is_file_of_run(path))
    throw ConfigError("--predictions " + path + ": is a file of a run; give another name");
  if (options.force || !std::filesystem::is_regular_file(status_of(path))) return;
  throw ConfigError("--predictions " + path +
                    ": is there already; give another name, or --force to replace it");
}

// A result that is no number is a failure, and its cause is named.
void require_numbers(const EvalResult& result, const NamedTensors& tensors, const std::string& path) {
  for (const auto& [name, tensor] : tensors) {
    if (has_nan(tensor))
      throw Diverged(path + ": tensor " + name + " holds NaN; evaluate an earlier checkpoint");
  }
  if (std::isfinite(result.loss)) return;
  throw Diverged(
      path +
      ": the loss of the samples is not finite; look at the samples, or evaluate an earlier checkpoint");
}

}  // namespace

int run_eval(const EvalOptions& options, StopToken& stop) {
  check_predictions_place(options);
  const std::string path = model_file_of(options.model_path);
  const ModelFile file = read_model_file(path);
  const std::unique_ptr<RunSettings> settings = restore_settings(path, file.info.settings, options.data);
  settings->config.device = options.device;
  settings->config.threads = options.threads;
  const at::Device device = configure_process(process_options(settings->config));
  const Source source = open_data(*settings);
  check_fit(file.info, source, path);
  check_samples(file.info, source, settings->config, options.force, path);
  const Precision precision =
      options.precision.empty() ? file.info.precision : parse_precision(options.precision);
  const Task task = build_task(path, file, *settings, source.data->spec());
  task.module->to(device);
  if (file.info.matmul == Matmul::kTorch || has_onednn()) use_matmul(file.info.matmul);

  SoloWorld world;
  PredictionTable predictions;
  EvaluateOptions evaluate_options{.precision = precision,
                                   .batch_size = options.batch_size,
                                   .seed = settings->config.seed,
                                   .should_stop = [&stop] { return stop.requested(); }};
  if (!options.predictions_path.empty()) {
    if (source.data->spec().num_classes == 0)
      throw ConfigError("--predictions: these data have no classes (DatasetSpec::num_classes); leave it out");
    evaluate_options.on_batch = [&predictions](int64_t first, const at::Tensor& scores, const Batch& batch) {
      if (!batch.targets.defined() || batch.targets.dim() != 1)
        throw ConfigError(
            "--predictions: a line is one class a sample, and these samples have several; leave it out");
      predictions.add(first, scores, batch.targets);
    };
  }
  const EvalResult result = evaluate(task, *source.data, world, evaluate_options);
  if (!result.complete) return static_cast<int>(stop.reason());
  if (!options.predictions_path.empty())
    atomic_write(posix_file_system(), options.predictions_path, {predictions.text()});
  if (options.json) {
    print_json(result, source, precision, path);
  } else {
    print_lines(result, source, precision, path, options.quiet);
  }
  flush_stdout();
  require_numbers(result, file.tensors, path);
  return static_cast<int>(ExitCode::kOk);
}

}  // namespace gradstep
