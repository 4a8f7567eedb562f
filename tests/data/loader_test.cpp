// Loader: the same windows for any number of threads, errors at their window, no processor time while idle.
#include "gradstep/data/loader.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <torch/torch.h>

#include <chrono>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <thread>

#include "gradstep/base/error.h"

namespace gradstep {
namespace {

using std::chrono::milliseconds;

// Sample i has input i and target i % 10. Can fail at a sample, or take its time.
class NumberedDataset final : public Dataset {
 public:
  explicit NumberedDataset(int64_t size, int64_t bad_id = -1, milliseconds delay = milliseconds{0})
      : size_(size), bad_id_(bad_id), delay_(delay) {}
  const DatasetSpec& spec() const override { return spec_; }
  int64_t size() const override { return size_; }
  Batch gather(const at::Tensor& ids, const Draw& /*draw*/) const override {
    std::this_thread::sleep_for(delay_);
    for (int64_t i = 0; i < ids.numel(); ++i) {
      if (ids.const_data_ptr<int64_t>()[i] == bad_id_)
        throw DataError("sample " + std::to_string(bad_id_) + " is bad");
    }
    const std::lock_guard lock(mutex_);
    ++num_gathers_;
    if (only_ && *only_ != std::this_thread::get_id()) throw std::bad_alloc();
    return {ids.clone(), ids.remainder(10)};
  }
  std::string fingerprint() const override { return "numbered"; }
  // Nothing: to nobody.
  void refuse_memory_to_others(std::optional<std::thread::id> than) {
    const std::lock_guard lock(mutex_);
    only_ = than;
  }
  int64_t num_gathers() const {
    const std::lock_guard lock(mutex_);
    return num_gathers_;
  }

 private:
  DatasetSpec spec_{"numbered", {}, 10};
  int64_t size_;
  int64_t bad_id_;
  milliseconds delay_;
  mutable std::mutex mutex_;
  mutable int64_t num_gathers_ = 0;
  std::optional<std::thread::id> only_;
};

std::shared_ptr<NumberedDataset> numbered(int64_t size, int64_t bad_id = -1,
                                          milliseconds delay = milliseconds{0}) {
  return std::make_shared<NumberedDataset>(size, bad_id, delay);
}

class LoaderWorkers : public ::testing::TestWithParam<int64_t> {
 protected:
  LoaderOptions options() const { return {.num_workers = GetParam()}; }
};

INSTANTIATE_TEST_SUITE_P(Any, LoaderWorkers, ::testing::Values(0, 1, 2, 8));

TEST_P(LoaderWorkers, WindowsComeInTheSamplersOrder) {
  const Sampler sampler(103, 8, 5);
  Loader loader(numbered(103), sampler, options());
  int64_t number = 0;
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    const at::Tensor order = sampler.epoch_order(epoch);
    for (int64_t index = 0; index < sampler.windows_per_epoch(); ++index, ++number) {
      EXPECT_EQ(loader.position().number, number);
      EXPECT_EQ(loader.position().epoch, epoch);
      EXPECT_EQ(loader.position().index, index);
      const Window window = loader.next();
      const Range range = sampler.window_range(index);
      const at::Tensor expected = order.slice(0, range.begin, range.end);
      EXPECT_TRUE(torch::equal(window.ids, expected));
      EXPECT_TRUE(torch::equal(window.batch.inputs, expected));
      EXPECT_TRUE(torch::equal(window.batch.targets, expected.remainder(10)));
      EXPECT_EQ(window.position.epoch, epoch);
      EXPECT_EQ(window.position.index, index);
      EXPECT_EQ(window.position.number, number);
      EXPECT_EQ(window.total_samples, range.size());
      EXPECT_EQ(window.last_of_epoch, index + 1 == sampler.windows_per_epoch());
    }
  }
}

// A6: 9 samples in windows of 4, 3 epochs: 9 windows, every id 3 times.
TEST_P(LoaderWorkers, A6EveryIdOnceAnEpoch) {
  Loader loader(numbered(9), Sampler(9, 4, 0), options());
  at::Tensor seen = torch::zeros({9}, at::kLong);
  for (int64_t i = 0; i < 9; ++i) {
    const Window window = loader.next();
    seen.index_add_(0, window.ids, torch::ones_like(window.ids));
  }
  EXPECT_TRUE(torch::equal(seen, torch::full({9}, 3, at::kLong)));
  EXPECT_EQ(loader.position().epoch, 3);
}

// More prefetched windows than an epoch has.
TEST_P(LoaderWorkers, EpochsOfOneWindow) {
  const Sampler sampler(5, 8, 1);
  Loader loader(numbered(5), sampler, options());
  for (int64_t epoch = 0; epoch < 40; ++epoch) {
    const Window window = loader.next();
    EXPECT_TRUE(torch::equal(window.ids, sampler.epoch_order(epoch)));
    EXPECT_TRUE(window.last_of_epoch);
  }
}

TEST_P(LoaderWorkers, BeginsAnywhere) {
  const Sampler sampler(10, 3, 2);
  Loader loader(numbered(10), sampler, options(), {.epoch = 3, .index = 2, .number = 14});
  Window window = loader.next();
  EXPECT_TRUE(torch::equal(window.ids, sampler.epoch_order(3).slice(0, 6, 9)));
  EXPECT_EQ(window.position.number, 14);
  window = loader.next();
  EXPECT_TRUE(torch::equal(window.ids, sampler.epoch_order(3).slice(0, 9, 10)));
  window = loader.next();
  EXPECT_TRUE(torch::equal(window.ids, sampler.epoch_order(4).slice(0, 0, 3)));
  EXPECT_EQ(window.position.index, 0);
}

// C4: a slow consumer; the position counts windows handed out.
TEST_P(LoaderWorkers, C4PositionIsNotThePrefetchers) {
  Loader loader(numbered(100), Sampler(100, 5, 0), options());
  (void)loader.next();
  std::this_thread::sleep_for(milliseconds(30));
  EXPECT_EQ(loader.position().number, 1);
  EXPECT_EQ(loader.position().index, 1);
}

TEST_P(LoaderWorkers, RanksShareAWindowAsArraySplitDoes) {
  const Sampler sampler(10, 4, 0);  // windows of 4, 4, 2
  std::vector<std::unique_ptr<Loader>> ranks;
  for (int64_t rank = 0; rank < 3; ++rank) {
    ranks.push_back(std::make_unique<Loader>(
        numbered(10), sampler, LoaderOptions{.num_workers = GetParam(), .rank = rank, .world_size = 3}));
  }
  for (int64_t index = 0; index < 3; ++index) {
    std::vector<at::Tensor> parts;
    for (const auto& loader : ranks) {
      const Window window = loader->next();
      EXPECT_EQ(window.total_samples, sampler.window_range(index).size());
      EXPECT_EQ(window.batch.size(), window.ids.numel());
      parts.push_back(window.ids);
    }
    const std::vector<int64_t> sizes = {parts[0].numel(), parts[1].numel(), parts[2].numel()};
    EXPECT_EQ(sizes, (index < 2 ? std::vector<int64_t>{2, 1, 1} : std::vector<int64_t>{1, 1, 0}));
    const Range range = sampler.window_range(index);
    EXPECT_TRUE(torch::equal(torch::cat(parts), sampler.epoch_order(0).slice(0, range.begin, range.end)));
  }
}

TEST_P(LoaderWorkers, AnErrorSurfacesAtItsWindow) {
  const Sampler sampler(40, 4, 0);
  const int64_t bad_window = 6;
  const int64_t bad_id = sampler.epoch_order(0)[bad_window * 4 + 1].item<int64_t>();
  Loader loader(numbered(40, bad_id), sampler, options());
  for (int64_t i = 0; i < bad_window; ++i) EXPECT_EQ(loader.next().position.number, i);
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_THROW((void)loader.next(), DataError);
  EXPECT_EQ(loader.position().number, bad_window);
  EXPECT_THROW((void)loader.next(), DataError);  // and stays there
}

// Memory that a worker does not find beside the computation is there for the caller.
TEST_P(LoaderWorkers, OutOfMemoryInAWorkerIsTriedAgainByTheCaller) {
  const Sampler sampler(40, 4, 0);
  const auto data = numbered(40);
  data->refuse_memory_to_others(std::this_thread::get_id());
  Loader loader(data, sampler, options());
  Loader same(numbered(40), sampler, {.num_workers = 0});
  for (int64_t i = 0; i < 25; ++i) {
    const Window window = loader.next();
    const Window expected = same.next();
    EXPECT_EQ(window.position.number, i);
    EXPECT_TRUE(torch::equal(window.ids, expected.ids));
    EXPECT_TRUE(torch::equal(window.batch.inputs, expected.batch.inputs));
  }
}

TEST_P(LoaderWorkers, OutOfMemoryInTheCallerIsThrownAndMayBeTriedAgain) {
  const auto data = numbered(40);
  data->refuse_memory_to_others(std::thread::id());
  Loader loader(data, Sampler(40, 4, 0), options());
  EXPECT_THROW((void)loader.next(), std::bad_alloc);
  EXPECT_THROW((void)loader.next(), std::bad_alloc);
  data->refuse_memory_to_others(std::nullopt);
  for (int64_t i = 0; i < 25; ++i) EXPECT_EQ(loader.next().position.number, i);
}

TEST_P(LoaderWorkers, StopsWhileBusy) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i) {
    Loader loader(numbered(1000, -1, milliseconds(2)), Sampler(1000, 5, 0), options());
    if (i % 2 == 0) (void)loader.next();
  }
  // An epoch takes 0.4 s and more of one thread; what is begun is all that is waited for.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST(Loader, OneSlowThreadLosesNoOrder) {
  const Sampler sampler(200, 5, 0);
  Loader loader(numbered(200, -1, milliseconds(1)), sampler, {.num_workers = 8, .num_prefetch = 3});
  const at::Tensor order = sampler.epoch_order(0);
  for (int64_t i = 0; i < 40; ++i)
    EXPECT_TRUE(torch::equal(loader.next().ids, order.slice(0, 5 * i, 5 * i + 5)));
}

TEST(Loader, PrefetchIsBounded) {
  const auto dataset = numbered(1000);
  Loader loader(dataset, Sampler(1000, 10, 0), {.num_workers = 2, .num_prefetch = 6});
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(dataset->num_gathers(), 6);
}

// L5: threads with nothing to do take no processor time, and open no teams of compute threads.
TEST(LoaderTiming, L5IdleThreadsUseNoProcessor) {
  Loader loader(numbered(200000), Sampler(200000, 100, 0), {.num_workers = 2});
  (void)loader.next();
  std::this_thread::sleep_for(milliseconds(100));  // until the next epoch's order is made too
  const auto cpu_seconds = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  const double before = cpu_seconds();
  std::this_thread::sleep_for(milliseconds(400));
  EXPECT_LT(cpu_seconds() - before, 0.02);
}

TEST(Loader, RefusesNonsense) {
  EXPECT_THROW(Loader(numbered(10), Sampler(10, 2, 0), {}, {.epoch = 0, .index = 5, .number = 5}),
               c10::Error);
  EXPECT_THROW(Loader(numbered(10), Sampler(10, 2, 0), {.num_prefetch = 0}), c10::Error);
}

// Inputs are the draw's own numbers, as an augmentation's would be.
class DrawnDataset final : public Dataset {
 public:
  const DatasetSpec& spec() const override { return spec_; }
  int64_t size() const override { return 30; }
  Batch gather(const at::Tensor& ids, const Draw& draw) const override {
    at::Tensor drawn = at::empty({ids.numel()}, at::kLong);
    for (int64_t i = 0; i < ids.numel(); ++i) {
      const int64_t id = ids.const_data_ptr<int64_t>()[i];
      drawn.mutable_data_ptr<int64_t>()[i] =
          draw.training ? static_cast<int64_t>(draw.sample_seed(id) >> 1) : id;
    }
    return {drawn, ids.clone()};
  }
  std::string fingerprint() const override { return "drawn"; }

 private:
  DatasetSpec spec_{"drawn", {}, 0};
};

// What each sample looked like in each epoch, by (epoch, id).
std::map<std::pair<int64_t, int64_t>, int64_t> looks(LoaderOptions options, Position start = {}) {
  std::map<std::pair<int64_t, int64_t>, int64_t> seen;
  options.seed = 5;
  Loader loader(std::make_shared<DrawnDataset>(), Sampler(30, 7, uint64_t{5}), options, start);
  while (loader.position().epoch < 3) {
    const Window window = loader.next();
    for (int64_t i = 0; i < window.ids.numel(); ++i) {
      seen[{window.position.epoch, window.ids[i].item<int64_t>()}] = window.batch.inputs[i].item<int64_t>();
    }
  }
  return seen;
}

TEST(Draw, ASampleLooksTheSameWithAnyWorkersRanksAndAfterAResume) {
  const auto expected = looks({.num_workers = 0});
  ASSERT_EQ(expected.size(), 90U);
  EXPECT_EQ(looks({.num_workers = 3}), expected);
  auto of_two = looks({.num_workers = 1, .rank = 0, .world_size = 2});
  of_two.merge(looks({.num_workers = 2, .rank = 1, .world_size = 2}));
  EXPECT_EQ(of_two, expected);
  for (const auto& [key, look] : looks({.num_workers = 1}, {.epoch = 1, .index = 2, .number = 7}))
    EXPECT_EQ(expected.at(key), look);
  // Another look in every epoch, and for every sample.
  std::set<int64_t> different;
  for (const auto& [key, look] : expected) different.insert(look);
  EXPECT_EQ(different.size(), 90U);
}

TEST(Loader, R47_RowsThatAreMissingAreRefused) {
  class Short final : public Dataset {
   public:
    const DatasetSpec& spec() const override { return spec_; }
    int64_t size() const override { return 9; }
    Batch gather(const at::Tensor& ids, const Draw& /*draw*/) const override {
      return {ids.clone(), ids.slice(0, 1)};
    }
    std::string fingerprint() const override { return "short"; }

   private:
    DatasetSpec spec_{"short", {}, 0};
  };
  Loader loader(std::make_shared<Short>(), Sampler(9, 4, uint64_t{0}), {.num_workers = 0});
  try {
    (void)loader.next();
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("4 samples has 3 rows of targets"), std::string::npos)
        << error.what();
  }
}

TEST_P(LoaderWorkers, AnOrderOfOnesOwnMayRepeatSamplesAndLeaveThemOut) {
  const auto data = std::make_shared<NumberedDataset>(10);
  const EpochOrder order = [](int64_t epoch) { return at::arange(6, at::kLong) * (epoch + 1) % 4; };
  Loader loader(data, Sampler(6, 4, order), {.num_workers = GetParam()});
  EXPECT_TRUE(loader.next().ids.equal(at::tensor({0, 1, 2, 3}, at::kLong)));
  EXPECT_TRUE(loader.next().ids.equal(at::tensor({0, 1}, at::kLong)));
  EXPECT_TRUE(loader.next().ids.equal(at::tensor({0, 2, 0, 2}, at::kLong)));
  Loader longer(data, Sampler(20, 20, [](int64_t) { return at::arange(20, at::kLong) % 10; }),
                {.num_workers = GetParam()});
  EXPECT_EQ(longer.next().ids.numel(), 20);
}

TEST_P(LoaderWorkers, AnOrderWithASampleThatIsNotThereIsRefused) {
  for (const int64_t id : {10, -1}) {
    const EpochOrder order = [id](int64_t epoch) { return at::full({4}, epoch == 0 ? 3 : id, at::kLong); };
    Loader loader(std::make_shared<NumberedDataset>(10), Sampler(4, 4, order), {.num_workers = GetParam()});
    (void)loader.next();
    try {
      (void)loader.next();
      ADD_FAILURE() << "no exception";
    } catch (const DataError& error) {
      EXPECT_EQ(std::string(error.what()),
                "the order of epoch 2 has sample " + std::to_string(id) +
                    ", but the data set has the samples 0 to 9; correct the order that "
                    "the sampler was given");
    }
  }
}

}  // namespace
}  // namespace gradstep
