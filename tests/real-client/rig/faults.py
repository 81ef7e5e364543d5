"""Faults that can be planted into what the server says and is told, to show that the scenarios
notice them. Each changes a message in place and says whether it did."""

import base64


def skip_seq(direction, message):
    """One sequence number is left out."""
    p = message.get("params")
    if direction == "s2c" and message.get("method", "").startswith("process/") and p["seq"] > 1:
        p["seq"] += 1
        return True
    return False


def repeat_seq(direction, message):
    """The end of a command has the number of its last output."""
    if direction == "s2c" and message.get("method") in ("process/exited", "process/closed"):
        message["params"]["seq"] -= 1
        return True
    return False


def lose_byte(direction, message):
    """The last byte of every output is missing."""
    if direction == "s2c" and message.get("method") == "process/output":
        data = base64.b64decode(message["params"]["chunk"])
        message["params"]["chunk"] = base64.b64encode(data[:-1]).decode()
        return True
    return False


def no_sandbox(direction, message):
    """Commands and file calls run without their sandbox."""
    if direction == "c2s" and (message.get("params") or {}).get("sandbox"):
        message["params"]["sandbox"] = None
        return True
    return False


def no_resume(direction, message):
    """Sessions are never found again."""
    if direction == "c2s" and message.get("method") == "initialize":
        if message["params"]["resumeSessionId"]:
            message["params"]["resumeSessionId"] = "unknown"
            return True
    return False


def no_http(direction, message):
    """The server knows no http/request."""
    if direction == "c2s" and message.get("method") == "http/request":
        message["method"] = "http/unknown"
        return True
    return False


def no_proxy(direction, message):
    """The server has no proxies for commands."""
    info = (message.get("result") or {}) if direction == "s2c" else {}
    capabilities = isinstance(info, dict) and info.get("environmentInfo", {}).get("capabilities")
    if capabilities and "networkProxyLaunch" in capabilities:
        capabilities["networkProxyLaunch"] = False
        return True
    return False


FAULTS = {f.__name__.replace("_", "-"): f
          for f in (skip_seq, repeat_seq, lose_byte, no_sandbox, no_resume, no_http,
                    no_proxy)}
