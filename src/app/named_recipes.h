// Recipes whose functions name themselves in what they throw.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include "gradstep/app/app.h"

namespace gradstep {

// Throws the exception on if it is one of gradstep's, of the memory or of the system, which say where they
// come from or what to do; else an Error with the name of the function: "task() of model 'mine' threw ...".
[[noreturn]] void throw_named(std::string_view function, const std::string& recipe,
                              const std::exception_ptr& exception);

// Calls a function of a recipe.
template <class Call>
decltype(auto) named(std::string_view function, const std::string& recipe, Call call) {
  try {
    return call();
  } catch (...) {
    throw_named(function, recipe, std::current_exception());
  }
}

// The functions of its task do likewise.
[[nodiscard]] std::unique_ptr<ModelRecipe> named_model(const std::string& name,
                                                       std::unique_ptr<ModelRecipe> recipe);
// `load`: the name of the function that loads. The data sets do likewise.
[[nodiscard]] std::unique_ptr<DataRecipe> named_data(const std::string& name, std::string load,
                                                     std::unique_ptr<DataRecipe> recipe);

}  // namespace gradstep
