"""Figures with their references, targets and verdicts; as a table and as JSON."""

import json
import statistics
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass
class Figure:
    """One measured figure: the median of its runs."""

    name: str
    runs: list[float]
    unit: str
    target: float
    at_least: bool
    reference: str
    reports: list[dict] = field(default_factory=list)

    @property
    def value(self) -> float:
        return statistics.median(self.runs)

    @property
    def spread(self) -> float:
        """Returns half the distance between the highest and the lowest run, as a share of the median."""
        return (max(self.runs) - min(self.runs)) / 2 / self.value if self.value else 0.0

    @property
    def reached(self) -> bool:
        if not self.at_least and not self.target:
            # Something that must never happen is not offset by the other rounds.
            return max(self.runs) <= 0
        return self.value >= self.target if self.at_least else self.value <= self.target

    @property
    def verdict(self) -> str:
        if self.reached:
            return "reached"
        gap = abs(self.target - self.value)
        return f"{'short' if self.at_least else 'over'} by {number(gap)}{_space(self.unit)}"

    @property
    def generator_cores(self) -> float | None:
        """Returns the most processors that the load generator kept busy."""
        return max((report["generator_cores"] or 0 for report in self.reports), default=None)

    @property
    def setbacks(self) -> int:
        """Returns the iterations that failed or were refused."""
        return sum(report["failed"] + report["refused"] for report in self.reports)

    def row(self) -> list[str]:
        sign = ">=" if self.at_least else "<="
        spread = f" ±{self.spread:.0%}" if len(self.runs) > 1 and self.value else ""
        generator = "" if self.generator_cores is None else f"{self.generator_cores:.2f}"
        verdict = f"{self.verdict}; {self.setbacks} failed or refused" if self.setbacks else self.verdict
        measured = f"{number(self.value)}{_space(self.unit)}{spread}"
        return [self.name, measured, self.reference, f"{sign} {number(self.target)}{_space(self.unit)}", generator,
                verdict]

    def as_json(self) -> dict:
        more = {"value": self.value, "spread": self.spread, "reached": self.reached, "verdict": self.verdict,
                "generator_cores": self.generator_cores, "setbacks": self.setbacks}
        return asdict(self) | more


def number(value: float) -> str:
    """Formats a number with about three digits: 34,600 or 78.2 or 0.91 or 0.030."""
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.3f}"


def _space(unit: str) -> str:
    return f" {unit}" if unit else ""


def table(figures: list[Figure]) -> str:
    """Returns aligned columns, as wide as their contents."""
    head = ["figure", "measured", "reference", "target", "generator cores", "verdict"]
    rows = [head, *(figure.row() for figure in figures)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    rows.insert(1, ["-" * width for width in widths])
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def write(path: Path, machine: dict, settings: list[str], figures: list[Figure]) -> None:
    """Writes the whole run as JSON."""
    run = {"machine": machine, "settings": settings, "figures": [figure.as_json() for figure in figures]}
    path.write_text(json.dumps(run, indent=2) + "\n")
