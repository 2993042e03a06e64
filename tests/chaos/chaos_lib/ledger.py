"""What clients were told, and may rely on from then on."""

import threading
import time
from dataclasses import dataclass, field


@dataclass(eq=False)
class Account:
    name: str
    password: str
    # Left alone: nobody asks for a change of it, so that what became of it is known whatever happens.
    alone: bool = False
    made: float = field(default_factory=time.monotonic)
    # Cleared when a change of it was not acknowledged: from then on nothing about it is known.
    known: bool = True
    disabled: float | None = None
    # Passwords that were changed, and when.
    old: list[tuple[str, float]] = field(default_factory=list)


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
        return self.known and self.ended is None and self.account.known and self.account.disabled is None


@dataclass(eq=False)
class Family:
    """Everything that came of one code."""

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
        account = self.session.account
        with_session = self.offline or self.session.ended is None and self.session.known
        return self.known and self.revoked is None and with_session and account.known and account.disabled is None

    @property
    def ended(self) -> float | None:
        """Since when nothing of it may be good any more."""
        session = None if self.offline else self.session.ended
        ends = [end for end in (self.revoked, session, self.session.account.disabled) if end is not None]
        return min(ends, default=None)


@dataclass(eq=False)
class Device:
    """One that somebody allowed, and that has not asked for its tokens yet."""

    session: Session
    code: str
    made: float = field(default_factory=time.monotonic)
    # A new password takes back what the account has allowed.
    void: bool = False

    @property
    def waits(self) -> bool:
        """Whether it gets its tokens when it asks: for somewhat less than ten minutes."""
        return not self.void and self.session.lives and time.monotonic() - self.made < 500


class Ledger:
    """All of it, of all visitors."""

    def __init__(self):
        self.lock = threading.Lock()
        self.accounts: list[Account] = []
        self.sessions: list[Session] = []
        self.families: list[Family] = []
        self.devices: list[Device] = []
        # Codes that gave tokens, and when.
        self.codes: list[tuple[str, float]] = []
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
