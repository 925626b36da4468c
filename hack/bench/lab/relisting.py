"""Everything listed anew at once, by an operator that goes on running: what a new API server asks of it.

An API server that starts knows no past. A watch that asks it for what came after an older version than its first one is
told that this version is gone, and what has to be listed again is everything: the two kinds by kopf, Jobs and Leases by
the operator's own watch, and because of that the two kinds once more, by its auditor. The audit log tells them apart by
how they call themselves.
"""

from __future__ import annotations

import time

from hack.bench.lab.auditing import Audit
from hack.bench.lab.cluster import OPERATOR_USER, Lab
from hack.bench.lab.errors import BenchError
from hack.bench.lab.operating import Operator

_LISTINGS = {
    ("kopf", "taskschedules"),
    ("kopf", "tasktemplates"),
    ("cronwright", "jobs"),
    ("cronwright", "leases"),
    ("cronwright", "taskschedules"),
    ("cronwright", "tasktemplates"),
}
_PATIENCE = 300.0
_POLL = 0.5


def relist(lab: Lab, operator: Operator) -> None:
    """Restart the API server, and wait until each listing has begun and the operator is at rest again.

    So none is still under way, nor to come: an audit that kopf's listing asks for follows it within a second, and rest
    is what has lasted for some.
    """
    log = Audit(lab.audit_log)
    start = log.mark()
    lab.restart_apiserver()
    deadline = time.monotonic() + _PATIENCE
    while missing := _LISTINGS - _listed(log, start):
        operator.check()
        if time.monotonic() > deadline:
            named = ", ".join(f"{kind} by {agent}" for agent, kind in sorted(missing))
            raise BenchError(f"{_PATIENCE:.0f} s after a restart of the API server nobody has listed {named}.")
        time.sleep(_POLL)
    log.await_quiet(OPERATOR_USER)
    operator.await_rest()


def _listed(log: Audit, start: int) -> set[tuple[str, str]]:
    found = (call for call in log.between(start) if call.user == OPERATOR_USER and call.verb == "list")
    return {(call.agent, call.resource) for call in found if call.code == 200}
