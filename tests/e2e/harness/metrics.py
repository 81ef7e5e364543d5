"""The figures of a server, read with the parser of the Prometheus client library."""

from prometheus_client.parser import text_string_to_metric_families


class Metrics:
    """One answer to GET /metrics."""

    def __init__(self, text):
        self.families = {}
        self.values = {}
        for family in text_string_to_metric_families(text):
            assert family.name not in self.families, f"{family.name} twice"
            assert family.documentation, f"{family.name} says nothing"
            self.families[family.name] = family
            for sample in family.samples:
                key = sample.name, frozenset(sample.labels.items())
                assert key not in self.values, f"{key} twice"
                self.values[key] = sample.value

    def get(self, name, **labels):
        """The only value of that name and exactly these labels."""
        return self.values[f"exec_server_{name}", frozenset(labels.items())]

    def process(self, name):
        """A value of the family that all programs share."""
        return self.values[f"process_{name}", frozenset()]


def metrics(server, **options):
    """What a server says of itself now."""
    http = server.http()
    answer = http.ask("/metrics", **options)
    http.close()
    assert answer.status == 200, answer.body
    return Metrics(answer.body.decode())
