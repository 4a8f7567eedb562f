"""Turns the result of a benchmark run into a Markdown table: rates, ratios to gradstep, and what was to be reached."""

import statistics

from stats import paired_ratios, summarise

# (what, our case and name, other case and name, at least)
GOALS = [
    ("32x4 against the best Python loop", ("32x4 fp32", "gradstep"), ("32x4 fp32", "python_best"), 1.4),
    ("128x1 against the best Python loop (32x4)", ("128x1 fp32", "gradstep"), ("32x4 fp32", "python_best"), 2.5),
    ("128x1 against the best Python loop (128x1)", ("128x1 fp32", "gradstep"), ("128x1 fp32", "python_best"), None),
    ("128x1 against the LibTorch loop (32x4)", ("128x1 fp32", "gradstep"), ("32x4 fp32", "libtorch"), 3.0),
    ("128x1 against the LibTorch loop (128x1)", ("128x1 fp32", "gradstep"), ("128x1 fp32", "libtorch"), None),
    ("128x1 against the matrix products alone", ("128x1 fp32", "gradstep"), ("128x1 fp32", "matmul_bound"), 0.6),
    ("32x4 against the plain Python script", ("32x4 fp32", "gradstep"), ("32x4 fp32", "python_plain"), None),
    ("128x1 against the plain Python script (32x4)", ("128x1 fp32", "gradstep"), ("32x4 fp32", "python_plain"), None),
    ("32x4 bf16 against the best Python loop", ("32x4 bf16", "gradstep"), ("32x4 bf16", "python_best"), None),
    ("128x1 bf16 against the best Python loop", ("128x1 bf16", "gradstep"), ("128x1 bf16", "python_best"), None),
    ("Engine against the bare loop, 32x4", ("32x4 fp32", "engine_loop"), ("32x4 fp32", "bare_loop"), 0.97),
    ("Engine against the bare loop, 128x1", ("128x1 fp32", "engine_loop"), ("128x1 fp32", "bare_loop"), 0.97),
    ("32x4 fp32 against the compiled Python loop", ("32x4 fp32", "gradstep"), ("32x4 fp32", "python_compiled"), None),
    (
        "128x1 fp32 against the compiled Python loop",
        ("128x1 fp32", "gradstep"),
        ("128x1 fp32", "python_compiled"),
        None,
    ),
]
START_UP_LIMIT_SECONDS = 1.5


def rates_of(result, case, peer):
    rounds = result["rates"].get(case, {}).get(peer)
    return [entry["samples_per_s"] for entry in rounds] if rounds else None


def head(result):
    about = result["machine"]
    commit = about["commit"] + (" with changes" if about["changed_files"] else "")
    lines = [
        f"Measured {result['date'][:10]} on {about['cpu']}, {about['cores']} cores, torch {about['torch']}, commit {commit};",
        "median (least - greatest; number of rounds), warm-up left out, peers interleaved.",
    ]
    if result["quick"]:
        lines.append("A quick run: the numbers mean little.")
    return lines


def rate_rows(result):
    lines = ["| window | program | options | warm-up, windows | samples/s |", "|---|---|---|---|---|"]
    for case, by_peer in result["rates"].items():
        for peer, rounds in by_peer.items():
            options = " ".join(option for option in result["options"][f"{case} {peer}"] if option)
            summary = summarise(entry["samples_per_s"] for entry in rounds).text()
            warmup = rounds[0].get("warmup_windows", "-")
            lines.append(f"| {case} | {peer} | `{options}` | {warmup} | {summary} |")
    return lines


def verdict(value, at_least):
    if at_least is None:
        return "-", ""
    return f">= {at_least}", "yes" if value >= at_least else "NO"


def goal_rows(result):
    lines = ["| ratio, paired by round | to reach | measured | reached |", "|---|---|---|---|"]
    for what, ours, theirs, at_least in GOALS:
        one, other = rates_of(result, *ours), rates_of(result, *theirs)
        if not one or not other:
            continue
        summary = summarise(paired_ratios(one, other))
        goal, reached = verdict(summary.median, at_least)
        lines.append(f"| {what} | {goal} | {summary.text(2)} | {reached} |")
    return lines


def start_up_rows(result):
    rounds = result["start_up"]
    if not rounds:
        return []
    first = summarise(entry["first_update_s"] for entry in rounds)
    whole = summarise(entry["exit_s"] for entry in rounds)
    python = summarise(entry["import_torch_s"] for entry in rounds)
    reached = "yes" if first.median < min(START_UP_LIMIT_SECONDS, python.median) else "NO"
    return [
        "",
        "| start-up, seconds | to reach | measured | reached |",
        "|---|---|---|---|",
        f"| process start to the first update | < {START_UP_LIMIT_SECONDS}, < import torch | {first.text(2)} | {reached} |",
        f"| a run of one update to its exit | - | {whole.text(2)} | |",
        f'| `python -c "import torch"` | - | {python.text(2)} | |',
    ]


def save_rows(result):
    """Each round counts with the medians of its saves."""
    saves = result.get("saves")
    if not saves:
        return []
    about = saves["machine"]
    ours = [entry["save_stall"] for entry in saves["rounds"]]
    theirs = [statistics.median(entry["torch_save"]["durable_s"]) for entry in saves["rounds"]]

    def each(key):
        return [statistics.median(entry[key]) for entry in ours]

    def row(what, values, unit_scale, digits, at_least=None):
        summary = summarise(value * unit_scale for value in values)
        goal, reached = verdict(summary.median, at_least)
        return f"| {what} | {goal} | {summary.text(digits)} | {reached} |"

    commit = about["commit"] + (" with changes" if about["changed_files"] else "")
    return [
        "",
        f"A save of {ours[0]['bytes'] / 1e6:.0f} MB (an MLP with both moments of AdamW), measured {saves['date'][:10]} on commit {commit}, load {about['load_at_start']}:",
        "",
        "| save | to reach | measured | reached |",
        "|---|---|---|---|",
        row("the run waits, ms", each("stall_s"), 1e3, 1),
        row("it waits at the first save, ms", [entry["first_stall_s"] for entry in ours], 1e3, 1),
        row("durable, while the run waits, ms", each("durable_s"), 1e3, 1),
        row("durable, beside updates, ms", each("durable_beside_updates_s"), 1e3, 1),
        row("`torch.save`, sync, rename: the run waits, ms", theirs, 1e3, 1),
        row("wait of `torch.save` against ours", paired_ratios(theirs, each("stall_s")), 1, 2, 10),
        row("time of `torch.save` until durable against ours", paired_ratios(theirs, each("durable_s")), 1, 2, 1),
        row(
            "an update beside a save against one alone",
            paired_ratios(each("update_beside_save_s"), each("update_s")),
            1,
            2,
        ),
    ]


def table(result):
    lines = [*head(result), "", *rate_rows(result), "", *goal_rows(result), *start_up_rows(result), *save_rows(result)]
    return "\n".join(lines) + "\n"
