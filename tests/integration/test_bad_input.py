"""What a schema cannot judge: `Ready=False`, a reason, a sentence, an Event, no run, and nobody else is affected."""

import pytest
from tests.integration.operating import OperatorProcess
from tests.integration.support import eventually
from tests.integration.workspace import HELLO, ONE_RUN, Workspace, schedule

UNACCEPTABLE = """
apiVersion: cronwright.dev/v1alpha1
kind: TaskTemplate
metadata: {name: unacceptable}
spec:
  job:
    spec:
      template:
        spec:
          restartPolicy: Always
          containers: [{name: main, image: busybox}]
"""
MENDED = UNACCEPTABLE.replace("Always", "Never")


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        (
            "schedule: {cron: '61 * * * *'}",
            "InvalidCron",
            'spec.schedule.cron: minute "61" in "61 * * * *" is out of range; write 0 to 59',
        ),
        (
            "schedule: {cron: '0 0 31 2 *'}",
            "NeverRuns",
            'spec.schedule.cron: "0 0 31 2 *" never runs: no year has a date with day-of-month "31" and month "2"; '
            "write a date that exists",
        ),
        (
            "schedule: {cron: '0 6 * * *', timeZone: Europe/Berln}",
            "UnknownTimeZone",
            'spec.schedule.timeZone: "Europe/Berln" is not a time zone of the IANA database; '
            'did you mean "Europe/Berlin"?',
        ),
        (
            "parameters: {who: me}\nschedule: {interval: 1s}",
            "InvalidParameters",
            "spec.parameters.who: the template has no such parameter; it has none.",
        ),
    ],
    ids=["cron", "never", "zone", "parameter"],
)
def test_it_is_not_ready_and_says_why(work: Workspace, spec: str, reason: str, message: str) -> None:
    work.apply(HELLO, schedule("bad", spec), schedule("good", "schedule: {interval: 1s}"))
    status = work.until("bad", lambda s: s["phase"] == "Invalid")
    ready = work.condition("bad")
    assert (ready["status"], ready["reason"], ready["message"]) == ("False", reason, message)
    assert work.condition("bad", type="Stalled")["status"] == "True"
    assert "nextRunTime" not in status
    assert eventually(lambda: work.events("bad")) == [("Warning", reason, message)]
    work.until("good", lambda s: s.get("succeeded", 0) >= 1)
    assert work.jobs("bad") == []
    work.patch(
        "ts", "bad", {"spec": {"schedule": {"cron": None, "timeZone": "UTC", "interval": "1s"}, "parameters": None}}
    )
    work.until("bad", lambda s: s.get("runs", 0) >= 1)
    assert work.condition("bad")["status"] == "True"
    assert ("Normal", "Ready", "What was wrong has been mended.") in work.events("bad")


def test_a_missing_template_is_waited_for(work: Workspace) -> None:
    work.apply(schedule("early", "schedule: {interval: 1s}"))
    work.until("early", lambda s: s["phase"] == "Invalid")
    ready = work.condition("early")
    assert ready["reason"] == "TemplateNotFound"
    assert ready["message"] == (
        f"spec.templateRef.name: there is no TaskTemplate hello in namespace {work.namespace}; "
        "create it, or correct the name."
    )
    assert eventually(lambda: work.events("early"))[0][:2] == ("Warning", "TemplateNotFound")
    work.apply(HELLO)
    status = work.until("early", lambda s: s.get("succeeded", 0) >= 1)
    assert status["missed"] == 0, "what passed while it could not run is not missed"
    assert status["skips"].keys() <= {"TemplateNotFound", "Forbidden"}
    work.kubectl("delete", "tt", "hello")
    work.until("early", lambda s: s["phase"] == "Invalid")
    work.apply(HELLO)
    work.until("early", lambda s: s["phase"] == "Active")


def test_a_template_whose_job_would_be_refused_says_so_when_it_is_applied(work: Workspace) -> None:
    work.apply(UNACCEPTABLE, schedule("never", "schedule: {interval: 1s}", "unacceptable"))
    work.until("unacceptable", lambda s: s.get("conditions"), kind="tt")
    ready = work.condition("unacceptable", kind="tt")
    assert (ready["status"], ready["reason"]) == ("False", "InvalidJob")
    assert 'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"' in ready["message"]
    assert [e[:2] for e in work.events("unacceptable", "TaskTemplate")] == [("Warning", "InvalidJob")]
    work.until("never", lambda s: s["phase"] == "Invalid")
    assert work.condition("never")["reason"] == "TemplateInvalid"
    assert 'valid values: "OnFailure", "Never"' in work.condition("never")["message"]
    assert work.jobs("never") == []
    work.apply(MENDED)
    work.until("never", lambda s: s.get("succeeded", 0) >= 1)
    assert work.condition("unacceptable", kind="tt")["status"] == "True"


def test_a_job_that_is_refused_at_its_slot_fails_with_the_api_servers_words(work: Workspace) -> None:
    work.apply(HELLO, schedule("unlucky", ONE_RUN.replace("1s", "3s")))
    work.until("unlucky", lambda s: s.get("nextRunTime"))
    quota = (
        '{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"none"},"spec":{"hard":{"count/jobs.batch":"0"}}}'
    )
    work.apply(quota)
    status = work.until("unlucky", lambda s: s.get("failed", 0) == 1)
    [record] = status["recentRuns"]
    assert (record["phase"], record["category"]) == ("Failed", "Transient")
    assert "exceeded quota: none" in record["message"]
    assert "RunFailed" in [event[1] for event in work.events("unlucky")]


def test_bad_input_costs_no_hot_loop(work: Workspace, operator: OperatorProcess) -> None:
    work.apply(schedule("bad", "schedule: {cron: '61 * * * *'}"), UNACCEPTABLE)
    work.until("bad", lambda s: s["phase"] == "Invalid")
    work.until("unacceptable", lambda s: s.get("conditions"), kind="tt")
    versions = {kind: work.all(kind)[0]["metadata"]["resourceVersion"] for kind in ("ts", "tt")}
    work.apply(HELLO, schedule("other", "schedule: {interval: 1s}"))
    work.until("other", lambda s: s.get("runs", 0) >= 3)
    assert work.get("ts", "bad")["metadata"]["resourceVersion"] == versions["ts"]
    assert work.get("tt", "unacceptable")["metadata"]["resourceVersion"] == versions["tt"]
    assert len(work.events("bad")) == 1
