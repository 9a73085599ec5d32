"""Views: what the tables say, as folds of effective commits into rows.

`graph/` has runs, tasks, edges, attempts and artifacts, which change together; `reports.py`, `journal.py` and
`dead_letters.py` only grow.
`view.py` says what a view is; `projections/projector.py` feeds them.
"""

from __future__ import annotations

from typing import Final

from dagbok.projections.views.dead_letters import DeadLettersView
from dagbok.projections.views.graph import GraphView
from dagbok.projections.views.journal import JournalView
from dagbok.projections.views.reports import ReportsView
from dagbok.projections.views.view import View

VIEWS: Final[tuple[View, ...]] = (GraphView(), ReportsView(), JournalView(), DeadLettersView())
