"""The oracle: asks both nodes for everything that was acknowledged, after the cluster is whole again.

It first checks what must still exist, then what must have ended: a code presented twice ends what it gave first.
"""

import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from .applications import Applications
from .browser import Browser, Crowd, form
from .ledger import Account, Application, Consent, Device, Family, Ledger, Session
from .nodes import GRACE_S
from .portal import Portal, active, tokens
from .wire import Answer

WORKERS = 6
# The most of each kind, unless all are checked: those near the event, and a few of the others.
NEAR = 60
FAR = 20
# Checks of passwords are limited, because passwords are expensive to hash by design.
PASSWORDS = 15
# Codes that are presented at once: what they gave is not checked afterwards.
REPLAYED = 6
TRIES = 20
# RFC 8628 §3.5: the answers to a device whose request may still be approved.
WAITING = ("authorization_pending", "slow_down")


@dataclass
class Verdict:
    """The findings: `lost` is gone, `undone` came back, `unwell` got no answer."""

    kept: int = 0
    ended: int = 0
    lost: list[str] = field(default_factory=list)
    undone: list[str] = field(default_factory=list)
    unwell: list[str] = field(default_factory=list)
    # How many of each kind were checked.
    asked: dict[str, int] = field(default_factory=dict)


class Check:
    """Asks each question at each node."""

    def __init__(self, nodes: list, issuer: str, applications: Applications, tally, event: float, seed: int, whole: bool = False):
        self.whole = whole
        self.nodes, self.issuer, self.applications, self.tally, self.event = nodes, issuer, applications, tally, event
        self.chance = random.Random(seed)
        self.verdict = Verdict()

    def run(self, ledger: Ledger) -> Verdict:
        for question, some in [*self._given(ledger), *self._taken(ledger)]:
            self._count(question, some)
        # These two checks are attacks, and end the families that they use.
        time.sleep(GRACE_S)
        rotated = [(*pair, one.application) for one in ledger.families for pair in one.rotated]
        self._count(self._rotated, self._some(rotated, lambda one: one[1]))
        self._count(self._used_code, self._some(ledger.codes, lambda one: one[2]))
        return self.verdict

    def _given(self, ledger: Ledger) -> list[tuple]:
        """Returns the questions about what must still exist."""
        applications = self._some([one for one in ledger.applications if one.lives], made)
        living = [one for one in ledger.accounts if one.lives]
        families = [one for one in ledger.families if one.lives]
        return [
            (self._application, [self.applications.signing, *applications]),
            (self._account, self._some(living, made, PASSWORDS)),
            (self._changed_password, self._some([one for one in living if one.old], lambda one: one.old[-1][1], PASSWORDS)),
            (self._consent, self._some([one for one in ledger.consents if one.stands], made, PASSWORDS)),
            (self._session, self._some([one for one in ledger.sessions if one.lives], made)),
            (self._family, self._some(families, lambda one: one.rotated[-1][1] if one.rotated else one.made)),
            (self._device, self._some([one for one in ledger.devices if one.waits], made)),
        ]

    def _taken(self, ledger: Ledger) -> list[tuple]:
        """Returns the questions about what must have ended, as it was when the questions began."""
        old = [(one, *changed) for one in ledger.accounts if one.lives for changed in one.old]
        taken = [one for one in ledger.consents if one.ended is not None and one.account.lives]
        return [
            (self._ended_session, self._some(over(ledger.sessions), ended)),
            (self._disabled, self._some(disabled(ledger.accounts), lambda one: one.disabled, PASSWORDS)),
            (self._disabled_application, self._some(disabled(ledger.applications), lambda one: one.disabled)),
            (self._old_password, self._some(old, lambda one: one[2], PASSWORDS)),
            (self._taken_consent, self._some(taken, ended, PASSWORDS)),
            (self._over_device, self._some(over(ledger.devices), ended)),
            (self._used_assertion, self._some(ledger.assertions, lambda one: one[1])),
            (self._dead_family, self._some(over(ledger.families), ended)),
        ]

    def held(self, ledger: Ledger) -> None:
        """While a node is missing that may remember what has ended, no token from before the event is accepted."""
        before = [one for one in ledger.families if one.lives and one.made < self.event]
        believed = []

        def question(portals: list[Portal], one: Family) -> None:
            for portal in portals:
                if active(self._ask(lambda: self._of(portal, one).introspect(one.access))):
                    believed.append(one)

        self._all(question, self._some(before, lambda one: one.made, PASSWORDS))
        for one in believed:
            ledger.note("undone", f"a token from before ({self._when(one.made)}) is believed while a node is missing")
        self._taken_once(ledger)

    def _taken_once(self, ledger: Ledger) -> None:
        """Nor is an assertion from before the event, which the missing node may have accepted."""
        with ledger.lock:
            before = [one for one in ledger.assertions if one[1] < self.event]

        def question(portals: list[Portal], one: tuple[str, float]) -> None:
            for portal in portals:
                if portal.present(one[0]).status == 200:
                    ledger.note("undone", f"an assertion that was used ({self._when(one[1])}) is taken again while a node is missing")

        self._all(question, self._some(before, lambda one: one[1], PASSWORDS))

    def replayed(self, ledger: Ledger) -> None:
        """While the cluster is as the event left it, a redeemed code gives nobody anything."""
        with ledger.lock:
            untouched = [one for one in ledger.families if one.alone and one.lives and one.code]
        chosen = self._some(untouched, lambda one: one.made, REPLAYED)
        for one in chosen:
            # Presenting a code twice ends what it gave the first time: from now on its state is unknown.
            one.known = False

        def question(portals: list[Portal], one: Family) -> None:
            for portal in portals:
                if self._ask(lambda: self._of(portal, one).redeem(one.code)).status == 200:
                    ledger.note("undone", f"a code that was redeemed ({self._when(one.made)}) is redeemed again at once")

        self._all(question, chosen)

    def _application(self, portals: list[Portal], one: Application) -> None:
        for portal in portals:
            answer = self._ask(lambda: portal.of(one.client).own())
            self._must_be(answer, answer.status == 200, f"an application ({self._when(one.made)}) is given no token: {answer.status}")

    def _account(self, portals: list[Portal], one: Account) -> None:
        for portal in portals:
            answer = self._sign_in(portal, one.name, one.password)
            self._must_be(answer, answer.status == 303, f"an account ({self._when(one.made)}) cannot sign in: {answer.status}")

    def _changed_password(self, portals: list[Portal], one: Account) -> None:
        when = self._when(one.old[-1][1])
        for portal in portals:
            answer = self._sign_in(portal, one.name, one.password)
            self._must_be(answer, answer.status == 303, f"a new password ({when}) does not sign in: {answer.status}")

    def _consent(self, portals: list[Portal], one: Consent) -> None:
        for portal in portals:
            answer = self._sign_in(portal.of(one.application.client), one.account.name, one.account.password)
            self._must_be(answer, answer.parameter("code") is not None, f"a consent ({self._when(one.made)}) is not remembered")

    def _session(self, portals: list[Portal], one: Session) -> None:
        for portal in portals:
            answer = self._ask(lambda: Browser(one.jar).get(portal.crowd, "/account"))
            self._must_be(answer, answer.status == 200, f"a session ({self._when(one.made)}) is not known")

    def _family(self, portals: list[Portal], one: Family) -> None:
        last = one.rotated[-1][1] if one.rotated else one.made
        portals = [self._of(portal, one) for portal in portals]
        for portal in portals:
            answer = self._ask(lambda: portal.introspect(one.refresh))
            if not self._must_be(answer, active(answer), f"a refresh token ({self._when(last)}) is not active"):
                return
        for portal in portals:
            answer = self._ask(lambda: portal.refresh(one.refresh))
            if not self._must_be(answer, answer.status == 200, f"a refresh token ({self._when(last)}) is not taken"):
                return
            one.refresh, one.access = tokens(answer)

    def _device(self, portals: list[Portal], one: Device) -> None:
        answer = self._ask(lambda: portals[0].poll(one.code))
        if not self._must_be(answer, answer.status == 200, f"a device that was allowed ({self._when(one.made)}) gets nothing: {answer.text}"):
            return
        for portal in portals:
            answer = self._ask(lambda: portal.poll(one.code))
            self._must_not(answer, answer.status == 200, f"a device that has its tokens ({self._when(one.made)}) is given them again")

    def _over_device(self, portals: list[Portal], one: Device) -> None:
        why = "was denied" if one.denied else "has its tokens" if one.polled else "lost its yes"
        what = f"a device that {why} ({self._when(one.ended)})"
        for portal in portals:
            answer = self._ask(lambda: portal.poll(one.code))
            self._must_not(answer, answer.status == 200, f"{what} is given tokens")
            self._must_not(answer, any(word in answer.text for word in WAITING), f"{what} may be answered once more")

    def _ended_session(self, portals: list[Portal], one: Session) -> None:
        for portal in portals:
            answer = self._ask(lambda: Browser(one.jar).get(portal.crowd, "/account"))
            self._must_not(answer, answer.status == 200, f"a session that ended ({self._when(one.ended)}) is alive")
            answer = self._ask(lambda: portal.authorize(Browser(one.jar), prompt="none"))
            self._must_not(answer, answer.parameter("code") is not None,
                           f"a session that ended ({self._when(one.ended)}) gives a code")

    def _disabled(self, portals: list[Portal], one: Account) -> None:
        for portal in portals:
            answer = self._sign_in(portal, one.name, one.password)
            self._must_not(answer, answer.status == 303, f"an account that was disabled ({self._when(one.disabled)}) signs in")

    def _disabled_application(self, portals: list[Portal], one: Application) -> None:
        what = f"an application that was disabled ({self._when(one.disabled)})"
        for portal in [portal.of(one.client) for portal in portals]:
            answer = self._ask(portal.own)
            self._must_not(answer, answer.status == 200, f"{what} is given a token")
            answer = self._ask(lambda: portal.authorize(Browser()))
            self._must_not(answer, form(answer, "/login") is not None, f"{what} signs people in")

    def _old_password(self, portals: list[Portal], one: tuple[Account, str, float]) -> None:
        account, password, when = one
        for portal in portals:
            answer = self._sign_in(portal, account.name, password)
            self._must_not(answer, answer.status == 303, f"a password that was changed ({self._when(when)}) signs in")

    def _taken_consent(self, portals: list[Portal], one: Consent) -> None:
        for portal in portals:
            answer = self._sign_in(portal.of(one.application.client), one.account.name, one.account.password)
            self._must_not(answer, answer.parameter("code") is not None, f"a consent that was taken back ({self._when(one.ended)}) stands")

    def _used_assertion(self, portals: list[Portal], one: tuple[str, float]) -> None:
        for portal in portals:
            answer = self._ask(lambda: portal.present(one[0]))
            self._must_not(answer, answer.status == 200, f"an assertion that was used ({self._when(one[1])}) is taken again")

    def _dead_family(self, portals: list[Portal], one: Family) -> None:
        when = self._when(one.ended)
        portals = [self._of(portal, one) for portal in portals]
        for portal in portals:
            for token in (one.refresh, one.access):
                answer = self._ask(lambda: portal.introspect(token))
                self._must_not(answer, active(answer), f"a token that was revoked ({when}) is active")
            answer = self._ask(lambda: portal.userinfo(one.access))
            self._must_not(answer, answer.status == 200, f"an access token that was revoked ({when}) is taken")
        for portal in portals:
            answer = self._ask(lambda: portal.refresh(one.refresh))
            self._must_not(answer, answer.status == 200, f"a refresh token that was revoked ({when}) is taken")

    def _rotated(self, portals: list[Portal], one: tuple[str, float, Application]) -> None:
        for portal in portals:
            answer = self._ask(lambda: portal.of(one[2].client).refresh(one[0]))
            self._must_not(answer, answer.status == 200, f"a refresh token that was used ({self._when(one[1])}) is taken again")

    def _used_code(self, portals: list[Portal], one: tuple[str, Application, float]) -> None:
        for portal in portals:
            answer = self._ask(lambda: portal.of(one[1].client).redeem(one[0]))
            self._must_not(answer, answer.status == 200, f"a code that was redeemed ({self._when(one[2])}) is redeemed again")

    def _of(self, portal: Portal, one: Family) -> Portal:
        return portal.of(one.application.client)

    def _sign_in(self, portal: Portal, name: str, password: str) -> Answer:
        def attempt() -> Answer:
            browser = Browser()
            page = portal.authorize(browser)
            return page if page.status != 200 else portal.log_in(browser, page, name, password)
        return self._ask(attempt)

    def _ask(self, question) -> Answer:
        """Repeats a question: the cluster is whole, so an answer comes, if not at once."""
        for _ in range(TRIES):
            answer = question()
            if not answer.unknown:
                break
            time.sleep(0.5)
        return answer

    def _must_be(self, answer: Answer, so: bool, sentence: str) -> bool:
        self.verdict.kept += 1
        return self._judge(answer, so, self.verdict.lost, sentence)

    def _must_not(self, answer: Answer, so: bool, sentence: str) -> None:
        self.verdict.ended += 1
        self._judge(answer, not so, self.verdict.undone, sentence)

    def _judge(self, answer: Answer, well: bool, wrong: list[str], sentence: str) -> bool:
        if answer.unknown:
            self.verdict.unwell.append(f"no answer after the cluster is whole: {answer.status} {answer.text[:80]}")
            return False
        if not well:
            wrong.append(sentence)
        return well

    def _count(self, question, of: list) -> None:
        self.verdict.asked[question.__name__.strip("_")] = len(of)
        self._all(question, of)

    def _all(self, question, of: list) -> None:
        """Asks about each, several at a time."""
        if not of:
            return
        shares = [of[start::WORKERS] for start in range(WORKERS)]

        def work(share: list) -> None:
            crowds = [Crowd([node], self.issuer, self.tally) for node in self.nodes]
            portals = [Portal(crowd, self.applications.trusted.client) for crowd in crowds]
            for one in share:
                self.chance.shuffle(portals)
                question(portals, one)
            for crowd in crowds:
                crowd.close()

        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(work, shares))

    def _some(self, of: list, when, near: int = NEAR) -> list:
        """Returns those acknowledged around the event, and some of the others; all if that was asked for and needs no
        password."""
        if self.whole and near == NEAR:
            return list(of)
        ordered = sorted(of, key=lambda one: abs(when(one) - self.event))
        return ordered[:near] + self.chance.sample(ordered[near:], min(FAR * near // NEAR, len(ordered[near:])))

    def _when(self, at: float) -> str:
        return f"acknowledged {at - self.event:+.2f} s"


def made(one) -> float:
    return one.made


def ended(one) -> float:
    return one.ended


def over(of: list) -> list:
    return [one for one in of if one.ended is not None]


def disabled(of: list) -> list:
    return [one for one in of if one.disabled is not None]
