"""Every target with what was last measured of it, in whichever run: `build/bench.json` is read, nothing is run."""

from __future__ import annotations

import argparse
import sys

from hack.bench.lab.reporting import tell_targets


def main(arguments: list[str]) -> int:
    argparse.ArgumentParser(prog="hack/bench targets", description=__doc__).parse_args(arguments)
    if tell_targets():
        return 0
    print("No target has been measured here yet; `make bench` measures all of them.", file=sys.stderr)
    return 1
