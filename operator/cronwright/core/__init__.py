"""What next. Pure: given a schedule, its template, its ledger, its runs and the time, what must happen.

Nothing here reads a clock, opens a socket or knows kopf. The shell (`controller`) gathers a `View`, calls `decide`,
and carries the `Decision` out; tests and the simulator do exactly the same on virtual time.
"""
