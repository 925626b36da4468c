"""The commands: what a person types, and what is printed back."""

import argparse
import shlex
import sys
import time
from pathlib import Path

from hack.cluster import control_plane, kind, parts, processes
from hack.cluster.errors import ClusterError
from hack.cluster.folder import DEFAULT, Folder, State


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        return code
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; run the same command again to go on from here.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hack/cluster",
        description="A real Kubernetes control plane on this machine: no root, no containers, no registry.",
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--dir",
        type=Path,
        default=DEFAULT,
        help="the folder this cluster writes into (default: build/cluster)",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    build = commands.add_parser("build", help="build the parts that are not in the cache yet")
    build.set_defaults(run=_build)

    up = commands.add_parser("up", parents=[common], help="start the cluster, or what is missing of it")
    up.add_argument("--nodes", type=_positive, help="how many fake nodes (default: 1)")
    for part in ("apiserver", "controller-manager"):
        up.add_argument(
            f"--{part}-arg",
            action="append",
            default=[],
            metavar="ARG",
            help=f"a further flag of the {part} (repeatable); write --{part}-arg=--flag=value",
        )
    up.add_argument("--kind", action="store_true", help="a kind cluster instead (needs Docker and a node image)")
    up.add_argument("--image", help="the node image for --kind (default: kind's own)")
    up.set_defaults(run=_up)

    down = commands.add_parser("down", parents=[common], help="stop the cluster and remove its data")
    down.set_defaults(run=_down)

    status = commands.add_parser("status", parents=[common], help="list the parts; exits 1 when one is not up")
    status.set_defaults(run=_status)

    env = commands.add_parser("env", parents=[common], help='for the shell: eval "$(python3 hack/cluster env)"')
    env.set_defaults(run=_env)

    for name, action, text in (
        ("restart", _restart, "restart one part on its port, with its data"),
        ("stop", _stop, "stop one part; `up` or `restart` starts it again"),
    ):
        command = commands.add_parser(name, parents=[common], help=text)
        command.add_argument("part", choices=control_plane.PARTS)
        command.add_argument("--kill", action="store_true", help="end it as a crash would: SIGKILL")
        command.set_defaults(run=action)
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def _folder(options: argparse.Namespace) -> Folder:
    return Folder(options.dir.expanduser().resolve())


def _running(folder: Folder) -> State:
    state = folder.load()
    if state is None:
        raise ClusterError(f"No cluster in {folder.root}. Start one: python3 hack/cluster up")
    return state


def _build(_: argparse.Namespace) -> int:
    print(f"Every part is in {parts.build().bin}")
    return 0


def _up(options: argparse.Namespace) -> int:
    folder = _folder(options)
    built = parts.build()
    began = time.monotonic()
    with folder.locked():
        state = folder.load()
        if state is not None and state.kind != options.kind:
            raise ClusterError(f"{folder.root} holds a cluster of the other sort: take it down first")
        if options.kind:
            changed = kind.up(folder, built, options.image)
            folder.save(State(bin=str(built.bin), kind=True))
        else:
            extra = {
                "apiserver": options.apiserver_arg,
                "controller-manager": options.controller_manager_arg,
            }
            changed = control_plane.up(folder, built, nodes=options.nodes, arguments=extra)
    if changed:
        print(f"Kubernetes {parts.kubernetes_version()} is up after {time.monotonic() - began:.1f} s")
    else:
        print("Already up")
    print(f"KUBECONFIG={folder.kubeconfig}")
    return 0


def _down(options: argparse.Namespace) -> int:
    folder = _folder(options)
    if not folder.root.exists():
        print(f"Nothing to stop in {folder.root}")
        return 0
    with folder.locked():
        state = folder.load()
        if state is not None and state.kind:
            kind.down(folder, parts.Parts(Path(state.bin)))
        stopped = control_plane.down(folder)
    print(f"Stopped: {', '.join(stopped)}" if stopped else f"Nothing to stop in {folder.root}")
    return 0


def _status(options: argparse.Namespace) -> int:
    folder = _folder(options)
    state = _running(folder)
    if state.kind:
        found = kind.exists(parts.Parts(Path(state.bin)))
        print(f"kind cluster {kind.NAME}: {'up' if found else 'down'}")
        return 0 if found else 1
    rows = control_plane.status(folder, state)
    print(f"{'PART':20} {'STATE':10} {'PID':>8} {'PORT':>6}")
    for row in rows:
        print(f"{row.name:20} {row.state:10} {row.pid or '-':>8} {row.port or '-':>6}")
    return 0 if all(row.state == "up" for row in rows) else 1


def _env(options: argparse.Namespace) -> int:
    folder = _folder(options)
    state = _running(folder)
    print(f"export KUBECONFIG={shlex.quote(str(folder.kubeconfig))}")
    print(f'export PATH={shlex.quote(state.bin)}:"$PATH"')
    return 0


def _part_of(options: argparse.Namespace) -> tuple[Folder, State]:
    folder = _folder(options)
    state = _running(folder)
    if state.kind:
        raise ClusterError("The parts of a kind cluster run in its containers; this command cannot reach them")
    return folder, state


def _restart(options: argparse.Namespace) -> int:
    folder, state = _part_of(options)
    with folder.locked():
        control_plane.restart(folder, state, options.part, kill=options.kill)
    print(f"{options.part} is up again on port {state.ports[options.part]}")
    return 0


def _stop(options: argparse.Namespace) -> int:
    folder, _ = _part_of(options)
    with folder.locked():
        was_running = processes.stop(folder.pids, options.part, kill=options.kill)
    print(f"{options.part} is stopped" if was_running else f"{options.part} was not running")
    return 0
