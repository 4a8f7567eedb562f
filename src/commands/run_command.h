// The commands that every App has: each takes its arguments and returns the exit code. `quiet`: --quiet was
// given before the name of the command.
#pragma once

namespace gradstep {

struct Arguments;

int command_train(const Arguments& arguments, bool quiet);
int command_eval(const Arguments& arguments, bool quiet);
int command_replay(const Arguments& arguments, bool quiet);
int command_ckpt_ls(const Arguments& arguments, bool quiet);
int command_ckpt_verify(const Arguments& arguments, bool quiet);
int command_ckpt_diff(const Arguments& arguments, bool quiet);
int command_ckpt_export(const Arguments& arguments, bool quiet);
int command_verify_resume(const Arguments& arguments, bool quiet);
int command_doctor(const Arguments& arguments, bool quiet);
int command_env(const Arguments& arguments, bool quiet);

}  // namespace gradstep
