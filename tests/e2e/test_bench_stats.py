"""The benchmark runner's statistics, on fake programs: warm-up left out, median and spread shown, rounds paired (case L3)."""

import argparse
import json
import pathlib
import stat
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import compare  # noqa: E402
import peer_common  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import run  # noqa: E402
import stats  # noqa: E402

CASE = peers.Case(32, 4, "fp32")
EFFORT = peers.Effort(seconds=0.5, warmup_windows=10)

# Writes the rows of a run whose windows take 8 and 12 ms by turns, the first one SLOW_SECONDS more; nothing really waits.
FAKE_GRADSTEP = """\
    import json, pathlib, sys
    flags = dict(zip(sys.argv[2::2], sys.argv[3::2]))
    folder = pathlib.Path(flags["-o"])
    folder.mkdir()
    with open(folder / "metrics.jsonl", "w") as rows:
        for number in range(int(flags["--max-steps"])):
            seconds = (0.008, 0.012)[number % 2] + (SLOW_SECONDS if number == 0 else 0)
            row = {"window": number + 1, "loss": 0.5, "samples": 128 * (number + 1), "samples_per_s": 128 / seconds}
            rows.write(json.dumps(row) + "\\n")
        rows.write(json.dumps({"update": number + 1, "val_acc": 0.9, "val_loss": 0.3}) + "\\n")
    """

# A peer whose windows really take 5 ms, the first one SLOW_SECONDS more.
FAKE_PEER = """\
    import sys, time
    sys.path.insert(0, BENCH)
    import peer_common
    arguments = peer_common.parse_arguments("fake")
    clock = peer_common.SteadyClock(arguments.warmup_windows, arguments.seconds)
    time.sleep(SLOW_SECONDS)
    while True:
        time.sleep(0.005)
        if not clock.tick(128):
            break
    peer_common.print_result("fake", arguments, clock, 0.5)
    """


def program(folder, text, slow_seconds):
    path = pathlib.Path(folder) / f"fake_{slow_seconds}.py"
    constants = f"SLOW_SECONDS = {slow_seconds}\nBENCH = {str(ROOT / 'bench')!r}\n"
    path.write_text(f"#!{sys.executable}\n{constants}{textwrap.dedent(text)}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


class CaseL3(unittest.TestCase):
    """pytorch#93634: a sleep of 2 s in update 1 leaves the samples/s unchanged."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def rate_of_gradstep(self, slow_seconds, effort):
        path = program(self.folder.name, FAKE_GRADSTEP, slow_seconds)
        fake = peers.Gradstep("gradstep", (str(path),), (CASE,), ([],))
        return fake.measure(CASE, [], effort, self.folder.name)

    def test_rows_of_gradstep(self):
        plain = self.rate_of_gradstep(0, EFFORT)
        slow = self.rate_of_gradstep(2, EFFORT)
        self.assertEqual(plain["samples_per_s"], slow["samples_per_s"])
        self.assertAlmostEqual(plain["samples_per_s"], 128 / 0.010, delta=1e-6 * 12800)
        self.assertEqual(plain["warmup_windows"], 10)
        self.assertEqual(plain["windows"], 50)  # 0.5 s at 100 windows/s

    def test_without_warm_up_the_sleep_would_show(self):
        slow = self.rate_of_gradstep(2, peers.Effort(seconds=0.5, warmup_windows=0))
        self.assertLess(slow["samples_per_s"], 0.5 * 12800)

    def test_peer_that_really_sleeps(self):
        path = program(self.folder.name, FAKE_PEER, 2)
        fake = peers.Peer("fake", (sys.executable, str(path)), (CASE,), ([],))
        result = fake.measure(CASE, [], EFFORT, self.folder.name)
        # Each window sleeps 5 ms at least; a busy machine makes it more. With the 2 s counted it would be under 20 %.
        self.assertLessEqual(result["samples_per_s"], 128 / 0.005)
        self.assertGreater(result["samples_per_s"], 0.4 * 128 / 0.005)

    def test_clock_of_the_peers(self):
        def rate(first_seconds):
            times = iter([0.0, *(first_seconds + 0.25 * n for n in range(30))])
            clock = peer_common.SteadyClock(3, 4.0, now=lambda: next(times))
            while clock.tick(100):
                pass
            return clock.samples_per_s, clock.windows

        self.assertEqual(rate(0.25), rate(2.25))
        self.assertEqual(rate(0.25), (400.0, 16))


class Statistics(unittest.TestCase):
    def test_median_and_spread(self):
        self.assertEqual(stats.summarise([5.0, 1.0, 4.0]), stats.Summary(3, 4.0, 1.0, 5.0))
        self.assertEqual(stats.summarise([1.0, 2.0, 4.0, 9.0]).median, 3.0)
        with self.assertRaises(ValueError):
            stats.summarise([])

    def test_ratios_are_paired_by_round(self):
        # Round 2 ran at half speed for both: the ratio stays, where medians of unpaired rounds would hide it.
        self.assertEqual(stats.paired_ratios([20.0, 10.0, 22.0], [10.0, 5.0, 11.0]), [2.0, 2.0, 2.0])
        with self.assertRaises(ValueError):
            stats.paired_ratios([1.0], [1.0, 2.0])

    def test_rate_weighs_windows_by_their_time(self):
        rows = [
            {"samples": 100, "samples_per_s": 1.0},
            {"samples": 200, "samples_per_s": 100.0},  # 1 s
            {"update": 2, "val_acc": 0.5},
            {"samples": 230, "samples_per_s": 10.0},  # 3 s
        ]
        self.assertAlmostEqual(stats.steady_rate(rows, 1), 130 / 4)
        with self.assertRaises(ValueError):
            stats.steady_rate(rows, 3)


class Runner(unittest.TestCase):
    def test_rounds_interleave_and_report_shows_warm_up_n_median_spread(self):
        order = []

        class Scripted:
            def __init__(self, name, rates):
                self.name, self.rates = name, iter(rates)

            def measure(self, case, options, effort, data_dir):
                order.append(self.name)
                return {"samples_per_s": next(self.rates), "warmup_windows": effort.warmup_windows}

        ours, theirs = Scripted("gradstep", [300.0, 100.0, 330.0]), Scripted("python_best", [150.0, 100.0, 110.0])
        jobs = [(CASE, ours), (CASE, theirs)]
        options = {job: ["--threads", "2"] for job in jobs}
        rates = run.measure_rounds(jobs, options, argparse.Namespace(quick=False, rounds=3), None)
        self.assertEqual(order, ["gradstep", "python_best", "python_best", "gradstep", "gradstep", "python_best"])

        result = {
            "date": "2026-01-01T00:00:00+00:00", "quick": False, "rates": rates, "start_up": [],
            "options": {f"{CASE.name} {peer.name}": chosen for (_, peer), chosen in options.items()},
            "machine": {"cpu": "a processor", "cores": 2, "torch": "2.13.0", "commit": "abc", "changed_files": 0},
        }  # fmt: skip
        table = report.table(json.loads(json.dumps(result)))
        warmup = run.FULL.warmup_windows
        self.assertIn(f"| 32x4 fp32 | gradstep | `--threads 2` | {warmup} | 300 (100 - 330; n = 3) |", table)
        self.assertIn(f"| 32x4 fp32 | python_best | `--threads 2` | {warmup} | 110 (100 - 150; n = 3) |", table)
        self.assertIn("| 32x4 against the best Python loop | >= 1.4 | 2.00 (1.00 - 3.00; n = 3) | yes |", table)

    def test_saves_are_paired_by_round_by_their_medians(self):
        def one_round(stall_ms, torch_ms):
            ours = {
                "bytes": 100000000,
                "first_stall_s": 0.05,
                "stall_s": [stall_ms / 1e3] * 3 + [9.0],
                "durable_s": [0.5],
            }
            ours |= {"durable_beside_updates_s": [0.75], "update_s": [0.25], "update_beside_save_s": [0.5]}
            return {"save_stall": ours, "torch_save": {"durable_s": [0.001, torch_ms / 1e3, 8.0]}}

        about = {"commit": "abc", "changed_files": 0, "load_at_start": 0.25}
        rounds = [one_round(10, 200), one_round(50, 1000), one_round(20, 100)]
        lines = report.save_rows({"saves": {"date": "2026-01-02T00:00:00", "machine": about, "rounds": rounds}})
        self.assertIn("A save of 100 MB", lines[1])
        self.assertIn("| the run waits, ms | - | 20.0 (10.0 - 50.0; n = 3) |  |", lines)
        self.assertIn("| wait of `torch.save` against ours | >= 10 | 20.00 (5.00 - 20.00; n = 3) | yes |", lines)
        self.assertIn(
            "| time of `torch.save` until durable against ours | >= 1 | 0.40 (0.20 - 2.00; n = 3) | NO |", lines
        )
        self.assertIn("| an update beside a save against one alone | - | 2.00 (2.00 - 2.00; n = 3) |  |", lines)
        self.assertEqual(report.save_rows({}), [])

    def test_goal_that_is_missed_is_named(self):
        self.assertEqual(report.verdict(1.39, 1.4), (">= 1.4", "NO"))
        self.assertEqual(report.verdict(1.4, 1.4), (">= 1.4", "yes"))


class Compare(unittest.TestCase):
    """bench/compare.py: pairs by round, and a gate that holds."""

    def test_rounds_alternate_and_are_paired(self):
        calls = []

        def bench(side, rate):
            return lambda: (calls.append(side), rate)[1]

        base = {"a": bench("base", 100.0), "gone": bench("base", 1.0)}
        head = {"a": bench("head", 98.0), "new": bench("head", 1.0)}
        rates = compare.measure(base, head, 3)
        self.assertEqual(rates, {"a": ([100.0] * 3, [98.0] * 3)})
        self.assertEqual(calls, ["base", "head", "head", "base", "base", "head"])

    def test_the_median_ratio_decides(self):
        # A machine that slows down in the second round slows both: the ratios stay.
        table, slower = compare.judge({"a": ([100.0, 50.0, 100.0], [96.0, 48.0, 96.0])}, 0.05)
        self.assertEqual(slower, [])
        self.assertIn("0.960 (0.960 - 0.960; n = 3)", table)
        table, slower = compare.judge({"a": ([100.0, 50.0, 100.0], [94.0, 47.0, 120.0])}, 0.05)
        self.assertEqual(slower, ["a"])
        self.assertIn("| slower |", table)


if __name__ == "__main__":
    unittest.main()
