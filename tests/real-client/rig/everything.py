"""Every option of the server that a client must not notice."""

import os

TOKEN = "a-capability-token-that-the-proxy-adds"
OPTIONS = [
    "--concurrent-requests=16", "--max-connections=200", "--require-auth",
    "--http-host=exec.example", "--metrics", "--http-files", "--session-ttl=30", "--allow-attach",
    "--max-processes=500", "--retained-output=2097152", "--closed-retention=45",
    "--closed-output-max=134217728", "--shutdown-grace-ms=100", "--allow-direct-exec=true",
    "--allow-prepared-exec=true", "--linux-sandbox-pid-namespace=isolate", "--log-level=debug",
    "--config=model=none", "--enable=something", "--disable=another", "--strict-config",
    "--name=everything", "--environment-id=one", "--proxy-private-ips-via-upstream",
]
AUTH = "--ws-auth"


def options(directory, given):
    """All of them but those that a scenario gives itself, with files in the directory."""
    names = {word.partition("=")[0] for word in given if word.startswith("--")}
    taken = [word for word in OPTIONS if word.partition("=")[0] not in names]
    if AUTH not in names:
        path = os.path.join(directory, "capability")
        with open(path, "w", encoding="ascii") as f:
            f.write(TOKEN + "\n")
        taken += [f"{AUTH}=capability-token", f"--ws-token-file={path}"]
    return [*taken, f"--audit-log={os.path.join(directory, 'audit')}"]


def authorised(head):
    """The head of an upgrade with the token in it."""
    return head[:-2] + f"Authorization: Bearer {TOKEN}\r\n\r\n".encode()
