// Loader: a ring of windows that worker threads fill in any order and the caller empties in the sampler's.
#include "gradstep/data/loader.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "base/out_of_memory.h"
#include "gradstep/base/error.h"

namespace gradstep {
namespace {

// The order of one epoch, computed by whoever needs it first while the others wait.
struct SharedOrder {
  explicit SharedOrder(int64_t number) : epoch(number) {}
  const int64_t epoch;
  std::once_flag once;
  at::Tensor ids;
};

Position following(Position position, int64_t windows_per_epoch) {
  ++position.number;
  if (++position.index == windows_per_epoch) {
    position.index = 0;
    ++position.epoch;
  }
  return position;
}

}  // namespace

class Loader::Impl {
 public:
  Impl(std::shared_ptr<const Dataset> dataset, Sampler sampler, LoaderOptions options, Position start)
      : dataset_(std::move(dataset)),
        sampler_(sampler),
        options_(options),
        windows_per_epoch_(sampler_.windows_per_epoch()),
        handed_out_(start),
        claimed_(start) {
    TORCH_CHECK(options_.num_workers >= 0 && options_.num_prefetch >= 1, "Loader: bad options");
    TORCH_CHECK(start.epoch >= 0 && start.index >= 0 && start.index < windows_per_epoch_ && start.number >= 0,
                "Loader: start lies outside the epoch");
    current_ = std::make_shared<SharedOrder>(start.epoch);
    upcoming_ = std::make_shared<SharedOrder>(start.epoch + 1);
    if (options_.num_workers == 0) return;
    ring_.resize(static_cast<size_t>(std::max(options_.num_prefetch, options_.num_workers)));
    try {
      for (int64_t i = 0; i < options_.num_workers; ++i) workers_.emplace_back([this] { work(); });
    } catch (...) {
      stop();
      throw;
    }
  }

  ~Impl() { stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Window next() {
    Window window = workers_.empty() ? make_window(handed_out_, order_for(handed_out_.epoch)) : take();
    handed_out_ = following(handed_out_, windows_per_epoch_);
    return window;
  }

  [[nodiscard]] Position position() const { return handed_out_; }
  [[nodiscard]] const Sampler& sampler() const { return sampler_; }

 private:
  // A place of the ring; empty while its window is being made.
  struct Slot {
    std::optional<Window> window;
    std::exception_ptr error;
    std::shared_ptr<SharedOrder> order;  // set where memory ran out: the caller tries again with it
  };

  Slot& slot(const Position& position) { return ring_[static_cast<size_t>(position.number) % ring_.size()]; }
  [[nodiscard]] size_t num_claimed() const {
    return static_cast<size_t>(claimed_.number - handed_out_number_);
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    refill_needed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
  }

  // Waits for the window whose turn it is. An error stays in its slot: asking again gives it again.
  Window take() {
    std::unique_lock lock(mutex_);
    Slot& place = slot(handed_out_);
    window_ready_.wait(lock, [&] { return place.window || place.error; });
    if (place.error && !place.order) std::rethrow_exception(place.error);
    if (place.error) {
      // A worker asks for memory beside the computation. Now that it has ended, there may be enough.
      lock.unlock();
      Window made = make_window(handed_out_, place.order);  // nobody else touches the place meanwhile
      lock.lock();
      place = {.window = std::move(made), .error = {}, .order = {}};
    }
    Window window = std::move(*place.window);
    place.window.reset();
    ++handed_out_number_;
    // Workers wake once half of the ring is empty, not for each window: they share the cores with the
    // computation.
    if (!refilling_ && num_claimed() <= ring_.size() / 2) {
      refilling_ = true;
      lock.unlock();
      refill_needed_.notify_all();
    }
    return window;
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      if (num_claimed() == ring_.size()) refilling_ = false;
      if (!refilling_ && !stopping_) {
        prepare_upcoming(lock);
        refill_needed_.wait(lock, [&] { return refilling_ || stopping_; });
      }
      if (stopping_) return;
      if (num_claimed() < ring_.size()) fill_one(lock);
    }
  }

  // Claims the next window, makes it without the lock, and puts it into its place.
  void fill_one(std::unique_lock<std::mutex>& lock) {
    const Position position = claimed_;
    claimed_ = following(claimed_, windows_per_epoch_);
    const std::shared_ptr<SharedOrder> order = order_for(position.epoch);
    lock.unlock();
    Slot made;
    try {
      made.window = make_window(position, order);
    } catch (const std::exception& error) {
      made.error = std::current_exception();
      if (is_out_of_memory(error)) made.order = order;
    } catch (...) {
      made.error = std::current_exception();
    }
    lock.lock();
    slot(position) = std::move(made);
    if (position.number == handed_out_number_) window_ready_.notify_one();
  }

  // The ring is full: time to shuffle the next epoch, so that its first window comes as fast as any.
  void prepare_upcoming(std::unique_lock<std::mutex>& lock) {
    const std::shared_ptr<SharedOrder> order = upcoming_;
    if (prepared_epoch_ == order->epoch) return;
    prepared_epoch_ = order->epoch;
    lock.unlock();
    try {
      resolve(*order);
    } catch (...) {
      // Out of memory, say: met again, and reported, at the window that needs the order.
    }
    lock.lock();
  }

  // Positions only ever move on by one window, so the epoch is the current one or the one after it.
  std::shared_ptr<SharedOrder> order_for(int64_t epoch) {
    if (epoch != current_->epoch) {
      current_ = std::exchange(upcoming_, std::make_shared<SharedOrder>(epoch + 1));
    }
    return current_;
  }

  void resolve(SharedOrder& order) const {
    std::call_once(order.once, [&] {
      at::Tensor ids = sampler_.epoch_order(order.epoch);
      check_ids(ids, order.epoch);
      order.ids = std::move(ids);
    });
  }

  void check_ids(const at::Tensor& ids, int64_t epoch) const {
    const int64_t size = dataset_->size();
    const std::span<const int64_t> all(ids.const_data_ptr<int64_t>(), static_cast<size_t>(ids.numel()));
    for (const int64_t id : all) {
      if (id >= 0 && id < size) continue;
      throw DataError("the order of epoch " + std::to_string(epoch + 1) + " has sample " +
                      std::to_string(id) + ", but the data set has the samples 0 to " +
                      std::to_string(size - 1) + "; correct the order that the sampler was given");
    }
  }

  [[nodiscard]] Window make_window(const Position& position,
                                   const std::shared_ptr<SharedOrder>& order) const {
    resolve(*order);
    const Range whole = sampler_.window_range(position.index);
    const Range part = array_split(whole.size(), options_.world_size, options_.rank);
    Window window;
    window.ids = at::empty({part.size()}, at::kLong);
    const int64_t* const begin = order->ids.const_data_ptr<int64_t>() + whole.begin + part.begin;
    std::copy(begin, begin + part.size(), window.ids.mutable_data_ptr<int64_t>());
    window.batch =
        dataset_->gather(window.ids, {.seed = options_.seed, .epoch = position.epoch, .training = true});
    if (part.size() > 0) check_rows(window.batch, part.size());
    window.position = position;
    window.total_samples = whole.size();
    window.last_of_epoch = position.index + 1 == windows_per_epoch_;
    return window;
  }

  const std::shared_ptr<const Dataset> dataset_;
  const Sampler sampler_;
  const LoaderOptions options_;
  const int64_t windows_per_epoch_;
  Position handed_out_;  // next to hand out; the caller's thread only

  std::mutex mutex_;  // guards everything below
  std::condition_variable refill_needed_;
  std::condition_variable window_ready_;
  Position claimed_;  // next that a worker takes up
  int64_t handed_out_number_ = handed_out_.number;
  std::vector<Slot> ring_;
  std::shared_ptr<SharedOrder> current_;   // of the window last claimed
  std::shared_ptr<SharedOrder> upcoming_;  // of the epoch after it
  int64_t prepared_epoch_ = -1;
  bool refilling_ = true;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

Loader::Loader(std::shared_ptr<const Dataset> dataset, Sampler sampler, LoaderOptions options,
               Position start) {
  if (!dataset) throw ConfigError("Loader: there is no data set; give one");
  impl_ = std::make_unique<Impl>(std::move(dataset), sampler, options, start);
}
Loader::~Loader() = default;
Window Loader::next() { return impl_->next(); }
Position Loader::position() const { return impl_->position(); }
const Sampler& Loader::sampler() const { return impl_->sampler(); }

}  // namespace gradstep
