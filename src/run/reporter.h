// Reporter: the way of a run's rows to its sinks, and whether all of them arrived.
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
  // The sinks must outlive it. Not `writes`, as on all ranks but the first: nothing is told to anybody.
  // What a sink throws is kept until all ranks hear of it; no sink is told anything from then on.
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
  // False once a sink has thrown: rows are lost, which no checkpoint may pass over.
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
