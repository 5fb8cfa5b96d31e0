"""A plugin that needs what is not there."""

import no_package_of_this_name_exists  # noqa: F401
