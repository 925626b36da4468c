"""The attack on a real cluster: `make chaos`, or `.venv/bin/python hack/chaos --help`. See docs/chaos.md.

Run as a folder, Python puts `hack/chaos` itself on the path; the modules are imported as `hack.chaos.…` and
`hack.cluster.…` (the names that tests and mypy use too), so the checkout's root takes its place.
"""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])

from hack.chaos.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
