// provisional: saves in the caller
#include "gradstep/run/checkpointer.h"
#include "gradstep/run/checkpoint.h"
namespace gradstep {
class Checkpointer::Impl {
 public:
  FileSystem& fs; CheckpointerOptions options; std::vector<SaveOutcome> done;
};
Checkpointer::Checkpointer(FileSystem& f, CheckpointerOptions o) : impl_(new Impl{f, o, {}}) { tidy_checkpoints(f, o.output_dir); }
Checkpointer::~Checkpointer() = default;
void Checkpointer::save(const TrainState& s, const SaveRequest& r) {
  SaveOutcome o{.update = s.engine.counters.updates};
  try {
    auto ex = [&](const std::string& n) { save_model(impl_->fs, impl_->options.output_dir + "/" + n + ".safetensors", s.model, s.info);
      if (!s.ema.empty()) save_model(impl_->fs, impl_->options.output_dir + "/" + n + "-ema.safetensors", s.ema, s.info); };
    if (r.best) ex("best");
    if (r.export_model) ex("model");
    o.bytes = write_checkpoint(impl_->fs, impl_->options.output_dir, s);
    std::optional<int64_t> best; if (s.best_eval) best = s.best_eval->update;
    for (auto u : retention(list_checkpoints(impl_->options.output_dir), impl_->options.keep, best)) impl_->fs.remove_all(checkpoints_dir(impl_->options.output_dir) + "/" + checkpoint_name(u));
  } catch (const std::exception& e) { o.error = e.what(); }
  impl_->done.push_back(o);
}
void Checkpointer::wait() {}
bool Checkpointer::in_flight() const { return false; }
std::vector<SaveOutcome> Checkpointer::outcomes() { return std::exchange(impl_->done, {}); }
std::optional<double> Checkpointer::save_seconds() const { return std::nullopt; }
}
