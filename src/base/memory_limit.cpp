// no torch
// An allocator over libtorch's own. Each block begins with a header that holds its size, so that it can be
// taken off the count however late it is freed.
#include "base/memory_limit.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <mutex>

namespace gradstep {
namespace {

constexpr size_t kHeader = 64;  // keeps the alignment that libtorch's allocator gives

struct Count {
  std::atomic<int64_t> limit{0};
  std::atomic<int64_t> live{0};
};

Count& count() {
  static Count instance;
  return instance;
}

c10::Allocator* g_inner = nullptr;  // set once, before ours is

void take_off(size_t bytes) {
  count().live.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}

void release(void* data) {
  if (data == nullptr) return;
  void* const block = static_cast<char*>(data) - kHeader;
  take_off(*static_cast<size_t*>(block));
  g_inner->raw_deallocate(block);
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::DeviceType::CPU};
    add(bytes);
    void* block = nullptr;
    try {
      block = g_inner->raw_allocate(bytes + kHeader);
    } catch (...) {
      take_off(bytes);
      throw;
    }
    *static_cast<size_t*>(block) = bytes;
    void* const data = static_cast<char*>(block) + kHeader;
    return {data, data, &release, c10::DeviceType::CPU};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static void add(size_t bytes) {
    const auto amount = static_cast<int64_t>(bytes);
    const int64_t live = count().live.fetch_add(amount, std::memory_order_relaxed) + amount;
    const int64_t limit = count().limit.load(std::memory_order_relaxed);
    if (limit > 0 && live > limit) {
      take_off(bytes);
      TORCH_CHECK_WITH(OutOfMemoryError, false, "out of memory: ", bytes, " bytes asked for with ",
                       live - amount, " in use, and the limit for tensors is ", limit, " bytes");
    }
  }
};

}  // namespace

void limit_tensor_memory(int64_t bytes) {
  static std::once_flag installed;
  std::call_once(installed, [] {
    g_inner = c10::GetCPUAllocator();
    c10::SetCPUAllocator(new CountingAllocator,
                         /*priority=*/UINT8_MAX);  // for good: its blocks may outlive all
  });
  count().limit.store(bytes, std::memory_order_relaxed);
}

int64_t tensor_memory_bytes() { return count().live.load(std::memory_order_relaxed); }

}  // namespace gradstep
