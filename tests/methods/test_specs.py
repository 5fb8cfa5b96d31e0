"""Specifications as text: splitting, parsing, and labels that read back as what they were made of."""

import contextlib

import hypothesis.strategies as st
import pytest
from hypothesis import example, given, settings

from methods.method import method
from methods.spec import BadSpec, parse_spec, split_specs

many_examples = settings(deadline=None, derandomize=True, max_examples=500)

# Pieces of which Python's grammar makes much that is nearly a call.
PIECES = (
    "m",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    "=",
    ":",
    "'",
    '"',
    "\\",
    "*",
    "-",
    "a",
    "b",
    "1",
    "2.5",
    " ",
    "#",
    "\n",
)
# `if`, `lambda` and their like: expressions that are no plain values.
WORDS = (" if ", " else ", "lambda", " for a in b", "None", "f''", "set()", ".", "~", "\0", "@")
spec_like = st.lists(st.sampled_from(PIECES + WORDS), max_size=20).map("".join)

plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@method("labelled", domain="ram", family="gradient", access="read", source="a paper")
def labelled(task, *, generator, value="default", other=0):
    """A method with two parameters that take anything."""
    return task.ram


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" , ,", []),
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        (" a , b ", ["a", "b"]),
        ("a(x=1,y=2),b", ["a(x=1,y=2)", "b"]),
        ("a(x=(1,2)),b(y=[3,4]),c(z={5,6})", ["a(x=(1,2))", "b(y=[3,4])", "c(z={5,6})"]),
        ("a(x='p,q'),b", ["a(x='p,q')", "b"]),
        ("'a,b',c", ["'a,b'", "c"]),
        ('a(x=")"),b', ['a(x=")")', "b"]),
        ("""a(x="it's, so"),b""", ["""a(x="it's, so")""", "b"]),
        ("dir/file.py:name,package.module:name", ["dir/file.py:name", "package.module:name"]),
    ],
)
def test_split(text, expected):
    """Commas split outside parentheses, brackets and quotes only; blanks around a specification and empty ones go."""
    assert expected == split_specs(text)


def test_split_at_an_escaped_quote():
    """A backslash inside quotes takes the quote after it into the string, as in Python."""
    # The value is: it's "so", and  --  its repr needs the backslash, because both quotes are in it.
    text = r"""a(x='it\'s "so", and'),b"""
    assert [r"""a(x='it\'s "so", and')""", "b"] == split_specs(text)


@many_examples
@given(st.lists(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), max_size=5))
def test_split_is_the_inverse_of_join(names):
    """Names joined by commas come back as they were."""
    assert names == split_specs(", ".join(names))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("a", ("a", {})),
        (" a ", ("a", {})),
        ("a()", ("a", {})),
        ("a (x=1)", ("a", {"x": 1})),
        ("a(x=-1.5, y='b', z=(1, [None, True]))", ("a", {"x": -1.5, "y": "b", "z": (1, [None, True])})),
        ("package.module:name(x=1,)", ("package.module:name", {"x": 1})),
    ],
)
def test_parse(spec, expected):
    """A specification is a target and keyword parameters with plain values."""
    assert expected == parse_spec(spec)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "a(1)",
            r"method 'a\(1\)': expected name\(parameter=value, \.\.\.\) with plain values, got positional arguments",
        ),
        ("a(**{'x': 1})", "with plain values, got positional arguments"),
        ("a(x=1", "with plain values, got '\\(' was never closed"),
        ("a(x=b)", "with plain values, got x=b, and texts need quotes; correct it$"),
        ("a(y=1,x=[open('f')])", r"with plain values, got x=\[open\('f'\)\], and texts need quotes; correct it$"),
        ("a(x=1)b", "with plain values, got invalid syntax"),
        ("a(x=1) + b(y=2)", "with plain values, got"),
        ("a(\0)", "with plain values, got source code string cannot contain null bytes"),
    ],
)
def test_parse_refuses(spec, message):
    """What is no call with plain values is refused, with the text, the form that is expected, and the reason."""
    with pytest.raises(BadSpec, match=message):
        parse_spec(spec)


def test_parse_takes_names_of_classes_for_captum():
    """For a class of Captum a bare name in CamelCase is its text; anything else without quotes is refused as ever."""
    expected = ("captum.attr:A", {"inner": "Saliency", "quoted": "Saliency", "n": 3, "flag": True})
    assert expected == parse_spec("captum.attr:A(inner=Saliency,quoted='Saliency',n=3,flag=True)")
    for text in ("captum.attr:A(x=saliency)", "captum.attr:A(x=[Saliency])", "captum.attr:A(x=S.t)", "a:A(x=Saliency)"):
        with pytest.raises(BadSpec, match=r"with plain values, got x=.*, and texts need quotes; "):
            parse_spec(text)


@pytest.mark.parametrize("spec", ["a(x={[]: 1})", "a(x={{}})", "a(x={[1]})"])
def test_parse_refuses_unhashable_keys(spec):
    """A set or dictionary of things that have no hash is refused like any other value that is none."""
    with pytest.raises(BadSpec, match="with plain values, got unhashable type"):
        parse_spec(spec)


def test_parse_refuses_deep_nesting():
    """A text too deep for Python's parser is refused and does not end the program."""
    with pytest.raises(BadSpec, match="with plain values, got"):
        parse_spec(f"a(x={'-' * 100_000}1)")


@pytest.mark.parametrize("spec", ["a(x=1)(y=2)", "a(x=1).b(y=2)", "a(x=1)[0](y=2)"])
def test_parse_refuses_a_second_call(spec):
    """Parameters in a second pair of parentheses are refused: taken, they would silently replace the first ones."""
    with pytest.raises(BadSpec, match="with plain values, got"):
        parse_spec(spec)


def test_parse_refuses_a_repeated_parameter():
    """A parameter that is given twice is refused: taken, the second would silently win."""
    with pytest.raises(BadSpec, match="x"):
        parse_spec("a(x=1, x=2)")


@many_examples
@given(st.text() | spec_like | spec_like.map("m({}".format) | spec_like.map("m(a={})".format))
@example("m(a={[]:1})")
def test_any_text_parses_or_is_a_bad_spec(text):
    """Any text at all is parsed or refused as a bad specification; no other error comes out."""
    for spec in split_specs(text):
        with contextlib.suppress(BadSpec):
            target, parameters = parse_spec(spec)
            assert spec.startswith(target)
            assert all(isinstance(name, str) for name in parameters)


@many_examples
@given(value=plain_values, other=st.integers())
@example(value="a,b", other=0)
@example(value="(", other=1)
@example(value=")],", other=1)
@example(value="'\",", other=2)
@example(value="\\", other=3)
@example(value=("a,b", ["'"], {"(": ")"}), other=4)
def test_labels_read_back(value, other):
    """A label in a list of specifications comes back as one, and parses to the name and the changed parameters."""
    label = labelled.with_parameters(value=value, other=other).label
    assert [label, "next"] == split_specs(f"{label}, next")
    target, parameters = parse_spec(label)
    assert "labelled" == target
    assert {"value": value, "other": other} == labelled.with_parameters(**parameters).parameters()
