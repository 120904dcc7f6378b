"""What every test may use: `pytester`, for tests of the pytest plugin.

Our own plugin is not listed here. Its entry point loads it, as it does for a user.
"""

pytest_plugins = ["pytester"]
