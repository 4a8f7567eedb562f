// Reporter: passes the rows of a run to its sinks, and knows whether all of them arrived.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "gradstep/report/sinks.h"

namespace gradstep {

class Reporter {
 public:
  // The sinks must outlive it. Without `writes`, as on all ranks but the first, it passes on nothing. If a
  // sink throws, the exception is kept until all ranks hear of it, and the sinks get no further rows.
  Reporter(Sink& sinks, bool writes) : sinks_(sinks), writes_(writes) {}

  template <class Call>
  void tell(Call call) {
    if (!writes_ || failure_) return;
    try {
      call(sinks_);
    } catch (...) {
      failure_ = std::current_exception();
    }
  }
  void event(int64_t update, Event what) {
    tell([&](Sink& sinks) { sinks.event({.update = update, .event = std::move(what)}); });
  }
  // Tells all sinks what one of them has to say about itself.
  void pass_on_warnings(int64_t update) {
    std::vector<std::string> warnings;
    tell([&](Sink& sinks) { warnings = sinks.take_warnings(); });
    for (std::string& warning : warnings) event(update, Warning{std::move(warning)});
  }
  // False after a sink has thrown: rows are lost, so no newer checkpoint may be written.
  [[nodiscard]] bool is_whole() const { return failure_ == nullptr; }
  void throw_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  Sink& sinks_;
  const bool writes_;
  std::exception_ptr failure_;
};

}  // namespace gradstep
