# SPDX-License-Identifier: Apache-2.0
"""Writes random arrays with what scikit-learn and scipy make of them, as JSON.

usage: make_metric_vectors.py OUTPUT SEED CASES

tests/data/inputs/metric_vectors.json was written with seed 1 and 12 cases by scikit-learn 1.9.1,
scipy 1.17.1 and numpy 2.4.6. The slow test makes others.
"""
import json
import sys
import warnings

import numpy as np
from scipy import stats
from sklearn import metrics as sk

warnings.simplefilter("ignore")


def number(value):
    """None where a value is not defined."""
    value = float(value)
    return value if np.isfinite(value) else None


def prf(truth, guesses, **options):
    p, r, f, _ = sk.precision_recall_fscore_support(truth, guesses, **options)
    return [float(p), float(r), float(f)]


def calibration_error(labels, probabilities, bins):
    confidence = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == labels
    total = 0.0
    for b in range(bins):
        inside = (confidence > b / bins) & (confidence <= (b + 1) / bins)
        if b == 0:
            inside |= confidence == 0
        if inside.any():
            total += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    return float(total)


def classification(random, case):
    classes = [2, 3, 5, 9][case % 4]
    n = int(random.integers(1, 60))
    # Some cases have classes that occur on one side only, or nowhere.
    used = classes if case % 3 else max(1, classes - 1)
    labels = random.integers(0, used, n)
    logits = random.normal(size=(n, classes)) + 1.5 * np.eye(classes)[labels]
    if case % 3 == 2:
        logits = np.round(logits)  # ties
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    predictions = probabilities.argmax(axis=1)
    everything = np.arange(classes)
    indicator = np.eye(classes, dtype=int)[labels]
    p, r, f, s = sk.precision_recall_fscore_support(labels, predictions, labels=everything)
    both = all(0 < indicator[:, k].sum() < n for k in range(classes))
    expected = {
        "accuracy": sk.accuracy_score(labels, predictions),
        "balanced_accuracy": sk.balanced_accuracy_score(labels, predictions),
        "per_class": [p.tolist(), r.tolist(), f.tolist(), s.tolist()],
        "macro": prf(labels, predictions, average="macro"),
        "macro_all": prf(labels, predictions, average="macro", labels=everything),
        "micro": prf(labels, predictions, average="micro"),
        "weighted": prf(labels, predictions, average="weighted"),
        "matthews": sk.matthews_corrcoef(labels, predictions),
        "kappa": number(sk.cohen_kappa_score(labels, predictions)),
        "confusion": sk.confusion_matrix(labels, predictions, labels=everything).tolist(),
        "log_loss": sk.log_loss(labels, probabilities, labels=everything),
        "calibration_error": calibration_error(labels, probabilities, 15),
        "roc_auc": None,
    }
    if classes == 2:
        expected["binary"] = prf(labels, predictions, average="binary", labels=[0, 1])
        expected["brier"] = sk.brier_score_loss(labels, probabilities[:, 1], pos_label=1)
        expected["average_precision"] = float(sk.average_precision_score(labels, probabilities[:, 1]))
        if both:
            expected["roc_auc"] = float(sk.roc_auc_score(labels, probabilities[:, 1]))
    else:
        expected["brier"] = float(np.mean(((probabilities - indicator) ** 2).sum(axis=1)))
        expected["average_precision"] = float(
            np.mean([sk.average_precision_score(indicator[:, k], probabilities[:, k]) for k in everything]))
        if both:
            expected["roc_auc"] = float(
                sk.roc_auc_score(labels, probabilities, multi_class="ovr", average="macro", labels=everything))
    return {"classes": classes, "labels": labels.tolist(), "predictions": predictions.tolist(),
            "probabilities": probabilities.ravel().tolist(), "expected": expected}


def multi_label(random, case):
    labels = int(random.integers(2, 6))
    n = int(random.integers(2, 40))
    truth = (random.random((n, labels)) < random.uniform(0.05, 0.6)).astype(int)
    scores = random.random((n, labels)) * 0.7 + 0.3 * truth
    if case % 2:
        scores = np.round(scores, 1)
    predicted = (scores > 0.5).astype(int)
    both = all(0 < truth[:, k].sum() < n for k in range(labels))
    expected = {
        "subset_accuracy": sk.accuracy_score(truth, predicted),
        "hamming_loss": sk.hamming_loss(truth, predicted),
        "micro": prf(truth, predicted, average="micro"),
        "macro": prf(truth, predicted, average="macro"),
        "weighted": prf(truth, predicted, average="weighted"),
        "samples": prf(truth, predicted, average="samples"),
        "average_precision": float(
            np.mean([sk.average_precision_score(truth[:, k], scores[:, k]) for k in range(labels)])),
        "roc_auc": float(sk.roc_auc_score(truth, scores, average="macro")) if both else None,
    }
    return {"labels": labels, "truth": truth.ravel().tolist(), "predicted": predicted.ravel().tolist(),
            "probabilities": scores.ravel().tolist(), "expected": expected}


def by_group(difference, groups):
    """The t test of the mean with errors clustered by group (CR1)."""
    n = len(difference)
    names = np.unique(groups)
    rests = np.array([(difference[groups == g] - difference.mean()).sum() for g in names])
    error = np.sqrt(len(names) / (len(names) - 1) * (rests ** 2).sum()) / n
    return error, 2 * stats.t.sf(abs(difference.mean() / error), len(names) - 1)


def paired(random, case):
    n = int(random.integers(5, 14)) if case % 2 else int(random.integers(20, 120))
    a = random.normal(3, 1, n)
    b = a + random.normal(0.1, 0.5, n)
    groups = np.arange(n) // 3
    test = stats.ttest_rel(b, a)
    low, high = test.confidence_interval(0.95)
    error, p_group = by_group(b - a, groups)
    right_a = (random.random(n) < 0.6).astype(int)
    right_b = np.where(random.random(n) < 0.7, right_a, (random.random(n) < 0.7).astype(int))
    only_a = int(((right_a == 1) & (right_b == 0)).sum())
    only_b = int(((right_a == 0) & (right_b == 1)).sum())
    expected = {
        "difference": float((b - a).mean()), "p": float(test.pvalue), "low": float(low), "high": float(high),
        "group_error": float(error), "group_p": float(p_group),
        "mcnemar": float(stats.binomtest(only_a, only_a + only_b, 0.5).pvalue) if only_a + only_b else 1.0,
        "sign_flip": None,
    }
    if n <= 13:
        expected["sign_flip"] = float(stats.permutation_test(
            (b - a,), np.mean, permutation_type="samples", alternative="two-sided",
            n_resamples=np.inf).pvalue)
    # Token losses of two models: float32, as they are kept.
    loss_a = np.abs(random.normal(3, 2, n)).astype(np.float32)
    loss_b = (loss_a + random.normal(0.02, 0.3, n)).astype(np.float32)
    x, y = loss_a.astype(float), loss_b.astype(float)
    covariance = np.cov(x, y, ddof=0)
    error = np.sqrt((covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]) / (n - 1))
    expected["ln_ratio"] = float(y.mean() - x.mean())
    expected["ln_error"] = float(error)
    expected["ratio_p"] = float(2 * stats.norm.sf(abs(expected["ln_ratio"] / error)))
    expected["correlation"] = float(np.corrcoef(x, y)[0, 1])
    return {"a": a.tolist(), "b": b.tolist(), "groups": groups.tolist(), "right_a": right_a.tolist(),
            "right_b": right_b.tolist(), "loss_a": x.tolist(), "loss_b": y.tolist(), "expected": expected}


def distributions(random):
    rows = {"student": [], "quantile": [], "binomial": [], "beta": []}
    for df in (1, 2, 3, 7.5, 30, 1000, 1e6):
        for t in (1e-3, 0.1, 1.0, 2.5, 8.0, 40.0):
            rows["student"].append([t, df, float(2 * stats.t.sf(t, df))])
        for confidence in (0.5, 0.9, 0.95, 0.99, 0.9999):
            rows["quantile"].append([confidence, df, float(stats.t.ppf(0.5 + confidence / 2, df))])
    for n in (1, 2, 5, 10, 57, 1000, 99999):
        for k in sorted({0, n // 7, n // 3, (n - 1) // 2, n // 2, n}):
            rows["binomial"].append([k, n, float(stats.binom.cdf(k, n, 0.5))])
    for _ in range(30):
        a, b = np.exp(random.uniform(-2, 6, 2))
        x = random.uniform(0.01, 0.99)
        rows["beta"].append([float(a), float(b), float(x), float(stats.beta.cdf(x, a, b))])
    return rows


def main():
    output, seed, cases = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    random = np.random.default_rng(seed)
    content = {
        "classification": [classification(random, i) for i in range(cases)],
        "multi_label": [multi_label(random, i) for i in range(cases)],
        "paired": [paired(random, i) for i in range(cases)],
        "distributions": distributions(random),
    }
    with open(output, "w", encoding="ascii") as file:
        json.dump(content, file, separators=(",", ":"))
        file.write("\n")


main()
