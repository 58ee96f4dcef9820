"""What a service counts, in the text form that Prometheus reads."""

from bisect import bisect_left
from collections import Counter
from itertools import accumulate

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class ServiceMetrics:
    """Counts since the start; `queue` is the number of requests that wait now."""

    def __init__(self):
        self.requests: Counter[tuple[str, int]] = Counter()  # by path and status
        self.sums = Counter(lists=0, hypotheses=0, batches=0)
        self.durations = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0
        self.queue = 0

    def observe(self, seconds: float) -> None:
        """Count the time that a request for hypotheses took, from its last byte to the answer."""
        self.durations[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds

    def __str__(self) -> str:
        """Return the page that Prometheus fetches."""
        lines = ["# TYPE lmtools_requests_total counter"]
        for (path, status), count in sorted(self.requests.items()):
            lines.append(f'lmtools_requests_total{{path="{path}",status="{status}"}} {count}')
        for name, count in self.sums.items():
            lines += [f"# TYPE lmtools_{name}_total counter", f"lmtools_{name}_total {count}"]
        lines += ["# TYPE lmtools_queue_requests gauge", f"lmtools_queue_requests {self.queue}"]
        name = "lmtools_request_seconds"
        lines.append(f"# TYPE {name} histogram")
        bounds, counts = (*map(str, BOUNDS), "+Inf"), [*accumulate(self.durations)]
        for bound, count in zip(bounds, counts, strict=True):
            lines.append(f'{name}_bucket{{le="{bound}"}} {count}')
        lines += [f"{name}_sum {self.seconds:.6f}", f"{name}_count {counts[-1]}"]
        return "\n".join(lines) + "\n"
