"""placeholder"""
def repro(*a): return ""
