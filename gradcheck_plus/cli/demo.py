"""placeholder"""


def demo(options):
    return 0
