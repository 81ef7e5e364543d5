"""Times of half a minute. They run beside the other tests; here their results are taken."""

import pytest


@pytest.mark.parametrize("name", ["slow head", "readiness", "initialize", "stopped", "ping",
                                  "retention", "session", "leftovers", "helpers"])
def test_long_wait(long_waits, name):
    long_waits.result(name)
