"""Capability tokens and signed bearer tokens."""

import hashlib
import hmac
import json
import time

from harness.case import case
from harness.http import GOOD, ask
from harness.servers import SECRET, TOKEN, base64url

CAPABILITY = {
    "none": "", "correct": f"Authorization: Bearer {TOKEN}\r\n",
    "wrong": "Authorization: Bearer nope\r\n", "prefix": f"Authorization: Bearer {TOKEN[:-1]}\r\n",
    "lower case": f"Authorization: bearer {TOKEN}\r\n",
    "upper case": f"authorization: BEARER {TOKEN}\r\n",
    "blanks": f"Authorization: Bearer   {TOKEN}  \r\n",
    "tab": f"Authorization: Bearer\t{TOKEN}\r\n", "no scheme": f"Authorization: {TOKEN}\r\n",
    "basic": f"Authorization: Basic {TOKEN}\r\n", "empty token": "Authorization: Bearer \r\n",
    "scheme only": "Authorization: Bearer\r\n", "empty": "Authorization: \r\n",
    "not ASCII": "Authorization: Bearer \xe9\r\n",
    "first of two counts": f"Authorization: Bearer {TOKEN}\r\nAuthorization: Bearer nope\r\n",
    "second of two": f"Authorization: Bearer nope\r\nAuthorization: Bearer {TOKEN}\r\n",
    "Origin first": f"Origin: http://x\r\nAuthorization: Bearer {TOKEN}\r\n",
}


def upgrade(headers, path="/"):
    return f"GET {path} HTTP/1.1\r\n{GOOD}{headers}\r\n"


def add(name, server, headers, path="/"):
    @case(f"{server} {name}")
    async def one(t):
        t.see("answer", await ask(t, upgrade(headers() if callable(headers) else headers, path),
                                  server))


for _name, _headers in CAPABILITY.items():
    add(_name, "capability", _headers)
add("query", "capability", "", f"/?token={TOKEN}")
add("correct", "digest", CAPABILITY["correct"])
add("wrong", "digest", CAPABILITY["wrong"])


@case("other routes need no token")
async def other_routes(t):
    for request in ("GET /readyz HTTP/1.1\r\n\r\n", "GET /nope HTTP/1.1\r\n\r\n",
                    "GET / HTTP/1.1\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"):
        t.see(request.split("\r")[0], await ask(t, request, "capability"))


@case("session with a token")
async def session(t):
    c = await t.open("capability", CAPABILITY["correct"])
    await c.hello()
    t.see("process", await c.finish_of("echo hi"))


def jwt(claims, header=None, secret=SECRET, digest=hashlib.sha256, tail=""):
    """A token. Claims may be given as text; numbers below 10^6 in exp and nbf count from now."""
    if not isinstance(claims, str):
        claims = {k: v + int(time.time()) if k in ("exp", "nbf") and isinstance(v, int)
                  and abs(v) < 10**6 else v for k, v in claims.items()}
        claims = json.dumps(claims)
    parts = [base64url(json.dumps(header or {"alg": "HS256", "typ": "JWT"}).encode()),
             base64url(claims.encode())]
    signed = ".".join(parts)
    signature = hmac.new(secret.encode(), signed.encode(), digest).digest()
    return f"Authorization: Bearer {signed}.{base64url(signature)}{tail}\r\n"


JWT = {
    "none": lambda: "", "good": lambda: jwt({"exp": 60}), "no exp": lambda: jwt({"iss": "x"}),
    "exp within skew": lambda: jwt({"exp": -20}), "exp beyond skew": lambda: jwt({"exp": -60}),
    "exp float": lambda: jwt({"exp": time.time() + 60.5}),
    "exp exponent": lambda: jwt('{"exp":1e11}'),
    "exp string": lambda: jwt({"exp": "1"}), "exp null": lambda: jwt({"exp": None}),
    "exp i64 max": lambda: jwt({"exp": 2**63 - 1}), "exp too large": lambda: jwt({"exp": 2**63}),
    "exp negative": lambda: jwt('{"exp":-1}'),
    "nbf within skew": lambda: jwt({"exp": 60, "nbf": 20}),
    "nbf beyond skew": lambda: jwt({"exp": 600, "nbf": 60}),
    "nbf null": lambda: jwt({"exp": 60, "nbf": None}),
    "nbf string": lambda: jwt({"exp": 60, "nbf": "x"}),
    "iat in the future": lambda: jwt({"exp": 60, "iat": 2**40}),
    "iat string": lambda: jwt({"exp": 60, "iat": "x"}),
    "aud array": lambda: jwt({"exp": 60, "aud": ["a", "b"]}),
    "aud null": lambda: jwt({"exp": 60, "aud": None}),
    "aud number": lambda: jwt({"exp": 60, "aud": 5}),
    "aud array of numbers": lambda: jwt({"exp": 60, "aud": [5]}),
    "iss number": lambda: jwt({"exp": 60, "iss": 5}),
    "iss null": lambda: jwt({"exp": 60, "iss": None}),
    "HS384": lambda: jwt({"exp": 60}, {"alg": "HS384"}, digest=hashlib.sha384),
    "HS512": lambda: jwt({"exp": 60}, {"alg": "HS512"}, digest=hashlib.sha512),
    "alg none": lambda: jwt({"exp": 60}, {"alg": "none"}),
    "alg lower case": lambda: jwt({"exp": 60}, {"alg": "hs256"}),
    "no alg": lambda: jwt({"exp": 60}, {"typ": "JWT"}),
    "no typ": lambda: jwt({"exp": 60}, {"alg": "HS256"}),
    "odd typ": lambda: jwt({"exp": 60}, {"alg": "HS256", "typ": "foo"}),
    "typ number": lambda: jwt({"exp": 60}, {"alg": "HS256", "typ": 5}),
    "kid": lambda: jwt({"exp": 60}, {"alg": "HS256", "kid": "k"}),
    "crit": lambda: jwt({"exp": 60}, {"alg": "HS256", "crit": ["x"], "x": 1}),
    "wrong secret": lambda: jwt({"exp": 60}, secret="x" * 32),
    "secret with newline": lambda: jwt({"exp": 60}, secret=SECRET + "\n"),
    "garbage": lambda: "Authorization: Bearer abc\r\n",
    "two parts": lambda: "Authorization: Bearer abc.def\r\n",
    "four parts": lambda: jwt({"exp": 60}, tail=".x"),
    "padded": lambda: jwt({"exp": 60}, tail="="),
    "claims array": lambda: jwt("[1]"), "claims not JSON": lambda: jwt("x"),
    "duplicate exp": lambda: jwt('{"exp":99999999999,"exp":99999999999}'),
    "duplicate unknown": lambda: jwt('{"exp":99999999999,"a":1,"a":1}'),
    "secret as token": lambda: f"Authorization: Bearer {SECRET}\r\n",
    "extra claims": lambda: jwt({"exp": 60, "sub": "x", "foo": {"a": 1}}),
}
CLAIMS = {
    "good": {"exp": 60, "iss": "me", "aud": "you"},
    "aud array": {"exp": 60, "iss": "me", "aud": ["a", "you"]},
    "aud missing": {"exp": 60, "iss": "me"}, "aud wrong": {"exp": 60, "iss": "me", "aud": "he"},
    "aud empty array": {"exp": 60, "iss": "me", "aud": []},
    "iss missing": {"exp": 60, "aud": "you"},
    "iss case": {"exp": 60, "iss": "Me", "aud": "you"},
    "iss and aud wrong": {"exp": 60, "iss": "x", "aud": "y"},
    "expired and iss wrong": {"exp": -60, "iss": "x", "aud": "y"},
    "early and iss wrong": {"exp": 60, "nbf": 30, "iss": "x", "aud": "y"},
    "expired and early": {"exp": -60, "nbf": 30, "iss": "x"},
    "expired without skew": {"exp": -3, "iss": "me", "aud": "you"},
    "early without skew": {"exp": 60, "nbf": 20, "iss": "me", "aud": "you"},
}

for _member in ("kid", "cty", "jku", "x5u", "x5t", "x5t#S256", "x5c", "jwk"):
    for _value in ("a", 5, None, True, ["a"], [5], {"a": 1}, {"kty": "oct", "k": "YQ"}):
        JWT[f"{_member} {json.dumps(_value)}"] = lambda m=_member, v=_value: jwt(
            {"exp": 60}, {"alg": "HS256", m: v})
for _value in ("a", 5, None, True, 1.5, ["a"], {"a": 1}):
    JWT[f"sub {json.dumps(_value)}"] = lambda v=_value: jwt({"exp": 60, "sub": v})

for _name, _token in JWT.items():
    add(_name, "jwt", _token)
for _name, _claims in CLAIMS.items():
    add(_name, "jwt-claims", lambda c=_claims: jwt(c))
add("no iss and aud", "jwt-blank", lambda: jwt({"exp": 60}))
