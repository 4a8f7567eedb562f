// EmaWeights: an exponential moving average of the parameters, as torch.optim.swa_utils.AveragedModel keeps
// it with get_ema_multi_avg_fn(decay).
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "gradstep/step/optimizer.h"

namespace gradstep {

class EmaWeights {
 public:
  // The parameters stay the caller's. decay 0: off, nothing is kept and every call is a no-op.
  EmaWeights(NamedTensors parameters, double decay);

  [[nodiscard]] bool enabled() const { return decay_ > 0; }
  // Begins anew: the averages become copies of the parameters.
  void reset();
  // After an applied update: average = decay * average + (1 - decay) * parameter; after the first update of a
  // run reset() instead, as AveragedModel does. Never waits for the device.
  void update();
  // By the parameters' names; share memory with this object. Empty when off.
  [[nodiscard]] NamedTensors tensors() const;

  // The parameters take the values of the averages, bit for bit, and the averages those of the parameters.
  void swap();

 private:
  NamedTensors parameters_;
  double decay_;
  std::vector<at::Tensor> averages_;
  at::Tensor spare_;  // as many numbers as the largest parameter, so that a swap needs no memory
};

}  // namespace gradstep
