"""From a template and a claim to a Job: what reaches the container, and that no value becomes code."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.views import T, at, claim, schedule, template

from cronwright.core.model import Json, Template
from cronwright.core.render import again, render, trial

POD = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}


def job_template(container: Json | None = None, **spec: Any) -> Template:
    main = {"name": "main", "image": "busybox", **(container or {})}
    pod = {"restartPolicy": "Never", "containers": [main]}
    return template(job={"spec": {"template": {"spec": pod}, **spec}})


def rendered(of: Template, parameters: dict[str, str] | None = None, attempt: int = 1, **spec: Any) -> Json:
    return render(schedule(**spec), of, claim(0, attempt), parameters or {}, T - 3600)


def container(job: Json) -> Json:
    found: Json = job["spec"]["template"]["spec"]["containers"][0]
    return found


def environment(job: Json) -> dict[str, str]:
    return {entry["name"]: entry["value"] for entry in container(job)["env"]}


def test_every_run_is_told_who_it_is() -> None:
    assert environment(rendered(template())) == {
        "TASK_SCHEDULE": "s",
        "TASK_RUN": f"s-{T}-1",
        "TASK_ATTEMPT": "1",
        "TASK_SCHEDULED_AT": at(0),
        "TASK_PREVIOUS_SUCCESS_AT": at(-3600),
    }


def test_a_run_before_any_success_is_told_of_none() -> None:
    job = render(schedule(), template(), claim(0), {}, None)
    assert environment(job)["TASK_PREVIOUS_SUCCESS_AT"] == ""


def test_parameters_are_environment_in_upper_case() -> None:
    assert environment(rendered(template(), {"out_dir": "/x"}))["TASK_PARAM_OUT_DIR"] == "/x"


# (as written in the template, the parameter's value, as sent to Kubernetes)
SUBSTITUTED = {
    "a word": ("$(params.x)", "eu", "eu"),
    "inside of text": ("--region=$(params.x).", "eu", "--region=eu."),
    "twice": ("$(params.x)$(params.x)", "eu", "eueu"),
    "a parameter that is not there": ("$(params.y)", "eu", "$(params.y)"),
    "a variable of Kubernetes' own": ("$(HOME)", "eu", "$(HOME)"),
    "escaped already": ("$$(date)", "eu", "$$(date)"),
    "a value that looks like a variable": ("$(params.x)", "$(HOME)", "$$(HOME)"),
    "a value that looks like a parameter": ("$(params.x)", "$(params.x)", "$$(params.x)"),
    "a value with two dollars": ("$(params.x)", "a$$b", "a$$$b"),
    "a value with one": ("$(params.x)", "a$b", "a$b"),
    "a value with quotes and a newline": ("$(params.x)", "'\"`\n;", "'\"`\n;"),
}


@pytest.mark.parametrize(("text", "value", "sent"), SUBSTITUTED.values(), ids=SUBSTITUTED)
@pytest.mark.parametrize("field", ["command", "args", "env"])
def test_references_to_parameters(field: str, text: str, value: str, sent: str) -> None:
    given = {"env": [{"name": "E", "value": text}]} if field == "env" else {field: [text]}
    job = rendered(job_template(given), {"x": value})
    assert (environment(job)["E"] if field == "env" else container(job)[field][0]) == sent


def as_the_kubelet_expands(text: str) -> str:
    """Kubernetes' rules for command, args and env, with no variable defined: `$$` is `$`, and the rest stays."""
    result, i = "", 0
    while i < len(text):
        if text[i] != "$" or i + 1 == len(text):
            result, i = result + text[i], i + 1
        elif text[i + 1] == "$":
            result, i = result + "$", i + 2
        elif text[i + 1] == "(" and (end := text.find(")", i)) > 0:
            result, i = result + "EXPANDED", end + 1
        else:
            result, i = result + text[i : i + 2], i + 2
    return result


@given(st.text("$()ab", max_size=12))
def test_a_value_arrives_as_it_was_written(value: str) -> None:
    job = rendered(job_template({"args": ["$(params.x)"]}), {"x": value})
    assert as_the_kubelet_expands(container(job)["args"][0]) == value
    assert as_the_kubelet_expands(environment(job)["TASK_PARAM_X"]) == value


def test_init_containers_get_everything_too() -> None:
    init = {"name": "init", "image": "busybox", "args": ["$(params.x)"]}
    of = template(job={"spec": {"template": {"spec": {**POD, "initContainers": [init]}}}})
    job = rendered(of, {"x": "eu"})
    [found] = job["spec"]["template"]["spec"]["initContainers"]
    assert found["args"] == ["eu"]
    assert {"name": "TASK_PARAM_X", "value": "eu"} in found["env"]


def test_a_parameter_is_never_put_into_a_script() -> None:
    job = rendered(template(shell={"script": "echo $(params.x) $(date) $$"}), {"x": "; rm -rf /"})
    assert container(job)["command"] == ["/bin/sh", "-c", "echo $$(params.x) $$(date) $$$"]


def test_an_entrypoint_gets_its_parameters_as_json() -> None:
    job = rendered(template(python={"image": "i", "entrypoint": "a.b:c"}), {"x": '"$(y)'})
    assert environment(job)["TASK_ENTRYPOINT"] == "a.b:c"
    assert environment(job)["TASK_PARAMETERS"] == r'{"x":"\"$$(y)"}'


def test_our_variables_win_and_others_may_refer_to_them() -> None:
    given = [{"name": "TASK_RUN", "value": "mine"}, {"name": "LOG", "value": "/log/$(TASK_RUN)"}]
    names = [entry["name"] for entry in container(rendered(job_template({"env": given})))["env"]]
    assert names.count("TASK_RUN") == 1
    assert names.index("TASK_RUN") < names.index("LOG")


BACKOFF = {"retries belong to the schedule": ({}, 0), "unless the template says otherwise": ({"backoffLimit": 4}, 4)}


@pytest.mark.parametrize(("spec", "limit"), BACKOFF.values(), ids=BACKOFF)
def test_how_often_kubernetes_itself_tries(spec: Json, limit: int) -> None:
    assert rendered(job_template(**spec))["spec"]["backoffLimit"] == limit


TIMEOUTS: dict[str, tuple[dict[str, Any], dict[str, Any], int | None]] = {
    "none": ({}, {}, None),
    "of the template": ({"timeout": "5m"}, {}, 300),
    "of the schedule": ({"timeout": "5m"}, {"timeout": "1m"}, 60),
}


@pytest.mark.parametrize(("of_template", "of_schedule", "deadline"), TIMEOUTS.values(), ids=TIMEOUTS)
def test_timeouts(of_template: dict[str, Any], of_schedule: dict[str, Any], deadline: int | None) -> None:
    job = rendered(template(**of_template), **of_schedule)
    assert job["spec"].get("activeDeadlineSeconds") == deadline


def test_the_time_to_live_is_ours_to_keep() -> None:
    """The TTL controller would delete a Job whose failure a retry still needs."""
    job = rendered(job_template(ttlSecondsAfterFinished=60))
    assert "ttlSecondsAfterFinished" not in job["spec"]
    assert job["metadata"]["annotations"]["cronwright.dev/ttl"] == "60"


# The next attempt


def as_created(job: Json) -> Json:
    """What the API server makes of a Job: marks and a selector of its own."""
    marks = {"batch.kubernetes.io/controller-uid": "u", "controller-uid": "u", "job-name": job["metadata"]["name"]}
    job["metadata"] |= {"uid": "u", "resourceVersion": "7", "creationTimestamp": at(0)}
    job["spec"]["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    job["spec"]["template"]["metadata"]["labels"] |= marks
    job["metadata"]["labels"] |= marks
    return job


def test_the_next_attempt_is_the_first_one_but_for_its_number() -> None:
    first = rendered(job_template({"args": ["$(params.x)"]}), {"x": "eu"})
    second = again(as_created(rendered(job_template({"args": ["$(params.x)"]}), {"x": "eu"})), schedule(), claim(0, 2))
    assert second["metadata"].pop("name") == f"s-{T}-2"
    assert environment(second)["TASK_RUN"] == f"s-{T}-2"
    assert environment(second)["TASK_ATTEMPT"] == "2"
    assert second["metadata"]["annotations"].pop("cronwright.dev/attempt") == "2"
    for entry in container(second)["env"]:
        if entry["name"] in ("TASK_RUN", "TASK_ATTEMPT"):
            entry["value"] = environment(first)[entry["name"]]
    second["metadata"]["annotations"]["cronwright.dev/attempt"] = "1"
    second["metadata"]["name"] = f"s-{T}-1"
    assert second == first


ENDED = {
    "there was a deadline": ("300", 300),
    "there was none": ("", None),
}


@pytest.mark.parametrize(("mark", "deadline"), ENDED.values(), ids=ENDED)
def test_an_attempt_that_we_ended_hands_its_own_deadline_on(mark: str, deadline: int | None) -> None:
    job = as_created(rendered(template()))
    job["spec"]["activeDeadlineSeconds"] = 1
    marks = {"ended": "PendingTimeout", "ended-message": "m", "deadline": mark}
    job["metadata"]["annotations"] |= {f"cronwright.dev/{key}": value for key, value in marks.items()}
    second = again(job, schedule(), claim(0, 2))
    assert second["spec"].get("activeDeadlineSeconds") == deadline
    assert not {f"cronwright.dev/{key}" for key in marks} & second["metadata"]["annotations"].keys()


def test_the_next_attempt_asks_its_queue_again() -> None:
    job = as_created(rendered(job_template(suspend=True)))
    job["spec"]["suspend"] = False  # as the queueing system does to let it run
    assert again(job, schedule(), claim(0, 2))["spec"]["suspend"] is True


def test_a_trial_belongs_to_nobody() -> None:
    job = trial(template(), {})
    assert "ownerReferences" not in job["metadata"]
    assert "annotations" not in job["metadata"] or "cronwright.dev/slot" not in job["metadata"]["annotations"]
