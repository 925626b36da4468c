"""Whether a schedule can run at all, and if not, the reason and the sentence that say what to mend."""

from __future__ import annotations

from cronwright.core import parameters
from cronwright.core.model import Problem, View
from cronwright.core.names import lease_name

GRACE = 5
"""Seconds a new schedule may wait for its template without complaint: they are often applied together."""


def fitness(view: View) -> Problem | None:
    schedule, template = view.schedule, view.template
    if view.unreadable:
        lease = lease_name(schedule.key.name, schedule.uid)
        return Problem(
            "LedgerUnreadable",
            f"The Lease {lease} was edited, or written by a newer version; delete it to go on from this status.",
        )
    if schedule.problem is not None:
        return schedule.problem
    assert schedule.spec is not None
    name = schedule.spec.template_ref.name
    if template is None:
        until = schedule.created + GRACE
        if view.now < until:
            return Problem("WaitingForTemplate", f"Waiting for TaskTemplate {name}.", waiting=True, until=until)
        return Problem(
            "TemplateNotFound",
            f"spec.templateRef.name: there is no TaskTemplate {name} in namespace {schedule.key.namespace}; "
            "create it, or correct the name.",
        )
    if template.problem is not None:
        return Problem("TemplateInvalid", f"TaskTemplate {name}: {template.problem.message}")
    if not template.checked or template.spec is None:
        return Problem("WaitingForTemplate", f"TaskTemplate {name} is being checked.", waiting=True)
    resolved = parameters.resolve(template.spec, schedule.spec.parameters)
    return resolved if isinstance(resolved, Problem) else None
