// The shipped Engine with everything on: autocast, scaler, clip, finite check, and a row of metrics.jsonl for
// each window. Flags as in bench_common.h, and --matmul torch|onednn, --allocator kept|default; --data-dir
// holds uncompressed IDX files and takes the rows.
#include <torch/torch.h>

#include "base/allocator.h"
#include "bench_common.h"
#include "gradstep/report/sinks.h"
#include "gradstep/step/engine.h"
#include "gradstep/step/precision.h"
#include "model/mlp.h"

namespace {

gradstep::EngineOptions engine_options(const bench::Job& job) {
  gradstep::EngineOptions options;
  options.schedule = {.shape = gradstep::LrShape::kCosine,
                      .peak = 1e-3,
                      .min = 1e-6,
                      .warmup_steps = 100,
                      .total_steps = 1407};
  options.precision = gradstep::parse_precision(job.precision);
  options.micro_batch = job.batch_size;
  options.clip_grad = bench::kClipGrad;
  return options;
}

double train(const bench::Job& job, bench::SteadyClock& clock) {
  const bench::Pictures pictures(job.data_dir);
  torch::manual_seed(0);
  gradstep::SoloWorld world;
  gradstep::Engine engine(gradstep::mlp_task({}), engine_options(job), world);
  gradstep::JsonlSink rows(job.data_dir + "/engine_loop.jsonl");
  gradstep::WindowRow row;
  while (true) {
    for (const auto& ids : at::randperm(pictures.size()).split(job.window())) {
      row.step = engine.step(pictures.bytes.index_select(0, ids), pictures.labels.index_select(0, ids));
      row.samples += row.step.samples;
      rows.window(row);
      if (!clock.tick(ids.size(0))) return row.step.loss;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Flags flags(argc, argv);
  if (flags.text("allocator", "kept") == "kept") gradstep::keep_freed_memory();  // as the program does
  const bench::Job job(flags);
  gradstep::use_matmul(gradstep::parse_matmul(flags.text("matmul", "torch")));
  bench::SteadyClock clock(job.warmup_windows, job.seconds);
  const double loss = train(job, clock);
  bench::print_result("engine_loop", job, clock, loss);
}
