"""These files are plugins for the runs under test, most of them broken on purpose: pytest must not import them."""

collect_ignore_glob = ["*.py"]
