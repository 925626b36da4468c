"""The way of `kubectl task` to a cluster, and what a person reads when there is none.

The cluster, the user and the namespace are those that kubectl would take: --kubeconfig, $KUBECONFIG, ~/.kube/config, or
the pod that this runs in. Every failure becomes one sentence and an exit status, never a traceback.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cronwright.cluster.adapter import KubernetesCluster
from cronwright.cluster.port import (
    SCHEDULES,
    ClusterError,
    NotFound,
    Refused,
    Unavailable,
)

Json = dict[str, Any]
FAILED, BAD_USAGE = 1, 2
DEFAULT_KUBECONFIG = "~/.kube/config"


class Failure(Exception):
    """The command ends here: a sentence for people, and an exit status for scripts."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.code = code


@dataclass(frozen=True, slots=True)
class Where:
    """Which cluster and namespace, as far as it was said."""

    namespace: str | None = None
    context: str | None = None
    kubeconfig: str | None = None


class Schedules:
    """The TaskSchedules of one namespace."""

    def __init__(self, cluster: KubernetesCluster, namespace: str) -> None:
        self._cluster = cluster
        self.namespace = namespace

    async def get(self, name: str) -> Json:
        try:
            return await self._cluster.get(SCHEDULES, self.namespace, name)
        except NotFound as error:
            raise self._missing(name, error) from None

    async def annotate(self, name: str, annotation: str, text: str) -> Json:
        patch = {"metadata": {"annotations": {annotation: text}}}
        try:
            return await self._cluster.patch(SCHEDULES, self.namespace, name, patch)
        except NotFound as error:
            raise self._missing(name, error) from None

    async def all(self, everywhere: bool) -> list[Json]:
        return (await self._cluster.list(SCHEDULES, namespace=None if everywhere else self.namespace)).items

    def _missing(self, name: str, error: NotFound) -> Exception:
        # Without the kind itself, the API server knows no name to speak of.
        if f'"{name}"' not in str(error):
            return error
        return Failure(f"There is no TaskSchedule {name} in namespace {self.namespace}; see kubectl task list -A.")


@asynccontextmanager
async def reach(where: Where) -> AsyncIterator[Schedules]:
    kubeconfig = _kubeconfig(where)
    try:
        cluster = await KubernetesCluster.connect("kubectl-task", kubeconfig=kubeconfig, context=where.context)
    except Exception as error:  # a file that is not as it should be makes the client raise whatever comes of it
        named = kubeconfig or f"of the context {where.context}"
        raise Failure(f"The kubeconfig {named} cannot be used: {' '.join(str(error).split())}.") from None
    try:
        async with cluster:
            yield Schedules(cluster, where.namespace or cluster.namespace)
    except ClusterError as error:
        raise Failure(sentence(error)) from None


def _kubeconfig(where: Where) -> str | None:
    """The file to use; None in a pod that has none, where the pod's own account is used."""
    named = where.kubeconfig or os.environ.get("KUBECONFIG")
    paths = (named or DEFAULT_KUBECONFIG).split(os.pathsep)
    if any(Path(path).expanduser().is_file() for path in paths if path):
        return named or DEFAULT_KUBECONFIG
    if named is None and where.context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return None
    raise Failure(
        f"There is no kubeconfig at {named or DEFAULT_KUBECONFIG}; name one with --kubeconfig or $KUBECONFIG."
    )


def sentence(error: ClusterError) -> str:
    """What went wrong between us and the API server."""
    if isinstance(error, NotFound):
        return "The cluster does not know TaskSchedules; install Cronwright on it first (docs/install.md)."
    if isinstance(error, Refused) and error.status == 401:
        return "The API server does not know you (401 Unauthorized); renew the credentials of your kubeconfig."
    if isinstance(error, Refused):
        return f"The API server refuses: {_ended(str(error))}"
    if isinstance(error, Unavailable):
        said = str(error.__cause__) if error.__cause__ is not None else str(error)
        return f"The API server does not answer: {_ended(said or 'it takes too long')}"
    return _ended(str(error))


def _ended(text: str) -> str:
    return text.rstrip(".") + "."
