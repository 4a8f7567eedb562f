// The run waits for this copy, so one parallel region copies all bytes, one long stretch for each thread.
#include "checkpoint/staging.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "checkpoint/tensor_lists.h"
#include "checkpoint/user_state.h"

namespace gradstep {

struct Staging::Piece {
  const char* from;
  char* to;
  int64_t bytes;
};

// Which live tensor was staged already, by the same elements of the same memory, seen the same way.
class StagedViews {
 public:
  [[nodiscard]] const at::Tensor* find(const at::Tensor& live) const {
    if (live.numel() == 0) return nullptr;
    const auto [begin, end] = by_memory_.equal_range(live.const_data_ptr());
    for (auto known = begin; known != end; ++known) {
      const at::Tensor& other = known->second.first;
      if (other.device() == live.device() && other.scalar_type() == live.scalar_type() &&
          other.sizes() == live.sizes() && other.strides() == live.strides()) {
        return &known->second.second;
      }
    }
    return nullptr;
  }
  void add(const at::Tensor& live, const at::Tensor& staged) {
    by_memory_.emplace(live.const_data_ptr(), std::pair(live, staged));
  }

 private:
  std::unordered_multimap<const void*, std::pair<at::Tensor, at::Tensor>> by_memory_;
};

namespace {

// Fewer bytes are not worth waking a thread.
constexpr int64_t kBytesPerThread = int64_t{1} << 20;

template <class Piece>
void copy_all(const std::vector<Piece>& pieces) {
  std::vector<int64_t> begins;  // of each piece among all bytes
  int64_t total = 0;
  for (const Piece& piece : pieces) {
    begins.push_back(total);
    total += piece.bytes;
  }
  at::parallel_for(0, total, kBytesPerThread, [&](int64_t begin, int64_t end) {
    const auto first = std::ranges::upper_bound(begins, begin) - begins.begin() - 1;
    for (auto i = static_cast<size_t>(first); i < pieces.size() && begins[i] < end; ++i) {
      const int64_t from = std::max<int64_t>(begin - begins[i], 0);
      const int64_t to = std::min(end - begins[i], pieces[i].bytes);
      if (from >= to) continue;  // an empty tensor has no memory
      std::memcpy(pieces[i].to + from, pieces[i].from + from, static_cast<size_t>(to - from));
    }
  });
}

}  // namespace

at::Tensor Staging::memory_for(const at::Tensor& tensor) {
  const bool pinned = tensor.is_cuda();  // so that the copies of a device queue up
  if (num_used_ == memory_.size()) memory_.emplace_back();
  at::Tensor& memory = memory_[num_used_];
  if (!memory.defined() || memory.sizes() != tensor.sizes() || memory.scalar_type() != tensor.scalar_type()) {
    memory = at::Tensor();  // the old one goes before the new one comes
    memory = at::empty(tensor.sizes(), at::TensorOptions(tensor.scalar_type()).pinned_memory(pinned));
  }
  ++num_used_;
  return memory;
}

void Staging::stage(const NamedTensors& live, NamedTensors& staged, std::vector<Piece>& pieces,
                    StagedViews& views) {
  for (const auto& [name, tensor] : live) {
    if (const at::Tensor* known = views.find(tensor)) {
      staged.emplace_back(name, *known);
      continue;
    }
    const at::Tensor memory = memory_for(tensor);
    if (tensor.is_cpu() && tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg()) {
      pieces.push_back({static_cast<const char*>(tensor.const_data_ptr()),
                        static_cast<char*>(memory.mutable_data_ptr()),
                        static_cast<int64_t>(tensor.nbytes())});
    } else {
      memory.copy_(tensor.detach(), /*non_blocking=*/true);
    }
    views.add(tensor, memory);
    staged.emplace_back(name, memory);
  }
}

const TrainState& Staging::copy(const TrainState& live, bool with_optimizer) {
  const at::NoGradGuard no_grad;
  check_user_state(live.user);
  TrainState next = live;
  next.model.clear();
  next.optimizer.clear();
  next.ema.clear();
  next.user.tensors.clear();
  state_ = TrainState();
  num_used_ = 0;
  std::vector<Piece> pieces;
  StagedViews views;
  // The optimizer goes last: a save that only exports models does not disturb the memory of the others.
  stage(live.model, next.model, pieces, views);
  stage(live.ema, next.ema, pieces, views);
  if (with_optimizer) stage(live.optimizer, next.optimizer, pieces, views);
  if (with_optimizer) stage(live.user.tensors, next.user.tensors, pieces, views);
  copy_all(pieces);
  std::vector<c10::Device> devices;  // that were waited for
  for (const NamedTensors* tensors : tensor_lists(live)) {
    for (const auto& [name, tensor] : *tensors) {
      if (tensor.is_cpu() || std::ranges::find(devices, tensor.device()) != devices.end()) continue;
      devices.push_back(tensor.device());
      c10::impl::VirtualGuardImpl(tensor.device().type()).synchronizeDevice(tensor.device().index());
    }
  }
  state_ = std::move(next);
  return state_;
}

}  // namespace gradstep
