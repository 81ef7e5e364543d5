"""Limits of the kernel that a user namespace has of its own."""

import subprocess

import pytest


def user_limit(name, value):
    """What to start a server with, so that it has this limit of /proc/sys/user; no other has."""
    wrapper = ("unshare", "--user", "--map-root-user", "sh", "-c",
               f'echo {value} > /proc/sys/user/{name} && exec "$@"', "sh")
    if subprocess.run([*wrapper, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("user namespaces are not allowed here")
    return wrapper
