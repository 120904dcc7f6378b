"""Checks of a function: a hand-written `torch.autograd.Function`, a custom op, or anything that can be called.

A case varies one ordinary sample call (`variations`), and one named check is made of it (`checks`). What is compared with is
the
function's reference, where there is one, or central differences.
"""
