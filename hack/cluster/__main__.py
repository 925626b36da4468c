"""The embedded cluster: `python3 hack/cluster --help`.

Run as a folder, Python puts `hack/cluster` itself on the path; the modules import each other as
`hack.cluster.…` (the name that tests and the demo use too), so the checkout's root takes its place.
"""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])

from hack.cluster.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
