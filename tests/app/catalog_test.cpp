// What a program registers: names, and what does not go together.
#include "app/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "gradstep/app/app.h"
#include "gradstep/base/error.h"
#include "support/message_of.h"

namespace gradstep::testing {
namespace {

using ::testing::HasSubstr;

class NoModel final : public ModelRecipe {
 public:
  void flags(Flags& /*flags*/) override { throw std::runtime_error("out of flags"); }
  Task task(const DatasetSpec& /*spec*/) override { return {}; }
};
class NoData final : public DataRecipe {
 public:
  std::shared_ptr<const Dataset> load(Split /*part*/) override { return nullptr; }
};
class NoRecipe final : public Recipe {
 public:
  DatasetPair data() override { return {}; }
  Task task(const DatasetSpec& /*spec*/) override { return {}; }
};

void add_model(Catalog& catalog, const std::string& name) {
  catalog.add_model(name, [] { return std::make_unique<NoModel>(); });
}
void add_dataset(Catalog& catalog, const std::string& name) {
  catalog.add_dataset(name, [] { return std::make_unique<NoData>(); });
}
void add_recipe(Catalog& catalog, const std::string& name) {
  catalog.add_recipe(name, [] { return std::make_shared<NoRecipe>(); });
}

// What a program with these says; empty: nothing.
std::string complaint_about(const std::function<void(Catalog&)>& fill) {
  Catalog catalog;
  fill(catalog);
  try {
    catalog.check();
    return "";
  } catch (const std::logic_error& error) {
    return error.what();
  }
}

TEST(Catalog, AProgramNeedsModelAndData) {
  EXPECT_THAT(complaint_about([](Catalog&) {}), HasSubstr("the program has no model"));
  EXPECT_THAT(complaint_about([](Catalog& catalog) { add_model(catalog, "m"); }),
              HasSubstr("the program has no data set"));
  EXPECT_EQ(complaint_about([](Catalog& catalog) { add_recipe(catalog, "r"); }), "");
  EXPECT_EQ(complaint_about([](Catalog& catalog) {
              add_model(catalog, "m");
              add_dataset(catalog, "m");
            }),
            "");
}

TEST(Catalog, NamesAreUniqueAndPlain) {
  const auto about = [](const std::vector<std::string>& models) {
    return complaint_about([&](Catalog& catalog) {
      for (const std::string& name : models) add_model(catalog, name);
      add_dataset(catalog, "d");
    });
  };
  EXPECT_EQ(about({"m", "n"}), "");
  EXPECT_THAT(about({"m", "m"}), HasSubstr("two are registered as model 'm'"));
  for (const char* name : {"", "x/y", "two\nlines", "\xff"})
    EXPECT_THAT(about({name}), HasSubstr("one line"));
}

TEST(Catalog, ARecipeIsTheOnlyOne) {
  for (const auto& add : {add_model, add_recipe}) {
    EXPECT_THAT(complaint_about([&](Catalog& catalog) {
                  add_recipe(catalog, "one");
                  add(catalog, "two");
                }),
                HasSubstr("a recipe must be the only one"));
  }
}

TEST(Catalog, AnExceptionOfARecipeHasTheNameOfItsFunction) {
  Catalog catalog;
  add_model(catalog, "m");
  const Recipes recipes = catalog.make();
  Flags flags;
  EXPECT_EQ(message_of<Error>([&] { recipes.model("m").flags(flags); }),
            "flags() of model 'm' threw an exception: out of flags");
}

TEST(App, OneThatWasMovedFromDoesNotRun) {
  App app("a");
  const App other = std::move(app);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(app.run(0, nullptr), 1);  // NOLINT(bugprone-use-after-move)
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("was moved from"));
}

}  // namespace
}  // namespace gradstep::testing
