"""The servers of one test or of one file of tests."""

from .rpc import Client
from .server import Server
from .stdio import Stdio


class Fleet:
    """Starts servers for a test and ends them with all checks."""

    def __init__(self):
        self.servers = []
        self.pipes = []

    def start(self, *args, **options):
        server = Server(*args, **options)
        self.servers.append(server)
        return server

    def stdio(self, *args, initialize=True, **options):
        client = Client(Stdio(*args, **options))
        self.pipes.append(client)
        if initialize:
            client.initialize()
        return client

    def finish(self):
        try:
            for server in self.servers:
                if server.popen.returncode is None:
                    server.stop()
        finally:
            for thing in self.servers:
                thing.abandon()
            for thing in self.pipes:
                thing.close()
