"""Bearer tokens: capability token and HS256 JWT."""

import base64
import hashlib
import hmac
import json
import signal
import time

import pytest

from harness.fleet import Fleet
from harness.waiting import until
from harness.ws import Refused

TOKEN = "sekret-token"
SECRET = b"0123456789abcdef0123456789abcdef"
MISSING = b"missing websocket bearer token"
BAD_HEADER = b"invalid authorization header"
BAD_TOKEN = b"invalid websocket bearer token"
BAD_JWT = b"invalid websocket jwt"
EXPIRED = b"expired websocket jwt"
NOT_YET = b"websocket jwt is not valid yet"
BAD_ISSUER = b"websocket jwt issuer mismatch"
BAD_AUDIENCE = b"websocket jwt audience mismatch"


def verdict(server, *values, path="/"):
    """None when the upgrade with these Authorization headers succeeds, else the 401 body."""
    try:
        ws = server.websocket(path=path, headers=[("Authorization", v) for v in values])
    except Refused as refused:
        response = refused.response
        assert response.status == 401
        assert response.header("content-type") == "text/plain; charset=utf-8"
        assert response.header("www-authenticate") is None
        return response.body
    ws.close()
    return None


def class_server(*args):
    """A fixture with one server for the tests of a class."""
    @pytest.fixture(scope="class")
    def make(_self, tmp_path_factory):
        folder = tmp_path_factory.mktemp("auth")
        (folder / "token").write_text(f"  {TOKEN}\n")
        (folder / "secret").write_bytes(b"\n" + SECRET + b" \n")
        fleet = Fleet()
        yield fleet.start(*args, cwd=folder)
        fleet.finish()
    return make


CAPABILITY = ("--ws-auth", "capability-token")


class TestCapability:
    server = class_server(*CAPABILITY, "--ws-token-file", "token")

    @pytest.mark.parametrize("value", [
        "Bearer sekret-token", "bearer sekret-token", "BEARER sekret-token",
        "Bearer   sekret-token  "])
    def test_accepted(self, server, value):
        assert verdict(server, value) is None

    @pytest.mark.parametrize("value", [
        "Bearer\tsekret-token", "sekret-token", "Basic sekret-token", "Bearer ", "Bearer", "",
        "Bearer \xe9", "Bearersekret-token"])
    def test_bad_header(self, server, value):
        assert verdict(server, value) == BAD_HEADER

    @pytest.mark.parametrize("value", [
        "Bearer nope", "Bearer sekret-token2", "Bearer sekret-toke", "Bearer Sekret-token",
        "Bearer " + "x" * 5000])
    def test_bad_token(self, server, value):
        assert verdict(server, value) == BAD_TOKEN

    def test_missing(self, server):
        assert verdict(server) == MISSING
        assert verdict(server, path=f"/?token={TOKEN}") == MISSING

    def test_first_header_counts(self, server):
        good, bad = f"Bearer {TOKEN}", "Bearer nope"
        assert verdict(server, good, bad) is None
        assert verdict(server, bad, good) == BAD_TOKEN

    def test_other_routes_need_none(self, server):
        http = server.http()
        assert http.ask("/readyz").status == 200
        assert http.ask("/x").status == 404
        assert http.ask("/").status == 400
        assert http.ask("/", "POST").status == 405
        http.close()

    @pytest.mark.parametrize("token", [TOKEN, "nope"])
    def test_origin_first(self, server, token):
        with pytest.raises(Refused) as refused:
            server.websocket(headers=[("Origin", "x"), ("Authorization", f"Bearer {token}")])
        assert refused.value.response.status == 403


@pytest.mark.parametrize("form", [str, str.upper, lambda s: f"  {s} "])
def test_capability_digest(fleet, form):
    digest = form(hashlib.sha256(TOKEN.encode()).hexdigest())
    server = fleet.start(*CAPABILITY, "--ws-token-sha256", digest)
    assert verdict(server, f"Bearer {TOKEN}") is None
    assert verdict(server, "Bearer x") == BAD_TOKEN
    assert verdict(server, f"Bearer {digest.strip()}") == BAD_TOKEN


def test_hangup_reads_the_token_again(fleet, tmp_path):
    path = tmp_path / "token"
    path.write_text("first")
    server = fleet.start(*CAPABILITY, "--ws-token-file", str(path))
    client = server.client(headers=[("Authorization", "Bearer first")])
    path.write_text("second")
    assert verdict(server, "Bearer second") == BAD_TOKEN
    server.send_signal(signal.SIGHUP)
    until(lambda: verdict(server, "Bearer second") is None, "the new token")
    assert verdict(server, "Bearer first") == BAD_TOKEN
    client.sync()


def encode(data):
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def jwt(claims, head=None, secret=SECRET, digest=hashlib.sha256):
    body = f"{encode(head or {'alg': 'HS256', 'typ': 'JWT'})}.{encode(claims)}"
    mac = hmac.new(secret, body.encode(), digest).digest()
    return f"{body}.{encode(mac)}"


def soon(seconds=60):
    return int(time.time()) + seconds


JWT = ("--ws-auth", "signed-bearer-token", "--ws-shared-secret-file", "secret")
HS256 = {"alg": "HS256"}


class TestJwt:
    server = class_server(*JWT)

    def check(self, server, token):
        return verdict(server, f"Bearer {token}")

    @pytest.mark.parametrize("extra", [
        {}, {"nbf": None}, {"nbf": 0}, {"nbf": -5}, {"iat": 99999999999}, {"iat": "x"},
        {"iss": "anyone"}, {"iss": None}, {"aud": "anything"}, {"aud": ["a", "b"]}, {"aud": None},
        {"aud": []}, {"sub": "me"}, {"sub": 5}, {"sub": None},
        {"extra": {"deep": [1, 2.5, None]}}, {"exp": 9223372036854775807}])
    def test_good_claims(self, server, extra):
        assert self.check(server, jwt({"exp": soon(), **extra})) is None

    @pytest.mark.parametrize("claims", [
        {}, {"iss": "x"}, {"exp": None}, {"exp": "1"}, {"exp": 1e12}, {"exp": 99999999999.5},
        {"exp": 9223372036854775808}, {"exp": True}, {"exp": [1]},
        {"exp": 99999999999, "nbf": "x"}, {"exp": 99999999999, "nbf": 1.5},
        {"exp": 99999999999, "aud": 5}, {"exp": 99999999999, "aud": ["a", 5]},
        {"exp": 99999999999, "aud": {"a": 1}}, {"exp": 99999999999, "iss": 5},
        {"exp": 99999999999, "sub": ["a"]}, {"exp": 99999999999, "sub": {}},
        [], "x", 5, None], ids=str)
    def test_bad_claims(self, server, claims):
        assert self.check(server, jwt(claims)) == BAD_JWT

    @pytest.mark.parametrize("raw", [
        b'{"exp":99999999999,"exp":99999999999}', b'{"exp":99999999999,"iss":"a","iss":"a"}',
        b'{"exp":99999999999', b'', b'{"exp":99999999999} x', b'{"exp":99999999999,"iss":"\xff"}'])
    def test_bad_json(self, server, raw):
        assert self.check(server, jwt(raw)) == BAD_JWT

    def test_expiry(self, server):
        assert self.check(server, jwt({"exp": soon(-20)})) is None
        assert self.check(server, jwt({"exp": soon(-40)})) == EXPIRED
        assert self.check(server, jwt({"exp": -1})) == EXPIRED
        assert self.check(server, jwt({"exp": -9223372036854775808})) == EXPIRED

    def test_not_before(self, server):
        assert self.check(server, jwt({"exp": soon(600), "nbf": soon(20)})) is None
        assert self.check(server, jwt({"exp": soon(600), "nbf": soon(60)})) == NOT_YET
        assert self.check(server, jwt({"exp": soon(600), "nbf": 9223372036854775807})) == NOT_YET
        assert self.check(server, jwt({"exp": soon(600), "nbf": -9223372036854775808})) is None

    def test_expiry_is_checked_before_not_before(self, server):
        assert self.check(server, jwt({"exp": soon(-600), "nbf": soon(600)})) == EXPIRED

    @pytest.mark.parametrize("head", [
        HS256, {"alg": "HS256", "typ": "foo"}, {"alg": "HS256", "kid": "k"},
        {"alg": "HS256", "kid": None, "x5c": ["a"], "jwk": {"kty": "oct", "k": "YQ"}},
        {"alg": "HS256", "crit": ["x"], "x": 1}])
    def test_good_head(self, server, head):
        assert self.check(server, jwt({"exp": soon()}, head)) is None

    @pytest.mark.parametrize("alg", ["hs256", "none", "HS384", "HS512", "RS256", "", 5, None])
    def test_bad_algorithm(self, server, alg):
        assert self.check(server, jwt({"exp": soon()}, {"alg": alg})) == BAD_JWT

    @pytest.mark.parametrize("head", [
        {"alg": "HS256", "typ": 5}, {}, {"typ": "JWT"}, [], "HS256", {"alg": "HS256", "kid": 5},
        {"alg": "HS256", "kid": ["a"]}, {"alg": "HS256", "x5t#S256": True},
        {"alg": "HS256", "x5c": "a"}, {"alg": "HS256", "x5c": [5]}, {"alg": "HS256", "jwk": {}}])
    def test_bad_head(self, server, head):
        token = jwt({"exp": soon()}, json.dumps(head).encode())
        assert self.check(server, token) == BAD_JWT

    @pytest.mark.parametrize("alg, digest", [("HS384", hashlib.sha384), ("HS512", hashlib.sha512)])
    def test_other_hmac(self, server, alg, digest):
        assert self.check(server, jwt({"exp": soon()}, {"alg": alg}, digest=digest)) == BAD_JWT

    def test_unsigned(self, server):
        token = jwt({"exp": soon()}, {"alg": "none"})
        assert self.check(server, token.rpartition(".")[0] + ".") == BAD_JWT

    def test_key_is_the_trimmed_content(self, server):
        assert self.check(server, jwt({"exp": soon()}, secret=SECRET + b"\n")) == BAD_JWT

    def test_shape(self, server):
        good = jwt({"exp": soon()})
        head, claims, mac = good.split(".")
        other = jwt({"exp": soon(61)}).split(".")
        for bad in (good + "=", f"{head}=.{claims}.{mac}", f"{head}.{claims}", f"{good}.x", "x",
                    "..", f"{head}.{claims}.", f".{claims}.{mac}", f"{head}.{claims}.{mac[:-2]}",
                    f"{head}.{other[1]}.{mac}", f"{head}.{claims}.{other[2]}", f"{good}A",
                    f"{head}.{claims}!.{mac}", f"{head}.{claims}.{mac[:-1]}!"):
            assert self.check(server, bad) == BAD_JWT, bad
        assert self.check(server, good) is None

    def test_last_symbol_is_canonical(self, server):
        # 32 bytes leave two unused bits in the last symbol; only zeros are canonical.
        good = jwt({"exp": soon()})
        table = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        twin = good[:-1] + table[table.index(good[-1]) | 1]
        assert self.check(server, twin) == BAD_JWT

    def test_missing(self, server):
        assert verdict(server) == MISSING
        assert verdict(server, "Basic x") == BAD_HEADER


class TestJwtNames:
    server = class_server(*JWT, "--ws-issuer", " me ", "--ws-audience", "here")

    @pytest.mark.parametrize("claims, body", [
        ({"iss": "me", "aud": "here"}, None),
        ({"iss": "me", "aud": ["there", "here"]}, None),
        ({"iss": "you", "aud": "here"}, BAD_ISSUER),
        ({"iss": "ME", "aud": "here"}, BAD_ISSUER),
        ({"iss": None, "aud": "here"}, BAD_ISSUER),
        ({"aud": "here"}, BAD_ISSUER),
        ({"iss": "me"}, BAD_AUDIENCE),
        ({"iss": "me", "aud": None}, BAD_AUDIENCE),
        ({"iss": "me", "aud": "there"}, BAD_AUDIENCE),
        ({"iss": "me", "aud": "HERE"}, BAD_AUDIENCE),
        ({"iss": "me", "aud": []}, BAD_AUDIENCE),
        ({"iss": "me", "aud": ["there"]}, BAD_AUDIENCE),
        ({"iss": "you", "aud": "there"}, BAD_ISSUER),
        ({"iss": "you", "aud": "there", "nbf": 99999999999}, NOT_YET),
        ({"iss": "you", "aud": "there", "exp": 1}, EXPIRED),
    ])
    def test_names(self, server, claims, body):
        assert verdict(server, "Bearer " + jwt({"exp": soon(600), **claims})) == body


class TestJwtSkew:
    server = class_server(*JWT, "--ws-max-clock-skew-seconds", "0", "--ws-issuer", "  ")

    def test_no_skew(self, server):
        assert verdict(server, "Bearer " + jwt({"exp": soon(-2)})) == EXPIRED
        assert verdict(server, "Bearer " + jwt({"exp": soon(600), "nbf": soon(30)})) == NOT_YET
        assert verdict(server, "Bearer " + jwt({"exp": soon(30)})) is None


class TestJwtLargestSkew:
    server = class_server(*JWT, "--ws-max-clock-skew-seconds", "9223372036854775807")

    @pytest.mark.parametrize("claims", [
        {"exp": 1}, {"exp": 9223372036854775807}, {"exp": 1, "nbf": 9223372036854775807},
        {"exp": 1, "nbf": -9223372036854775808}])
    def test_no_overflow(self, server, claims):
        assert verdict(server, "Bearer " + jwt(claims)) is None
