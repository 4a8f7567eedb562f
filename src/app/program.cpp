// no torch
// Remembers which program this process is.
#include "app/program.h"

#include <stdexcept>

namespace gradstep {
namespace {

const Program* current = nullptr;

}  // namespace

void set_program(const Program& program) { current = &program; }

const Program& program() {
  if (current == nullptr) throw std::logic_error("no program is set");
  return *current;
}

}  // namespace gradstep
