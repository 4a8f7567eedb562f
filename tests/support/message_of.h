// message_of: what an expected exception says, so that a test can look at the words.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace gradstep::testing {

// The message of the E that `call` throws; anything else, or nothing, fails the test.
template <typename E, typename Call>
std::string message_of(Call&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no exception";
  return "";
}

}  // namespace gradstep::testing
