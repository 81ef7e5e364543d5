"""What a hostile client sends in the group `hostile`: each message again and again, as fast as the
server takes it, while another client is measured."""

import json
import os
import subprocess

MIB = 1 << 20


def request(method, params):
    return json.dumps({"id": 7, "method": method, "params": params}, separators=(",", ":"))


def start(**options):
    params = {"processId": "x", "argv": ["/bin/true"], "cwd": "file:///", "env": {}, "tty": False,
              "pipeStdin": False, "arg0": None}
    return request("process/start", {**params, **options})


def patterns():
    """The most expensive `envPolicy`: it is refused when all its steps were taken."""
    return {"inherit": "none", "ignoreDefaultExcludes": True, "exclude": [],
            "set": {f"{'a' * 3000}{i}": "" for i in range(10)},
            "includeOnly": [f"{'*a' * 20}b{i}" for i in range(400)]}


# Name of the attack, and its message.
ATTACKS = {
    "starts": lambda: start(argv=[]),
    "patterns": lambda: start(envPolicy=patterns()),
    "text": lambda: request("environment/status", {"x": "\n" * (31 * MIB)}),
    "values": lambda: request("environment/status", [0] * 262000),
    "base64": lambda: request("fs/writeFile", {"path": "/nonexistent/x",
                                               "dataBase64": "QUJD" * (15 * MIB)}),
    "flood": lambda: request("environment/status", {}),
}


class Attack:
    """A hostile client beside what is measured within."""

    def __init__(self, driver, server, name, path, millis):
        self.path = path
        with open(self.path, "w", encoding="ascii") as f:
            f.write(ATTACKS[name]())
        self.command = [driver.path, "attack", "--port", str(server.port), "--pid",
                        str(server.pid), "--millis", str(millis), "--path", self.path]

    def __enter__(self):
        self.client = subprocess.Popen(self.command, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        self.client.kill()
        self.client.wait()
        os.remove(self.path)
