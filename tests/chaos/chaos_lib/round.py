"""One round: load, a fault, sign-in again, the cluster whole again, and the oracle."""

import random
import time
from dataclasses import dataclass, field

from . import operator, probe
from .applications import Applications
from .browser import Crowd
from .check import Check, Verdict
from .ledger import Ledger
from .place import Trouble, wait_until
from .scenario import PROMISES, Scenario
from .visitor import Visitor
from .wire import PATIENCE_S, Tally

VISITORS = 6
WARM_S = (2.0, 5.0)
AFTER_S = 2
GIVEN_UP_AFTER_S = 90
SHOWN = 8


@dataclass
class Stage:
    """A cluster with nodes on it, used by successive rounds."""

    scenario: Scenario
    cluster: object
    nodes: list
    applications: Applications
    issuer: str
    names: list[str]
    # Seconds after the fault within which everybody has to be able to sign in again.
    within: float
    # Whether everything that was acknowledged is checked, not just a part of it.
    whole: bool


@dataclass
class Outcome:
    what: str
    ledger: Ledger
    tally: Tally
    verdict: Verdict
    # Seconds until the cluster accepted writes again.
    felt: float
    # Seconds from each disturbance to sign-in at both nodes; None: not within the time.
    back: list[float | None]
    faults: list[str]

    @property
    def passed(self) -> bool:
        return not self.faults

    def line(self) -> str:
        ledger, verdict = self.ledger, self.verdict
        back = " and ".join("never" if seconds is None else f"{seconds:.1f} s" for seconds in self.back)
        gone = [*verdict.lost, *ledger.lost]
        return (f"{self.what}, felt after {self.felt:.1f} s; {ledger.acknowledged} acknowledged, {ledger.unknown} unknown, "
                f"{ledger.refused} refused; sign-in after {back}; longest answer {self.tally.longest[0]:.1f} s ({self.tally.longest[1]}); "
                f"asked {verdict.kept} kept, {verdict.ended} ended; {len(gone)} lost, "
                f"{len(verdict.undone) + len(ledger.undone)} undone; {'passed' if self.passed else 'FAILED'}")


def play(stage: Stage, number: int, seed: int) -> Outcome:
    """Plays one round."""
    chance = random.Random(f"{seed}/{number}")
    stage.cluster.wait_until_whole()
    for node in stage.nodes:
        node.wait_until_ready()
    tally, ledger = Tally(), Ledger()
    # Each visitor from an address of its own: one address may not sign up hundreds of people.
    homes = [f"127.0.1.{(number * VISITORS + at) % 250 + 1}" for at in range(VISITORS)]
    visitors = [Visitor(Crowd(stage.nodes, stage.issuer, tally, home), stage.applications, stage.nodes, ledger, chance.random())
                for home in homes]
    probes = [probe.Probe(Crowd([node], stage.issuer, tally), stage.applications.trusted.client, stage.names[at::len(stage.nodes)])
              for at, node in enumerate(stage.nodes)]
    for thread in [*visitors, *probes]:
        thread.start()
    time.sleep(chance.uniform(*WARM_S))
    try:
        strike, felt, back = disturb(stage, probes, number, chance, ledger)
    finally:
        for thread in [*visitors, *probes]:
            thread.over.set()
        for thread in [*visitors, *probes]:
            thread.join(2 * PATIENCE_S)
    for visitor in visitors:
        if visitor.failure:
            raise visitor.failure
    for node in stage.nodes:
        node.wait_until_settled()
    verdict = Check(stage.nodes, stage.issuer, stage.applications, tally, strike.at, seed, stage.whole).run(ledger)
    failures = sorted({why for one in probes for why in one.failures(strike.at)})
    outcome = Outcome(strike.what, ledger, tally, verdict, felt, back, [])
    hanging = [thread for thread in [*visitors, *probes] if thread.is_alive()]
    outcome.faults = judge(stage, outcome, hanging, failures)
    return outcome


def disturb(stage: Stage, probes: list, number: int, chance: random.Random, ledger: Ledger):
    """Injects a fault, waits for sign-in, repairs, and waits for sign-in and for the cluster."""
    faults = stage.scenario.faults
    strike = faults[number % len(faults)](stage.cluster, chance)
    gone = stage.nodes[-1:] if stage.scenario.loses_node else []
    for node in gone:
        node.kill()
        strike.what += f", and {node.name}"
    wait_until(f"{strike.what}: somebody takes over", GIVEN_UP_AFTER_S, strike.felt)
    felt = time.monotonic() - strike.at
    left = stage.nodes[: len(stage.nodes) - len(gone)]
    Check(left, stage.issuer, stage.applications, None, strike.at, number).replayed(ledger)
    back = [until_back(probes[: len(probes) - len(gone)], strike.at)]
    if gone:
        Check(left, stage.issuer, stage.applications, None, strike.at, number).held(ledger)
        if stage.scenario.gives_up:
            operator.give_up(left, len(gone))
            strike.what += ", which was given up"
    time.sleep(AFTER_S)
    mended = time.monotonic()
    strike.mend()
    for node in gone:
        node.start()
    stage.cluster.wait_until_whole()
    back.append(until_back(probes, mended))
    time.sleep(AFTER_S)
    return strike, felt, back


def until_back(probes: list, event: float) -> float | None:
    """Returns the seconds until sign-in works at every node."""
    def found():
        seconds = [one.back(event) for one in probes]
        return None if None in seconds else [max(seconds)]
    try:
        return wait_until("sign-in works again", GIVEN_UP_AFTER_S, found)[0]
    except Trouble:
        return None


def judge(stage: Stage, outcome: Outcome, hanging: list, failures: list[str]) -> list[str]:
    """Returns every broken promise."""
    promise, ledger, verdict = PROMISES[stage.scenario.kind], outcome.ledger, outcome.verdict
    faults = [f"{len(hanging)} clients hang"] if hanging else []
    if any(seconds is None or seconds > stage.within for seconds in outcome.back):
        faults.append(f"sign-in does not work within {stage.within:g} s; it said {failures}")
    faults += [f"{count} times {what}" for what, count in outcome.tally.never().items()]
    if outcome.tally.longest[0] >= PATIENCE_S:
        faults.append(f"no answer within {PATIENCE_S} s: {outcome.tally.longest[1]}")
    faults += some(verdict.unwell)
    if promise.kept:
        faults += some(verdict.lost + ledger.lost)
    if promise.ended:
        faults += some(verdict.undone + ledger.undone)
    if ledger.acknowledged < 20:
        faults.append("too little was acknowledged to say anything")
    return faults


def some(sentences: list[str]) -> list[str]:
    more = len(sentences) - SHOWN
    return sentences[:SHOWN] + ([f"and {more} more"] if more > 0 else [])
