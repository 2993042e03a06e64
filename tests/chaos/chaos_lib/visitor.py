"""The load: people who sign up, sign in, refresh, allow devices, sign out and are disabled, each step at another node."""

import json
import random
import secrets
import threading
import time

from .browser import Browser, Crowd, form
from .ledger import Account, Device, Family, Ledger, Session
from .portal import PASSWORD, Portal, tokens
from .wire import Answer

# What a visitor does next, and how often.
STEPS = {
    "sign_up": 2, "sign_in": 8, "refresh": 10, "allow_device": 2, "revoke": 3, "sign_out": 2, "change_password": 1, "disable": 1,
}

# The share of all that nobody touches again until the oracle asks for it.
ALONE = 0.3


class Visitor(threading.Thread):
    """One of many that act at the same time. Whatever is acknowledged goes into the ledger; what is not, is no longer
    relied upon."""

    def __init__(self, crowd: Crowd, client, nodes: list, ledger: Ledger, seed: int):
        super().__init__(daemon=True)
        self.portal = Portal(crowd, client)
        self.crowd, self.nodes, self.ledger = crowd, nodes, ledger
        self.chance = random.Random(seed)
        self.over = threading.Event()
        self.accounts: list[Account] = []
        self.sessions: list[Session] = []
        self.families: list[Family] = []
        self.devices: list[Device] = []
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self.sign_up()
            while not self.over.is_set():
                step = self.chance.choices(list(STEPS), STEPS.values())[0]
                if not getattr(self, step)():
                    # Nothing came of it: nobody hurries then.
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
        account = self._pick(self.accounts, lambda one: one.known and one.disabled is None)
        if account is None:
            return self.sign_up()
        browser, offline = Browser(), self.chance.random() < 0.3
        page = self.portal.authorize(browser, offline)
        if page.status != 200:
            return self._no(page)
        answer = self.portal.log_in(browser, page, account.name, account.password)
        if not self._yes(answer, 303, f"the account {account.name} cannot sign in"):
            return False
        code = answer.parameter("code")
        session = Session(account, browser.jar, self._leaves_alone())
        self._add(self.sessions, self.ledger.sessions, session)
        return code is not None and self._redeem(session, code, offline)

    def _redeem(self, session: Session, code: str, offline: bool) -> bool:
        issued = time.monotonic()
        answer = self.portal.redeem(code)
        if not self._yes(answer, 200, f"a code that was issued {time.monotonic() - issued:.1f} s before is not taken"):
            return False
        refresh, access = tokens(answer)
        self._add(self.families, self.ledger.families, Family(session, code, refresh, access, offline, session.alone))
        with self.ledger.lock:
            self.ledger.codes.append((code, time.monotonic()))
        return True

    def refresh(self) -> bool:
        family = self._pick(self.families, lambda one: one.lives)
        if family is None:
            return False
        # Until it is known what became of it, nobody relies on it.
        family.known = False
        answer = self.portal.refresh(family.refresh)
        if not self._yes(answer, 200, self._loses(family, "a refresh token is not taken")):
            return False
        family.rotated.append((family.refresh, time.monotonic()))
        family.refresh, family.access = tokens(answer)
        family.known = True
        return True

    def allow_device(self) -> bool:
        # Of somebody who signed in within the last ten minutes.
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
        answer = browser.submit(self.crowd, found, decision="allow")
        if not self._yes(answer, 303):
            return False
        if answer.parameter("done") != "approved":
            return self._no(answer, f"a device that was just shown is not known: {answer.location}")
        self._add(self.devices, self.ledger.devices, Device(session, told["device_code"]))
        return True

    def revoke(self) -> bool:
        family = self._pick(self.families, lambda one: one.lives)
        if family is None:
            return False
        family.known = False
        if not self._yes(self.portal.revoke(family.refresh), 200):
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
        if not self._yes(answer, 303):
            return False
        now = time.monotonic()
        account.old.append((account.password, now))
        account.password, account.known, session.jar = new, True, browser.jar
        self._end_all(account, now, but=session)
        return True

    def disable(self) -> bool:
        account = self._pick(self.accounts, lambda one: one.known and one.disabled is None)
        if account is None:
            return False
        account.known = False
        done = self.chance.choice(self.nodes).command("user", "disable", account.name)
        self.ledger.count("unknown" if done is None else "acknowledged")
        if done is None:
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
            device.void |= device.session.account is account

    def _must_be_dead(self, family: Family) -> None:
        """What one node acknowledged holds on the next request at any other."""
        answer = self.portal.introspect(family.refresh)
        if answer.status == 200 and '"active":true' in answer.text:
            self.ledger.note("undone", "a token that was just revoked is active at the other node")

    def _must_be_out(self, session: Session) -> None:
        if Browser(session.jar).get(self.crowd, "/account").status == 200:
            self.ledger.note("undone", "a session that just ended is alive at the other node")

    def _add(self, own: list, all_of_them: list, one) -> None:
        own.append(one)
        with self.ledger.lock:
            all_of_them.append(one)

    def _pick(self, of: list, fits):
        fitting = [one for one in of if not one.alone and fits(one)]
        return self.chance.choice(fitting) if fitting else None

    def _leaves_alone(self) -> bool:
        return self.chance.random() < ALONE

    def _loses(self, what, sentence: str) -> str:
        return f"{sentence} (acknowledged {time.monotonic() - what.made:.1f} s before)"

    def _yes(self, answer: Answer, wanted: int, sentence: str | None = None) -> bool:
        """Whether a write was acknowledged: counts it, and notes a refusal of what should have been taken."""
        if answer.status == wanted:
            self.ledger.count("acknowledged")
            return True
        return self._no(answer, sentence, write=True)

    def _no(self, answer: Answer, sentence: str | None = None, write: bool = False) -> bool:
        self.ledger.count("unknown" if answer.unknown and write else "refused")
        if sentence and not answer.unknown and answer.status != 429:
            self.ledger.note("lost", f"{sentence}: {answer.status}")
        return False
