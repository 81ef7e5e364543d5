"""One scenario's surroundings: scratch directory, server, proxy, model and client."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import tempfile

from .model import Model
from .proxy import Proxy

MODEL_NAME = "scripted"
START_SECONDS = 30

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
    "experimental_supported_tools": [], "input_modalities": ["text"],
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


class Bench:
    def __init__(self, server, codex):
        self.server_command = server
        self.codex = codex
        # Not below the system's temporary directory, which the client treats differently.
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="real-client-", dir="/var/tmp"))
        self.work = self._directory("work")
        self.server_home = self._directory("server")
        self.proxy = None
        self.server = None
        self.log = open(os.path.join(self.root, "server.log"), "wb")
        self.homes = 0

    def _directory(self, name):
        path = os.path.join(self.root, name)
        os.makedirs(path)
        return path

    def environment(self, **more):
        keep = {k: os.environ[k] for k in ("PATH", "LANG", "TERM") if k in os.environ}
        return {**keep, "NO_PROXY": "*", "no_proxy": "*", "RUST_LOG": "error", **more}

    async def start_server(self, *options):
        """Starts the server, and the proxy in front of it."""
        self.server = await asyncio.create_subprocess_exec(
            *self.server_command, "--listen", "ws://127.0.0.1:0", *options, cwd=self.server_home,
            env=self.environment(HOME=self.server_home, CODEX_HOME=self.server_home,
                                 SERVER_SIDE="yes"),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=self.log)
        line = await asyncio.wait_for(self.server.stdout.readline(), START_SECONDS)
        self.proxy = Proxy(int(line.decode().strip().rpartition(":")[2]))
        self.url = f"ws://127.0.0.1:{await self.proxy.listen()}"

    def _home(self, port, tables, environments):
        """A home directory for the client with everything it needs to stay offline."""
        self.homes += 1
        home = self._directory(f"home-{self.homes}")
        with open(f"{home}/models.json", "w", encoding="utf-8") as f:
            json.dump(CATALOG, f)
        features = "\n".join(f"{name} = false" for name in FEATURES_OFF)
        with open(f"{home}/config.toml", "w", encoding="utf-8") as f:
            f.write(CONFIG.format(model=MODEL_NAME, home=home, port=port, features=features,
                                  tables=tables))
        if environments:
            with open(f"{home}/environments.toml", "w", encoding="utf-8") as f:
                f.write(environments)
        return home

    @contextlib.asynccontextmanager
    async def client(self, tables="", environments=None, exit_code=0):
        """Runs `codex exec` for the length of the block. The block plays the model."""
        model = Model()
        home = self._home(await model.listen(), tables, environments)
        url = {} if environments else {"CODEX_EXEC_SERVER_URL": self.url}
        child = await asyncio.create_subprocess_exec(
            self.codex, "exec", "--json", "--skip-git-repo-check", "--color", "never",
            "-C", self.work, "-s", "danger-full-access", "go", cwd=self.work,
            env=self.environment(HOME=home, CODEX_HOME=home, **url),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
            stderr=open(f"{home}/stderr", "wb"))
        model.child = child
        try:
            await model.first_request()
            yield model
            if child.returncode is None:
                model.finish()
            code = await asyncio.wait_for(child.wait(), 60)
            if exit_code is not None:
                assert code == exit_code, f"the client ended with {code}"
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
            model.close()

    async def close(self, keep):
        if self.proxy:
            self.proxy.close()
        trouble = None
        if self.server:
            if self.server.returncode is not None:
                trouble = f"the server had ended with {self.server.returncode}"
            else:
                self.server.send_signal(signal.SIGTERM)
                try:
                    code = await asyncio.wait_for(self.server.wait(), 10)
                    trouble = f"the server ended with {code}" if code else None
                except asyncio.TimeoutError:
                    trouble = "the server did not end within 10 s of SIGTERM"
                    self.server.kill()
                    await self.server.wait()
        self.log.close()
        if not keep:
            shutil.rmtree(self.root, ignore_errors=True)
        return trouble
