"""Requests as people make them with kubectl annotate: run now, backfill, cancel; each once, each answered."""

from tests.integration.support import eventually
from tests.integration.workspace import HELLO, Workspace, environment, moment, schedule, slot, template

GREET = """
apiVersion: cronwright.dev/v1alpha1
kind: TaskTemplate
metadata: {name: greet}
spec:
  parameters:
  - {name: who, default: world}
  - {name: how, enum: [loud, quiet], default: quiet}
  shell: {script: 'echo "hello $TASK_PARAM_WHO"'}
"""
NEVER = "schedule: {cron: '0 0 29 2 *'}"  # a day that no test run meets by accident


def test_run_now_with_parameters_and_what_is_refused(work: Workspace) -> None:
    work.apply(GREET, schedule("greet", f"suspend: true\n{NEVER}\nparameters: {{how: loud}}", "greet"))
    work.until("greet", lambda s: s["phase"] == "Suspended")
    work.kubectl("annotate", "ts", "greet", 'request.cronwright.dev/now={"parameters": {"who": "you"}}')
    assert work.answer("greet", "now")["message"] == "1 run claimed."
    status = work.until("greet", lambda s: s["succeeded"] == 1)
    [job] = work.jobs("greet")
    assert (environment(job)["TASK_PARAM_WHO"], environment(job)["TASK_PARAM_HOW"]) == ("you", "loud")
    [record] = status["recentRuns"]
    assert (record["trigger"], record["phase"]) == ("Manual", "Succeeded")
    assert work.answer("greet", "now")["state"] == "Done"
    assert status["phase"] == "Suspended"

    work.ask("greet", "unknown", parameters={"whom": "you"})
    work.ask("greet", "invalid", parameters={"how": "sung"})
    work.kubectl("annotate", "ts", "greet", "request.cronwright.dev/text=please")
    work.kubectl("annotate", "ts", "greet", 'request.cronwright.dev/list={"kind": ["RunNow"]}')
    expected = {
        "unknown": "parameters.whom: the template has no such parameter; it has who, how.",
        "invalid": "parameters.how: 'sung' is not one of loud, quiet.",
        "list": "kind: ['RunNow'] is not known; write one of RunNow, Backfill, Cancel, Resume.",
    }
    for name, sentence in expected.items():
        answer = work.answer("greet", name)
        assert (answer["state"], answer["message"]) == ("Refused", sentence)
    assert work.answer("greet", "text")["message"].startswith("it is not JSON (")
    eventually(lambda: len([e for e in work.events("greet") if e[:2] == ("Warning", "RequestRefused")]) == 4)
    told = {event[2] for event in work.events("greet")}
    assert f"Request unknown (RunNow): {expected['unknown']}" in told
    assert len(work.jobs("greet")) == 1


def test_requests_obey_the_overlap_policy_unless_they_say_otherwise(work: Workspace) -> None:
    work.apply(template("endless", behaviour="Hang"), schedule("busy", f"suspend: true\n{NEVER}", "endless"))
    work.ask("busy", "a-first")
    first = work.until("busy", lambda s: s["activeRuns"] == 1)["active"][0]
    work.ask("busy", "b-forbidden")
    answer = work.answer("busy", "b-forbidden")
    assert (answer["state"], answer["message"]) == ("Refused", f"The run of {first['slot']} is not over.")
    work.ask("busy", "c-beside", concurrencyPolicy="Allow")
    work.until("busy", lambda s: s["activeRuns"] == 2)
    work.ask("busy", "d-after", concurrencyPolicy="Queue")
    work.until("busy", lambda s: s["queued"] == 1)

    work.ask("busy", "e-cancel", kind="Cancel", run=first["name"])
    assert work.answer("busy", "e-cancel")["message"] == f"Cancelled: {first['name']}."
    status = work.until("busy", lambda s: s["cancelled"] == 1)
    [record] = [run for run in status["recentRuns"] if run["name"] == first["name"]]
    assert (record["category"], record["message"]) == ("Cancelled", "Cancelled by a request.")
    assert (status["activeRuns"], status["queued"]) == (1, 1), "the others are not touched"
    assert work.get("job", first["name"]), "a cancelled Job stays, to be read"

    work.ask("busy", "f-all", kind="Cancel")
    status = work.until("busy", lambda s: s["activeRuns"] == 0)
    assert (status["runs"], status["cancelled"], status["queued"], status["failed"]) == (3, 3, 0, 0)
    work.ask("busy", "g-none", kind="Cancel")
    assert work.answer("busy", "g-none")["message"] == "No run of this schedule is active or waiting."
    assert len(work.jobs("busy")) == 2


def test_backfill_runs_the_slots_of_the_past_in_order(work: Workspace) -> None:
    daily = "schedule: {cron: '0 6 * * *'}\nsuspend: true\nconcurrencyPolicy: Queue\nqueueLimit: 2"
    work.apply(HELLO, schedule("daily", daily))
    work.ask("daily", "week", kind="Backfill", **{"from": "2026-01-05T06:00:00Z", "to": "2026-01-07T06:00:00Z"})
    assert work.answer("daily", "week")["message"] == "3 runs claimed."
    status = work.until("daily", lambda s: s["succeeded"] == 3)
    days = [f"2026-01-0{day}T06:00:00Z" for day in (5, 6, 7)]
    jobs = work.jobs("daily")
    assert [slot(job) for job in jobs] == [moment(day) for day in days]
    assert [environment(job)["TASK_SCHEDULED_AT"] for job in jobs] == days
    assert sorted(jobs, key=lambda job: str(job["metadata"]["creationTimestamp"])) == jobs
    assert {record["trigger"] for record in status["recentRuns"]} == {"Backfill"}
    assert "lastScheduleTime" not in status, "the schedule's own slots are not touched"

    work.ask("daily", "ages", kind="Backfill", **{"from": "2020-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z"})
    work.ask("daily", "none", kind="Backfill", **{"from": "2026-01-05T07:00:00Z", "to": "2026-01-05T08:00:00Z"})
    assert work.answer("daily", "ages")["message"] == (
        "from and to span 2192 slots; write a stretch of at most 100 at a time."
    )
    assert work.answer("daily", "none")["message"].startswith("The schedule has no slot from 2026-01-05T07:00:00Z to ")
    assert len(work.jobs("daily")) == 3


def test_requests_of_two_people_at_once_are_both_carried_out(work: Workspace) -> None:
    work.apply(HELLO, schedule("shared", f"{NEVER}\nconcurrencyPolicy: Allow"))
    notes = [f"request.cronwright.dev/{name}={{}}" for name in ("anna", "ben", "carla")]
    work.kubectl("annotate", "ts", "shared", *notes)
    status = work.until("shared", lambda s: s.get("succeeded") == 3)
    assert sorted(request["id"] for request in status["requests"]) == ["anna", "ben", "carla"]
    eventually(lambda: not work.asked("shared"))
    assert len(work.jobs("shared")) == 3
