"""The command line, ``tcl``. Exit codes: 0 done, 1 the input is wrong, 2 usage, 130 interrupted,
143 terminated.

Each command lives in a file of its own, which is imported when it is called, so that ``tcl check``
starts fast.
"""

from __future__ import annotations

import io
import re
import sys
from importlib import import_module
from typing import Any

import click

from tcl import __version__
from tcl.cli.meant import Commands, with_meant_options, with_meant_words
from tcl.cli.output import exit_code, raising, written
from tcl.common.errors import TclError

_COMMANDS = {
    "check": "parse and check a file",
    "show": "show the stages of a def: ast, ir, schedule, source, asm, counters, reference",
    "run": "run a def on random inputs, compare it with the reference, print the time",
    "tune": "search for the fastest options and save them",
    "cache": "show and manage tuning results: list, best, show, why, inspect, merge, prune, ...",
    "model": (
        "learn from tuning results, to choose options without a search: train, evaluate, predict"
    ),
    "bench": "measure the benchmark suite beside other libraries",
    "devices": "show the devices of this machine",
    "docs": "print a page or a section of the documentation",
}


_CLICKS = re.compile("^Error: ", re.MULTILINE)


class _Lazy(Commands):
    """Commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        try:
            command: click.Command = import_module(f"tcl.cli.{cmd_name}").command
        except TclError as error:  # of a variable of the environment
            raise click.ClickException(str(error)) from None
        return command

    def main(self, *args: Any, **kwargs: Any) -> Any:
        with written():
            try:
                code = super().main(*args, **{**kwargs, "standalone_mode": False})
            except click.ClickException as error:  # a wrong command line
                if isinstance(error, click.NoSuchOption):
                    error = with_meant_options(error)
                elif isinstance(error, click.UsageError):
                    error = with_meant_words(error)
                said = io.StringIO()
                error.show(said)
                text = _CLICKS.sub("error: ", said.getvalue())
                text = re.sub("is not a valid integer( range)?", "is not a whole number", text)
                text = text.replace("is not a valid float", "is not a number")
                click.echo(text, err=True, nl=False)
                code = error.exit_code
            except click.Abort:
                code = exit_code(KeyboardInterrupt())
            sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> object:
        try:
            with raising():
                from tcl.cli.common import reporting  # which ``--help`` does without

                with reporting():
                    return super().invoke(ctx)
        except KeyboardInterrupt as stopped:  # click would exit with 1
            sys.exit(exit_code(stopped))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version")
def main() -> None:
    """Tensor Comprehensions: index notation in, tuned kernels out."""
