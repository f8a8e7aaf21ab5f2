"""What ``show``, ``run`` and ``tune`` share: options from the command line, devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tcl.arrays.annotations import read_annotations, sizes_of
from tcl.arrays.arguments import Array, new_output
from tcl.arrays.libraries import HOST
from tcl.arrays.random_inputs import index_tensors, random_inputs, subscripts_meant
from tcl.cli.common import check_varying, choose, read, tell, title_of
from tcl.codegen.common.sites import where
from tcl.codegen.devices.cpu import host_cpu
from tcl.codegen.options.options import PRESETS, MappingOptions
from tcl.common.errors import ArgumentError, OptionsError
from tcl.executors.executor import Executor
from tcl.executors.varying import Family
from tcl.grammar.ranges.findings import size_finding, size_findings
from tcl.grammar.ranges.sized import SizedDef
from tcl.grammar.syntax.errors import Diagnostic, RangeInferenceError
from tcl.grammar.syntax.reference import Section
from tcl.grammar.tree.checked import CheckedDef
from tcl.selection.best_options import Query
from tcl.selection.suggested_options import Chosen


@dataclass(frozen=True, slots=True)
class Work:
    text: str
    checked: CheckedDef
    sizes: Mapping[str, int]
    sized: SizedDef
    inputs: tuple[Array, ...]
    varying: tuple[str, ...] = ()
    """Names of the sizes that vary."""

    @classmethod
    def load(
        cls,
        file: Path,
        entry: str | None,
        sizes: str | None,
        seed: int,
        varying: tuple[str, ...] = (),
    ) -> Work:
        """What the command line names; ``TclError`` if there is no such thing."""
        text, checked = choose(file, entry)
        check_varying(checked, varying)
        values = sizes_of(checked, sizes)
        return cls.from_def(text, checked, values, seed, varying)

    @classmethod
    def from_def(
        cls,
        text: str,
        checked: CheckedDef,
        sizes: Mapping[str, int],
        seed: int,
        varying: tuple[str, ...] = (),
    ) -> Work:
        """A def of a text with random inputs of these sizes."""
        sized = size_finding(checked, sizes)
        for tensor in checked.outputs:  # which may be too large, before the inputs take time
            new_output(sized, tensor, np.empty)
        inputs = random_inputs(checked, sizes, seed)
        tell(checked, size_findings(sized))
        return cls(text, checked, sizes, sized, inputs, varying)

    def outputs(self) -> tuple[Array, ...]:
        """New outputs. They are zero, for defs that add to what they hold."""
        return tuple(new_output(self.sized, t, np.zeros) for t in self.checked.outputs)

    @property
    def heading(self) -> str:
        """The def and its sizes, for people."""
        return title_of(self.checked, self.sizes, self.varying)

    def executor(self, choose: Callable[[Query], Chosen], threads: int, *, asked: bool) -> Executor:
        """Runs the def on a CPU: where sizes vary the kernel of their class, if there can be one.
        ``choose`` gives the options; ``asked``: whether they are to be honoured or refused."""
        device = replace(host_cpu(), threads=threads)
        if self.varying:
            family = Family(self.checked, self.varying, device, HOST, asked=asked, strict=True)
            found = family.executor(self.sizes, None, lambda all_: choose(all_.query(device)))
            if isinstance(found, Executor):
                return found
        return Executor(
            self.sized, choose(Query.on_inputs(self.sized, self.inputs, device)), threads
        )

    @contextmanager
    def indexing(self) -> Iterator[None]:
        """Where kernels run: an index out of range comes from values that the user did not
        choose; ``ArgumentError`` says so, and how to choose them. If no value decides it, sizes do
        not fit: ``RangeInferenceError``."""
        try:
            yield
        except IndexError as error:
            meant, decided = subscripts_meant(self.sized, str(error))
            if meant and not decided:
                problem = Diagnostic(
                    f"{error}; no value of an input decides this subscript, so the sizes of "
                    f"{self.heading} do not fit: choose others, or guard the read with ? :",
                    meant[0].span,
                    tuple((each.span, "or this one") for each in meant[1:]),
                    Section.GUARDS,
                )
                raise RangeInferenceError(self.checked.source, [problem]) from None
            names, said = index_tensors(self.checked), read_annotations(self.checked).values
            free = [name for name in names if name not in said]
            why = (
                f"{' and '.join(free)} were chosen at random and do not fit: give valid values in "
                f"a comment above the def, `# values {free[0]}: FIRST..STOP` (STOP is excluded)"
                if free
                else f"{' and '.join(names)} come from the def's `# values` comments and do not "
                f"fit: correct `# values {names[0]}: {'..'.join(said[names[0]])}`"
            )
            told = ArgumentError(
                f"{error}; the values of {why}, or run and tune in Python with your own arrays"
            )
            if meant:  # of the file: some kernels know only the text of the def
                told.add_note(where(self.checked, [each.span for each in meant]))
            raise told from None


def parse_options(text: str | None) -> MappingOptions | None:
    """Options as the command line gives them; ``OptionsError`` if they are not."""
    if text is None:
        return None
    if text.lstrip().startswith("{"):
        return MappingOptions.from_json(text)
    if text in PRESETS:
        return MappingOptions(text)
    try:
        content = read(Path(text))
    except (ArgumentError, ValueError) as error:
        presets = ", ".join(PRESETS)
        raise OptionsError(
            f"unknown preset {text!r}: use one of {presets}, JSON, or a file of JSON ({error})"
        ) from None
    try:
        return MappingOptions.from_json(content)
    except OptionsError as error:
        raise OptionsError(f"{text}: {error}") from None
