"""One thread for numpy's linear algebra: small matrices gain nothing by two, which spin against all else that runs."""

import os

# Read when numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
