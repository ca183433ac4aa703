"""The verbs. The command line, notebooks and agents call these and nothing below them.

Every verb takes the campaign's folder. Imports are inside the verbs: a verb costs what it uses.
"""

from assay.api.assess import assess
from assay.api.bench import bench, sweep
from assay.api.characterize import characterize
from assay.api.compare import compare
from assay.api.demo import QUICK_DEMO, demo
from assay.api.doctor import doctor
from assay.api.estimate import estimate, known_devices, known_models, search_layouts
from assay.api.explain import explain
from assay.api.import_ import import_results
from assay.api.init import init, init_from_command, init_from_url
from assay.api.inspect import (
    export,
    missing_model,
    next_step,
    nothing_measured,
    passed_over,
    remaining_s,
    report,
    status,
    todo,
    verify,
)
from assay.api.plan import plan
from assay.api.run import run

__all__ = [
    "QUICK_DEMO",
    "assess",
    "bench",
    "characterize",
    "compare",
    "demo",
    "doctor",
    "estimate",
    "explain",
    "export",
    "import_results",
    "init",
    "init_from_command",
    "init_from_url",
    "known_devices",
    "known_models",
    "missing_model",
    "next_step",
    "nothing_measured",
    "passed_over",
    "plan",
    "remaining_s",
    "report",
    "run",
    "search_layouts",
    "status",
    "sweep",
    "todo",
    "verify",
]
