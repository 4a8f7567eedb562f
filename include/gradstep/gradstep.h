// The public headers of gradstep::gradstep, in the order in which to read them. Those of gradstep::app and
// gradstep::download are not among them.
#pragma once

// clang-format off
#include "gradstep/base/exit_code.h"
#include "gradstep/base/error.h"
#include "gradstep/base/stop.h"
#include "gradstep/base/signals.h"
#include "gradstep/base/step_report.h"
#include "gradstep/base/machine.h"
#include "gradstep/base/allocator.h"
#include "gradstep/base/memory_limit.h"
#include "gradstep/base/version.h"
#include "gradstep/base/interval.h"
#include "gradstep/base/setting.h"

#include "gradstep/io/file_system.h"
#include "gradstep/io/atomic_write.h"
#include "gradstep/io/hash.h"
#include "gradstep/io/safetensors.h"
#include "gradstep/io/pt_file.h"

#include "gradstep/data/batch.h"
#include "gradstep/data/dataset.h"
#include "gradstep/data/idx.h"
#include "gradstep/data/cifar.h"
#include "gradstep/data/sampler.h"
#include "gradstep/data/loader.h"

#include "gradstep/model/task.h"
#include "gradstep/model/tasks.h"
#include "gradstep/model/load_weights.h"
#include "gradstep/model/normalize.h"
#include "gradstep/model/mlp.h"

#include "gradstep/dist/world.h"
#include "gradstep/dist/grad_sync.h"

#include "gradstep/step/precision.h"
#include "gradstep/step/precision_probe.h"
#include "gradstep/step/matmul.h"
#include "gradstep/step/grad_scaler.h"
#include "gradstep/step/lr_schedule.h"
#include "gradstep/step/param_groups.h"
#include "gradstep/step/optimizer.h"
#include "gradstep/step/clip.h"
#include "gradstep/step/micro_batches.h"
#include "gradstep/step/window_seed.h"
#include "gradstep/step/non_finite.h"
#include "gradstep/step/buffer_snapshot.h"
#include "gradstep/step/ema.h"
#include "gradstep/step/spike.h"
#include "gradstep/step/engine.h"

#include "gradstep/report/plan.h"
#include "gradstep/report/events.h"
#include "gradstep/report/sink.h"
#include "gradstep/report/console.h"
#include "gradstep/report/jsonl.h"
#include "gradstep/report/tensorboard.h"

#include "gradstep/checkpoint/output_dir.h"
#include "gradstep/checkpoint/model_file.h"
#include "gradstep/checkpoint/train_state.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/checkpoint/checkpointer.h"

#include "gradstep/incident/black_box.h"

#include "gradstep/run/process.h"
#include "gradstep/run/evaluator.h"
#include "gradstep/run/job.h"
#include "gradstep/run/trainer.h"
// clang-format on
