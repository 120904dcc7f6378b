"""Is the check of functions silent on torch's own? About 190 of `torch` and `torch.nn.functional`, without a reference.

    python benchmarks/torch_functions.py [--max-examples N] [--seed S] [NAME ...]

Prints one line for every function with a fault, and the totals. Functions that are not differentiable where they are called are
not in the list; those that torch itself gets wrong are named in `KNOWN`, with what is wrong.
"""

import argparse
import multiprocessing
import time

import msgspec
import torch
import torch.nn.functional as F

import gradcheck_plus as gp

x, y = (lambda: torch.randn(2, 3)), (lambda: torch.randn(3, 4))
pos, unit = (lambda: torch.rand(2, 3) + 0.5), (lambda: torch.rand(2, 3) * 1.6 - 0.8)
square = lambda: torch.randn(3, 3)  # noqa: E731
image, signal = (lambda: torch.randn(1, 2, 4, 4)), (lambda: torch.randn(1, 2, 6))
volume = lambda: torch.randn(1, 1, 3, 3, 3)  # noqa: E731
index = lambda: torch.tensor([0, 2, 1])  # noqa: E731
target = lambda: torch.tensor([0, 2])  # noqa: E731

#: Of one tensor, with values where they are defined.
UNARY = {
    "torch": """abs acos acosh angle asin asinh atan atanh ceil conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2
        expm1 fix floor frac lgamma log log10 log1p log2 logit neg positive rad2deg reciprocal round rsqrt sgn sigmoid sign sin
        sinc sinh sqrt square tan tanh trunc nan_to_num i0""",
    "torch.special": "entr erfcx i0e i1 i1e log_ndtr ndtr ndtri xlog1py psi gammaln expit",
    "torch.nn.functional": """celu elu gelu hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 selu silu
        softplus softsign tanhshrink hardshrink softshrink normalize""",
}
DOMAIN = {
    **dict.fromkeys(
        ["log", "log10", "log2", "rsqrt", "sqrt", "lgamma", "digamma", "reciprocal", "entr", "psi", "gammaln"], pos
    ),
    **dict.fromkeys(["acos", "asin", "atanh", "erfinv"], unit),
    "acosh": lambda: torch.rand(2, 3) + 1.5,
    "logit": lambda: torch.rand(2, 3) * 0.8 + 0.1,
    "ndtri": lambda: torch.rand(2, 3) * 0.8 + 0.1,
    "log1p": pos,
}
BINARY = """add sub mul div atan2 maximum minimum fmax fmin hypot logaddexp logaddexp2 ldexp pow copysign fmod remainder dist
    xlogy float_power rsub true_divide"""
POSITIVE = ("pow", "div", "true_divide", "xlogy", "float_power", "hypot")


def spd():
    a = torch.randn(3, 3)
    return a @ a.T + 3 * torch.eye(3)


#: What torch itself gets wrong or documents as a limit; see docs/findings.md.
KNOWN = {
    "torch.sinc": "its second derivative at 0 is NaN (pytorch#196703)",
    "kron": "a changed argument is not noticed (docs/findings.md)",
    "vander": "its backward always raises (docs/findings.md)",
    "scatter": "documented: the gradient is wrong for indices that repeat, and needs a source as large as the index",
    "scatter_add": "documented: the gradient needs a source as large as the index",
    "pixel_shuffle": "an empty input: the gradient has another shape (pytorch#192816 mends the cause)",
    "adaptive_avg_pool1d": "an empty input is taken in the forward and refused in the backward",
    "det": "documented: its second derivative is unstable where the matrix is singular",
    "norm": "its second derivative at 0 is NaN",
    "prelu": "its second derivative takes the other side of the kink than its first",
}


def entries():
    """Return (name, function, sample call) of every function."""
    found = []
    for place, names in UNARY.items():
        for name in names.split():
            module = {"torch": torch, "torch.special": torch.special, "torch.nn.functional": F}[place]
            if name == "xlog1py":
                found.append((name, torch.special.xlog1py, lambda: [x(), pos()]))
                continue
            make = DOMAIN.get(name, x)
            found.append((f"{place}.{name}", getattr(module, name), lambda make=make: [make()]))
    for name in BINARY.split():
        make = (
            (lambda: [pos(), pos()])
            if name in ("pow", "div", "true_divide", "xlogy", "float_power", "hypot")
            else (lambda: [x(), x()])
        )
        found.append((f"torch.{name}", getattr(torch, name), make))
    more = {
        # products
        "matmul": (torch.matmul, lambda: [x(), y()]),
        "mm": (torch.mm, lambda: [x(), y()]),
        "bmm": (torch.bmm, lambda: [torch.randn(2, 2, 3), torch.randn(2, 3, 2)]),
        "mv": (torch.mv, lambda: [x(), torch.randn(3)]),
        "dot": (torch.dot, lambda: [torch.randn(4), torch.randn(4)]),
        "outer": (torch.outer, lambda: [torch.randn(2), torch.randn(3)]),
        "addmm": (torch.addmm, lambda: [torch.randn(2, 4), x(), y()]),
        "addcmul": (torch.addcmul, lambda: [x(), x(), x()]),
        "addcdiv": (torch.addcdiv, lambda: [x(), x(), pos()]),
        "baddbmm": (torch.baddbmm, lambda: [torch.randn(2, 2, 2), torch.randn(2, 2, 3), torch.randn(2, 3, 2)]),
        "cross": (torch.linalg.cross, lambda: [x(), x()]),
        "kron": (torch.kron, lambda: [torch.randn(2, 2), torch.randn(2, 2)]),
        "tensordot": (lambda a, b: torch.tensordot(a, b, 1), lambda: [x(), y()]),
        "einsum": (lambda a, b: torch.einsum("ij,jk->ik", a, b), lambda: [x(), y()]),
        "lerp": (torch.lerp, lambda: [x(), x(), torch.rand(2, 3)]),
        # reductions
        "sum": (torch.sum, lambda: [x()]),
        "mean": (torch.mean, lambda: [x(), -1]),
        "prod": (torch.prod, lambda: [x(), -1]),
        "amax": (torch.amax, lambda: [x(), -1]),
        "amin": (torch.amin, lambda: [x(), -1]),
        "max": (lambda t: torch.max(t, -1).values, lambda: [x()]),
        "min": (lambda t: torch.min(t, -1).values, lambda: [x()]),
        "median": (lambda t: torch.median(t, -1).values, lambda: [x()]),
        "mode": (lambda t: torch.mode(t, -1).values, lambda: [x()]),
        "var": (torch.var, lambda: [x(), -1]),
        "std": (torch.std, lambda: [x(), -1]),
        "logsumexp": (torch.logsumexp, lambda: [x(), -1]),
        "norm": (torch.linalg.vector_norm, lambda: [x()]),
        "norm1": (lambda t: torch.linalg.vector_norm(t, 1), lambda: [x()]),
        "norminf": (lambda t: torch.linalg.vector_norm(t, float("inf")), lambda: [x()]),
        "matrix_norm": (torch.linalg.matrix_norm, lambda: [x()]),
        "cumsum": (torch.cumsum, lambda: [x(), -1]),
        "cumprod": (torch.cumprod, lambda: [x(), -1]),
        "logcumsumexp": (torch.logcumsumexp, lambda: [x(), -1]),
        "cummax": (lambda t: torch.cummax(t, -1).values, lambda: [x()]),
        "trace": (torch.trace, lambda: [square()]),
        "nansum": (torch.nansum, lambda: [x()]),
        "renorm": (lambda t: torch.renorm(t, 2, 0, 1.0), lambda: [x()]),
        # shapes
        "reshape": (lambda t: t.reshape(-1), lambda: [x()]),
        "transpose": (torch.t, lambda: [x()]),
        "permute": (lambda t: t.permute(1, 0), lambda: [x()]),
        "flip": (lambda t: torch.flip(t, [0]), lambda: [x()]),
        "roll": (lambda t: torch.roll(t, 1, 0), lambda: [x()]),
        "rot90": (torch.rot90, lambda: [x()]),
        "cat": (lambda a, b: torch.cat([a, b]), lambda: [x(), x()]),
        "stack": (lambda a, b: torch.stack([a, b]), lambda: [x(), x()]),
        "split": (lambda t: torch.split(t, 2, -1), lambda: [x()]),
        "chunk": (lambda t: torch.chunk(t, 2, -1), lambda: [x()]),
        "unbind": (torch.unbind, lambda: [x()]),
        "tril": (torch.tril, lambda: [square()]),
        "triu": (torch.triu, lambda: [square()]),
        "diag": (torch.diag, lambda: [square()]),
        "diag_embed": (torch.diag_embed, lambda: [x()]),
        "diagonal": (torch.diagonal, lambda: [square()]),
        "repeat": (lambda t: t.repeat(2, 1), lambda: [x()]),
        "repeat_interleave": (lambda t: torch.repeat_interleave(t, 2, 0), lambda: [x()]),
        "expand": (lambda t: t.expand(2, *t.shape), lambda: [x()]),
        "squeeze": (torch.squeeze, lambda: [torch.randn(2, 1)]),
        "unsqueeze": (lambda t: t.unsqueeze(0), lambda: [x()]),
        "pad": (lambda t: F.pad(t, (1, 1)), lambda: [x()]),
        "pad_reflect": (lambda t: F.pad(t, (1, 1), "reflect"), lambda: [signal()]),
        "pad_replicate": (lambda t: F.pad(t, (1, 1), "replicate"), lambda: [signal()]),
        "pad_circular": (lambda t: F.pad(t, (1, 1), "circular"), lambda: [signal()]),
        "unfold": (lambda t: t.unfold(-1, 2, 1), lambda: [x()]),
        "as_strided": (lambda t: t.contiguous().diff(), lambda: [x()]),
        "broadcast": (torch.broadcast_tensors, lambda: [x(), torch.randn(1, 3)]),
        "cdist": (torch.cdist, lambda: [x(), torch.randn(4, 3)]),
        "vander": (torch.vander, lambda: [torch.randn(3)]),
        "meshgrid": (lambda a, b: torch.meshgrid(a, b, indexing="ij"), lambda: [torch.randn(2), torch.randn(3)]),
        # indices and masks
        "index_select": (lambda t, i: torch.index_select(t, 1, i), lambda: [x(), index()]),
        "gather": (lambda t, i: torch.gather(t, 1, i), lambda: [x(), torch.tensor([[0, 2], [1, 1]])]),
        "scatter": (lambda t, i, s: t.scatter(1, i, s), lambda: [x(), torch.tensor([[0, 2], [1, 0]]), torch.randn(2, 2)]),
        "scatter_add": (
            lambda t, i, s: t.scatter_add(1, i, s),
            lambda: [x(), torch.tensor([[0, 2], [1, 1]]), torch.randn(2, 2)],
        ),
        "index_add": (lambda t, i, s: t.index_add(1, i, s), lambda: [x(), index(), x()]),
        "take": (torch.take, lambda: [x(), torch.tensor([0, 5, 2])]),
        "masked_fill": (
            lambda t, m: t.masked_fill(m, 0.5),
            lambda: [x(), torch.tensor([[True, False, True], [False, False, True]])],
        ),
        "masked_select": (torch.masked_select, lambda: [x(), torch.tensor([[True, False, True], [False, False, True]])]),
        "where": (torch.where, lambda: [torch.tensor([[True, False, True], [False, False, True]]), x(), x()]),
        "clamp": (lambda t: torch.clamp(t, -0.5, 0.5), lambda: [x()]),
        "clamp_min": (torch.clamp_min, lambda: [x(), 0.0]),
        "sort": (lambda t: torch.sort(t).values, lambda: [x()]),
        "topk": (lambda t: torch.topk(t, 2).values, lambda: [x()]),
        "kthvalue": (lambda t: torch.kthvalue(t, 2).values, lambda: [x()]),
        "embedding": (F.embedding, lambda: [target(), torch.randn(3, 2).requires_grad_()]),
        "embedding_bag": (
            lambda i, w: F.embedding_bag(i, w, mode="sum"),
            lambda: [torch.tensor([[0, 2]]), torch.randn(3, 2).requires_grad_()],
        ),
        # linear algebra
        "inverse": (torch.linalg.inv, lambda: [spd()]),
        "det": (torch.linalg.det, lambda: [spd()]),
        "slogdet": (lambda a: torch.linalg.slogdet(a).logabsdet, lambda: [spd()]),
        "cholesky": (lambda a: torch.linalg.cholesky(a @ a.mT + 3 * torch.eye(a.shape[-1], dtype=a.dtype)), lambda: [square()]),
        "solve": (torch.linalg.solve, lambda: [spd(), torch.randn(3, 2)]),
        "eigvalsh": (lambda a: torch.linalg.eigvalsh(a + a.mT), lambda: [square()]),
        "matrix_exp": (torch.linalg.matrix_exp, lambda: [square() / 2]),
        "matrix_power": (lambda a: torch.linalg.matrix_power(a, 3), lambda: [square()]),
        "qr": (lambda a: torch.linalg.qr(a).R, lambda: [square()]),
        # neural networks
        "softmax": (F.softmax, lambda: [x(), -1]),
        "softmin": (F.softmin, lambda: [x(), -1]),
        "log_softmax": (F.log_softmax, lambda: [x(), -1]),
        "glu": (F.glu, lambda: [torch.randn(2, 4)]),
        "prelu": (F.prelu, lambda: [x(), torch.rand(1)]),
        "threshold": (lambda t: F.threshold(t, 0.1, 20.0), lambda: [x()]),
        "dropout": (lambda t: F.dropout(t, 0.5), lambda: [x()]),
        "alpha_dropout": (lambda t: F.alpha_dropout(t, 0.5, training=True), lambda: [x()]),
        "rrelu": (lambda t: F.rrelu(t, training=False), lambda: [x()]),
        "linear": (F.linear, lambda: [x(), torch.randn(4, 3), torch.randn(4)]),
        "bilinear": (F.bilinear, lambda: [x(), torch.randn(2, 2), torch.randn(2, 3, 2)]),
        "conv1d": (F.conv1d, lambda: [signal(), torch.randn(2, 2, 3), torch.randn(2)]),
        "conv2d": (F.conv2d, lambda: [image(), torch.randn(2, 2, 2, 2), torch.randn(2)]),
        "conv3d": (F.conv3d, lambda: [volume(), torch.randn(1, 1, 2, 2, 2)]),
        "conv_transpose1d": (F.conv_transpose1d, lambda: [signal(), torch.randn(2, 2, 3)]),
        "conv_transpose2d": (F.conv_transpose2d, lambda: [image(), torch.randn(2, 1, 2, 2)]),
        "avg_pool1d": (lambda t: F.avg_pool1d(t, 2), lambda: [signal()]),
        "avg_pool2d": (lambda t: F.avg_pool2d(t, 2), lambda: [image()]),
        "max_pool1d": (lambda t: F.max_pool1d(t, 2), lambda: [signal()]),
        "max_pool2d": (lambda t: F.max_pool2d(t, 2), lambda: [image()]),
        "adaptive_avg_pool1d": (lambda t: F.adaptive_avg_pool1d(t, 2), lambda: [signal()]),
        "adaptive_max_pool1d": (lambda t: F.adaptive_max_pool1d(t, 2), lambda: [signal()]),
        "lp_pool1d": (lambda t: F.lp_pool1d(t, 2, 2), lambda: [signal()]),
        "interpolate": (lambda t: F.interpolate(t, scale_factor=2, mode="nearest"), lambda: [signal()]),
        "interpolate_linear": (lambda t: F.interpolate(t, scale_factor=2, mode="linear"), lambda: [signal()]),
        "interpolate_bilinear": (lambda t: F.interpolate(t, scale_factor=2, mode="bilinear"), lambda: [image()]),
        "pixel_shuffle": (lambda t: F.pixel_shuffle(t, 2), lambda: [torch.randn(1, 4, 2, 2)]),
        "fold": (lambda t: F.fold(t, (3, 3), 2), lambda: [torch.randn(1, 4, 4)]),
        "unfold2d": (lambda t: F.unfold(t, 2), lambda: [image()]),
        "grid_sample": (lambda t, g: F.grid_sample(t, g, align_corners=True), lambda: [image(), torch.rand(1, 2, 2, 2) - 0.5]),
        "affine_grid": (lambda t: F.affine_grid(t, [1, 1, 2, 2], align_corners=True), lambda: [torch.randn(1, 2, 3)]),
        "layer_norm": (lambda t, w, b: F.layer_norm(t, (t.shape[-1],), w, b), lambda: [x(), torch.randn(3), torch.randn(3)]),
        "rms_norm": (lambda t, w: F.rms_norm(t, (t.shape[-1],), w), lambda: [x(), torch.randn(3)]),
        "group_norm": (lambda t: F.group_norm(t, 2), lambda: [torch.randn(2, 4, 3)]),
        "instance_norm": (F.instance_norm, lambda: [signal()]),
        "batch_norm": (lambda t: F.batch_norm(t, None, None, training=True), lambda: [torch.randn(4, 3)]),
        "local_response_norm": (lambda t: F.local_response_norm(t, 2), lambda: [signal()]),
        "attention": (F.scaled_dot_product_attention, lambda: [torch.randn(1, 2, 3, 4) for _ in range(3)]),
        "cosine_similarity": (F.cosine_similarity, lambda: [x(), x()]),
        "pairwise_distance": (F.pairwise_distance, lambda: [x(), x()]),
        "pdist": (F.pdist, lambda: [torch.randn(3, 2)]),
        "gumbel_softmax": (F.gumbel_softmax, lambda: [x()]),
        # losses
        "mse_loss": (F.mse_loss, lambda: [x(), x()]),
        "l1_loss": (F.l1_loss, lambda: [x(), x()]),
        "smooth_l1_loss": (F.smooth_l1_loss, lambda: [x(), x()]),
        "huber_loss": (F.huber_loss, lambda: [x(), x()]),
        "cross_entropy": (F.cross_entropy, lambda: [x(), target()]),
        "nll_loss": (lambda t, i: F.nll_loss(t.log_softmax(-1), i), lambda: [x(), target()]),
        "binary_cross_entropy": (
            lambda t, p: F.binary_cross_entropy(t.sigmoid(), p),
            lambda: [x().requires_grad_(), torch.rand(2, 3)],
        ),
        "bce_with_logits": (F.binary_cross_entropy_with_logits, lambda: [x().requires_grad_(), torch.rand(2, 3)]),
        "kl_div": (lambda t, p: F.kl_div(t, p, reduction="sum"), lambda: [x().requires_grad_(), torch.rand(2, 3)]),
        "poisson_nll_loss": (F.poisson_nll_loss, lambda: [x().requires_grad_(), pos()]),
        "gaussian_nll_loss": (F.gaussian_nll_loss, lambda: [x(), x(), pos()]),
        "hinge_embedding_loss": (F.hinge_embedding_loss, lambda: [x().requires_grad_(), torch.randn(2, 3).sign()]),
        "margin_ranking_loss": (
            F.margin_ranking_loss,
            lambda: [torch.randn(3).requires_grad_(), torch.randn(3), torch.randn(3).sign()],
        ),
        "multi_margin_loss": (F.multi_margin_loss, lambda: [x(), target()]),
        "multilabel_soft_margin_loss": (
            F.multilabel_soft_margin_loss,
            lambda: [x().requires_grad_(), torch.rand(2, 3).round()],
        ),
        "soft_margin_loss": (F.soft_margin_loss, lambda: [x().requires_grad_(), torch.randn(2, 3).sign()]),
        "triplet_margin_loss": (F.triplet_margin_loss, lambda: [x(), x(), x()]),
        "cosine_embedding_loss": (F.cosine_embedding_loss, lambda: [x().requires_grad_(), x(), torch.tensor([1.0, -1.0])]),
        "ctc_loss": (
            lambda t, i: F.ctc_loss(t.log_softmax(-1), i, torch.full((t.shape[1],), t.shape[0]), torch.full((t.shape[1],), 2)),
            lambda: [torch.randn(5, 1, 4), torch.tensor([[1, 2]])],
        ),
    }
    return found + [(name, function, make) for name, (function, make) in more.items()]


def checked(name, options):
    """Check one function in a process of its own, which some of torch's functions take along; None if it did."""
    ours, theirs = multiprocessing.Pipe(duplex=False)

    def run():
        function, make = next(entry[1:] for entry in entries() if entry[0] == name)
        settings = gp.Settings(max_examples=options.max_examples, seed=options.seed)
        theirs.send_bytes(msgspec.json.encode(gp.check_function(function, inputs=make, settings=settings)))

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    theirs.close()
    try:
        return msgspec.json.decode(ours.recv_bytes(), type=gp.CheckResult)
    except EOFError:
        return None
    finally:
        process.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--max-examples", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-v", "--verbose", action="store_true", help="a line for every function")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(1)
    begun, verdicts, cases, kinks, unknown = time.monotonic(), {}, 0, 0, 0
    for name, *_ in entries():
        if options.names and name not in options.names:
            continue
        result = checked(name, options)
        if result is None:
            verdicts["crashed"] = verdicts.get("crashed", 0) + 1
            print(f"{name}: the process crashed", flush=True)
            continue
        if options.verbose:
            print(f"{name}: {result.verdict}, {result.cases.judged} cases judged", flush=True)
        verdicts[result.verdict] = verdicts.get(result.verdict, 0) + 1
        cases, kinks = cases + result.cases.judged, kinks + result.cases.kinks
        for fault in result.faults:
            print(f"{name}: [{fault.check}] {fault.message}", flush=True)
            known = KNOWN.get(name)
            unknown += known is None
            print(f"  {f'known: {known}' if known else 'NOT KNOWN'}")
        if result.verdict == "inconclusive":
            print(f"{name}: inconclusive: {result.reason}")
    said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    count, seconds = sum(verdicts.values()), time.monotonic() - begun
    print(f"{count} functions: {said}; {unknown} faults that are not known")
    print(f"{cases} cases judged, {kinks} derivatives at kinks left out, {seconds:.0f} s")


if __name__ == "__main__":
    main()
