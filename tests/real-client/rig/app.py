"""The client as `codex app-server`: JSON-RPC on its standard input and output."""

import asyncio
import itertools
import json

CALL_SECONDS = 60


class App:
    def __init__(self, child):
        self.child = child
        self.requests = []  # what the client asked its user
        self.decision = "accept"  # what the user answers; "amend": always
        self.thread = None
        self.current = None
        self.notes = []
        self._numbers = itertools.count(1)
        self._calls = {}
        self._news = asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    async def _read(self):
        while line := await self.child.stdout.readline():
            m = json.loads(line)
            if "method" not in m:
                call = self._calls.pop(m["id"], None)
                if call and not call.done():
                    call.set_result(m)
            elif "id" in m:
                self.requests.append(m)
                self._send({"id": m["id"], "result": self._answer(m["method"], m["params"])})
            else:
                self.notes.append(m)
                self._news.set()

    def _answer(self, method, params):
        if method == "mcpServer/elicitation/request":
            content = {} if self.decision == "accept" else None
            return {"action": self.decision, "content": content, "_meta": None}
        if self.decision == "amend":
            words = params["proposedExecpolicyAmendment"]
            return {"decision": {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": words}}}
        return {"decision": self.decision}

    def _send(self, message):
        self.child.stdin.write(json.dumps(message).encode() + b"\n")

    async def call(self, method, params):
        number = next(self._numbers)
        self._calls[number] = answer = asyncio.get_running_loop().create_future()
        self._send({"id": number, "method": method, "params": params})
        m = await asyncio.wait_for(answer, CALL_SECONDS)
        assert "result" in m, f"{method}: {m.get('error')}"
        return m["result"]

    async def open(self, cwd, sandbox, approval, **more):
        await self.call("initialize", {
            "clientInfo": {"name": "scenario", "title": "scenario", "version": "0"},
            "capabilities": {"experimentalApi": True}})
        self._send({"method": "initialized"})
        started = await self.call("thread/start", {
            "cwd": cwd, "sandbox": sandbox, "approvalPolicy": approval, **more})
        self.thread = started["thread"]["id"]

    async def turn(self):
        """Begins a turn; returns its id, which is also `current`."""
        self.notes.clear()
        started = await self.call("turn/start", {
            "threadId": self.thread, "input": [{"type": "text", "text": "go"}]})
        self.current = started["turn"]["id"]
        return self.current

    def turn_ended(self):
        return any(n["method"] == "turn/completed" for n in self.notes)

    async def until_turn_ends(self):
        while not self.turn_ended():
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), CALL_SECONDS)

    async def close(self):
        """The end of its input ends the client."""
        self.child.stdin.close()
        await asyncio.wait_for(self.child.wait(), CALL_SECONDS)
        await self._reader
