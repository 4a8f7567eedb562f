"""Faults that were reported on folders, checkpoints and files of runs of version 0.1, by their numbers."""

import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from program import ENVIRONMENT, PROGRAM, ProgramTest, finish, rows, run, start, wait_for, wait_for_content  # noqa: E402


class Access(ProgramTest):
    def twice(self):
        """Two checkpoints, and the newest of them."""
        self.done(run(*self.small("--max-steps", 8, "--save-interval", 4)))
        return self.folder / "run/checkpoints/step-00000008"

    def test_r5_what_cannot_be_read_is_not_passed_over(self):
        newest = self.twice()
        shutil.move(newest / "model.safetensors", self.folder / "kept")
        (newest / "model.safetensors").symlink_to("model.safetensors")  # leads to itself: not gone, and not to be read
        result = run(*self.small("--max-steps", 8, "--save-interval", 4, "--resume", "auto"))
        self.check_refusal(result, 4, "Too many levels of symbolic links", str(newest))
        (newest / "model.safetensors").unlink()
        shutil.move(self.folder / "kept", newest / "model.safetensors")
        self.done(run("ckpt", "verify", self.folder / "run"))  # nothing was trained over it

    @unittest.skipUnless(os.geteuid() == 0, "needs another user")
    def test_r5_rights(self):
        newest = self.twice()
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, 65534, 65534)
        os.chown(newest, 0, 0)
        newest.chmod(0o700)
        words = self.small("--max-steps", 8, "--save-interval", 4, "--resume", "auto")
        result = run(*words, user=65534, group=65534, env={"HOME": str(self.folder)})
        self.check_refusal(result, 4, "Permission denied", str(newest))
        listed = run("ckpt", "ls", self.folder / "run", user=65534, group=65534)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        old, new = listed.stdout.splitlines()[1:]
        self.assertNotIn("latest", old)
        self.assertIn("latest, ", new)
        self.assertIn("Permission denied", new)

    def test_r6_beside_a_run_that_removes_what_was_listed(self):
        words = self.small(
            "--max-steps", 100_000_000, "--save-interval", 1, "--keep-checkpoints", 1, "--log-interval", 0
        )
        process = start(*words)
        try:
            wait_for(lambda: any((self.folder / "run/checkpoints").glob("step-*")))
            for i in range(15):
                self.done(run("ckpt", "verify", self.folder / "run"))
                self.done(run("ckpt", "export", self.folder / "run", self.folder / f"{i}.pt"))
        finally:
            process.send_signal(signal.SIGTERM)
            finish(process)

    def test_r58_what_is_removed_has_no_name_of_a_checkpoint(self):
        """A kill may come at any moment of a removal: each folder named step-* is whole."""
        words = self.small(
            "--max-steps", 100_000_000, "--save-interval", 1, "--keep-checkpoints", 1, "--log-interval", 0
        )
        for i in range(12):
            process = start(*words, "--resume", "auto")
            wait_for(lambda: any((self.folder / "run/checkpoints").glob("step-*")))
            threading.Event().wait(0.1 + 0.013 * i)
            process.kill()
            finish(process)
            self.done(run("ckpt", "verify", self.folder / "run"))

    def test_r58_an_export_clears_what_a_killed_one_left(self):
        self.twice()
        left = self.folder / ".out.pt.tmp-999999999-0"  # of no living process
        left.write_text("x")
        other = self.folder / f".out.pt.tmp-{os.getpid()}-0"
        other.write_text("x")
        self.done(run("ckpt", "export", self.folder / "run", self.folder / "out.pt"))
        self.assertFalse(left.exists())
        self.assertTrue(other.exists())

    def test_r12_devices_pipes_and_links_stay_what_they_are(self):
        self.twice()
        link = self.folder / "link.pt"
        link.symlink_to("target.pt")
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        export = ("ckpt", "export", self.folder / "run")
        self.done(run(*export, "/dev/null", "--force", "--format", "pt"))
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())
        self.done(run(*export, link, "--force"))
        self.assertTrue(link.is_symlink())
        self.assertGreater((self.folder / "target.pt").stat().st_size, 1000)
        reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
        self.done(run(*export, pipe, "--force", "--format", "safetensors"))
        content = reader.communicate(timeout=30)[0]
        self.done(run(*export, self.folder / "same.safetensors"))
        self.assertEqual(content, (self.folder / "same.safetensors").read_bytes())
        self.assertTrue(pipe.is_fifo())


class Folders(ProgramTest):
    def test_r8_a_folder_that_was_moved_is_not_written_to_any_more(self):
        words = self.small("--max-steps", 100_000_000, "--save-interval", 20, "--log-interval", 0)
        old = start(*words)
        wait_for(lambda: any((self.folder / "run/checkpoints").glob("step-*")))
        (self.folder / "run").rename(self.folder / "moved")
        new = start(*words, "--seed", 1)
        result = finish(old)  # at its next save
        self.assertEqual(result.returncode, 4, result.stderr)
        wait_for(lambda: any((self.folder / "run/checkpoints").glob("step-*")))
        # The lock of the new run is there still.
        self.check_refusal(run(*words, "--resume", "auto"), 2, f"in use by pid {new.pid}")
        new.send_signal(signal.SIGTERM)
        self.assertEqual(finish(new).returncode, 143)
        for path in (self.folder / "run/checkpoints").glob("step-*"):
            state = json.loads((path / "state.json").read_text())
            self.assertEqual(state["config"]["seed"], "1")
        self.done(run("ckpt", "verify", self.folder / "moved"))

    def shim(self, text):
        """A library that stands before the C library's functions."""
        source = self.folder / "shim.c"
        source.write_text(
            "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <errno.h>\n#include <string.h>\n#include <sys/stat.h>\n"
            + text
        )
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.folder / "shim.so", source], check=True)
        return {"LD_PRELOAD": str(self.folder / "shim.so")}

    def test_r9_a_disk_whose_files_change_their_numbers_is_refused_in_time(self):
        env = self.shim(
            "int stat(const char* path, struct stat* s) {\n"
            '  int (*real)(const char*, struct stat*) = dlsym(RTLD_NEXT, "stat");\n'
            "  static int n; int r = real(path, s);\n"
            '  if (r == 0 && strstr(path, ".gradstep.lock")) s->st_ino = 1000000 + ++n;\n'
            "  return r;\n}\n"
        )
        self.check_refusal(run(*self.small("--stop-after", 1), env=env, timeout=30), 2, "choose another disk")

    def test_r10_a_disk_without_locks_is_told_and_used(self):
        env = self.shim("int flock(int fd, int what) { errno = ENOLCK; return -1; }\n")
        result = run(*self.small("--stop-after", 1), env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("warning: --output-dir", result.stderr)
        self.assertIn("cannot lock files", result.stderr)
        self.assertTrue((self.folder / "run/model.safetensors").exists())

    def test_r11_files_that_no_run_touches_are_not_in_the_way(self):
        folder = self.folder / "run"
        (folder / "lost+found").mkdir(parents=True)
        for name in ("slurm-17.out", "train.log", ".hidden", "notes.txt"):
            (folder / name).write_text(name)
        self.done(run(*self.small("--stop-after", 1)))
        self.assertEqual((folder / "notes.txt").read_text(), "notes.txt")
        for name in ("model.safetensors", "metrics.jsonl", "best.safetensors", "blackbox-00000001.safetensors"):
            with self.subTest(name=name):
                other = self.folder / name
                other.mkdir()
                (other / name).write_text("x")
                self.check_refusal(run(*self.small("--stop-after", 1, name=name)), 2, "holds a run already")

    def test_r59_rows_that_somebody_takes_away_are_written_anew(self):
        for i, harm in enumerate(("remove", "rename", "replace", "truncate")):
            with self.subTest(harm=harm):
                name = f"run{i}"
                words = self.small("--max-steps", 30_000, "--save-interval", 500, "--log-interval", 0, "-q", name=name)
                process = start(*words)
                file = self.folder / name / "metrics.jsonl"
                wait_for_content(file)
                if harm == "remove":
                    file.unlink()
                elif harm == "truncate":
                    os.truncate(file, 0)
                else:
                    file.rename(self.folder / "elsewhere")
                    if harm == "replace":
                        file.mkdir()
                result = finish(process)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("metrics.jsonl was ", result.stderr)
                windows = [row["window"] for row in rows(self.folder / name) if "window" in row]
                self.assertEqual(windows, sorted(set(windows)))
                self.assertEqual(windows[-1], 30_000)
                if harm != "truncate":
                    self.assertEqual(len(windows), 30_000)
                self.assertTrue(any(row.get("event") == "warning" for row in rows(self.folder / name)))

    def test_r60_a_pipe_in_the_place_of_a_file_holds_up_nobody(self):
        folder = self.folder / "run"
        folder.mkdir()
        os.mkfifo(folder / "metrics.jsonl")
        result = run(*self.small("--stop-after", 1, "--resume", "auto"), timeout=30)
        self.check_refusal(result, 4, "metrics.jsonl")

    def test_r37_a_run_that_failed_has_a_last_row_that_says_so(self):
        result = run(*self.small("--lr", "1e30", "--epochs", 40))
        self.assertEqual(result.returncode, 3)
        last = rows(self.folder / "run")[-1]
        self.assertEqual((last["event"], last["code"]), ("failed", "3"))
        self.assertIn("diverged", last["error"])


class Signals(ProgramTest):
    def long(self, **options):
        process = start(*self.small("--max-steps", 100_000_000, "--log-interval", 0), **options)
        wait_for_content(self.folder / "run/metrics.jsonl")
        return process

    def test_r34_hup_and_usr2_save_and_leave(self):
        for number in (signal.SIGHUP, signal.SIGUSR2):
            with self.subTest(number.name):
                process = self.long()
                process.send_signal(number)
                self.assertEqual(finish(process).returncode, 128 + number)
                self.assertEqual(rows(self.folder / "run")[-1]["reason"], number.name)
                shutil.rmtree(self.folder / "run")

    def test_r34_what_was_ignored_at_the_start_stays_ignored(self):
        process = self.long(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        threading.Event().wait(0.5)
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(finish(process).returncode, 143)

    def test_r35_signals_that_the_parent_blocked_arrive(self):
        block = {signal.SIGTERM, signal.SIGINT, signal.SIGUSR1}
        process = self.long(preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, block))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(finish(process).returncode, 143)


class Terminal(ProgramTest):
    def output(self, kind):
        """What a run writes to a terminal of this kind."""
        ours, theirs = os.openpty()
        process = subprocess.Popen(
            [PROGRAM, *self.small("--max-steps", 300, name=kind or "none")],
            env={**ENVIRONMENT, "TERM": kind},
            stdout=theirs,
            stdin=subprocess.DEVNULL,
        )
        os.close(theirs)
        fcntl.fcntl(ours, fcntl.F_SETFL, os.O_NONBLOCK)
        text = b""
        while True:
            ended = process.poll() is not None
            try:
                text += os.read(ours, 65536)
            except BlockingIOError:
                threading.Event().wait(0.01)
            except OSError:
                break
            if ended and not text.endswith(b"\n"):
                break
        os.close(ours)
        process.wait()
        return text

    def test_r42_no_bar_where_the_cursor_cannot_move(self):
        for kind, has_bar in (("xterm", True), ("dumb", False), ("", False)):
            text = self.output(kind).replace(b"\r\n", b"\n")
            self.assertTrue(text.endswith(b"\n"))
            self.assertEqual(b"\r" in text, has_bar, kind)


if __name__ == "__main__":
    unittest.main()
