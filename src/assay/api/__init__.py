"""The verbs. The command line, notebooks and agents call these and nothing below them.

Every verb takes the campaign's folder. Imports are inside the verbs: a verb costs what it uses.
"""

from assay.api.bench import bench, find_model, sweep
from assay.api.compare import compare
from assay.api.demo import QUICK_DEMO, demo
from assay.api.import_ import import_results
from assay.api.inspect import export, next_step, passed_over, remaining_s, report, status, todo, verify
from assay.api.run import run
from assay.api.setup import assess, init, init_from_command, init_from_url, plan

__all__ = [
    "QUICK_DEMO",
    "assess",
    "bench",
    "compare",
    "demo",
    "export",
    "find_model",
    "import_results",
    "init",
    "init_from_command",
    "init_from_url",
    "next_step",
    "passed_over",
    "plan",
    "remaining_s",
    "report",
    "run",
    "status",
    "sweep",
    "todo",
    "verify",
]
