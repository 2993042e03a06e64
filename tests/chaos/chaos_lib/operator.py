"""What an operator does when a node does not return."""

import json

from .place import Trouble, wait_until

SEEN_WITHIN_S = 30


def give_up(left: list, gone: int) -> None:
    """Finds out which node is waited for, and accepts the loss. The fence stays up until then, and is lifted by it."""
    node = left[0]

    def waited() -> list[str] | None:
        status = json.loads(must(node, "fence", "status"))
        return status["waiting_for"] if status["up"] and len(status["waiting_for"]) == gone else None

    try:
        names = wait_until("the fence waits for those that are gone alone", SEEN_WITHIN_S, waited)
    except Trouble as trouble:
        raise Trouble(f"{trouble}; it says {must(node, 'fence', 'status')}") from trouble
    for name in names:
        if node.command("node", "forget", name, "--yes") is not None:
            raise Trouble(f"{name} was forgotten although a fence waits for it")
        must(node, "fence", "accept-loss", name, "--yes")
        if name not in waived(node):
            raise Trouble(f"the audit log does not say that the loss of {name} was accepted")
    for one in left:
        one.wait_until_settled()


def waived(node) -> list[str]:
    """Returns the nodes whose loss was accepted lately, according to the audit log."""
    events = json.loads(must(node, "events", "list", "--limit", "3000"))
    return [event["detail"]["node"] for event in events if event["event"] == "fence.waived"]


def must(node, *words: str) -> str:
    said = node.command(*words)
    if said is None:
        raise Trouble(f"portiere {' '.join(words)} failed at {node.name}: {node.log()[-2000:]}")
    return said
