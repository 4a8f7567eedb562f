// Each class passes every call on and adds the name of the function.
#include "app/named_recipes.h"

#include <new>
#include <system_error>
#include <utility>

#include "base/error_text.h"
#include "base/out_of_memory.h"
#include "gradstep/base/error.h"

namespace gradstep {
namespace {

template <class Result, class... Arguments>
void name_function(std::function<Result(Arguments...)>& function, const char* name,
                   const std::string& recipe) {
  if (!function) return;
  function = [name, recipe, call = std::move(function)](Arguments... arguments) -> Result {
    return named(name, recipe, [&] { return call(std::forward<Arguments>(arguments)...); });
  };
}

Task named_task(Task task, const std::string& recipe) {
  name_function(task.forward, "Task::forward", recipe);
  name_function(task.loss_sum, "Task::loss_sum", recipe);
  name_function(task.prepare, "Task::prepare", recipe);
  name_function(task.weight, "Task::weight", recipe);
  name_function(task.user_state, "Task::user_state", recipe);
  name_function(task.restore_user_state, "Task::restore_user_state", recipe);
  for (Metric& metric : task.metrics) {
    name_function(metric.measure, "Metric::measure", recipe);
    name_function(metric.value, "Metric::value", recipe);
  }
  return task;
}

class NamedDataset final : public Dataset {
 public:
  NamedDataset(std::string name, std::shared_ptr<const Dataset> dataset)
      : name_(std::move(name)), dataset_(std::move(dataset)) {}
  [[nodiscard]] const DatasetSpec& spec() const override {
    return named("Dataset::spec()", name_, [&]() -> const DatasetSpec& { return dataset_->spec(); });
  }
  [[nodiscard]] int64_t size() const override {
    return named("Dataset::size()", name_, [&] { return dataset_->size(); });
  }
  [[nodiscard]] Batch gather(const at::Tensor& ids, const Draw& draw) const override {
    return named("Dataset::gather()", name_, [&] { return dataset_->gather(ids, draw); });
  }
  [[nodiscard]] std::string fingerprint() const override {
    return named("Dataset::fingerprint()", name_, [&] { return dataset_->fingerprint(); });
  }

 private:
  std::string name_;
  std::shared_ptr<const Dataset> dataset_;
};

class NamedModel final : public ModelRecipe {
 public:
  NamedModel(const std::string& name, std::unique_ptr<ModelRecipe> recipe)
      : name_("model '" + name + "'"), recipe_(std::move(recipe)) {}
  void flags(Flags& flags) override {
    named("flags()", name_, [&] { recipe_->flags(flags); });
  }
  Task task(const DatasetSpec& spec) override {
    return named_task(named("task()", name_, [&] { return recipe_->task(spec); }), name_);
  }
  [[nodiscard]] ModelSize size(const DatasetSpec& spec) const override {
    return named("size()", name_, [&] { return recipe_->size(spec); });
  }
  [[nodiscard]] std::string describe(const DatasetSpec& spec) const override {
    return named("describe()", name_, [&] { return recipe_->describe(spec); });
  }
  [[nodiscard]] std::map<std::string, std::string> notes() const override {
    return named("notes()", name_, [&] { return recipe_->notes(); });
  }
  void adjust(Job& job) override {
    named("adjust()", name_, [&] { recipe_->adjust(job); });
  }
  void add_sinks(SinkList& sinks, const std::string& output_dir) override {
    named("add_sinks()", name_, [&] { recipe_->add_sinks(sinks, output_dir); });
  }

 private:
  std::string name_;
  std::unique_ptr<ModelRecipe> recipe_;
};

class NamedData final : public DataRecipe {
 public:
  NamedData(const std::string& name, std::string load, std::unique_ptr<DataRecipe> recipe)
      : name_("data set '" + name + "'"), load_(std::move(load)), recipe_(std::move(recipe)) {}
  void flags(Flags& flags) override {
    named("flags()", name_, [&] { recipe_->flags(flags); });
  }
  std::shared_ptr<const Dataset> load(Split part) override {
    std::shared_ptr<const Dataset> dataset = named(load_, name_, [&] { return recipe_->load(part); });
    return dataset ? std::make_shared<NamedDataset>(name_, std::move(dataset)) : nullptr;
  }
  [[nodiscard]] std::string folder() const override {
    return named("folder()", name_, [&] { return recipe_->folder(); });
  }
  void restored() override {
    named("restored()", name_, [&] { recipe_->restored(); });
  }

 private:
  std::string name_;
  std::string load_;
  std::unique_ptr<DataRecipe> recipe_;
};

}  // namespace

void throw_named(std::string_view function, const std::string& recipe, const std::exception_ptr& exception) {
  const auto failure = [&](const std::string& what) {
    return Error(ExitCode::kUnexpected, std::string(function) + " of " + recipe + " threw " + what);
  };
  try {
    std::rethrow_exception(exception);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::system_error&) {
    throw;
  } catch (const std::exception& error) {
    if (is_out_of_memory(error)) throw;
    throw failure("an exception: " + one_line(error));
  } catch (...) {
    throw failure("something that is no std::exception");
  }
}

std::unique_ptr<ModelRecipe> named_model(const std::string& name, std::unique_ptr<ModelRecipe> recipe) {
  return std::make_unique<NamedModel>(name, std::move(recipe));
}

std::unique_ptr<DataRecipe> named_data(const std::string& name, std::string load,
                                       std::unique_ptr<DataRecipe> recipe) {
  return std::make_unique<NamedData>(name, std::move(load), std::move(recipe));
}

}  // namespace gradstep
