"""A plugin that never says what it is."""

import time

time.sleep(3600)
