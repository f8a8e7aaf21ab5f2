"""What is written beside a model, for people: from what it was learned, and how good it is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tcl.codegen.common.version import CODEGEN_VERSION
from tcl.tuner.model.boosting import Boosting
from tcl.tuner.model.model import Model
from tcl.tuner.training.evaluate import Evaluation
from tcl.tuner.training.history import History
from tcl.tuner.training.learn import importance


def manifest_path(model: Path) -> Path:
    """Beside the model's file."""
    return model.with_suffix(".manifest.json")


def manifest(
    known: History, settings: Boosting, model: Model, evaluations: Sequence[Evaluation]
) -> str:
    """As JSON."""
    schema = model.schema
    data = {
        "backend": schema.backend,
        "schema": {
            "version": schema.version,
            "digest": schema.digest,
            "features": [
                {"name": f.name, "group": group, "unit": f.unit, "meaning": f.meaning}
                for group, rows in schema.groups.items()
                for f in rows
            ],
        },
        "codegen_version": CODEGEN_VERSION,
        "devices": sorted({p.key.device for p in known.problems}),
        "defs": dict(sorted(Counter(p.entry for p in known.problems).items())),
        "searches": len(known.problems),
        "candidates": known.candidates,
        "passed_over": dict(known.passed_over),
        "settings": asdict(settings),
        "trees": list(model.forest.members),
        "evaluations": [e.as_data() for e in evaluations],
        "importance": {name: round(share, 5) for name, share in importance(model).items()},
    }
    return json.dumps(data, indent=1) + "\n"
