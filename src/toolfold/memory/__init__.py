"""Memory: what searches led to, kept by a deployment for itself, and evidence for later ones.

A search that leads to a call teaches which tool a request meant. Later requests that are like it
are ranked with that in mind, as far as the record shows that this would have served it. Nothing
else changes: lists of tools, definitions and guidance know of no memory, and a catalog's tools
are the only ones that are ever named.
"""

from toolfold.memory._database import PostgresMemory
from toolfold.memory._kept import StoreError
from toolfold.memory._places import tenants_place
from toolfold.memory.memory import Memory, Share
from toolfold.memory.opening import memory_file, memory_place, open_memory
from toolfold.memory.principal_memory import PrincipalMemory
from toolfold.memory.records import MemoryRecord, MemoryRecordError
from toolfold.search.memory import Lift, SearchMemory, Use, Weighed

__all__ = [
    "Lift",
    "Memory",
    "MemoryRecord",
    "MemoryRecordError",
    "PostgresMemory",
    "PrincipalMemory",
    "SearchMemory",
    "Share",
    "StoreError",
    "Use",
    "Weighed",
    "memory_file",
    "memory_place",
    "open_memory",
    "tenants_place",
]
