"""Processes that outlive the command that started them, and are found again safely.

A pid file holds a pid *and* the moment its process began, because pids are reused: a file that was left
behind by a crash may name a stranger by now, and a stranger is never signalled. Anything that should end with
the cluster registers itself the same way: `register(folder.pids, "operator", process.pid)`.
"""

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

_POLL = 0.02
_PROC = Path("/proc/self/stat")


@dataclass(frozen=True)
class Process:
    pid: int
    began: str  # opaque: equal for the same process, different for another one with the same pid

    def alive(self) -> bool:
        return _beginning(self.pid) == self.began

    def send(self, number: signal.Signals) -> None:
        if self.alive():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return


def _beginning(pid: int) -> str | None:
    """When the process began; None when there is none, or only a zombie that its parent has not collected."""
    if not _PROC.exists():
        return _beginning_from_ps(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name, in parentheses, may itself hold spaces and parentheses.
    fields = stat.rpartition(")")[2].split()
    state, threads, began = fields[0], int(fields[17]), fields[19]
    # A killed process is a zombie as soon as its first thread is; the others may still hold its ports.
    return None if state in "ZX" and threads <= 1 else began


def _beginning_from_ps(pid: int) -> str | None:
    asked = subprocess.run(["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True)
    state, _, began = asked.stdout.strip().partition(" ")
    return began.strip() if asked.returncode == 0 and not state.startswith("Z") else None


def register(pids: Path, name: str, pid: int) -> Process:
    """Write `pids/name.pid`, so that `down` stops this process and `status` lists it."""
    process = Process(pid, _beginning(pid) or "")
    pids.mkdir(parents=True, exist_ok=True)
    unfinished = pids / f".{name}.tmp"
    unfinished.write_text(json.dumps({"pid": process.pid, "began": process.began}) + "\n")
    unfinished.rename(pids / f"{name}.pid")
    return process


def find(pids: Path, name: str) -> Process | None:
    """The registered process, if it is still the one that was registered and still runs."""
    try:
        record = json.loads((pids / f"{name}.pid").read_text())
        process = Process(int(record["pid"]), str(record["began"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return process if process.alive() else None


def names(pids: Path) -> list[str]:
    return sorted(path.stem for path in pids.glob("*.pid"))


def start(pids: Path, name: str, command: list[str], log: Path) -> Process:
    """Start a process of its own session (a Ctrl-C here does not reach it), logging to a file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        started = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
        )
    process = register(pids, name, started.pid)
    started.returncode = 0  # it is no longer this object's to wait for: no ResourceWarning when it is collected
    return process


def stop(pids: Path, name: str, *, patience: float = 20.0, kill: bool = False) -> bool:
    """Stop a registered process, wait until it is gone and forget it. True when there was one to stop."""
    process = find(pids, name)
    if process is not None:
        process.send(signal.SIGKILL if kill else signal.SIGTERM)
        if not _gone_within(process, patience):
            process.send(signal.SIGKILL)
            while not _gone_within(process, patience):
                pass
    (pids / f"{name}.pid").unlink(missing_ok=True)
    return process is not None


def _gone_within(process: Process, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while process.alive():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL)
    return True
