"""Tables, dataclasses and plain values as JSON, to the last bit; undefined is null."""

import json
from dataclasses import is_dataclass
from typing import Any

import pandas as pd

from harness.board_texts import plain_number


def to_json(value: Any) -> str:
    """JSON of tables and plain values, to the last bit; undefined is null."""
    return json.dumps(_plain(value), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    """Lists, dictionaries, numbers and texts only."""
    if isinstance(value, pd.DataFrame):
        return [_plain(row) for row in value.to_dict("records")]
    if is_dataclass(value):
        return _plain(vars(value))
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return plain_number(value)
