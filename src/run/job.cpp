// settings_of: the settings of a job whose owner gave none.
#include "gradstep/run/job.h"

#include "base/number_text.h"
#include "run/planner.h"

namespace gradstep {
Settings settings_of(const Job& job) {
  if (!job.settings.empty()) return job.settings;
  const EngineOptions& engine = job.engine;
  const std::string opt = engine.optimizer.kind == OptimizerKind::kAdamW ? "adamw" : "sgd";
  return {{"seed", std::to_string(engine.seed)},
          {"opt", opt},
          {"lr", shortest(engine.schedule.peak), OnResume::kWarned},
          {"weight_decay", shortest(engine.optimizer.weight_decay), OnResume::kWarned},
          {"clip_grad", shortest(engine.clip_grad), OnResume::kWarned},
          {"ema", shortest(engine.ema_decay), OnResume::kWarned},
          {"sched", to_string(engine.schedule.shape)},
          {"warmup_steps", std::to_string(engine.schedule.warmup_steps)},
          {"min_lr", shortest(engine.schedule.min)},
          {"batch_size", std::to_string(engine.micro_batch), OnResume::kWarned},
          {"precision", to_string(engine.precision), OnResume::kWarned}};
}

}  // namespace gradstep
