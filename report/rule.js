"use strict";
// The rule of the verdicts, as mdpu/pipeline/evaluate/comparison.py has it; a test holds the two together.
const rule = (() => {
  // The logarithm of the gamma function (Lanczos, g = 7).
  const LANCZOS = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
    12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];
  const logGamma = (x) => {
    const t = x + 6.5;
    const sum = LANCZOS.reduce((total, term, place) => total + (place ? term / (x - 1 + place) : term), 0);
    return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(sum);
  };
  // The regularized incomplete beta function by its continued fraction (Lentz).
  const beta = (x, a, b) => {
    if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
    if (x > (a + 1) / (a + b + 2)) return 1 - beta(1 - x, b, a);
    const front = Math.exp(logGamma(a + b) - logGamma(a) - logGamma(b) + a * Math.log(x) + b * Math.log1p(-x)) / a;
    let [c, d] = [1, 1 / (1 - (a + b) * x / (a + 1))];
    let value = d;
    for (let m = 1, change = 0; m < 500 && Math.abs(change - 1) > 1e-15; m += 1) {
      const terms = [m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))];
      for (const term of terms) {
        d = 1 / (1 + term * d);
        c = 1 + term / c;
        change = c * d;
        value *= change;
      }
    }
    return front * value;
  };
  // The value that the size of Student's t exceeds with probability 1 - level.
  const student = (freedom, level) => {
    let [low, high] = [0, 1];  // of freedom / (freedom + t^2)
    for (let step = 0; step < 64; step += 1) {
      const middle = (low + high) / 2;
      if (beta(middle, freedom / 2, 0.5) < 1 - level) low = middle; else high = middle;
    }
    return Math.sqrt(freedom * (1 / high - 1));
  };

  // Verdict, reason, difference and interval of our trials [mean, deviation, trials, diverged ones] beside the paper's three.
  const judge = ([mean, std, trials, diverged], paperMean, paperStd, { level, margin, wider_margin: wider }) => {
    const number = trials - diverged;
    if (!number) return { verdict: "differs", reason: "every trial diverged", difference: null, low: null, high: null };
    const difference = mean - paperMean;
    if (number < 2) return { verdict: "inconclusive", reason: "fewer than two trials: no interval", difference, low: null, high: null };
    const [first, second] = [std ** 2 / number, paperStd ** 2 / 3];
    const error = Math.sqrt(first + second);
    const freedom = (first + second) ** 2 / (first ** 2 / (number - 1) + second ** 2 / 2);
    const half = error ? student(freedom, level) * error : 0;
    const [low, high, size] = [difference - half, difference + half, Math.abs(difference)];
    const holdsZero = low <= 0 && high >= 0;
    let [verdict, reason] = ["close", "within the wider margin"];
    if (holdsZero && Math.max(-low, high) > 2 * wider) [verdict, reason] = ["inconclusive", "the interval holds zero and more than twice the wider margin"];
    else if (size > wider && !holdsZero) [verdict, reason] = ["differs", "beyond the wider margin, and the interval excludes zero"];
    else if (low >= -margin && high <= margin) [verdict, reason] = ["reproduced", "whole interval within the margin"];
    else if (size <= margin && holdsZero) [verdict, reason] = ["reproduced", "within the margin, and the interval holds zero"];
    if (verdict === "reproduced" && diverged) [verdict, reason] = ["close", "a trial diverged"];
    return { verdict, reason, difference, low, high };
  };
  return { student, judge };
})();
