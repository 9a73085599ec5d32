"""One value has one byte form, and equal forms are equal values."""

from __future__ import annotations

import json
import math
import unicodedata
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagbok.events.canonical import (
    GREATEST_INTEGER,
    LEAST_INTEGER,
    MAX_DEPTH,
    Json,
    canonical,
    canonical_text,
    digest,
)
from dagbok.events.errors import InvalidInput
from tests.support.scale import scale

examples = settings(max_examples=scale(200, 4_000), deadline=None)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(LEAST_INTEGER, GREATEST_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
values: st.SearchStrategy[Json] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
)


def _normal(value: Json) -> Json:
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, dict):
        return {unicodedata.normalize("NFC", key): _normal(item) for key, item in value.items()}
    return [_normal(item) for item in value] if isinstance(value, list | tuple) else value


@examples
@given(values)
def test_the_canonical_form_says_the_value(value: Json) -> None:
    assert json.loads(canonical(value)) == _normal(value)


@examples
@given(values)
def test_it_is_its_own_canonical_form(value: Json) -> None:
    assert canonical_text(canonical(value)) == canonical(value)


@examples
@given(values, st.booleans(), st.integers(0, 3), st.randoms())
def test_spaces_escapes_and_the_order_of_keys_do_not_matter(
    value: Json, ascii: bool, indent: int, random: object
) -> None:
    text = json.dumps(_shuffled(value, random), ensure_ascii=ascii, indent=indent)
    assert canonical_text(text.encode()) == canonical(value)


def _shuffled(value: Json, random: object) -> Json:
    if isinstance(value, dict):
        items = list(value.items())
        random.shuffle(items)  # type: ignore[attr-defined]
        return {key: _shuffled(item, random) for key, item in items}
    return [_shuffled(item, random) for item in value] if isinstance(value, list) else value


@examples
@given(values, values)
def test_equal_digests_are_equal_values(one: Json, other: Json) -> None:
    """1 and 1.0, and true and 1, are told apart."""
    assert (digest(one) == digest(other)) == (canonical(one) == canonical(other))
    assert (canonical(one) == canonical(other)) == (repr(_sorted(one)) == repr(_sorted(other)))


def _sorted(value: Json) -> Json:
    value = _normal(value)
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "value",
    [math.nan, [math.inf], {"a": -math.inf}, {"a": [None, math.nan]}, {1: 2}, {"a": {1, 2}}, b"bytes", object(),
     Decimal("NaN"), "\ud800", 2**64, 1j],
)  # fmt: skip
def test_what_has_no_json_form_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput):
        canonical(value)


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(InvalidInput):
        canonical(endless)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"NaN", b"1e999", b"\xff", b'"\\ud800"', b"{'a':1}", b"[1,]", b"[" * 5_000]
)
def test_what_is_no_json_text_is_refused(text: bytes) -> None:
    with pytest.raises(InvalidInput):
        canonical_text(text)


@examples
@given(
    st.integers(-(2**80), 2**80),
    st.sampled_from(("%d", " [%d ]", '{"a":{"b":[1,%d]}}', '["long \\" 99999999999999999999",%d]')),
)
def test_an_integer_of_a_text_is_kept_exactly_or_refused(number: int, form: str) -> None:
    text = (form % number).encode()
    if LEAST_INTEGER <= number <= GREATEST_INTEGER:
        assert json.loads(canonical_text(text)) == json.loads(text)
    else:
        with pytest.raises(InvalidInput, match="beyond 64 bits"):
            canonical_text(text)


@pytest.mark.parametrize("text", [b'"18446744073709551616"', b'{"18446744073709551616":1}', b"18446744073709551616.0",
                                  b"1e300", b'"\\" 18446744073709551616 \\""'])  # fmt: skip
def test_digits_that_are_no_integer_are_no_business_of_that(text: bytes) -> None:
    assert json.loads(canonical_text(text)) == json.loads(text)


def test_values_nest_as_deep_as_is_said() -> None:
    assert canonical_text(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)
    with pytest.raises(InvalidInput, match=f"more than {MAX_DEPTH} levels"):
        canonical_text(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))


def test_decimals_travel_as_strings_and_text_in_normal_form_c() -> None:
    assert canonical({"b": Decimal("1.50"), "a": "e\u0301"}) == '{"a":"é","b":"1.50"}'.encode()
