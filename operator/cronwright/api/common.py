"""What all models share: the base class, rules that hold in two places, and the scalar types of our API.

A rule that spans several fields ("exactly one of …") has to be said twice: in CEL, where the API server
refuses a bad manifest at `kubectl apply`, and in Python, where the offline tools do so without a cluster.
`Rule` keeps the two and their one message side by side; the tests feed the same bad manifests to both.

Scalars are Python values inside (`timedelta`, aware `datetime`) and plain strings in JSON. Where a pattern
would make the API server answer with a regular expression, the check is a CEL rule: its message is ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, PydanticCustomError

from cronwright.timing import format_duration, format_instant, parse_duration, parse_instant

MAX_PARAMETERS = 50
MAX_PARAMETER_VALUE = 4096
PARAMETER_NAME = "^[A-Za-z_][A-Za-z0-9_]*$"


@dataclass(frozen=True, slots=True)
class Rule:
    """One condition on an object, in CEL and in Python, with the sentence a user reads when it is broken.

    `field` is where the API server points (its `fieldPath`), when one field of the object is to blame.
    """

    message: str
    cel: str
    holds: Callable[[Any], bool]
    field: str = ""

    def as_validation(self) -> dict[str, str]:
        validation = {"rule": self.cel, "message": self.message}
        if self.field:
            validation["fieldPath"] = f".{self.field}"
        return validation


def exactly_one_of(*names: str, message: str) -> Rule:
    """The rule that one, and only one, of these fields (named as in Python) is set."""
    present = ", ".join(f"has(self.{to_camel(name)})" for name in names)
    return Rule(
        message=message,
        cel=f"[{present}].exists_one(given, given)",
        holds=lambda model: sum(_is_set(getattr(model, name)) for name in names) == 1,
    )


def _is_set(value: object) -> bool:
    return value is not None and value != ()


_NOT_KEPT: set[str] = set()


class ApiModel(BaseModel):
    """camelCase in JSON, snake_case in Python, immutable; unknown fields are the API server's to refuse."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="ignore",
        frozen=True,
        use_attribute_docstrings=True,
    )

    rules: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="after")
    def _keep_the_rules(self) -> Self:
        for rule in self.rules:
            if not rule.holds(self):
                raise PydanticCustomError("rule", "{message}", {"message": rule.message, "field": rule.field})
        # Which fields were given nobody asks, and a set for each model is a third of a schedule's memory.
        object.__setattr__(self, "__pydantic_fields_set__", _NOT_KEPT)
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        reference = handler(core_schema)
        schema = handler.resolve_ref_schema(reference)
        if cls.rules:
            schema["x-kubernetes-validations"] = [rule.as_validation() for rule in cls.rules]
        return reference

    def to_json(self) -> dict[str, Any]:
        """As the API server stores it: camelCase, times and durations as strings, nothing that is unset."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


# Each unit has a bound of its own, so that no sum of them can leave what a datetime can hold.
_DURATION = r"([0-9]{1,5}d)?([0-9]{1,6}h)?([0-9]{1,8}m)?([0-9]{1,9}s)?"
_DURATION_MESSAGE = "write a duration such as 90s, 5m, 1h30m or 1d"
_POSITIVE_MESSAGE = "write a duration of at least one second, such as 30s or 5m"


def _parse_duration(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str) or not value or not re.fullmatch(_DURATION, value):
        raise ValueError(_DURATION_MESSAGE)
    return timedelta(seconds=parse_duration(value))


def _format_duration(value: timedelta) -> str:
    return format_duration(int(value.total_seconds()))


def _more_than_zero(value: timedelta) -> timedelta:
    if not value:
        raise ValueError(_POSITIVE_MESSAGE)
    return value


_DURATION_RULE = {"rule": f"self != '' && self.matches('^{_DURATION}$')", "message": _DURATION_MESSAGE}
_POSITIVE_RULE = {"rule": "!self.matches('^[0dhms]+$')", "message": _POSITIVE_MESSAGE}


def _duration_schema(*rules: dict[str, str]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "maxLength": 32, "x-kubernetes-validations": list(rules)})


Duration = Annotated[
    timedelta,
    BeforeValidator(_parse_duration),
    PlainSerializer(_format_duration, return_type=str),
    _duration_schema(_DURATION_RULE),
]

PositiveDuration = Annotated[
    Duration, AfterValidator(_more_than_zero), _duration_schema(_DURATION_RULE, _POSITIVE_RULE)
]


def _parse_time(value: object) -> datetime:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise ValueError("write a time such as 2030-12-24T18:00:00Z")
    return datetime.fromtimestamp(parse_instant(value), UTC)


def _whole_seconds(value: datetime) -> datetime:
    return value.astimezone(UTC).replace(microsecond=0)


def format_time(value: datetime) -> str:
    """A time as the API writes it: RFC 3339, in UTC, whole seconds."""
    return format_instant(value.timestamp())


# Slots are whole seconds (a run is named by them), so a fraction is cut off rather than carried along.
Time = Annotated[
    AwareDatetime,
    BeforeValidator(_parse_time),
    AfterValidator(_whole_seconds),
    PlainSerializer(format_time, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
