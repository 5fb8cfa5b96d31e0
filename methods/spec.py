"""Method specifications as users write them: `name`, `name(parameter=value, ...)`, several separated by commas."""

import ast
import re
from collections import Counter
from typing import Any

from games.errors import VeritariError

# What comes before the name of one of Captum's classes.
CAPTUM = "captum.attr:"


class BadSpec(VeritariError):
    """A method specification that can't be read, imported, or understood."""


def split_specs(text: str) -> list[str]:
    """Split at commas outside parentheses, brackets and quotes.

    >>> split_specs("vanilla_gradient, integrated_gradients(n_steps=8,other=2)")
    ['vanilla_gradient', 'integrated_gradients(n_steps=8,other=2)']
    """
    parts, depth, quote, escaped = [""], 0, "", False
    for character in text:
        if quote:
            closes = character == quote and not escaped
            escaped = character == "\\" and not escaped
            quote = "" if closes else quote
        elif character in "'\"":
            quote = character
        else:
            depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def parse_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """Target and parameters of a specification.

    >>> parse_spec("path/to/plugin.py:mine(sigma=0.5)")
    ('path/to/plugin.py:mine', {'sigma': 0.5})

    A value of one of Captum's classes may be the name of another one, which needs no quotes:

    >>> parse_spec("captum.attr:NoiseTunnel(inner=Saliency)")
    ('captum.attr:NoiseTunnel', {'inner': 'Saliency'})

    Raises:
        BadSpec: not `name` or `name(parameter=value, ...)` with plain values.
    """
    target, opening, rest = spec.strip().partition("(")
    if not opening:
        return target.strip(), {}
    try:
        return target.strip(), _parameters(f"f({rest}", with_names=target.strip().startswith(CAPTUM))
    # Python's own parser: what it raises for arbitrary text includes the last two, for deep nesting.
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise BadSpec(
            f"method {spec!r}: expected name(parameter=value, ...) with plain values, got {reason}; correct it"
        ) from error


def _parameters(call_text: str, *, with_names: bool) -> dict[str, Any]:
    call = ast.parse(call_text, mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise SyntaxError("more than one pair of parentheses")
    if call.args or any(each.arg is None for each in call.keywords):
        raise SyntaxError("positional arguments")
    for name, count in Counter(str(each.arg) for each in call.keywords).items():
        if count > 1:
            raise SyntaxError(f"parameter {name!r} {count} times")
    return {str(each.arg): _value(str(each.arg), each.value, with_names=with_names) for each in call.keywords}


def _value(parameter: str, node: ast.expr, *, with_names: bool) -> Any:
    if with_names and isinstance(node, ast.Name) and re.fullmatch(r"[A-Z][A-Za-z0-9]*", node.id):
        return node.id
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        raise ValueError(f"{parameter}={ast.unparse(node)}, and texts need quotes") from error
