"""The calls of execserver.h as they are, for tests of their rules: results are numbers."""

import ctypes
import json
import os
import time

from execserver import _lib
from harness.settings import PATIENCE

LIB = _lib.declare(ctypes.CDLL(os.environ["EXECSERVER_LIBRARY"]), _lib.FUNCTIONS)
Code, State = _lib.Code, _lib.State


def options(**values):
    """A bag: numbers, texts, lists. The names are those of the keys, with underscores."""
    bag = LIB.xs_options_new()
    for name, value in values.items():
        key = name.replace("_", "-").encode()
        if isinstance(value, int):
            done = LIB.xs_options_num(bag, key, value)
        elif isinstance(value, (list, tuple)):
            done = 0
            for one in value:
                done = done or LIB.xs_options_add(bag, key, os.fsencode(one))
        else:
            done = LIB.xs_options_str(bag, key, os.fsencode(value))
        assert done == 0, error_text(LIB.xs_options_error(bag))
    return bag


def error_text(error):
    return os.fsdecode(LIB.xs_error_text(error))


class Pending:
    """One asynchronous call: `result` is None until it is done."""

    def __init__(self, client, then=None):
        self.client, self.then = client, then
        self.result = self.error = None
        self.times = 0
        self.call = _lib.Call(done=_lib.Done(self.done))

    def done(self, _, result):
        self.times += 1
        self.result = result
        self.error = self.client.error() if result < 0 else None
        if self.then:
            self.then(self)

    def ref(self):
        return ctypes.byref(self.call)

    def cancel(self):
        LIB.xs_call_cancel(self.ref())

    def wait(self):
        self.client.until(lambda: self.result is not None)
        assert self.times == 1
        return self.result


class Client:
    """A client. `states` and `lines` have what its callbacks told."""

    def __init__(self, url, connect=True, **more):
        bag = options(url=url, **more)
        self.handle = ctypes.c_void_p()
        self.new = LIB.xs_client_new(bag, ctypes.byref(self.handle))
        LIB.xs_options_free(bag)
        self.states, self.lines = [], []
        if self.new == 0:
            self.on_state = _lib.OnState(lambda c, s, u: self.states.append(State(s)))
            self.on_log = _lib.OnLog(lambda n, line, u: self.lines.append((n, os.fsdecode(line))))
            LIB.xs_client_on_state(self.handle, self.on_state, None)
            LIB.xs_client_on_log(self.handle, self.on_log, None)
        if connect:
            assert self.new == 0, self.error()
            assert self.connect() == 0, self.error()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.free()

    def free(self):
        handle, self.handle = self.handle, None
        if handle:
            LIB.xs_client_free(handle)

    def error(self):
        return error_text(LIB.xs_client_error(self.handle))

    def error_rpc(self):
        return LIB.xs_error_rpc(LIB.xs_client_error(self.handle))

    def state(self):
        return State(LIB.xs_client_state(self.handle))

    def connect(self, call=None):
        return LIB.xs_client_connect(self.handle, call and call.ref())

    def close(self, call=None):
        return LIB.xs_client_close(self.handle, call and call.ref())

    def detach(self):
        session = ctypes.create_string_buffer(_lib.SESSION_ID)
        result = LIB.xs_client_detach(self.handle, session, None)
        return result, session.value.decode()

    def info(self):
        return LIB.xs_client_info(self.handle).contents

    def rpc(self, method, params=None):
        """Result code, and the result as an object."""
        out = _lib.Bytes()
        text = json.dumps(params).encode() if params is not None else None
        code = LIB.xs_client_rpc(self.handle, method.encode(), text, ctypes.byref(out), None)
        value = json.loads(ctypes.string_at(out.data, out.n)) if code == 0 else None
        LIB.xs_bytes_free(ctypes.byref(out))
        return code, value

    def ask(self, method, params=None, then=None):
        """An asynchronous rpc(), whose result nobody wants."""
        pending = Pending(self, then)
        text = json.dumps(params).encode() if params is not None else None
        pending.refused = LIB.xs_client_rpc(self.handle, method.encode(), text, None,
                                            pending.ref())
        return pending

    def run(self, ms=50):
        return LIB.xs_client_run(self.handle, ms)

    def until(self, condition, limit=60 + PATIENCE):
        """Runs the client until the condition holds."""
        end = time.monotonic() + limit
        while not condition():
            assert time.monotonic() < end, "it did not happen"
            assert self.run() == 0
