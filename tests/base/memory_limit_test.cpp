// The counting allocator: what it counts, what it refuses, and that blocks find their way back.
#include "base/memory_limit.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <thread>

#include "base/out_of_memory.h"

namespace gradstep {
namespace {

TEST(MemoryLimit, CountsRefusesAndForgets) {
  const at::Tensor before = at::ones({1 << 16});  // by libtorch's own allocator, in this test alone
  limit_tensor_memory(0);
  const int64_t start = tensor_memory_bytes();
  at::Tensor kept = at::empty({1000}, at::kByte);
  EXPECT_EQ(tensor_memory_bytes() - start, 1000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(kept.data_ptr()) % 64, 0U);
  limit_tensor_memory(start + 3000);
  EXPECT_NO_THROW(at::empty({2000}, at::kByte));
  EXPECT_THROW(at::empty({2001}, at::kByte), c10::OutOfMemoryError);
  EXPECT_EQ(tensor_memory_bytes() - start, 1000);
  limit_tensor_memory(0);
  EXPECT_NO_THROW(at::empty({1 << 20}, at::kByte));
  kept = at::Tensor();
  EXPECT_EQ(tensor_memory_bytes(), start);
}

TEST(MemoryLimit, AnEmptyTensorTakesNothing) {
  limit_tensor_memory(0);
  const int64_t start = tensor_memory_bytes();
  const at::Tensor empty = at::empty({0});
  EXPECT_EQ(tensor_memory_bytes(), start);
}

TEST(MemoryLimit, ATensorMayGrowAndKeepsItsContent) {
  limit_tensor_memory(0);
  at::Tensor grown = at::ones({4});
  grown.resize_({1000});
  EXPECT_EQ(grown.slice(0, 0, 4).sum().item<float>(), 4.0F);
}

TEST(MemoryLimit, WhatTheAllocatorBelowRefusesIsNotCounted) {
  limit_tensor_memory(0);
  const int64_t start = tensor_memory_bytes();
  EXPECT_THROW(at::empty({int64_t{1} << 60}, at::kByte), c10::Error);
  EXPECT_EQ(tensor_memory_bytes(), start);
}

TEST(MemoryLimit, ThreadsCountTogether) {
  limit_tensor_memory(0);
  const int64_t start = tensor_memory_bytes();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) at::empty({i + 1}, at::kByte);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tensor_memory_bytes(), start);
}

TEST(OutOfMemoryKinds, ByKindAndByWords) {
  const c10::SourceLocation where{"f", "file.cpp", 1};
  EXPECT_TRUE(is_out_of_memory(std::bad_alloc()));
  EXPECT_TRUE(is_out_of_memory(c10::OutOfMemoryError(where, "anything")));
  EXPECT_TRUE(is_out_of_memory(c10::Error(where, "DefaultCPUAllocator: can't allocate memory: you tried")));
  EXPECT_TRUE(is_out_of_memory(c10::Error(where, "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling")));
  EXPECT_FALSE(is_out_of_memory(c10::Error(where, "shapes do not fit")));
  EXPECT_FALSE(is_out_of_memory(std::runtime_error("out of memory")));
}

}  // namespace
}  // namespace gradstep
