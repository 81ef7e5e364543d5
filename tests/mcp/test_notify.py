"""Interception by the kernel: what holds with a patched Bash holds for every exec."""

import pytest

from test_wrapper import RULES
from test_wrapper import (  # noqa: F401 # pylint: disable=unused-import
    test_an_escalated_program_is_run_faithfully, test_pipelines_of_escalated_programs_end,
    test_run_deny_escalate, test_signals_reach_an_escalated_program, test_what_run_keeps)


@pytest.fixture
def bash(start):
    """bash(**hello): a server in the mode notify, with the system's bash."""
    def made(*options, rules=RULES, **hello):
        server = start("--intercept", "notify", *options, rules=rules)
        server.hello(**hello)
        return server
    return made
