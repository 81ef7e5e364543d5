"""Taking a session over."""

from harness.rpc import RpcError
from harness.waiting import Deadline

ATTACHED = "session {} is already attached to another connection"


def resume(server, session, **asked):
    """A new connection on an old session, retried while the server still sees the old one.

    Its `limits` are what initialize answered; None if it was not told."""
    deadline = Deadline()
    while True:
        client = server.connect()
        ident = client.send("initialize", {"clientName": "again", "resumeSessionId": session,
                                           **asked})
        answer = client.answer(ident)
        if "result" in answer:
            assert answer["result"]["sessionId"] == session
            client.session = session
            client.limits = answer["result"].get("limits")
            client.notify("initialized", {})
            return client
        client.close()
        if answer["error"] != {"code": -32010, "message": ATTACHED.format(session)}:
            raise RpcError(answer["error"])
        assert not deadline.passed(), "session stays attached"
