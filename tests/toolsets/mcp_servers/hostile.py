"""An MCP server over stdio that misbehaves in one way, named by its first argument. Standard library only."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

MODE = sys.argv[1]
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
listings = []


def tool(name="tool", **changes):
    return {"name": name, "description": f"The tool {name}.", "inputSchema": SCHEMA, **changes}


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def flood(piece="x"):
    while True:
        sys.stdout.write(piece * 65_536)
        sys.stdout.flush()


def tools(params):
    listings.append(params)
    if MODE == "hang at list":
        time.sleep(600)
    if MODE == "endless line at list":
        flood()
    if MODE == "endless complaints at list":
        while True:
            sys.stderr.write("x" * 65_536)
    if MODE == "endless junk at list":
        flood("x\n")
    if MODE == "exit at list":
        sys.exit("out of tools")
    if MODE == "error at list":
        return None
    page = int(params.get("cursor", 0))
    return {
        "too many": {"tools": [tool(f"t{i}") for i in range(1_001)]},
        "endless pages": {"tools": [], "nextCursor": str(page + 1)},
        "many pages": {"tools": [tool(f"t{page}")], **({"nextCursor": str(page + 1)} if page < 3 else {})},
        "same cursor": {"tools": [tool()], "nextCursor": "7"},
        "illegal names": {"tools": [tool("getWeather"), tool("a b"), tool("fine")]},
        "giant name": {"tools": [tool("x" * 100_000)]},
        "duplicate names": {"tools": [tool(), tool()]},
        "remote ref": {
            "tools": [tool(inputSchema={**SCHEMA, "properties": {"n": {"$ref": "http://127.0.0.1:9/x"}}})]
        },
        "no object": {"tools": [tool(inputSchema={"type": "string"})]},
        "giant description": {"tools": [tool(description="x" * 100_000)]},
        "no description": {
            "tools": [tool(description=None, title="A title"), tool("other", description=" ")]
        },
        "no list": {"tools": "none"},
        "no names": {"tools": [{"inputSchema": SCHEMA}]},
        "changes": {"tools": [tool("before" if len(listings) == 1 else "after")]},
        "hostile output schema": {
            "tools": [tool(outputSchema={"type": "object", "properties": {"x": {"pattern": "^(a+)+$"}}})]
        },
    }.get(MODE, {"tools": [tool()]})


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def call(params):
    if MODE == "hang at call":
        time.sleep(600)
    if MODE == "endless line at call":
        flood()
    if MODE == "exit at call":
        sys.stderr.write("the disk is on fire\n")
        sys.stderr.flush()
        os._exit(1)
    if MODE == "changes" and params["name"] == "before":
        return None
    return {
        "giant output": text("x" * 3_000_000),
        "too large output": text("x" * 17_000_000),
        "no result": {"answer": 42},
        "strange content": {"content": [{"type": "hologram", "data": "x"}]},
        "giant error": {**text("e" * 100_000), "isError": True},
        "silent error": {"content": [], "isError": True},
        "too deep": {**text("deep"), "structuredContent": {"a": json.loads("[" * 300 + "]" * 300)}},
        "hostile output schema": {**text(""), "structuredContent": {"x": "a" * 40 + "!"}},
        "environment": text(json.dumps(dict(os.environ))),
    }.get(MODE, text(json.dumps(params["arguments"])))


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "hostile", "version": "1"},
        }
    if method == "tools/list":
        return tools(params)
    if method == "tools/call":
        return call(params)
    return None


def main():
    if len(sys.argv) > 2:
        Path(sys.argv[2]).write_text(str(os.getpid()))
    if MODE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "has a child":
        pid = os.fork()
        if pid == 0:
            time.sleep(600)
            os._exit(0)
        Path(sys.argv[2]).write_text(str(pid))
    if MODE == "exit at start":
        sys.exit("no configuration found")
    if MODE == "hang at start":
        time.sleep(600)
    if MODE == "noisy":
        sys.stderr.write("warning\n" * 500_000)
        sys.stdout.write("Welcome to the noisy server!\n")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message["method"], message.get("params") or {})
        if result is None:
            send(
                {
                    "jsonrpc": "2.0",
                    "id": message["id"],
                    "error": {"code": -32601, "message": f"no {message['method']}"},
                }
            )
        else:
            send({"jsonrpc": "2.0", "id": message["id"], "result": result})
    if MODE == "stubborn":
        time.sleep(600)


main()
