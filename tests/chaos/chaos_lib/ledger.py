"""What clients were told, and may rely on from then on."""

import threading
import time
from dataclasses import dataclass, field

# A device's request is good for ten minutes.
DEVICE_WAITS_S = 500


@dataclass(eq=False)
class Application:
    # What it is called, and how it proves who it is.
    client: object
    # Left alone: nobody asks for a change of it, so that what became of it is known whatever happens.
    alone: bool = False
    made: float = field(default_factory=time.monotonic)
    # Cleared when a change of it was not acknowledged: from then on nothing about it is known.
    known: bool = True
    disabled: float | None = None

    @property
    def lives(self) -> bool:
        return self.known and self.disabled is None


@dataclass(eq=False)
class Account:
    name: str
    password: str
    alone: bool = False
    made: float = field(default_factory=time.monotonic)
    known: bool = True
    disabled: float | None = None
    # Passwords that were changed, and when.
    old: list[tuple[str, float]] = field(default_factory=list)

    @property
    def lives(self) -> bool:
        return self.known and self.disabled is None


@dataclass(eq=False)
class Session:
    account: Account
    jar: dict
    alone: bool = False
    made: float = field(default_factory=time.monotonic)
    known: bool = True
    ended: float | None = None

    @property
    def lives(self) -> bool:
        return self.known and self.ended is None and self.account.lives


@dataclass(eq=False)
class Family:
    """Everything that came of one code, or of a device's request (`code` is empty then)."""

    application: Application
    session: Session
    code: str
    refresh: str
    access: str
    # Whether it outlives its session.
    offline: bool
    alone: bool = False
    made: float = field(default_factory=time.monotonic)
    known: bool = True
    revoked: float | None = None
    # Refresh tokens that have a successor, and when they got it.
    rotated: list[tuple[str, float]] = field(default_factory=list)

    @property
    def lives(self) -> bool:
        with_session = self.offline or self.session.ended is None and self.session.known
        mine = self.known and self.revoked is None and self.application.lives
        return mine and with_session and self.session.account.lives

    @property
    def ended(self) -> float | None:
        """Since when nothing of it may be good any more."""
        session = None if self.offline else self.session.ended
        return earliest(self.revoked, session, self.session.account.disabled, self.application.disabled)


@dataclass(eq=False)
class Consent:
    """What somebody lets an application have. Nobody is asked twice about one application."""

    account: Account
    application: Application
    alone: bool = False
    made: float = field(default_factory=time.monotonic)
    # Only once the yes was acknowledged.
    known: bool = False
    ended: float | None = None

    @property
    def stands(self) -> bool:
        return self.known and self.ended is None and self.account.lives


@dataclass(eq=False)
class Device:
    """One whose request somebody answered: with yes, or with no."""

    session: Session
    code: str
    alone: bool = False
    made: float = field(default_factory=time.monotonic)
    known: bool = True
    denied: float | None = None
    # When it got its tokens.
    polled: float | None = None
    # When a new password took back what the account had allowed.
    void: float | None = None

    @property
    def waits(self) -> bool:
        """Whether it gets its tokens when it asks."""
        return self.known and self.ended is None and self.session.lives and time.monotonic() - self.made < DEVICE_WAITS_S

    @property
    def ended(self) -> float | None:
        """Since when it may be given nothing any more."""
        return earliest(self.denied, self.polled, self.void, self.session.ended, self.session.account.disabled)


class Ledger:
    """All of it, of all visitors."""

    def __init__(self):
        self.lock = threading.Lock()
        self.applications: list[Application] = []
        self.accounts: list[Account] = []
        self.sessions: list[Session] = []
        self.families: list[Family] = []
        self.consents: list[Consent] = []
        self.devices: list[Device] = []
        # Codes that gave tokens, to whom, and when.
        self.codes: list[tuple[str, Application, float]] = []
        # Assertions that proved who asked, and when.
        self.assertions: list[tuple[str, float]] = []
        self.acknowledged = self.unknown = self.refused = 0
        # Sentences about answers that contradict what was acknowledged before: what was lost, what was undone.
        self.lost: list[str] = []
        self.undone: list[str] = []

    def count(self, kind: str) -> None:
        with self.lock:
            setattr(self, kind, getattr(self, kind) + 1)

    def note(self, kind: str, sentence: str) -> None:
        with self.lock:
            getattr(self, kind).append(sentence)


def earliest(*times: float | None) -> float | None:
    """The first of those that came."""
    return min((time for time in times if time is not None), default=None)
