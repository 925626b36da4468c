"""The demo from start to end: a cluster, the operator, schedules, a minute of watching, and what to type next."""

import argparse
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from hack.cluster import cli as cluster
from hack.cluster import parts
from hack.cluster.folder import CHECKOUT, DEFAULT, Folder
from hack.demo import operating, scenes, showing
from hack.demo.errors import DemoError
from hack.demo.reading import Kubectl, read
from rich.console import Console

_PATIENCE = 300.0  # beyond the minute, for a machine that is so slow that not everything has fired by then
_TICK = 1.0


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    folder = Folder(options.dir.expanduser().resolve())
    try:
        return _demo(folder, options.seconds)
    except DemoError as error:
        print(f"\n{error}\n\nThe cluster is left as it is; `{_stop_command(folder)}` stops it.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nInterrupted. The cluster and the operator go on; `{_stop_command(folder)}` stops them.")
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="hack/demo", description="Start a cluster and the operator, and watch schedules fire for a minute."
    )
    parser.add_argument(
        "--dir", type=Path, default=DEFAULT, help="the folder the cluster writes into (default: build/cluster)"
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="how long to watch (default: 60); longer until all has fired"
    )
    return parser


def _demo(folder: Folder, seconds: float) -> int:
    console = showing.console_for(Console())
    unbuilt = parts.locate().missing()
    _say(console, "Building the cluster's parts, once: about ten minutes" if unbuilt else "Starting the cluster")
    if code := cluster.main(["up", "--dir", str(folder.root)]):
        return code
    state = folder.load()
    assert state is not None
    kubectl = Kubectl(Path(state.bin) / "kubectl", folder.kubeconfig)
    _say(console, "Installing the two kinds: kubectl apply --server-side -f crds")
    crds = str(CHECKOUT / "crds")
    kubectl("apply", "--server-side", "--force-conflicts", "-f", crds)
    kubectl("wait", "--for=condition=Established", "--timeout=120s", "-f", crds)
    _say(console, f"Starting the operator, with its log in {folder.log(operating.NAME)}")
    operator = operating.start(folder)
    _say(console, "Applying examples/ and the demo's own schedules")
    since = datetime.now(UTC)
    kubectl("apply", "-f", "-", input=scenes.manifest(since))
    kubectl("apply", "-f", str(CHECKOUT / "examples"))
    return _watch(console, kubectl, operator, folder, seconds, since)


def _say(console: Console, text: str) -> None:
    console.print(f"==> {text}", style="bold", markup=False, highlight=False)


def _watch(
    console: Console, kubectl: Kubectl, operator: operating.Operator, folder: Folder, seconds: float, since: datetime
) -> int:
    began = time.monotonic()
    shown: dict[str, str] = {}
    with showing.view_on(console, since) as view:
        while True:
            operator.check()
            snapshot = read(kubectl)
            shown |= scenes.look(snapshot, since)
            elapsed = time.monotonic() - began
            view.show(snapshot, shown, elapsed)
            missing = [scene for scene in scenes.SCENES if scene.title not in shown]
            if elapsed >= seconds and (not missing or elapsed >= seconds + _PATIENCE):
                break
            time.sleep(_TICK)
    if not console.is_terminal:
        console.print("", showing.picture(snapshot, shown, elapsed))
    console.print(f"\nWhat you have seen in {elapsed:.0f} s:", style="bold", highlight=False)
    for scene in scenes.SCENES:
        line = f"  {scene.title:9} {shown.get(scene.title, 'NOT SEEN')}"
        console.print(line, style=None if scene.title in shown else "red", markup=False, highlight=False)
    started, punctual = operator.punctuality()
    console.print(f"  Runs started: {started}, of them {punctual} within 0.1 s of their slot", highlight=False)
    if missing:
        raise DemoError(f"Not seen: {', '.join(scene.schedule for scene in missing)}. Look: {folder.logs}")
    console.print(f"\n{_next_steps(folder)}", markup=False, highlight=False)
    return 0


def _next_steps(folder: Folder) -> str:
    steps = (
        (f'eval "$(python3 hack/cluster env{_dir_option(folder)})"', "kubectl and helm, for this cluster"),
        ("kubectl get ts", "schedules: what is next, how the last run ended"),
        ("kubectl describe ts demo-retry", "one of them, with its runs and its Events"),
        ("kubectl get jobs -l cronwright.dev/schedule=demo-cron", "its Jobs"),
        ("kubectl explain ts.spec.schedule", "every field is described"),
        ("kubectl apply -f examples/first.yaml", "change it first: an hour instead of 30s, say"),
        (_stop_command(folder), "stops everything"),
    )
    lines = [f"  {command:54} # {purpose}" for command, purpose in steps]
    return "\n".join(["The cluster and the operator go on. To try them yourself:", "", *lines])


def _dir_option(folder: Folder) -> str:
    return "" if folder.root == DEFAULT else f" --dir {folder.root}"


def _stop_command(folder: Folder) -> str:
    return "make down" if folder.root == DEFAULT else f"python3 hack/cluster down{_dir_option(folder)}"
