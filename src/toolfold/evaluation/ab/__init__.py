"""The A/B of folded and unfolded tools: scenarios with a stage, held with a model, measured."""

from toolfold.evaluation.ab.measures import Measures, Row, measured, rows
from toolfold.evaluation.ab.planned import Habits, Need, PlannedModel, Step
from toolfold.evaluation.ab.prices import Prices, load_prices
from toolfold.evaluation.ab.run import ARMS, Arm, Plan, Task, hold, scripted, tasks
from toolfold.evaluation.ab.scenario import Scenario, Turn
from toolfold.evaluation.ab.scenarios import SCENARIOS
from toolfold.evaluation.ab.transcript import Run, TurnRecord

__all__ = [
    "ARMS",
    "SCENARIOS",
    "Arm",
    "Habits",
    "Measures",
    "Need",
    "Plan",
    "PlannedModel",
    "Prices",
    "Row",
    "Run",
    "Scenario",
    "Step",
    "Task",
    "Turn",
    "TurnRecord",
    "hold",
    "load_prices",
    "measured",
    "rows",
    "scripted",
    "tasks",
]
