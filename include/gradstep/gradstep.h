// The public headers of gradstep::gradstep, in the order in which to read them. Those of gradstep::app and
// gradstep::download are not among them.
#pragma once

// clang-format off
#include "gradstep/base/error.h"
#include "gradstep/base/stop.h"
#include "gradstep/base/step_report.h"
#include "gradstep/base/version.h"
#include "gradstep/base/setting.h"

#include "gradstep/io/file_system.h"
#include "gradstep/io/safetensors.h"

#include "gradstep/data/dataset.h"
#include "gradstep/data/loader.h"

#include "gradstep/model/task.h"
#include "gradstep/model/tasks.h"

#include "gradstep/dist/world.h"

#include "gradstep/step/precision.h"
#include "gradstep/step/lr_schedule.h"
#include "gradstep/step/optimizer.h"
#include "gradstep/step/engine.h"

#include "gradstep/report/rows.h"
#include "gradstep/report/sinks.h"

#include "gradstep/checkpoint/output_dir.h"
#include "gradstep/checkpoint/model_file.h"
#include "gradstep/checkpoint/checkpoint.h"
#include "gradstep/checkpoint/checkpointer.h"

#include "gradstep/run/evaluator.h"
#include "gradstep/run/job.h"
#include "gradstep/run/trainer.h"
// clang-format on
