// Joins the checks, prints what they find, and sums it up.
#include "commands/doctor_command.h"

#include <nlohmann/json.hpp>

#include "checkpoint/checkpoint_files.h"
#include "commands/doctor_disk.h"
#include "commands/doctor_machine.h"
#include "commands/doctor_run.h"
#include "commands/finding.h"
#include "commands/spell_flags.h"
#include "commands/terminal.h"

namespace gradstep {
namespace {

using Json = nlohmann::ordered_json;

void print_json(const DoctorOptions& options, const std::vector<Finding>& findings, int exit_code) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back(Json{{"grade", to_string(finding.grade)},
                        {"name", finding.name},
                        {"text", spell_flags(finding.text)},
                        {"exit_code", static_cast<int>(finding.exit_code)}});
  }
  const Json json{{"run", options.run.empty() ? Json() : Json(options.run)},
                  {"findings", std::move(list)},
                  {"verdict", verdict(findings)},
                  {"exit_code", exit_code}};
  write_stdout(json.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n");
}

}  // namespace

int run_doctor(const DoctorOptions& options) {
  std::string run;
  if (!options.run.empty()) {
    run = run_of(options.run).string();
    require_run(run);
  }
  std::vector<Finding> findings;
  const Tell tell = [&](Finding finding) {
    // Each line as soon as it is known: to read large checkpoints takes a while.
    if (!options.json && !options.quiet) write_stdout(line_of(finding));
    findings.push_back(std::move(finding));
  };
  examine_machine(machine_facts(), !run.empty() && is_going_on(run), tell);
  examine_disks(run, tell);
  if (!run.empty()) examine_run(run, tell);
  const int exit_code = exit_code_of(findings);
  if (options.json) {
    print_json(options, findings, exit_code);
  } else {
    write_stdout(verdict(findings) + "\n");
  }
  return exit_code;
}

}  // namespace gradstep
