"""Types and shapes in the signatures of the four packages are checked while tests run."""

from jaxtyping import install_import_hook

# Not by pytest's option --jaxtyping-packages, which cuts a checker with parentheses in the wrong place.
install_import_hook(
    ["games", "oracle", "methods", "harness"],
    "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))",
)
