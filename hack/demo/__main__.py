"""The demo: `make demo`, or `.venv/bin/python hack/demo --help`.

Run as a folder, Python puts `hack/demo` itself on the path; the modules are imported as `hack.demo.…` and
`hack.cluster.…` (the names that tests and mypy use too), so the checkout's root takes its place.
"""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])

try:
    import rich as _rich  # noqa: F401
except ImportError:
    sys.exit("The demo needs the project's Python packages: start it with `make demo`.")

from hack.demo.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
