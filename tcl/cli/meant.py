"""Options that users type under other names."""

from __future__ import annotations

import re
from collections.abc import Iterable

import click

from tcl.common.closest import closest, closest_few, did_you_mean

OTHER_NAMES = {
    "--time-limit": "seconds time timeout time-out max-time max-seconds duration budget limit",
    "--generations": "iterations iters epochs steps trials",
    "--population": "pop population-size pop-size",
    "--strategy": "algorithm method search tuner",
    "--runs": "repeat repeats reps times iterations iters samples trials",
    "--rounds": "repeat repeats reps iterations iters samples trials",
    "--jobs": "workers processes procs parallel compile-jobs",
    "--threads": "num-threads n-threads nthreads cpus cores workers",
    "--device": "target gpu cuda arch hardware",
    "--entry": "def name function func kernel op entry-point",
    "--sizes": "shape shapes dims dimensions params",
    "--varying": "dynamic dynamic-sizes symbolic",
    "--options": "schedule mapping config preset",
    "--fix": "pin knob set constrain",
    "--stage": "emit dump print-ir pass level",
    "--cache": "db database cache-file cache-dir",
    "--out": "output save file destination",
    "--report": "html page report-file",
    "--resume": "continue restart resume-from",
    "--seed": "random-seed rng rng-seed",
    "--rows": "filter only select benchmark benchmarks ops",
    "--peers": "libraries libs against compare baselines",
    "--top": "count first head limit max number",
    "--tolerance": "tol rtol atol epsilon",
    "--quiet": "silent no-progress",
    "--dry-run": "plan preview simulate",
}
"""An option, and words that are typed for it. Several options may share one: a command offers those
that it has."""
_MOST = 3


class Commands(click.Group):
    """A group that says which of its commands was probably meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            hint = did_you_mean(args[0], known, f"there are: {', '.join(known)}")
            raise click.UsageError(f"there is no command '{args[0]}'; {hint}", ctx)
        return super().resolve_command(ctx, args)


_SIZE = re.compile(r"[^\W\d]\w*=\d[\w.:-]*,?")


def sizes_apart(words: Iterable[str]) -> str:
    """What is wrong with those of these words that are sizes; nothing if none is one."""
    size = next((word for word in words if _SIZE.fullmatch(word)), "").rstrip(",")
    rule = "all sizes are one word, without spaces, such as --sizes M=3,K=4"
    return f"{size} is a size, not a file; {rule}" if size else ""


def with_meant_words(error: click.UsageError) -> click.UsageError:
    """An error that says what is meant by too many words: sizes, or a def; or that a command takes
    none."""
    if error.ctx is None or not error.message.startswith("Got unexpected extra argument"):
        return error
    parameters = error.ctx.command.get_params(error.ctx)
    if any("--entry" in p.opts for p in parameters):
        if apart := sizes_apart(re.findall(r"[^\s()]+", error.message)):
            return click.UsageError(apart, error.ctx)
        rule = "there is one FILE, and --entry chooses a def of it"
    elif not any(isinstance(p, click.Argument) for p in parameters):
        rule = f"{error.ctx.command_path} takes options only"
    else:
        return error
    return click.UsageError(f"{error.message}: {rule}", error.ctx)


def with_meant_options(error: click.NoSuchOption) -> click.UsageError:
    """An error that names the options that were probably meant, of those that the command has."""
    if error.ctx is None:
        return error
    word = error.option_name.lstrip("-").replace("_", "-").casefold()
    parameters = error.ctx.command.get_params(error.ctx)
    known = [o for p in parameters for o in (*p.opts, *p.secondary_opts) if o.startswith("--")]
    meant = [name for name in known if word in OTHER_NAMES.get(name, "").split()]
    if not (meant := meant or closest_few("--" + word, known, _MOST)):
        near = closest(word, " ".join(OTHER_NAMES.get(name, "") for name in known).split())
        meant = [name for name in known if near in OTHER_NAMES.get(name, "").split()]
    meant = sorted(meant)
    hint = f" Did you mean {' or '.join(meant)}?" if meant else ""
    return click.UsageError(f"No such option '{error.option_name}'.{hint}", error.ctx)
