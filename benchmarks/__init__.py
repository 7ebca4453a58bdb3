"""Measurements of the platform on real inputs; `python -m benchmarks` runs them."""

import os
from pathlib import Path

RESULTS_FOLDER = Path(os.environ.get("BENCH_RESULTS") or Path(__file__).parent / "results")
"""Where each benchmark writes its figures; those of other data go to a folder that passes."""
