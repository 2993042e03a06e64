"""The load: people who sign up, sign in, refresh, approve devices, give applications consent, sign out and are
disabled, and applications that come and go, each step at another node."""

import json
import random
import secrets
import threading
import time

from .applications import Applications, another
from .browser import Browser, Crowd, form
from .ledger import Account, Application, Consent, Device, Family, Ledger, Session
from .portal import PASSWORD, Portal, active, tokens
from .wire import Answer

# A visitor's steps, and their relative frequencies.
STEPS = {
    "sign_up": 2, "sign_in": 8, "refresh": 10, "answer_device": 2, "revoke": 3, "sign_out": 2, "change_password": 1, "disable": 1,
    "poll_device": 1.5, "consent": 1.5, "take_back": 1, "assert_itself": 0.5, "add_application": 0.5, "disable_application": 0.4,
}

# The share of everything that is left alone until the oracle checks it.
ALONE = 0.3
# The share of devices that are denied; the share of sign-ins to a visitor's own application.
DENIED = 0.3
OWN = 0.1


class Visitor(threading.Thread):
    """One of many visitors that act at the same time. It records in the ledger what is acknowledged, and no longer
    relies on what is not."""

    def __init__(self, crowd: Crowd, applications: Applications, nodes: list, ledger: Ledger, seed: int):
        super().__init__(daemon=True)
        self.all, self.portal = applications, Portal(crowd, applications.trusted.client)
        self.crowd, self.nodes, self.ledger = crowd, nodes, ledger
        self.chance = random.Random(seed)
        self.over = threading.Event()
        self.applications: list[Application] = []
        self.accounts: list[Account] = []
        self.sessions: list[Session] = []
        self.families: list[Family] = []
        self.consents: list[Consent] = []
        self.devices: list[Device] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self.sign_up()
            while not self.over.is_set():
                step = self.chance.choices(list(STEPS), STEPS.values())[0]
                if not getattr(self, step)():
                    # Nothing came of it: there is no hurry then.
                    self.over.wait(0.05)
        except BaseException as error:  # shown with the round, whatever it is
            self.failure = error
        self.crowd.close()

    def sign_up(self) -> bool:
        browser, name = Browser(), f"v{secrets.token_hex(6)}"
        page = browser.get(self.crowd, "/signup")
        found = form(page, "/signup")
        if page.status != 200 or found is None:
            return self._no(page)
        answer = browser.submit(self.crowd, found, username=name, password=PASSWORD)
        if not self._yes(answer, 303):
            return False
        account = Account(name, PASSWORD, self._leaves_alone())
        self._add(self.accounts, self.ledger.accounts, account)
        self._add(self.sessions, self.ledger.sessions, Session(account, browser.jar, account.alone))
        return True

    def sign_in(self) -> bool:
        account = self._pick(self.accounts, lambda one: one.lives)
        if account is None:
            return self.sign_up()
        browser, offline, application = Browser(), self.chance.random() < 0.3, self._application()
        portal = self.portal.of(application.client)
        page = portal.authorize(browser, offline)
        if page.status != 200:
            return self._no(page)
        answer = portal.log_in(browser, page, account.name, account.password)
        if not self._yes(answer, 303, f"the account {account.name} cannot sign in"):
            return False
        code = answer.parameter("code")
        session = Session(account, browser.jar, self._leaves_alone())
        self._add(self.sessions, self.ledger.sessions, session)
        return code is not None and self._redeem(application, session, code, offline)

    def _application(self) -> Application:
        """Returns the application that somebody signs in to."""
        theirs = [one for one in self.applications if one.lives]
        return self.chance.choice(theirs) if theirs and self.chance.random() < OWN else self.all.trusted

    def _redeem(self, application: Application, session: Session, code: str, offline: bool = False) -> bool:
        issued = time.monotonic()
        answer = self.portal.of(application.client).redeem(code)
        if not self._yes(answer, 200, f"a code that was issued {time.monotonic() - issued:.1f} s before is not taken"):
            return False
        refresh, access = tokens(answer)
        family = Family(application, session, code, refresh, access, offline, session.alone)
        self._add(self.families, self.ledger.families, family)
        self._remember(self.ledger.codes, (code, application, time.monotonic()))
        return True

    def refresh(self) -> bool:
        family = self._pick(self.families, lambda one: one.lives)
        if family is None:
            return False
        # Nobody relies on it until its new state is known.
        family.known = False
        answer = self._portal_of(family).refresh(family.refresh)
        if not self._yes(answer, 200, self._loses(family, "a refresh token is not taken")):
            return False
        family.rotated.append((family.refresh, time.monotonic()))
        family.refresh, family.access = tokens(answer)
        family.known = True
        return True

    def answer_device(self) -> bool:
        # For somebody who signed in within the last ten minutes.
        session = self._pick(self.sessions, lambda one: one.lives and time.monotonic() - one.made < 500)
        if session is None:
            return False
        answer = self.portal.ask_device()
        if not self._yes(answer, 200):
            return False
        asked, browser, told = time.monotonic(), Browser(session.jar), json.loads(answer.text)
        page = browser.get(self.crowd, "/device")
        found = form(page, "/device")
        if found is None:
            return self._no(page, self._loses(session, "a session is not known"))
        page = browser.submit(self.crowd, found, user_code=told["user_code"])
        found = form(page, "/device/confirm")
        if found is None:
            return self._no(page, f"a device that asked {time.monotonic() - asked:.1f} s before is not known")
        no = self.chance.random() < DENIED
        answer = browser.submit(self.crowd, found, decision="deny" if no else "allow")
        if not self._yes(answer, 303):
            return False
        if answer.parameter("done") != ("denied" if no else "approved"):
            return self._no(answer, f"a device that was just shown is not known: {answer.location}")
        device = Device(session, told["device_code"], self._leaves_alone(), denied=time.monotonic() if no else None)
        self._add(self.devices, self.ledger.devices, device)
        return True

    def poll_device(self) -> bool:
        device = self._pick(self.devices, lambda one: one.waits)
        if device is None:
            return False
        device.known = False
        answer = self.portal.poll(device.code)
        if not self._yes(answer, 200, self._loses(device, "a device that was allowed gets nothing")):
            return False
        device.known, device.polled = True, time.monotonic()
        family = Family(self.all.trusted, device.session, "", *tokens(answer), offline=False)
        self._add(self.families, self.ledger.families, family)
        self._must_not_be(self.portal.poll(device.code), "a device that just got its tokens is given them again")
        return True

    def consent(self) -> bool:
        asked = {one.account for one in self.consents}
        session = self._pick(self.sessions, lambda one: one.lives and one.account not in asked)
        if session is None:
            return False
        application, browser = self.all.asking, Browser(session.jar)
        page = self.portal.of(application.client).authorize(browser)
        found = form(page, "/consent")
        if found is None:
            return self._no(page, self._loses(session, "a session is not known"))
        consent = Consent(session.account, application, self._leaves_alone())
        self._add(self.consents, self.ledger.consents, consent)
        answer = browser.submit(self.crowd, found, decision="allow")
        code = answer.parameter("code")
        if code is None:
            return self._no(answer, write=True)
        self._yes(answer, 303)
        consent.known, consent.made = True, time.monotonic()
        return self._redeem(application, session, code)

    def take_back(self) -> bool:
        consent = self._pick(self.consents, lambda one: one.stands)
        session = consent and self._pick(self.sessions, lambda one: one.lives and one.account is consent.account)
        if session is None:
            return False
        browser, client = Browser(session.jar), consent.application.client
        page = browser.get(self.crowd, "/account")
        found = form(page, "/account/applications/revoke")
        if found is None:
            return self._no(page, self._loses(consent, "a consent, or a session, is not known"))
        given = [one for one in self.families if one.session.account is consent.account and one.application is consent.application]
        for one in [consent, *given]:
            one.known = False
        answer = browser.submit(self.crowd, found, client_id=client.id)
        if not self._is_done(answer, session):
            return False
        now = time.monotonic()
        for one in given:
            one.known, one.revoked = True, one.revoked or now
        consent.known, consent.ended = True, now
        again = self.portal.of(client).authorize(Browser(session.jar), prompt="none")
        self._must_not_be(again, "a consent that was just taken back gives a code", again.parameter("code") is not None)
        return True

    def assert_itself(self) -> bool:
        """An application authenticates with an assertion."""
        assertion = self.all.signing.client.assertion()
        if not self._yes(self.portal.present(assertion), 200, "an assertion is not taken"):
            return False
        self._remember(self.ledger.assertions, (assertion, time.monotonic()))
        self._must_not_be(self.portal.present(assertion), "an assertion that was just used is taken again")
        return True

    def add_application(self) -> bool:
        client = another(f"a{secrets.token_hex(6)}")
        if not self._ran(client.register(self._node())):
            return False
        self._add(self.applications, self.ledger.applications, Application(client, self._leaves_alone()))
        return True

    def disable_application(self) -> bool:
        application = self._pick(self.applications, lambda one: one.lives)
        if application is None:
            return False
        application.known = False
        if not self._ran(self._node().command("client", "disable", application.client.id) is not None):
            return False
        application.known, application.disabled = True, time.monotonic()
        self._must_not_be(self.portal.of(application.client).own(), "an application that was just disabled is given a token")
        return True

    def revoke(self) -> bool:
        family = self._pick(self.families, lambda one: one.lives)
        if family is None:
            return False
        family.known = False
        if not self._yes(self._portal_of(family).revoke(family.refresh), 200):
            return False
        family.known, family.revoked = True, time.monotonic()
        self._must_be_dead(family)
        return True

    def sign_out(self) -> bool:
        session = self._pick(self.sessions, lambda one: one.lives)
        if session is None:
            return False
        browser = Browser(session.jar)
        page = browser.get(self.crowd, "/account")
        found = form(page, "/account/signout")
        if found is None:
            return self._no(page, self._loses(session, "a session is not known"))
        session.known = False
        if not self._yes(browser.submit(self.crowd, found), 303):
            return False
        session.known, session.ended = True, time.monotonic()
        self._must_be_out(session)
        return True

    def change_password(self) -> bool:
        session = self._pick(self.sessions, lambda one: one.lives)
        if session is None:
            return False
        account, browser, new = session.account, Browser(session.jar), f"{PASSWORD} {secrets.token_hex(4)}"
        page = browser.get(self.crowd, "/account")
        found = form(page, "/account/password")
        if found is None:
            return self._no(page, self._loses(session, "a session is not known"))
        account.known = False
        answer = browser.submit(self.crowd, found, current=account.password, new=new)
        if not self._is_done(answer, session):
            return False
        now = time.monotonic()
        account.old.append((account.password, now))
        account.password, account.known, session.jar = new, True, browser.jar
        self._end_all(account, now, but=session)
        return True

    def disable(self) -> bool:
        account = self._pick(self.accounts, lambda one: one.lives)
        if account is None:
            return False
        account.known = False
        if not self._ran(self._node().command("user", "disable", account.name) is not None):
            return False
        account.known, account.disabled = True, time.monotonic()
        return True

    def _end_all(self, account: Account, now: float, but: Session) -> None:
        """A new password ends every other session, and every application has to ask again."""
        for session in self.sessions:
            if session.account is account and session is not but and session.ended is None:
                session.known, session.ended = True, now
        for family in self.families:
            if family.session.account is account and family.revoked is None:
                family.known, family.revoked = True, now
        for device in self.devices:
            if device.session.account is account and device.void is None:
                device.void = now

    def _must_be_dead(self, family: Family) -> None:
        answer = self._portal_of(family).introspect(family.refresh)
        self._must_not_be(answer, "a token that was just revoked is active", active(answer))

    def _must_be_out(self, session: Session) -> None:
        self._must_not_be(Browser(session.jar).get(self.crowd, "/account"), "a session that just ended is alive")

    def _must_not_be(self, answer: Answer, sentence: str, so: bool | None = None) -> None:
        """What a node acknowledged holds for the next request at any other. `so`: whether it does not, if 200 does not
        tell."""
        if answer.status == 200 and so is None or so:
            self.ledger.note("undone", f"{sentence} at the other node")

    def _node(self):
        return self.chance.choice(self.nodes)

    def _portal_of(self, family: Family) -> Portal:
        return self.portal.of(family.application.client)

    def _remember(self, all_of_them: list, one) -> None:
        with self.ledger.lock:
            all_of_them.append(one)

    def _add(self, own: list, all_of_them: list, one) -> None:
        own.append(one)
        self._remember(all_of_them, one)

    def _pick(self, of: list, fits):
        fitting = [one for one in of if not one.alone and fits(one)]
        return self.chance.choice(fitting) if fitting else None

    def _leaves_alone(self) -> bool:
        return self.chance.random() < ALONE

    def _loses(self, what, sentence: str) -> str:
        return f"{sentence} (acknowledged {time.monotonic() - what.made:.1f} s before)"

    def _yes(self, answer: Answer, wanted: int, sentence: str | None = None) -> bool:
        """Returns whether a write was acknowledged: counts it, and notes a refusal of what had to be accepted."""
        if answer.status == wanted:
            self.ledger.count("acknowledged")
            return True
        return self._no(answer, sentence, write=True)

    def _is_done(self, answer: Answer, session: Session) -> bool:
        """Does the same for a form of the account, which sends a visitor with an unknown session to the sign-in."""
        if answer.status == 303 and answer.parameter("done") is None:
            return self._no(answer, self._loses(session, "a session is not known"))
        return self._yes(answer, 303)

    def _ran(self, well: bool) -> bool:
        """Does the same for a command: the result of a failed one is unknown."""
        self.ledger.count("acknowledged" if well else "unknown")
        return well

    def _no(self, answer: Answer, sentence: str | None = None, write: bool = False) -> bool:
        self.ledger.count("unknown" if answer.unknown and write else "refused")
        if sentence and not answer.unknown and answer.status != 429:
            self.ledger.note("lost", f"{sentence}: {answer.status}")
        return False
