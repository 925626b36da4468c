"""Carrying out the faults, each at its time, whatever the others do meanwhile.

Every target (a replica, the control plane, the people) has a thread of its own, so what takes long in one place does
not delay the faults of another, and what happens to one target happens in order.
"""

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from hack.chaos import faults
from hack.chaos.api import JOBS, LEASES, Json, Person
from hack.chaos.faults import Fault
from hack.chaos.replicas import Replica
from hack.chaos.takeovers import SHARD, Standby, Trouble
from hack.cluster import control_plane, processes
from hack.cluster.errors import ClusterError
from hack.cluster.folder import Folder, State

_CONTROL_PLANE, _PEOPLE = "control plane", "people"
_TOO_LATE = 10.0


class Attack:
    def __init__(
        self,
        folder: Folder,
        state: State,
        replicas: dict[str, Replica],
        person: Person,
        namespace: str,
        say: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._state = state
        self._replicas = replicas
        self._person = person
        self._namespace = namespace
        self._say = say
        self._threads = {
            name: ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
            for name in (*replicas, _CONTROL_PLANE, _PEOPLE)
        }
        self.troubles: list[Trouble] = []
        self.standbys: list[Standby] = []
        self.deleted: Counter[str] = Counter()
        self.dead_parts: list[str] = []

    def carry_out(self, plan: list[Fault]) -> None:
        """Blocks until all of it has happened and every replica and part is there again."""
        began = time.monotonic()
        pending: defaultdict[str, list[Future[None]]] = defaultdict(list)
        for fault in plan:
            self._sleep_until(began + fault.at)
            self._say(f"{fault.at:6.1f} s  {fault.kind}: {fault.target}")
            thread = self._thread_of(fault)
            pending[thread].append(self._threads[thread].submit(self._do, fault, began + fault.at + _TOO_LATE))
        for done in pending.values():
            for future in done:
                future.result()
        for replica in self._replicas.values():
            replica.live_on()

    def close(self) -> None:
        for thread in self._threads.values():
            thread.shutdown(cancel_futures=True)

    def end_of_standby(self, now: float) -> None:
        """Note that those who are well are so until now."""
        for replica in self._replicas.values():
            self._note_standby(replica, now)

    def _sleep_until(self, moment: float) -> None:
        """Replicas that die by themselves meanwhile are started again."""
        while (left := moment - time.monotonic()) > 0:
            for name, replica in self._replicas.items():
                if replica.wanted and not replica.running:
                    self._threads[name].submit(replica.live_on)
            time.sleep(min(0.5, left))

    @staticmethod
    def _thread_of(fault: Fault) -> str:
        if fault.kind in faults.OF_REPLICAS:
            return fault.target
        return _CONTROL_PLANE if fault.kind in faults.OF_PARTS else _PEOPLE

    def _do(self, fault: Fault, latest: float) -> None:
        if time.monotonic() > latest:
            return  # what was before it in this place took too long: the attack ends when it was said to end
        began = time.time()
        if fault.kind in faults.OF_REPLICAS:
            self._attack_replica(fault, self._replicas[fault.target], began)
            return
        if fault.kind in faults.OF_PARTS:
            self._attack_part(fault)
        else:
            self._delete(fault)
        self.troubles.append(Trouble(fault.kind, fault.target, began, time.time()))

    def _attack_replica(self, fault: Fault, replica: Replica, began: float) -> None:
        replica.live_on()
        self._note_standby(replica, began)
        if fault.kind == faults.PAUSE:
            replica.sleep()
        else:
            replica.end(kill=fault.kind == faults.KILL)
        time.sleep(max(0.0, began + fault.lasting - time.time()))
        self.troubles.append(Trouble(fault.kind, fault.target, began, time.time()))
        if fault.kind == faults.PAUSE:
            replica.wake()
        else:
            replica.start()

    def _note_standby(self, replica: Replica, until: float) -> None:
        if replica.ready_since is not None:
            self.standbys.append(Standby(replica.name, replica.ready_since, until))

    def _attack_part(self, fault: Fault) -> None:
        kill = fault.kind in (faults.API_KILL, faults.ETCD_KILL)
        with self._folder.locked():
            if processes.find(self._folder.pids, fault.target) is None:
                self.dead_parts.append(fault.target)
            processes.stop(self._folder.pids, fault.target, kill=kill)
            time.sleep(fault.lasting)
            try:
                control_plane.restart(self._folder, self._state, fault.target)
            except ClusterError as error:
                self._say(f"          {fault.target} did not come back at once: {error}")

    def _delete(self, fault: Fault) -> None:
        rng = random.Random(fault.draw)
        group, plural, namespace = (JOBS if fault.kind == faults.JOBS else LEASES), "leases", self._namespace
        if fault.kind == faults.JOBS:
            plural = "jobs"
        found = self._person.list(group, namespace, plural)
        if found is None:
            self.deleted["unanswered"] += 1
            return
        for obj in self._pick(fault.kind, found, rng):
            name = obj["metadata"]["name"]
            done = self._person.delete(group, namespace, plural, name)
            self.deleted[_sort_of(fault.kind, obj) if done else "unanswered"] += 1

    @staticmethod
    def _pick(kind: str, found: list[Json], rng: random.Random) -> list[Json]:
        if kind == faults.SHARDS:
            shards = [lease for lease in found if lease["metadata"]["name"].startswith(SHARD)]
            return shards if rng.random() < 0.3 else rng.sample(shards, min(1, len(shards)))
        if kind == faults.CLAIMS:
            claims = [lease for lease in found if "-claim-" in lease["metadata"]["name"]]
            return rng.sample(claims, min(8, len(claims)))
        # The youngest first: a Job that nobody has had the time to tell of is the one that hurts most.
        youngest = sorted(found, key=lambda job: str(job["metadata"]["creationTimestamp"]), reverse=True)
        return youngest[:5] + rng.sample(youngest[5:], min(10, len(youngest[5:])))


def _sort_of(kind: str, obj: Json) -> str:
    if kind != faults.JOBS:
        return {faults.CLAIMS: "claim Leases", faults.SHARDS: "shard Leases"}[kind]
    over = any(
        c["type"] in ("Complete", "Failed") and c["status"] == "True"
        for c in (obj.get("status") or {}).get("conditions") or ()
    )
    return "finished Jobs" if over else "running Jobs"
