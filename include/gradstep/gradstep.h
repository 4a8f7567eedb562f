// All of gradstep's public headers, in the order in which to read them.
#pragma once

#include "gradstep/base/exit_code.h"
#include "gradstep/base/error.h"
#include "gradstep/base/stop.h"
#include "gradstep/base/step_report.h"
#include "gradstep/base/version.h"

#include "gradstep/io/file_system.h"
#include "gradstep/io/atomic_write.h"
#include "gradstep/io/hash.h"
#include "gradstep/io/http.h"
#include "gradstep/io/safetensors.h"

#include "gradstep/data/batch.h"
#include "gradstep/data/dataset.h"
#include "gradstep/data/idx.h"
#include "gradstep/data/cifar.h"
#include "gradstep/data/sampler.h"
#include "gradstep/data/loader.h"

#include "gradstep/model/task.h"

#include "gradstep/dist/world.h"

#include "gradstep/report/sink.h"
#include "gradstep/report/console.h"
#include "gradstep/report/jsonl.h"
#include "gradstep/report/plan.h"

#include "gradstep/run/run_config.h"
