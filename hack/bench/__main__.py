"""Benchmarks: `python hack/bench PART`. A part is a module of this folder with a `main(arguments)`.

Run as a folder, Python puts `hack/bench` itself on the path; the modules import each other as `hack.bench.…`, so the
checkout's root takes its place.
"""

import sys
from importlib import import_module
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path[0] = str(FOLDER.parents[1])


def main() -> int:
    parts = sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))
    if len(sys.argv) < 2 or sys.argv[1] not in parts:
        print(f"usage: python hack/bench PART, where PART is one of: {', '.join(parts)}", file=sys.stderr)
        return 2
    status: int = import_module(f"hack.bench.{sys.argv[1]}").main(sys.argv[2:])
    return status


if __name__ == "__main__":
    sys.exit(main())
