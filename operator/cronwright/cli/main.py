"""`cronwright`: the operator and the offline tools."""

from __future__ import annotations

import logging
import socket
import uuid
from importlib.metadata import version
from typing import Annotated

import typer
import uvloop

from cronwright.cli.next import next_slots
from cronwright.cli.simulate import simulate

app = typer.Typer(
    help="Cronwright runs tasks on time on Kubernetes: every slot once, on time, or its status says why not.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cronwright {version('cronwright')}")
        raise typer.Exit


@app.callback()
def main(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """What all commands share."""


@app.command()
def operator(
    shards: Annotated[
        int,
        typer.Option(
            envvar="CRONWRIGHT_SHARDS",
            min=1,
            max=256,
            help="Into how many parts the schedules are divided over the replicas; the same for all replicas.",
        ),
    ] = 1,
    namespace: Annotated[
        str, typer.Option(envvar="CRONWRIGHT_NAMESPACE", help="Where the Leases of leadership live.")
    ] = "default",
    identity: Annotated[
        str,
        typer.Option(
            envvar="CRONWRIGHT_IDENTITY",
            help="This replica's name, unlike any other's; in a pod, the pod's. Made up unless given.",
            show_default=False,
        ),
    ] = "",
    lease_seconds: Annotated[
        float,
        typer.Option(
            envvar="CRONWRIGHT_LEASE_SECONDS",
            min=2,
            max=600,
            help="How long after a crash another replica takes over.",
        ),
    ] = 15.0,
    bind: Annotated[str, typer.Option(envvar="CRONWRIGHT_BIND", help="The address of the probes.")] = "0.0.0.0",
    port: Annotated[
        int, typer.Option(envvar="CRONWRIGHT_PORT", help="Where /healthz, /readyz and /metrics are served.")
    ] = 8080,
    log_level: Annotated[
        str, typer.Option(envvar="CRONWRIGHT_LOG_LEVEL", help="DEBUG, INFO, WARNING or ERROR.")
    ] = "INFO",
) -> None:
    """Run the operator, in the cluster it is in or the one that $KUBECONFIG names, until SIGTERM."""
    from cronwright.cluster.adapter import KubernetesCluster
    from cronwright.controller.serving import Options, serve

    level = log_level.upper()
    if level not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        raise typer.BadParameter(f"{log_level!r} is not one of DEBUG, INFO, WARNING, ERROR.", param_hint="--log-level")
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    options = Options(
        identity=identity or f"{socket.gethostname()}-{uuid.uuid4().hex[:8]}",
        namespace=namespace,
        shards=shards,
        bind=bind,
        port=port,
        lease_seconds=lease_seconds,
    )

    async def run() -> None:
        async with await KubernetesCluster.connect() as cluster:
            await serve(cluster, options)

    uvloop.run(run())


app.command("next")(next_slots)
app.command("simulate")(simulate)


if __name__ == "__main__":
    app()
