"""Measures how long nobody could sign in: tries all the time, at each node separately."""

import threading
import time

from .browser import Browser, Crowd, form
from .portal import PASSWORD, Portal

PAUSE_S = 0.2
# Sign-ins with an unknown result count as attempts at the account: each uses another account.
ACCOUNTS = 40
# How long everything has to go well before sign-in counts as working again.
WELL_S = 2
# A slower sign-in was held up, even if it succeeded.
SLOW_S = 2


class Probe(threading.Thread):
    """Complete sign-ins at one node, one after another."""

    def __init__(self, crowd: Crowd, client, names: list[str]):
        super().__init__(daemon=True)
        self.crowd, self.portal, self.names = crowd, Portal(crowd, client), names
        self.over = threading.Event()
        # When each attempt began and ended, and why it failed.
        self.attempts: list[tuple[float, float, str | None]] = []

    def run(self) -> None:
        turn = 0
        while not self.over.is_set():
            begun = time.monotonic()
            why = self.sign_in(self.names[turn % len(self.names)])
            self.attempts.append((begun, time.monotonic(), why))
            turn += 1
            self.over.wait(PAUSE_S)
        self.crowd.close()

    def sign_in(self, name: str) -> str | None:
        """Returns why it failed, if it did."""
        browser = Browser()
        page = self.portal.authorize(browser)
        if page.status != 200:
            return f"authorize {page.status} {page.text[:60] if not page.status else ''}"
        answer = self.portal.log_in(browser, page, name, PASSWORD)
        if answer.status != 303:
            return f"login {answer.status}"
        answer = self.portal.redeem(answer.parameter("code") or "")
        return None if answer.status == 200 else f"token {answer.status}"

    def back(self, event: float) -> float | None:
        """Returns the seconds from the event until sign-ins worked, none failed any more, and none was held up any
        more; None if that is not yet so."""
        since = [attempt for attempt in self.attempts if attempt[1] > event]
        failed = max((at for at, (_, _, why) in enumerate(since) if why), default=-1)
        slow = max((at for at, (begun, ended, _) in enumerate(since) if ended - begun > SLOW_S), default=-1)
        well = max(failed + 1, slow)
        if well >= len(since) or time.monotonic() - max(since[well][1], event) < WELL_S:
            return None
        return since[well][1] - event if failed >= 0 or slow >= 0 else 0.0

    def failures(self, event: float) -> list[str]:
        return sorted({why for _, ended, why in self.attempts if why and ended > event})


def accounts(crowd: Crowd, count: int = ACCOUNTS) -> list[str]:
    """Signs up people for probes."""
    names = []
    for number in range(count):
        browser = Browser()
        page = browser.get(crowd, "/signup")
        name = f"probe{number}-{time.monotonic_ns()}"
        if browser.submit(crowd, form(page, "/signup"), username=name, password=PASSWORD).status == 303:
            names.append(name)
    return names
