"""What was found wrong, as sentences with the lines of the source."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tcl.codegen.cuda.emit.module import CudaModule, Launch
from tcl.codegen.cuda.emulator.arena import Arena
from tcl.codegen.cuda.emulator.native import MOST_FINDINGS, Finding

_RACE = "race: {who} {does} {what} that {other} {did}, with nothing between that orders them"
SENTENCES = (
    _RACE.replace("{does}", "writes").replace("{did}", "wrote"),
    _RACE.replace("{does}", "reads").replace("{did}", "wrote"),
    _RACE.replace("{does}", "writes").replace("{did}", "read"),
    _RACE.replace("{does}", "accesses").replace("{did}", "accesses, one of both atomically"),
    "race: {who} accesses {what} to which {other} copies asynchronously and has not waited",
    "out of bounds: {who} accesses {what}",
    "input written: {who} writes {what}",
    "misaligned: {who} accesses {what}, but not at a multiple of {size}",
    "wild access: {who} accesses {size} bytes that belong to no tensor",
    "out of bounds: {who} accesses element {offset} of an array in registers",
    "undefined arithmetic: {who} overflows a signed integer, or divides, shifts or converts what "
    "cannot be",
    "divergent barrier: {who} waits at a barrier that {other} does not reach",
    "divergent warp: {who} waits for its warp, and {other} is elsewhere",
    "deadlock: {who} waits for ever, as {other} waits elsewhere or has ended",
    "wrong memory: {who} gives an address for shared memory that lies elsewhere",
    "stack overflow: {who} needs more than 64 KiB of local memory",
)
"""In the order of ``Problem`` in state.h."""
_UNFINISHED = 4


def describe(
    findings: Iterable[Finding],
    module: CudaModule,
    number: int,
    launch: Launch,
    arena: Arena,
    library: Path,
) -> list[str]:
    """One text for each finding, without repetitions."""
    findings = list(findings)
    places = {place for f in findings for place in (f.place, f.other_place) if place}
    lines = _lines(library, places, f"module{number}.cu")
    described: dict[str, None] = {}
    for found in findings:
        text = f"{launch.name}: {_sentence(found, launch, arena)}"
        at = found.line or lines.get(found.place, 0)
        other = found.other_line or lines.get(found.other_place, 0)
        source = module.source.splitlines()
        for which, line in (("", at), ("the other: ", other if other != at else 0)):
            if 0 < line <= len(source):
                text += f"\n  {which}line {line}: {source[line - 1].strip()}"
        described[text] = None
    if len(findings) == MOST_FINDINGS:
        described["there may be more"] = None
    return list(described)


def _sentence(found: Finding, launch: Launch, arena: Arena) -> str:
    who = f"thread {found.thread} of block {found.block}"
    if found.other_block != found.block:
        other = f"thread {found.other_thread} of block {found.other_block}"
    elif found.other_thread != found.thread:
        other = f"thread {found.other_thread}"
    else:
        other = "the thread itself" if found.problem == _UNFINISHED else "another thread"
    return SENTENCES[found.problem].format(
        who=who,
        other=other,
        what=_what(found, launch, arena),
        size=found.size,
        offset=found.offset,
    )


def _what(found: Finding, launch: Launch, arena: Arena) -> str:
    size = f"{found.size} byte{'s' * (found.size != 1)}"
    if found.shared:
        return f"{size} at {found.offset} of its {launch.shared} bytes of shared memory"
    place = arena.at(found.offset)
    if place is None:
        return size
    inside = place.start <= found.offset <= place.end - found.size
    last = place.end - place.first - 1
    bounds = "" if inside else f", whose bytes are {place.start - place.first} to {last}"
    return f"{size} at {found.offset - place.first} of {place.name}{bounds}"


def _lines(library: Path, places: Iterable[int], file: str) -> dict[int, int]:
    """Where in the file these places of the code lie; empty where no tool can say."""
    tool = shutil.which("addr2line") or shutil.which("llvm-addr2line")
    addresses = sorted(places)
    if not tool or not addresses:
        return {}
    # A place is where a call returns to; the byte before is the call's.
    asked = [hex(address - 1) for address in addresses]
    command = [tool, "-a", "-i", "-e", str(library), *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: dict[int, int] = {}
    current = 0
    for line in done.stdout.splitlines():
        if line.startswith("0x"):
            current = int(line, 16) + 1
        elif match := re.search(rf"\b{re.escape(file)}:(\d+)", line):
            found.setdefault(current, int(match[1]))
    return found
