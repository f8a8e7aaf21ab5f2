"""A plan, for people: a line for each option of each nest, with what it came to, and why."""

from __future__ import annotations

import json

from tcl.codegen.devices.cpu import CpuProfile
from tcl.codegen.options.options import OPTIONS, Device
from tcl.codegen.schedule.plan import Plan, Target


def plan_text(plan: Plan[Target]) -> str:
    """The plan as text."""
    device: Device = "CPU" if isinstance(plan.target, CpuProfile) else "GPU"
    lines = [f"{plan.program.name} on {plan.target.name}"]
    if isinstance(plan.target, CpuProfile):
        lines[0] += f", {plan.target.threads} thread{'s' * (plan.target.threads > 1)}"
    for kernel in plan.kernels:
        for name in kernel:
            shares = f", in the chunks of {kernel[0]}" if name != kernel[0] else ""
            lines += ["", f"nest {name}{shares}"]
            nest = plan.nests[name]
            made = {
                key: json.dumps(value)
                for key, value in nest.options.made().items()
                if device not in OPTIONS[key].refused
            }
            wide, width = max(map(len, made)), max(map(len, made.values()))
            lines += [
                f"  {key:<{wide}}  {value:<{width}}  {nest.reason(key)}"
                for key, value in made.items()
            ]
    return "\n".join(lines)
