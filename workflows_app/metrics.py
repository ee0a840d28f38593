"""What this process has done, in Prometheus' terms. Each process counts for itself."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
LONG = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)

QUEUE_DELAY = Histogram(
    "runsight_queue_delay_seconds", "From a run being accepted to its execution beginning.", buckets=LONG
)
RUNS_ENDED = Counter("runsight_runs_ended", "Runs brought to their end by this process.", ["status"])
TAKEOVERS = Counter("runsight_takeovers", "Runs taken over from a process that gave no sign of life.")
EVENTS_SENT = Counter("runsight_events_sent", "Events handed to the channel layer.")
GAPS_REPLAYED = Counter(
    "runsight_gaps_replayed", "Times a viewer's feed read rows because a message had not come."
)
EVALUATION = Histogram("runsight_evaluation_seconds", "Running the assertions of one node.", buckets=SHORT)
