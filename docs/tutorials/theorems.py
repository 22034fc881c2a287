r"""
The theorems on two Gaussians
=============================

The paper has three theorems: its risk estimate is unbiased, the minimiser of the estimate has a
small error, and the correction has a small bias. :doc:`/explanation/bounds` proves which parts of
them hold. This page checks them on a problem whose risk is known, in seconds and without images.

The problem is a line. A class y is :math:`+1` with probability :math:`\pi_+`, and an instance of it
is normal with mean y and deviation 1. The classifier with threshold t gives the score :math:`x -
t`, cut off at :math:`-1` and :math:`1`; the loss is logistic. Every expectation is a quadrature.
"""

import math

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq
from scipy.special import erfc, ndtr

SIZES = (1, 2, 3, 5, 8)
PRIORS = (0.1, 0.3, 0.5, 0.7, 0.9)
THRESHOLDS = np.linspace(-2, 2, 101)
COMPLEXITY = 2.0
LIPSCHITZ = 1 / (1 + math.exp(-1))
LARGEST = math.log1p(math.e)
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(40)


def loss(score, label):
    """Return the logistic loss of a score in [-1, 1]."""
    return np.log1p(np.exp(-label * score))


def negatives(size, prior):
    """Return Z, and the law of the negatives k = 0 .. floor(M / 2) (Lemma 5)."""
    law = [
        math.comb(size, k) * prior ** (size - k) * (1 - prior) ** k
        for k in range(size // 2 + 1)
    ]
    return sum(law), np.array(law) / sum(law)


def weights(size, prior):
    """Return s, the weights of unlabeled losses against +1 and -1, and a."""
    _, law = negatives(size, prior)
    a = 1 - law @ np.arange(len(law)) / size
    excess = a - prior
    s = prior * (1 - prior) / excess
    return s, -(1 - a) * prior / excess, a * (1 - prior) / excess, a


# %%
# The exact values
# ----------------
# These functions return the risk, the partial risks and the deviation of the estimate at a
# threshold. The variance of a tuple's mean is that of its members given their classes, plus that
# from the number of its negatives.


def expectation(function, label, threshold):
    """Return the expectation of a function of the score over a class."""
    distance = NODES + threshold - label
    density = np.exp(-(distance**2) / 2) / math.sqrt(2 * math.pi)
    inner = (NODE_WEIGHTS * density) @ function(NODES)
    lower = ndtr(threshold - 1 - label)
    upper = ndtr(label - threshold - 1)
    return lower * function(-1.0) + upper * function(1.0) + inner


def mixture(share, of_positive, of_negative):
    """Return a mean over both classes."""
    return share * of_positive + (1 - share) * of_negative


def risk(prior, threshold):
    """Return R(g), Eq. 1."""
    of_positive = expectation(lambda z: loss(z, 1), 1, threshold)
    of_negative = expectation(lambda z: loss(z, -1), -1, threshold)
    return mixture(prior, of_positive, of_negative)


def moments(function, label, threshold):
    """Return the mean and the mean square of a function of the score over a class."""
    mean = expectation(function, label, threshold)
    square = expectation(lambda z: function(z) ** 2, label, threshold)
    return mean, square


def known(size, prior, n, threshold):
    """Return R_T, R_U and the deviation of the estimate from n tuples and n unlabeled."""
    s, u_positive, u_negative, a = weights(size, prior)

    def members(z):
        return s * (loss(z, 1) - loss(z, -1))

    def unlabeled(z):
        return u_positive * loss(z, 1) + u_negative * loss(z, -1)

    mean_1, square_1 = moments(members, 1, threshold)
    mean_0, square_0 = moments(members, -1, threshold)
    within = mixture(a, square_1 - mean_1**2, square_0 - mean_0**2)
    _, law = negatives(size, prior)
    k = np.arange(len(law))
    variance_of_k = law @ (k - law @ k) ** 2
    between = (mean_1 - mean_0) ** 2 * variance_of_k / size**2
    tuple_risk = mixture(a, mean_1, mean_0)

    mean_1, square_1 = moments(unlabeled, 1, threshold)
    mean_0, square_0 = moments(unlabeled, -1, threshold)
    unlabeled_risk = mixture(prior, mean_1, mean_0)
    of_unlabeled = mixture(prior, square_1, square_0) - unlabeled_risk**2
    variance = (within / size + between + of_unlabeled) / n
    return tuple_risk, unlabeled_risk, math.sqrt(variance)


# %%
# What is drawn
# -------------
# Members of a dominant tuple are drawn given the number of its negatives. The estimates of
# :math:`R_T` and :math:`R_U` add up to Eq. 11.


def estimates(size, prior, n, n_unlabeled, trials, thresholds, seed=0):
    """Return the estimates of R_T and R_U, each of shape (trials, thresholds)."""
    s, u_positive, u_negative, _ = weights(size, prior)
    _, law = negatives(size, prior)
    rng = np.random.default_rng(seed)
    thresholds = np.atleast_1d(thresholds)
    tuple_risks = []
    unlabeled_risks = []
    for _ in range(trials):
        k = rng.choice(len(law), size=n, p=law)
        is_negative = np.arange(size) < k[:, None]
        labels = np.where(is_negative, -1.0, 1.0).ravel()
        instances = labels + rng.normal(size=n * size)
        scores = (instances[:, None] - thresholds).clip(-1, 1)
        # loss(z, 1) - loss(z, -1) is -z
        tuple_risks.append(-s * scores.mean(axis=0))

        labels = np.where(rng.random(n_unlabeled) < prior, 1.0, -1.0)
        instances = labels + rng.normal(size=n_unlabeled)
        scores = (instances[:, None] - thresholds).clip(-1, 1)
        both = (u_positive + u_negative) * loss(scores, 1) + u_negative * scores
        unlabeled_risks.append(both.mean(axis=0))
    return np.array(tuple_risks), np.array(unlabeled_risks)


# %%
# Theorem 1: the estimate is unbiased
# -----------------------------------
# The mean error of 2,000 estimates in units of its standard error, and the deviation over the one
# that follows from the law. Of 25 errors, one beyond 1.96 is expected by chance.

print("M, largest error / its standard error, deviation / expected")
for size in SIZES:
    errors = []
    ratios = []
    for prior in PRIORS:
        tuples, others = estimates(size, prior, 100, 100, 2000, 0.0)
        error = (tuples + others)[:, 0] - risk(prior, 0.0)
        deviation = known(size, prior, 100, 0.0)[2]
        errors.append(abs(error.mean()) / (deviation / math.sqrt(len(error))))
        ratios.append(error.std(ddof=1) / deviation)
    print(f"{size}  {max(errors):.2f}  {min(ratios):.3f} to {max(ratios):.3f}")
    assert max(errors) < 4

# %%
# Theorem 2: the error of what is learned
# ---------------------------------------
# Twice the largest deviation of the estimate over all thresholds falls as :math:`n^{-1/2}`, as the
# bound does. The excess risk of the best threshold falls faster: a smooth risk is flat at its
# minimum.


def error_bounds(size, prior, n, delta=0.05):
    """Return Theorem 2 as printed, and the smaller of the two bounds that hold."""
    s, u_positive, u_negative, _ = weights(size, prior)
    u = u_negative - u_positive
    rate = LIPSCHITZ * COMPLEXITY
    four = LARGEST * math.sqrt(math.log(4 / delta) / 2)
    six = LARGEST * math.sqrt(math.log(6 / delta) / 2)
    of_tuples = s * (4 * rate + 2 * four) / math.sqrt(n)
    of_unlabeled = u * (2 * rate + four) / math.sqrt(n)
    printed = of_tuples / math.sqrt(size) + of_unlabeled
    by_tuples = of_tuples + of_unlabeled

    of_members = s * (4 * math.sqrt(2) * rate + 4 * six) / math.sqrt(size * n)
    of_unlabeled = u * (2 * rate + six) / math.sqrt(n)
    by_members = of_members + of_unlabeled
    return 2 * printed, 2 * min(by_tuples, by_members)


figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
NS = np.array([100, 200, 400, 800, 1600])
risks = np.array([risk(0.5, threshold) for threshold in THRESHOLDS])
print(
    "M; slope of the deviation, of the excess risk; bound / deviation; / printed bound"
)
for axis, size in zip(axes, (2, 3), strict=True):
    rows = []
    for n in NS:
        estimated = sum(estimates(size, 0.5, n, n, 100, THRESHOLDS))
        deviation = np.quantile(2 * abs(estimated - risks).max(axis=1), 0.95)
        excess = np.quantile(risks[estimated.argmin(axis=1)] - risks.min(), 0.95)
        rows.append([deviation, excess, *error_bounds(size, 0.5, n)])
    deviation, excess, printed, corrected = np.array(rows).T
    slopes = [
        np.polyfit(np.log(NS), np.log(values), 1)[0] for values in (deviation, excess)
    ]
    ratio = corrected / deviation
    fell = " ".join(f"{slope:6.2f}" for slope in slopes)
    above = f"{ratio.min():.1f} to {ratio.max():.1f}"
    print(f"{size}  {fell}   {above}   {corrected[0] / printed[0]:.2f}")
    assert (deviation < corrected).all()
    for values, label in ((corrected, "bound, corrected"), (printed, "bound, printed")):
        axis.plot(NS, values, "--", label=label)
    axis.plot(NS, deviation, "o-", label="deviation, 95 %")
    axis.plot(NS, excess, "s-", label="excess risk, 95 %")
    axis.set(xscale="log", yscale="log", xlabel="n", title=f"M = {size}, prior 0.5")
axes[0].legend()
plt.show()

# %%
# Theorem 3: the bias of a corrected risk
# ---------------------------------------
# For ReLU the bias is the mean of the part below zero. As printed, the theorem asks for positive
# partial risks. The classifier of least risk has none, so the theorem says nothing about it. Where
# it does apply, its bound is too small.


def negative_part(mean, width, reach):
    """Return B(x, w, r) of bounds.md, which bounds E[max(0, -X)]."""
    unit = width / math.sqrt(2)
    tails = erfc(max(0.0, mean) / unit) - erfc((mean + reach) / unit)
    return max(0.0, -mean) + math.sqrt(math.pi) / 2 * unit * max(0.0, tails)


def bias_bounds(size, prior, n, tuple_risk, unlabeled_risk):
    """Return Theorem 3 as printed or None, and what holds of the whole and the parts."""
    s, u_positive, u_negative, _ = weights(size, prior)
    reach = s * LARGEST, -u_positive * LARGEST
    width = (
        2 * reach[0] / math.sqrt(size * n),
        (u_negative - u_positive) * LARGEST / math.sqrt(n),
    )
    printed = None
    if tuple_risk > 0 and unlabeled_risk > 0:
        tails = (
            2 * n * (tuple_risk * size / reach[0]) ** 2,
            2 * n * (unlabeled_risk / LARGEST) ** 2,
        )
        printed = 2 * LARGEST * (size * s + 1) * sum(math.exp(-tail) for tail in tails)
    whole = negative_part(tuple_risk + unlabeled_risk, math.hypot(*width), sum(reach))
    means = tuple_risk, unlabeled_risk
    parts = sum(negative_part(*part) for part in zip(means, width, reach, strict=True))
    return printed, whole, parts


def equal_parts(size, prior):
    """Return the threshold at which the two partial risks are equal."""

    def difference(threshold):
        tuple_risk, unlabeled_risk, _ = known(size, prior, 1, threshold)
        return tuple_risk - unlabeled_risk

    return brentq(difference, -4, 4)


print(
    "M, classifier, R_T, n; bias of the whole, its bound; of the parts, theirs; printed"
)
for size in (2, 5):
    least = THRESHOLDS[np.argmin([risk(0.7, threshold) for threshold in THRESHOLDS])]
    for name, threshold in (
        ("least risk", least),
        ("equal parts", equal_parts(size, 0.7)),
    ):
        for n in (10, 30, 100, 300):
            tuple_risk, unlabeled_risk, _ = known(size, 0.7, n, threshold)
            tuples, others = estimates(size, 0.7, n, n, 5000, threshold)
            whole = np.maximum(0, -(tuples + others)).mean()
            parts = (np.maximum(0, -tuples) + np.maximum(0, -others)).mean()
            printed, *bounds = bias_bounds(size, 0.7, n, tuple_risk, unlabeled_risk)
            said = "none" if printed is None else f"{printed:.1e}"
            start = f"{size}  {name:11}  {tuple_risk:5.2f}  {n:3}"
            print(
                f"{start}   {whole:.1e} {bounds[0]:.1e}   "
                f"{parts:.1e} {bounds[1]:.1e}   {said}"
            )
            assert whole <= bounds[0] and parts <= bounds[1] * 1.1

# %%
# Which tuple size to collect
# ---------------------------
# 1,200 instances in tuples of one size, beside 1,200 unlabeled ones. If classes are separable, a
# tuple tells :math:`-\log Z` nats, and its members one by one M times the divergence of a from the
# prior.

print("Prior; best M by joint law, by marginals, by deviation, by excess risk")
for prior in (0.1, 0.5, 0.9):
    risks = np.array([risk(prior, threshold) for threshold in THRESHOLDS])
    best = THRESHOLDS[risks.argmin()]
    by = {"joint": {}, "marginal": {}, "deviation": {}, "excess": {}}
    for size in range(2, 9):
        a = weights(size, prior)[3]
        by["joint"][size] = -math.log(negatives(size, prior)[0]) / size
        by["marginal"][size] = a * math.log(a / prior) + (1 - a) * math.log(
            (1 - a) / (1 - prior)
        )
        estimated = sum(estimates(size, prior, 1200 // size, 1200, 50, THRESHOLDS))
        by["excess"][size] = -(risks[estimated.argmin(axis=1)] - risks.min()).mean()
        by["deviation"][size] = -sum(
            estimates(size, prior, 1200 // size, 1200, 300, best)
        ).std()
    print(prior, *(max(values, key=values.get) for values in by.values()))
