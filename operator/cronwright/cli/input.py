"""What people hand to the offline tools: times and lengths on the command line, and manifests.

Everything that is wrong with it ends in one place: a sentence on stderr that names the flag or field and says what to
write, and exit status 2.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import typer
import yaml
from pydantic import ValidationError

from cronwright.api import TaskScheduleSpec, TaskTemplateSpec
from cronwright.core.model import Json, Schedule
from cronwright.core.observe import schedule_from, sentence
from cronwright.timing import format_instant, parse_duration, parse_instant

ANY_UID = "00000000-0000-0000-0000-000000000000"
"""Stands for the UID that a cluster would give a schedule."""

T = TypeVar("T")


def refuse(problem: str) -> NoReturn:
    typer.echo(problem, err=True)
    raise typer.Exit(2)


def moment(flag: str, text: str) -> int:
    """A time on the command line, as unix seconds."""
    return _parsed(flag, text, parse_instant)


def length(flag: str, text: str) -> int:
    """A duration on the command line, in seconds."""
    return _parsed(flag, text, parse_duration)


def _parsed(flag: str, text: str, parse: Callable[[str], T]) -> T:
    try:
        return parse(text)
    except ValueError as error:
        refuse(f"{flag}: {error}")


class _Loader(yaml.SafeLoader):
    """Leaves times and dates as they are written: so does kubectl, and the models read them."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def documents(file: str) -> list[Json]:
    """The Kubernetes objects of a YAML or JSON file, or of standard input if it is `-`."""
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
        found = list(yaml.load_all(text, _Loader))
    except OSError as error:
        refuse(f"-f: {file} cannot be read: {error.strerror}.")
    except UnicodeDecodeError:
        refuse(f"-f: {file} is not text.")
    except yaml.YAMLError as error:
        refuse(f"-f: {file} is not YAML: {' '.join(str(error).split())}.")
    items: list[Any] = []
    for document in found:
        is_list = isinstance(document, dict) and document.get("kind") == "List"
        items += (document.get("items") or []) if is_list else [document]
    objects = [item for item in items if isinstance(item, dict)]
    if any(not isinstance(obj.get("metadata") or {}, dict) for obj in objects):
        refuse(f"-f: {file} has an object whose metadata is not a mapping; write metadata: {{name: ...}}.")
    return objects


def _named(objects: Sequence[Json], kind: str) -> list[tuple[str, Json]]:
    found = [obj for obj in objects if obj.get("kind") == kind]
    return [(str((obj.get("metadata") or {}).get("name", "")), obj) for obj in found]


def the_schedule(objects: Sequence[Json], file: str, name: str | None) -> Json:
    """The one TaskSchedule that is meant."""
    found = _named(objects, "TaskSchedule")
    names = ", ".join(known or "(no name)" for known, _ in found)
    if not found:
        refuse(f"-f: {file} has no TaskSchedule; give a manifest that has one.")
    if name is not None:
        found = [(known, obj) for known, obj in found if known == name]
        if not found:
            refuse(f"--name: {file} has no TaskSchedule {name}; it has {names}.")
    if len(found) > 1:
        refuse(f"-f: {file} has {len(found)} TaskSchedules; choose one of them with --name: {names}.")
    return found[0][1]


def template_spec(objects: Sequence[Json], schedule: TaskScheduleSpec) -> TaskTemplateSpec:
    """The schedule's template, if its manifest is at hand; else one that asks for nothing."""
    for name, obj in _named(objects, "TaskTemplate"):
        if name == schedule.template_ref.name:
            try:
                return TaskTemplateSpec.model_validate(obj.get("spec") or {}, extra="forbid")
            except ValidationError as error:
                refuse(f"TaskTemplate {name}: {sentence(error)}")
    parameters = [{"name": parameter} for parameter in schedule.parameters]
    return TaskTemplateSpec.model_validate({"shell": {"script": "true"}, "parameters": parameters})


def schedule_of(obj: Json, *, uid: str | None, created: int) -> Schedule:
    """The record of a manifest's schedule, as if it were applied now; what the cluster has added to it is kept."""
    meta = obj.get("metadata") or {}
    name = str(meta.get("name") or "schedule")
    if known := meta.get("creationTimestamp"):
        created = moment("metadata.creationTimestamp", str(known))
    try:
        TaskScheduleSpec.model_validate(obj.get("spec") or {}, extra="forbid")
    except ValidationError as error:
        refuse(f"TaskSchedule {name}: {sentence(error)}")
    schedule = schedule_from(
        {
            "metadata": {
                "namespace": str(meta.get("namespace") or "default"),
                "name": name,
                "uid": uid or str(meta.get("uid") or ANY_UID),
                "creationTimestamp": format_instant(created),
                "resourceVersion": "1",
                "generation": 1,
            },
            "spec": obj.get("spec"),
        }
    )
    if schedule.problem is not None:
        refuse(f"TaskSchedule {name}: {schedule.problem.message.rstrip('.')}.")
    return schedule
