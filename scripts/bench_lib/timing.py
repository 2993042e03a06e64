"""Whether the time of a refusal reveals what was wrong: several kinds of request in turn, compared by rank."""

import base64
import hashlib
import random
import re
import secrets
import sqlite3
import statistics
from collections.abc import Callable
from contextlib import closing
from math import sqrt
from urllib.parse import parse_qs, urlencode, urlsplit

from .measures import Bench
from .place import PASSWORD, REDIRECT_URI, Place
from .programs import Failed, Server
from .wire import Answer, Wire

# Rounds before those that count: they warm up caches and hashing threads.
WARMUP = 20

# Throttling is off: it is the same for all kinds, and would dominate the measurement.
SETTINGS = {"PORTIERE_THROTTLE_FREE_FAILURES": "1000", "PORTIERE_THROTTLE_ADDRESS_FREE_FAILURES": "1000000"}

# The allowed difference of the medians, in milliseconds, and of the AUC from one half: 0.47 to 0.53.
MEDIANS_APART = 1
AUC_MARGIN = 0.03

# A kind of request: makes the request of a round, which must be refused.
Kind = Callable[[int], Answer]


def timing(bench: Bench, _: Place) -> None:
    """Compares refusals that must not differ: at sign-in, of clients, and of refresh tokens."""
    rounds = WARMUP + bench.pairs
    place = Place(bench.folder / "timing").make(3 * rounds, 0)
    spoil(place, rounds)
    bench.settings.append("throttle.free_failures = 1000 and throttle.address_free_failures = 1000000 for the timing "
                          "of refusals (defaults 5 and 50): nothing is throttled, and no account is tried twice")
    with Server(place.data, SETTINGS) as server, closing(Wire(server.port)) as wire:
        server.settle()
        sign_ins(bench, wire)
        clients(bench, place, wire)
        refreshes(bench, place, wire)


def username(kind: int, turn: int) -> str:
    """Returns the name of one of three kinds, in turn: with a password (0), disabled (1), without a password (2)."""
    return f"user-{3 * turn + kind:07}"


def spoil(place: Place, rounds: int) -> None:
    """Disables one third of a stopped server's people, and removes the passwords of another third."""
    with closing(sqlite3.connect(place.data / "portiere.db")) as file:
        for kind, change in ((1, "disabled_at = created"), (2, "password = NULL")):
            every_third = "username LIKE 'user-%' AND CAST(substr(username, 6) AS integer) % 3 = ?"
            if file.execute(f"UPDATE users SET {change} WHERE {every_third}", (kind,)).rowcount != rounds:
                raise Failed("the people in the file are called something else")
        file.commit()


def sign_ins(bench: Bench, wire: Wire) -> None:
    """Compares a wrong password for an existing account with one for an unknown name of the same length."""
    form = sign_in_form(wire.get("/login"))

    def trying(login: Callable[[int], str]) -> Kind:
        return lambda turn: form(wire, login(turn), "wrong-" + secrets.token_urlsafe(12))

    compare(bench, "sign-in", 422, {
        "unknown": trying(lambda turn: f"none-{2 * turn:07}"),
        "unknown again": trying(lambda turn: f"none-{2 * turn + 1:07}"),
        "known": trying(lambda turn: username(0, turn)),
        "disabled": trying(lambda turn: username(1, turn)),
        "without password": trying(lambda turn: username(2, turn)),
    })


def clients(bench: Bench, place: Place, wire: Wire) -> None:
    """Compares a client secret that is wrong from its start with one that is wrong only at its end. That a client
    exists is not a secret (RFC 6749 §2.2)."""

    def trying(secret: Callable[[], str]) -> Kind:
        return lambda _: token(wire, "web-rs256", secret(), grant_type="client_credentials")

    right = place.secret("web-rs256").read_text()
    compare(bench, "client secret", 401, {
        "all wrong": trying(garbage),
        "all wrong again": trying(garbage),
        "wrong at the end": trying(lambda: right[:-4] + garbage()[-4:]),
    })


def refreshes(bench: Bench, place: Place, wire: Wire) -> None:
    """Presents another client's refresh token, revoked and live: its finder must not learn if it is good (RT-04)."""
    secret, owner = place.secret("web-rs256").read_text(), place.secret("web-es256").read_text()
    live, revoked = (refresh_token(place, wire, "web-es256") for _ in range(2))
    if token(wire, "web-es256", owner, "/oauth2/revoke", token=revoked).status != 200:
        raise Failed("a refresh token could not be revoked")

    def trying(presented: str) -> Kind:
        return lambda _: token(wire, "web-rs256", secret, grant_type="refresh_token", refresh_token=presented)

    compare(bench, "another client's refresh token", 400, {
        "revoked": trying(revoked),
        "revoked again": trying(revoked),
        "live": trying(live),
    })


def garbage(size: int = 32) -> str:
    """Returns random bytes, written like the server's secrets and tokens, so their form is no reason to refuse them."""
    return secrets.token_urlsafe(size)


def compare(bench: Bench, what: str, status: int, kinds: dict[str, Kind]) -> None:
    """Makes one request of each kind per round, in a new random order. The first two kinds are the same: their
    difference is chance, and the reference for the others, which are compared with the first."""
    took = {name: [] for name in kinds}
    for turn in range(WARMUP + bench.pairs):
        for name in random.sample(list(kinds), len(kinds)):
            answer = kinds[name](turn)
            if answer.status != status:
                raise Failed(f"{what}, {name}: status {answer.status} in place of {status}")
            if turn >= WARMUP:
                took[name].append(answer.ms)
    base, control, *others = took
    chance = f"{base} beside itself {auc(took[base], took[control]):.3f}, by chance ±{deviation(bench.pairs):.3f}"
    for name in others:
        one, other = statistics.median(took[base]), statistics.median(took[name])
        area = auc(took[base], took[name])
        title = f"{what}, {name} or {base}"
        bench.add(f"{title}: |median difference|", [abs(other - one)], "ms", most=MEDIANS_APART,
                  reference=f"{other:.3f} and {one:.3f} ms")
        bench.add(f"{title}: |AUC - 0.5|", [abs(area - 0.5)], "", most=AUC_MARGIN,
                  reference=f"AUC {area:.3f}; {chance}")


def auc(base: list[float], other: list[float]) -> float:
    """Returns the probability that a value drawn from `other` is longer than one drawn from `base` (Mann and Whitney's
    U over the number of pairs); ties count half."""
    ordered = sorted([(value, 0) for value in base] + [(value, 1) for value in other])
    wins, below, at = 0.0, 0, 0
    while at < len(ordered):
        end = at
        while end < len(ordered) and ordered[end][0] == ordered[at][0]:
            end += 1
        theirs = sum(which for _, which in ordered[at:end])
        ours = end - at - theirs
        wins += theirs * (below + ours / 2)
        below, at = below + ours, end
    return wins / (len(base) * len(other))


def deviation(pairs: int) -> float:
    """Returns the standard deviation of the AUC of two samples of the same kind."""
    return sqrt((2 * pairs + 1) / (12 * pairs * pairs))


def sign_in_form(page: Answer) -> Callable[[Wire, str, str], Answer]:
    """Returns a function that fills in and sends the form of a sign-in page, any number of times."""
    flow = re.search(r'name="flow" value="([^"]+)"', page.text)
    cookie = page.headers.get("set-cookie", "").partition(";")[0]
    if page.status != 200 or not flow:
        raise Failed(f"there is no sign-in form (status {page.status})")

    def send(wire: Wire, login: str, password: str) -> Answer:
        fields = {"flow": flow[1], "login": login, "password": password}
        return wire.post("/login", fields, {"Cookie": cookie, "Origin": wire.origin})

    return send


def token(wire: Wire, client: str, secret: str, path: str = "/oauth2/token", **fields: str) -> Answer:
    """Makes a request of an authenticating client. Names and secrets here need no escaping."""
    basic = base64.b64encode(f"{client}:{secret}".encode()).decode()
    return wire.post(path, fields, {"Authorization": f"Basic {basic}"})


def refresh_token(place: Place, wire: Wire, client: str) -> str:
    """Returns a live refresh token of `client`, through the sign-in page."""
    verifier = secrets.token_urlsafe(32)
    digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    request = {"response_type": "code", "client_id": client, "redirect_uri": REDIRECT_URI,
               "scope": "openid offline_access", "code_challenge": digest, "code_challenge_method": "S256"}
    form = sign_in_form(wire.get(f"/oauth2/authorize?{urlencode(request)}"))
    landed = form(wire, "template", PASSWORD).headers.get("location", "")
    code = parse_qs(urlsplit(landed).query).get("code", [""])[0]
    tokens = token(wire, client, place.secret(client).read_text(), grant_type="authorization_code", code=code,
                   redirect_uri=REDIRECT_URI, code_verifier=verifier)
    found = re.search(r'"refresh_token":\s*"([^"]+)"', tokens.text)
    if not found:
        raise Failed(f"{client} gets no refresh token (status {tokens.status})")
    return found[1]
