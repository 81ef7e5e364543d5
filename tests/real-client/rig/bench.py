"""One scenario's surroundings: scratch directory, server, proxy, model and client."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import tempfile

from . import everything
from .app import App
from .model import Model
from .proxy import Proxy

MODEL_NAME = "scripted"
# They only end what hangs.
START_SECONDS = 120
END_SECONDS = 120
# A server with a /tmp of its own: the sandboxes of others make and remove directories in it.
OWN_TMP = ["unshare", "--mount", "--propagation", "private", "sh", "-c",
           'mount -t tmpfs -o mode=1777 tmpfs /tmp && exec "$@"', "sh"]

CATALOG = {"models": [{
    "slug": MODEL_NAME, "display_name": MODEL_NAME, "description": "scripted",
    "default_reasoning_level": "low",
    "supported_reasoning_levels": [{"effort": "low", "description": "low"}],
    "shell_type": "unified_exec", "visibility": "list", "supported_in_api": True, "priority": 1,
    "availability_nux": None, "upgrade": None, "base_instructions": "Do as told.",
    "supports_reasoning_summaries": False, "support_verbosity": False, "default_verbosity": None,
    "apply_patch_tool_type": "freeform",
    "truncation_policy": {"mode": "tokens", "limit": 10000},
    "supports_parallel_tool_calls": True, "context_window": 272000,
    "experimental_supported_tools": [], "input_modalities": ["text", "image"],
}]}

CONFIG = """\
model = "{model}"
model_provider = "scripted"
model_catalog_json = "{home}/models.json"
approval_policy = "never"
check_for_update_on_startup = false
web_search = "disabled"

[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
requires_openai_auth = false
supports_websockets = false
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false

[features]
{features}

{tables}
"""
FEATURES_OFF = ("apps", "plugins", "remote_plugin", "multi_agent", "goals", "tool_suggest",
                "skill_search")


def own_tmp(program):
    """How to start a server: with OWN_TMP where that is allowed and does not hide the program."""
    return OWN_TMP if os.geteuid() == 0 and not program.startswith("/tmp/") else []


class Bench:
    """`ours` is false when the server is the reference."""

    def __init__(self, server, codex, ours, fault=None, every_option=False):
        self.server_command = server
        self.every_option = every_option and ours
        self.codex = codex
        self.ours = ours
        self.fault = fault
        # Not below the system's temporary directory, which the client treats differently.
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="real-client-", dir="/var/tmp"))
        self.work = self.directory("work")
        self.outside = self.directory("outside")
        self.server_home = self.directory("server")
        self.proxy = None
        self.server = None
        self.log = open(os.path.join(self.root, "server.log"), "wb")
        self.homes = 0
        self.variables = {}  # more of them for the client
        self.models = []

    def directory(self, name):
        path = os.path.join(self.root, name)
        os.makedirs(path)
        return path

    def environment(self, **more):
        keep = {k: os.environ[k] for k in ("PATH", "LANG", "TERM") if k in os.environ}
        return {**keep, "NO_PROXY": "*", "no_proxy": "*", "RUST_LOG": "error", **more}

    async def start_server(self, *options):
        """Starts the server, and the proxy in front of it; when there is a proxy already, that
        one leads to the new server."""
        given = everything.options(self.root, options) if self.every_option else []
        self.server = await asyncio.create_subprocess_exec(
            *own_tmp(self.server_command[0]), *self.server_command, "--listen", "ws://127.0.0.1:0", *given, *options,
            cwd=self.server_home,
            env=self.environment(HOME=self.server_home, CODEX_HOME=self.server_home,
                                 SERVER_SIDE="yes"),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=self.log)
        line = await asyncio.wait_for(self.server.stdout.readline(), START_SECONDS)
        port = int(line.decode().strip().rpartition(":")[2])
        if self.proxy:
            self.proxy.target = port
            return
        self.proxy = Proxy(port)
        self.proxy.fault = self.fault
        self.proxy.authorise = self.every_option and everything.AUTH not in options
        self.url = f"ws://127.0.0.1:{await self.proxy.listen()}"

    def at_server(self, path):
        """Where we find a path of the running server, which may have a /tmp of its own."""
        return f"/proc/{self.server.pid}/root{path}"

    async def end_server(self, how=signal.SIGTERM):
        self.server.send_signal(how)
        return await asyncio.wait_for(self.server.wait(), END_SECONDS)

    def _home(self, port, tables, features, environments):
        """A home directory for the client with everything it needs to stay offline."""
        self.homes += 1
        home = self.directory(f"home-{self.homes}")
        with open(f"{home}/models.json", "w", encoding="utf-8") as f:
            json.dump(CATALOG, f)
        lines = [f"{name} = false" for name in FEATURES_OFF]
        lines += [f"{name} = true" for name in features]
        with open(f"{home}/config.toml", "w", encoding="utf-8") as f:
            f.write(CONFIG.format(model=MODEL_NAME, home=home, port=port,
                                  features="\n".join(lines), tables=tables))
        if environments:
            with open(f"{home}/environments.toml", "w", encoding="utf-8") as f:
                f.write(environments)
        return home

    @contextlib.asynccontextmanager
    async def _started(self, arguments, stdio, tables="", features=(), environments=None,
                       cwd=None):
        """The client's process with a model behind it."""
        model = Model()
        self.models.append(model)
        home = self._home(await model.listen(), tables, features, environments)
        url = {} if environments else {"CODEX_EXEC_SERVER_URL": self.url}
        with open(f"{home}/stderr", "wb") as stderr:
            model.child = child = await asyncio.create_subprocess_exec(
                self.codex, *arguments, cwd=cwd or self.work,
                env=self.environment(HOME=home, CODEX_HOME=home, **url, **self.variables),
                stderr=stderr, **stdio)
        try:
            yield model
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
            model.close()

    @contextlib.asynccontextmanager
    async def client(self, tables="", exit_code=0, sandbox="danger-full-access", args=(),
                     prompt="go", cwd=None, **more):
        """Runs `codex exec` for the length of the block. The block plays the model."""
        arguments = ["exec", "--json", "--skip-git-repo-check", "--color", "never",
                     "-C", cwd or self.work, "-s", sandbox, *args, prompt]
        nothing = asyncio.subprocess.DEVNULL
        stdio = {"stdin": nothing, "stdout": nothing}
        async with self._started(arguments, stdio, tables, cwd=cwd, **more) as model:
            await model.first_request()
            yield model
            if model.child.returncode is None:
                model.finish()
            code = await asyncio.wait_for(model.child.wait(), END_SECONDS)
            if exit_code is not None:
                assert code == exit_code, f"the client ended with {code}"

    @contextlib.asynccontextmanager
    async def app(self, sandbox, approval, thread=None, **more):
        """Runs `codex app-server` with a thread and a turn: (model, app). Unlike `codex exec` it
        can ask its user, and can be told to stop. `thread` are more parameters of thread/start."""
        pipe = asyncio.subprocess.PIPE
        stdio = {"stdin": pipe, "stdout": pipe, "limit": 1 << 26}
        async with self._started(["app-server"], stdio, **more) as model:
            app = App(model.child)
            await app.open(self.work, sandbox, approval, **(thread or {}))
            await app.turn()
            await model.first_request()
            yield model, app
            if not app.turn_ended():
                model.finish()
                await app.until_turn_ends()
            await app.close()

    async def close(self, keep):
        if self.proxy:
            self.proxy.close()
        trouble = None
        if self.server:
            if self.server.returncode is not None:
                trouble = f"the server had ended with {self.server.returncode}"
            else:
                try:
                    code = await self.end_server()
                    trouble = f"the server ended with {code}" if code and self.ours else None
                except asyncio.TimeoutError:
                    trouble = f"the server did not end within {END_SECONDS} s of SIGTERM"
                    self.server.kill()
                    await self.server.wait()
        self.log.close()
        if not keep:
            shutil.rmtree(self.root, ignore_errors=True)
        return trouble
