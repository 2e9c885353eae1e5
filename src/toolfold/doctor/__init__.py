"""The whole set-up looked over: what works, what does not, and the command that mends it."""

from toolfold.doctor.diagnosis import Diagnosis, Health
from toolfold.doctor.examination import examine

__all__ = ["Diagnosis", "Health", "examine"]
