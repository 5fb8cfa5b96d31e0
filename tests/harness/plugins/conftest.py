"""These files are plugins for the runs under test: most of them are broken on purpose, so pytest must not import them."""

collect_ignore_glob = ["*.py"]
