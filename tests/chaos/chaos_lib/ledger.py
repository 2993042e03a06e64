"""What clients were told, and may rely on from then on."""

import threading
import time
from dataclasses import dataclass, field

# A device's request is valid for ten minutes.
DEVICE_WAITS_S = 500


@dataclass(eq=False)
class Application:
    # Its name, and how it authenticates.
    client: object
    # Left alone: nobody asks to change it, so its state is known whatever happens.
    alone: bool = False
    made: float = field(default_factory=time.monotonic)
    # Cleared when a change of it was not acknowledged: from then on its state is unknown.
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
    # Passwords that were replaced, and when.
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
    """Everything that came from one code, or from a device's request (`code` is empty then)."""

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
    # Refresh tokens that have a successor, and when they were rotated.
    rotated: list[tuple[str, float]] = field(default_factory=list)

    @property
    def lives(self) -> bool:
        with_session = self.offline or self.session.ended is None and self.session.known
        mine = self.known and self.revoked is None and self.application.lives
        return mine and with_session and self.session.account.lives

    @property
    def ended(self) -> float | None:
        """Returns since when none of it may be valid any more."""
        session = None if self.offline else self.session.ended
        return earliest(self.revoked, session, self.session.account.disabled, self.application.disabled)


@dataclass(eq=False)
class Consent:
    """What a person allows an application. Nobody is asked twice about one application."""

    account: Account
    application: Application
    alone: bool = False
    made: float = field(default_factory=time.monotonic)
    # True only once the approval was acknowledged.
    known: bool = False
    ended: float | None = None

    @property
    def stands(self) -> bool:
        return self.known and self.ended is None and self.account.lives


@dataclass(eq=False)
class Device:
    """A device whose request was approved or denied."""

    session: Session
    code: str
    alone: bool = False
    made: float = field(default_factory=time.monotonic)
    known: bool = True
    denied: float | None = None
    # When it got its tokens.
    polled: float | None = None
    # When a new password revoked what the account had allowed.
    void: float | None = None

    @property
    def waits(self) -> bool:
        """Returns whether it gets its tokens when it asks."""
        return self.known and self.ended is None and self.session.lives and time.monotonic() - self.made < DEVICE_WAITS_S

    @property
    def ended(self) -> float | None:
        """Returns since when it must not be given anything any more."""
        return earliest(self.denied, self.polled, self.void, self.session.ended, self.session.account.disabled)


class Ledger:
    """The records of all visitors."""

    def __init__(self):
        self.lock = threading.Lock()
        self.applications: list[Application] = []
        self.accounts: list[Account] = []
        self.sessions: list[Session] = []
        self.families: list[Family] = []
        self.consents: list[Consent] = []
        self.devices: list[Device] = []
        # Codes that gave tokens, to which application, and when.
        self.codes: list[tuple[str, Application, float]] = []
        # Assertions that were accepted, and when.
        self.assertions: list[tuple[str, float]] = []
        self.acknowledged = self.unknown = self.refused = 0
        # Sentences about answers that contradict earlier acknowledgements: what was lost, what was undone.
        self.lost: list[str] = []
        self.undone: list[str] = []

    def count(self, kind: str) -> None:
        with self.lock:
            setattr(self, kind, getattr(self, kind) + 1)

    def note(self, kind: str, sentence: str) -> None:
        with self.lock:
            getattr(self, kind).append(sentence)


def earliest(*times: float | None) -> float | None:
    """Returns the earliest of the times that are set."""
    return min((time for time in times if time is not None), default=None)
