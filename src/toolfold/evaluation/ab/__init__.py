"""The A/B of folded and unfolded tools: scenarios with a stage, held with a model, measured."""

from toolfold.evaluation.ab.arms import ARMS, Arm, arms_named
from toolfold.evaluation.ab.measures import Measures, Row, measured, rows
from toolfold.evaluation.ab.planned import Habits, Need, PlannedModel, TurnPlan
from toolfold.evaluation.ab.prices import Prices, load_prices
from toolfold.evaluation.ab.run_record import Run, TurnRecord
from toolfold.evaluation.ab.runner import Plan, Task, hold, scripted, tasks
from toolfold.evaluation.ab.scenario import Scenario, Turn
from toolfold.evaluation.ab.scenarios import SCENARIOS

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
    "Task",
    "Turn",
    "TurnPlan",
    "TurnRecord",
    "arms_named",
    "hold",
    "load_prices",
    "measured",
    "rows",
    "scripted",
    "tasks",
]
