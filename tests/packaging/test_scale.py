"""One setting says how often repeated tests repeat."""

from __future__ import annotations

import pytest

from tests.support.scale import scale


def test_without_the_setting_tests_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGBOK_TEST_SCALE", raising=False)
    assert scale(small=3, full=500) == 3


def test_full_takes_the_full_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGBOK_TEST_SCALE", "full")
    assert scale(small=3, full=500) == 500


def test_a_misspelt_setting_is_an_error_and_no_silent_small_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGBOK_TEST_SCALE", "ful")
    with pytest.raises(ValueError, match="'ful'"):
        scale(small=3, full=500)
