"""All views, some of them replaced by variants that a test wants."""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.projections.views import VIEWS
from dagbok.projections.views.view import View


def views_with(*variants: View) -> Sequence[View]:
    """Every view there is; a variant stands where the view of its name stood."""
    by_name = {variant.name: variant for variant in variants}
    return [by_name.get(view.name, view) for view in VIEWS]
