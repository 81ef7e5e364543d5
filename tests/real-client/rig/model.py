"""A model server that speaks the Responses API. A scenario is the model: it decides turn by
turn which tools the client has to call, and sees what the tools answered."""

import asyncio
import gzip
import itertools
import json
import re

TURN_SECONDS = 60
_numbers = itertools.count(1)


class Output:
    """What the client gives the model for one tool call, taken apart."""

    def __init__(self, output, item):
        self.tool = item["name"]
        self.parts = output if isinstance(output, list) else []
        self.text = text = plain(output)
        self.code = self._number(r"Process exited with code (-?\d+)")
        self.session = self._number(r"Process running with session ID (\d+)")
        self.tokens = self._number(r"Original token count: (\d+)")
        self.out = text.partition("\nOutput:\n")[2]

    def _number(self, pattern):
        found = re.search(pattern, self.text)
        return int(found.group(1)) if found else None


def tool(name, **arguments):
    return {"type": "function_call", "call_id": f"call_{next(_numbers)}", "name": name,
            "arguments": json.dumps(arguments)}


def patch(text):
    """A call of apply_patch; the text is what stands between the markers."""
    return {"type": "custom_tool_call", "call_id": f"call_{next(_numbers)}", "name": "apply_patch",
            "input": f"*** Begin Patch\n{text.strip()}\n*** End Patch"}


def say(text):
    return {"type": "message", "role": "assistant", "id": f"msg_{next(_numbers)}",
            "content": [{"type": "output_text", "text": text}]}


def plain(output):
    """The text of a tool output, which may be a string or a list of parts."""
    if isinstance(output, str):
        return output
    return "".join(part.get("text", "") for part in output)


class Model:
    def __init__(self):
        self._requests = asyncio.Queue()
        self._replies = asyncio.Queue()
        self._server = None
        self._tasks = set()
        self.child = None  # the client
        self.first = None  # its first request
        self.outputs = []

    async def listen(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    def close(self):
        self.forget()
        if self._server:
            self._server.close()

    def forget(self):
        """Drops requests that still wait for an answer, after the client gave them up."""
        for task in self._tasks:
            task.cancel()

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            size = re.search(r"(?im)^content-length: *(\d+)", head)
            body = await reader.readexactly(int(size.group(1))) if size else b""
            if not head.split(" ")[1].split("?")[0].endswith("/responses"):
                writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n"
                             b"connection: close\r\n\r\n")
                return
            if re.search(r"(?im)^content-encoding: *gzip", head):
                body = gzip.decompress(body)
            self._requests.put_nowait(json.loads(body))
            writer.write(self._events(await self._replies.get()))
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    @staticmethod
    def _events(items):
        response = {"id": f"resp_{next(_numbers)}"}
        usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1,
                 "output_tokens_details": None, "total_tokens": 2}
        events = [{"type": "response.created", "response": response}]
        events += [{"type": "response.output_item.done", "item": item} for item in items]
        events += [{"type": "response.completed", "response": {**response, "usage": usage}}]
        text = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
        return ("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
                + text).encode()

    async def first_request(self):
        self.first = await asyncio.wait_for(self._requests.get(), TURN_SECONDS)
        return self.first

    def finish(self, text="done"):
        """The last word of the model: the client ends its turn."""
        self._replies.put_nowait([say(text)])

    async def call(self, *items):
        """Has the client call these tools at the same time; returns their outputs."""
        self._replies.put_nowait(list(items))
        request = await asyncio.wait_for(self._requests.get(), TURN_SECONDS)
        outputs = {i["call_id"]: i["output"] for i in request["input"]
                   if i.get("type", "").endswith("_output")}
        found = [Output(outputs[item["call_id"]], item) for item in items]
        self.outputs += found
        return found[0] if len(found) == 1 else found

    async def patch(self, text):
        return await self.call(patch(text))

    async def view(self, path):
        return await self.call(tool("view_image", path=path))

    async def shell(self, cmd, **more):
        return await self.call(tool("exec_command", cmd=cmd, **more))

    async def stdin(self, session, chars=None, yield_time_ms=5000):
        """Writes to a running command, or just waits for more of its output."""
        assert session is not None, "the command did not stay running"
        more = {} if chars is None else {"chars": chars}
        return await self.call(tool("write_stdin", session_id=session,
                                    yield_time_ms=yield_time_ms, **more))

    async def until_exit(self, output, before=""):
        """Polls until the command has ended; returns the text and the exit code. The text is what
        was seen before, what `output` brought, and the rest."""
        text = before + output.out
        while output.code is None:
            output = await self.stdin(output.session)
            text += output.out
        return text, output.code
