"""A small MCP server on standard input and output: one tool, which tells the length and the
beginning of what it is given. The client starts it through the exec-server."""

import json
import sys

TOOL = {"name": "echo", "description": "echo", "annotations": {"readOnlyHint": True},
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}}


def answer(message):
    params = message.get("params") or {}
    if message["method"] == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "demo", "version": "1"}}
    if message["method"] == "tools/list":
        return {"tools": [TOOL]}
    if message["method"] == "tools/call":
        text = params["arguments"]["text"]
        return {"content": [{"type": "text", "text": f"got {len(text)}: {text[:20]}"}]}
    return {}


def main():
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": answer(request)}),
                  flush=True)


if __name__ == "__main__":
    main()
