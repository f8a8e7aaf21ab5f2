"""What ``tcl tune`` shows while it searches: the panel, the lines, the JSON."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from fake_search import Event, Race, search, take
from rich.live import Live

from tcl.bench.ceilings import Ceilings
from tcl.bench.roofline import Roofline
from tcl.cli.progress_json import JsonProgress
from tcl.codegen.loopir.cost import Cost
from tcl.codegen.options.options import MappingOptions
from tcl.common.number_format import duration, plural, ratio_text
from tcl.progress.console import Console
from tcl.progress.panel import Progress
from tcl.progress.state import SearchState
from tcl.tuner.run import events
from tcl.tuner.run.stop_requests import FINISH, KILL

YARDSTICK = Roofline(Cost(10_000_000, 1e7, 1000, 1000), Ceilings(1e10, 1e10, 1e12), 1 << 20)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def paced(found: Iterator[Event], clock: Clock, seconds: float) -> Iterator[Event]:
    """A candidate takes so many seconds."""
    for event in found:
        if isinstance(event, events.CandidateDone):
            clock.now += seconds
        yield event


def until(found: Iterator[Event], *place: int) -> Iterator[Event]:
    for event in found:
        yield event
        match event:
            case events.CandidateDone() if (event.candidate.generation, event.done) == place:
                return


def facts(state: SearchState) -> dict[str, str]:
    return dict(state.settings_shown())


def test_panel_has_all_that_was_asked_for() -> None:
    clock = Clock()
    state = SearchState(YARDSTICK, clock=clock)
    take(state, paced(until(search(4, 20), 2, 10), clock, 0.5))
    shown = facts(state)
    assert shown["generation"] == "2 of 4, candidate 10 of 20"
    assert shown["compiled"] == str(31 - 3)
    assert shown["evaluated"] == "31"
    assert shown["failed"] == "3 constraints"
    assert "µs" in shown["best so far"]
    assert "as fast as the untuned default (first reading)" in shown["best so far"]
    assert "FLOP/s" in shown[""]
    assert "% of the roofline" in shown[""]
    assert "best" in shown["this generation"] and "median" in shown["this generation"]
    assert shown["elapsed"] == "16 s"
    # 50 candidates of half a second are left: 10 of this generation, 20 of each of two.
    assert shown["left"] == "about 25 s"
    assert 0.3 < state.progress < 0.4


def test_time_left_ends_with_the_limit() -> None:
    clock = Clock()
    state = SearchState(None, 20.0, clock)
    assert state.seconds_left() == 20.0
    take(state, paced(until(search(4, 20), 2, 10), clock, 0.5))
    assert state.seconds_left() == pytest.approx(4.5)
    clock.now = 30.0
    assert state.seconds_left() == 0.0


def test_time_left_is_not_guessed_from_nothing() -> None:
    state = SearchState(YARDSTICK, clock=Clock())
    assert state.seconds_left() is None
    assert facts(state)["left"] == "?"
    assert facts(state)["generation"] == "computing the reference"
    assert facts(state)["best so far"] == "-"


def test_finals_have_the_last_word() -> None:
    state = SearchState(YARDSTICK, clock=Clock())
    for event in search():
        state.take(event)
        if isinstance(event, events.Raced):
            break
    assert facts(state)["generation"] == "finals: 7 candidates timed in turns"
    assert state.progress == 1.0
    assert state.finals_line().startswith("finals: winner ")


def shown(found: Iterator[Event], terminal: bool, **settings: Any) -> tuple[str, Progress]:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=terminal, width=100)
    with Progress("mm M=64 [bold]", YARDSTICK, console=console, **settings) as progress:
        take(progress, found)
    return stream.getvalue(), progress


def test_lines_where_there_is_no_terminal() -> None:
    text, _ = shown(search(), terminal=False)
    lines = text.splitlines()
    assert lines[0] == "tuning mm M=64 [bold]"
    assert lines[1].startswith("start: best so far 1.00 ms, the untuned default (first reading); ")
    assert [line.split(":")[0] for line in lines[2:5]] == [f"generation {k}/3" for k in (1, 2, 3)]
    assert lines[-2].startswith("finals: winner ")
    assert lines[-1].startswith("the winner is ")
    assert "compiled" in lines[2] and "evaluated" in lines[2] and "2 constraints" in lines[2]
    assert "GFLOP/s" in lines[2] and "of the roofline" in lines[2]
    assert lines[2].endswith(" left")
    assert "\x1b" not in text


def test_panel_on_a_terminal() -> None:
    text, _ = shown(search(), terminal=True)
    for word in ("generation", "compiled", "evaluated", "failed", "winner", "all of 3", "roofline"):
        assert word in text
    assert "mm M=64 [bold]" in text


def test_panel_has_a_line_for_each_fact() -> None:
    stream = io.StringIO()
    progress = take(Progress("mm", YARDSTICK), until(search(), 2, 5))
    Console(file=stream, width=90).print(progress.panel())
    lines = [line.strip("│ ") for line in stream.getvalue().splitlines()]
    names = ("compiled", "evaluated", "failed", "best so far", "this generation", "elapsed", "left")
    for name in ("generation", *names):
        assert sum(line.startswith(f"{name}  ") for line in lines) == 1, lines
    assert len({len(line) for line in stream.getvalue().splitlines()}) == 1


def frame(progress: Progress, console: Console) -> str:
    with console.capture() as capture:
        console.print(progress.panel())
    return capture.get()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_panel_leaves_room_for_what_the_terminal_writes_at_ctrl_c(width: int) -> None:
    """``^C^C`` behind its last line must not make a new one: a border would be left behind."""
    console = Console(file=io.StringIO(), width=width)
    progress = take(Progress("mm", YARDSTICK, console=console), until(search(), 2, 5))
    lines = frame(progress, console).splitlines()
    assert {len(line) for line in lines} == {min(84, width - 4)}


def test_a_terminal_that_gets_narrower_is_drawn_anew() -> None:
    """It has broken the lines of the last frame, so that going back over it leaves a part."""
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    progress = take(Progress("mm", YARDSTICK, console=console), until(search(), 2, 5))
    progress.report(events.Note("a note"))
    assert "\x1b[2J" not in frame(progress, console)
    console.width = 60
    anew = frame(progress, console)
    assert anew.startswith("\x1b[2J\x1b[H")
    assert "a note" in anew and "evaluated" in anew
    assert "\x1b[2J" not in frame(progress, console)
    console.width = 120
    assert "\x1b[2J" not in frame(progress, console)


def test_last_frame_says_how_it_ended() -> None:
    state = take(SearchState(YARDSTICK, clock=Clock()), search())
    shown = facts(state)
    assert shown["generation"] == "all of 3"
    assert "left" not in shown and "this generation" not in shown
    cut = facts(take(SearchState(YARDSTICK, clock=Clock()), search(race=Race.NONE)))
    assert cut["winner"].endswith("(first reading)")


def test_interrupts_are_told() -> None:
    found: list[Event] = [events.Interrupted(FINISH, "SIGINT"), events.Interrupted(KILL, "SIGINT")]
    text, _ = shown(iter(found), terminal=False)
    assert "SIGINT: running candidates finish" in text
    assert "again: stopped" in text
    assert take(SearchState(), iter(found)).signalled == "SIGINT"
    limited: list[Event] = [events.Interrupted(FINISH, "time limit")]
    assert not take(SearchState(), iter(limited)).signalled


def test_json_has_every_event() -> None:
    stream = io.StringIO()
    with JsonProgress({"entry": "mm"}, stream) as progress:
        take(progress, search(2, 8))
        progress.report(events.Note("a sentence\nof two lines"))
        progress.report(events.Interrupted(FINISH, "SIGTERM"))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert lines[0]["event"] == "started"
    assert lines[0]["entry"] == "mm"
    kinds = {line["event"] for line in lines}
    assert kinds == {
        *("started", "generation", "compiled", "candidate", "best", "finals", "raced"),
        *("finished", "note", "interrupted"),
    }
    seconds = [line["seconds"] for line in lines]
    assert seconds == sorted(seconds)
    candidates = [line for line in lines if line["event"] == "candidate"]
    assert len(candidates) == 17
    for line in candidates:
        MappingOptions.from_json(json.dumps(line["options"]))
        assert (line["time"] is None) == (line["verdict"] != "correct") == (not line["samples"])
    finished = next(line for line in lines if line["event"] == "finished")
    raced = next(line for line in lines if line["event"] == "raced")
    assert raced["best"]["options"] == finished["best"]["options"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.5e-6, "1.50 µs"),
        (45.678e-6, "45.7 µs"),
        (456.7e-6, "457 µs"),
        (999.96e-6, "1.00 ms"),  # rounded, then put into its unit
        (0.012345, "12.3 ms"),
        (1234.5, "1,230 s"),
        (2.5e-9, "2.50 ns"),
        (0.0, "0.00 ns"),
    ],
)
def test_times_have_three_digits(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_times_are_alike_beside_the_live_panel_and_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands for standard output meanwhile has no encoding."""
    console = Console(file=io.StringIO(), force_terminal=True)
    with Live(console=console, redirect_stdout=True):
        assert getattr(sys.stdout, "encoding", None) is None
        assert duration(2e-6) == "2.00 µs"


def test_a_terminal_of_few_signs_gets_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), "ascii"))
    assert (duration(2e-6), ratio_text(1.5)) == ("2.00 us", "1.50 x")


def test_one_is_one() -> None:
    assert [plural(n, "key") for n in (0, 1, 2, 1000)] == [
        "0 keys",
        "1 key",
        "2 keys",
        "1,000 keys",
    ]
