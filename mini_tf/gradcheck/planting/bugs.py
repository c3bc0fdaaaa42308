"""Wrong backwards: the bugs that the checker has to find.

Each is one small edit of the real source of an op or a layer, in the backward only, of the kind that learners make and
that engines have shipped. `with planted(bug): …` runs the edited code in place of the real one.

    BUGS     all of them
    KINDS    {kind: meaning}: what a right diagnosis of such a bug has to say
"""

from collections.abc import Callable
from dataclasses import dataclass

from mini_tf import layers, ops
from mini_tf.gradcheck.planting.editing import edited_line, function_of
from mini_tf.layers import walk_back
from mini_tf.models import Classifier, LanguageTransformer, OneAttention, classifier, masked
from mini_tf.ops.shapes import sum_to

KINDS = {
    "constant factor": "a gradient is the right one times one number: a count, 2, 1/(1 − rate); a mean, a sum confused",
    "batch counted twice": "a gradient is too large by the number of examples, or of rows",
    "scale": "the factor of attention's scores, 1/√m, is missing or applied twice",
    "wrong sign": "a gradient is the right one times −1",
    "transposed": "a gradient is the transpose of the right one",
    "factor not transposed": "in a product of matrices, a factor stands as in the forward, not transposed",
    "gradients swapped": "two gradients are right but returned in each other's place",
    "missing term": "a summand is left out: a mean of layer norm, the Jacobian off its diagonal, one way of several",
    "missing factor": "an elementwise factor that is not the same everywhere is left out",
    "wrong derivative": "the factor that is the function's own derivative is another function",
    "dy passed on": "the gradient is dy itself, as if the step were not there",
    "mask not applied": "gradient comes through where the forward was shut: mask, dropout, ignored rows, relu",
    "gamma forgotten": "γ is left out where dy is weighted with it",
    "repeated ids dropped": "of several places with the same id, one alone gives its gradient",
    "upstream ignored": "dy, or dloss, does not matter: as if it were 1",
    "not carried through time": "the recurrent gradient stops on its way back, at once or after a step",
    "off by one step": "a state of the neighbouring time step is used",
    "wrong axis": "a sum or a mean runs over the wrong axis, or axes are merged in the wrong order",
    "some positions only": "one row, example, word or entry is wrong, or alone is right",
    "constant rows": "all rows, or all entries, get one and the same gradient where they should get their own",
    "not finite": "a gradient has a NaN or an infinity",
    "zero": "a gradient is zero where it is not",
    "no gradient": "a parameter gets no gradient at all",
    "not accumulated": "a parameter's later gradient replaces the earlier ones",
    "writes into arrays": "the backward changes an array that others hold",
    "other": "none of the above",
}


@dataclass(frozen=True)
class Bug:
    """A wrong backward: in the source of `target`, `find` becomes `replace`.

    example          the entry of EXAMPLES whose check has to find the bug
    kind             one of KINDS
    about            what is wrong, in a sentence
    blind_at_init    cannot be seen where γ = 1 and β = 0, the values that layer norm starts with
    """

    name: str
    target: Callable
    find: str
    replace: str
    example: str
    kind: str
    about: str
    blind_at_init: bool = False

    @property
    def place(self) -> tuple[str, int]:
        """(file, line) of the edit"""
        return edited_line(self.target, self.find)

    @property
    def in_transformer(self) -> bool:
        """True if a language transformer with every option, dropout included, runs the edited code in training."""
        return function_of(self.target) in IN_TRANSFORMER


IN_TRANSFORMER = {
    function_of(target)
    for target in (
        ops.attention, ops.cross_entropy, ops.dropout, ops.embedding, ops.layer_norm, ops.linear, ops.masked_softmax,
        ops.residual_relu, sum_to, layers.Dropout, layers.Embedding, layers.LayerNorm, layers.Linear,
        layers.MultiHeadAttention, layers.MultiHeadAttention.across, layers.Parameter.accumulate,
        layers.PositionalEncoding, layers.TiedReadout, layers.TransformerLayer.after, layers.TransformerLayer.branch,
        layers.Trunk, layers.Trunk.from_vectors, layers.Trunk.place, walk_back, LanguageTransformer.loss,
        LanguageTransformer.head,
    )
}  # fmt: skip

MODEL = "LanguageTransformer, shared, tied, every option"

LINEAR = [
    Bug(
        "linear: dW is a mean", ops.linear,
        "dW = transpose(rows_x) @ rows_dy", "dW = transpose(rows_x) @ rows_dy / len(rows_x)",
        "linear", "constant factor", "dW is averaged over the rows; every row's part adds."),
    Bug(
        "linear: batch counted twice", ops.linear,
        "dW = transpose(rows_x) @ rows_dy", "dW = transpose(rows_x) @ rows_dy * len(x)",
        "linear", "batch counted twice", "dW is summed over the batch and multiplied by its size as well."),
    Bug(
        "linear: sign of dx", ops.linear,
        "dx = (rows_dy @ transpose(W))", "dx = -(rows_dy @ transpose(W))",
        "linear", "wrong sign", "dx points uphill where it should point down."),
    Bug(
        "linear: W not transposed", ops.linear,
        "rows_dy @ transpose(W)", "rows_dy @ W",
        "linear, square", "factor not transposed", "dx = dy·W instead of dy·Wᵀ; only a square W lets it pass at all."),
    Bug(
        "linear: dW transposed", ops.linear,
        "transpose(rows_x) @ rows_dy", "transpose(rows_dy) @ rows_x",
        "linear, square", "transposed", "dyᵀ·x instead of xᵀ·dy: the habit of weights (out, in)."),
    Bug(
        "linear: dx and dW swapped", ops.linear,
        "return dx, dW, db", "return dW, dx, db",
        "linear, square", "gradients swapped", "The gradients come back in another order than the inputs went in."),
    Bug(
        "linear: db is a mean", ops.linear,
        "sum_to(dy, b.shape)", "sum_to(dy, b.shape) / len(rows_dy)",
        "linear", "constant factor",
        "The bias was used by every row, and gets the mean of their gradients, not the sum."),
    Bug(
        "linear: db of the first example", ops.linear,
        "sum_to(dy, b.shape)", "sum_to(dy[:1], b.shape)",
        "linear", "some positions only", "The first example of the batch alone reaches the bias."),
    Bug(
        "linear: one dx for all rows", ops.linear, "rows_dy @ transpose(W)",
        "rows_dy.mean(0, keepdims=True).repeat(len(rows_dy), 0) @ transpose(W)",
        "linear", "constant rows", "dy is averaged over the rows first, so all rows of dx are the same."),
    Bug(
        "linear: one number for db", ops.linear, "sum_to(dy, b.shape)", "sum_to(dy, b.shape) * 0 + dy.sum()",
        "linear", "constant rows", "sum() without its axis: one number, which broadcasting spreads over b."),
    Bug(
        "linear: one entry of dW", ops.linear,
        "dW = transpose(rows_x) @ rows_dy", "dW = transpose(rows_x) @ rows_dy; dW[-1, -1] *= 1.01",
        "linear", "some positions only", "One entry of dW, the last, is too large by a hundredth."),
]  # fmt: skip

ACTIVATIONS = [
    Bug(
        "relu: pattern lost", ops.relu, "return dy * on", "return dy",
        "relu", "mask not applied", "The gradient passes where x ≤ 0, too, as if relu were the identity."),
    Bug(
        "relu: pattern of dy", ops.relu, "dy * on", "dy * (dy > 0)",
        "relu", "other", "The sign of dy decides instead of the sign of x: the deconvolution of Zeiler and Fergus."),
    Bug(
        "relu: leaks", ops.relu, "dy * on", "dy * (on + 0.01 * (x < 0))",
        "relu", "mask not applied", "A hundredth of the gradient passes where x < 0: leaky relu's backward."),
    Bug(
        "relu: threshold elsewhere", ops.relu, "dy * on", "dy * (x > -0.5)",
        "relu", "mask not applied", "Between −0.5 and 0, too, the gradient passes."),
    Bug(
        "residual_relu: skip path lost", ops.residual_relu, "return dz, dz * on", "return 0 * dz, dz * on",
        "residual_relu", "zero", "Nothing comes back to x, though the skip connection passes all of it."),
    Bug(
        "residual_relu: pattern lost", ops.residual_relu, "dz, dz * on", "dz, dz",
        "residual_relu", "mask not applied", "The gradient of y passes where relu was off."),
    Bug(
        "residual_relu: pattern on both ways", ops.residual_relu, "dz, dz * on", "dz * on, dz * on",
        "residual_relu", "other", "The skip connection is switched off together with relu."),
    Bug(
        "residual_relu: pattern of x", ops.residual_relu, "dz, dz * on", "dz, dz * (x > 0)",
        "residual_relu", "other", "The sign of x decides, not the sign of y, which went through relu."),
    Bug(
        "residual_relu: swapped", ops.residual_relu, "dz, dz * on", "dz * on, dz",
        "residual_relu", "gradients swapped", "dx and dy change places."),
    Bug(
        "tanh: 1 − y", ops.tanh, "1 - y * y", "1 - y",
        "tanh", "wrong derivative", "The square is missing: 1 − y for 1 − y²."),
    Bug(
        "tanh: 1 − x²", ops.tanh, "1 - y * y", "1 - x * x",
        "tanh", "wrong derivative", "1 − y² is evaluated at the input instead of the output."),
    Bug(
        "tanh: left out", ops.tanh, "return dy * (1 - y * y)", "return dy",
        "tanh", "dy passed on", "tanh's derivative is left out, and dy passed on as it is."),
    Bug(
        "sigmoid: y for y(1 − y)", ops.sigmoid, "dy * y * (1 - y)", "dy * y",
        "sigmoid", "missing factor", "Half of the derivative y·(1 − y) is forgotten."),
    Bug(
        "sigmoid: tanh's derivative", ops.sigmoid, "dy * y * (1 - y)", "dy * (1 - y * y)",
        "sigmoid", "wrong derivative", "1 − y² is tanh's derivative, not sigmoid's."),
    Bug(
        "sigmoid: derivative twice", ops.sigmoid, "dy * y * (1 - y)", "dy * (y * (1 - y)) * (1 - y * (1 - y))",
        "sigmoid", "wrong derivative", "The derivative is applied to y(1 − y) again, as if that were the output."),
    Bug(
        "gelu: no product rule", ops.gelu, "(Phi + x * phi)", "Phi",
        "gelu", "missing term", "y = x·Φ(x) is differentiated as if Φ were constant."),
    Bug(
        "gelu: density not normalized", ops.gelu, " / math.sqrt(2 * math.pi)", "",
        "gelu", "other", "φ lacks 1/√(2π): a wrong factor, but in one of two terms only."),
    Bug(
        "gelu: approximate backward", ops.gelu,
        "phi = xp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)",
        "phi = (1 - xp.tanh(0.79788456 * (x + 0.044715 * x**3)) ** 2) * 0.39894228 * (1 + 0.134145 * x * x)",
        "gelu", "wrong derivative", "The forward is exact, the backward is that of the approximation by tanh."),
    Bug(
        "gelu, by tanh: 3 forgotten", ops.gelu, "(1 + 3 * cubic * x * x)", "(1 + cubic * x * x)",
        "gelu, by tanh", "wrong derivative", "x³ is differentiated to x²; its 3 is forgotten."),
    Bug(
        "gelu, by tanh: inner derivative lost", ops.gelu, "* slope * (1 + 3 * cubic * x * x)", "",
        "gelu, by tanh", "missing factor", "The chain rule stops at tanh: u′ is left out."),
]  # fmt: skip

SOFTMAX = [
    Bug(
        "softmax: diagonal only", ops.softmax,
        "y * (dy - (y * dy).sum(-1, keepdims=True))", "y * (1 - y) * dy",
        "softmax", "missing term", "Only ∂y_i/∂z_i is used: the Jacobian off its diagonal is left out."),
    Bug(
        "softmax: sum left out", ops.softmax, "y * (dy - (y * dy).sum(-1, keepdims=True))", "y * dy",
        "softmax", "missing term", "The normalizing sum is treated as a constant. With dy = 1 the true gradient is 0."),
    Bug(
        "softmax: dy passed on", ops.softmax, "return y * (dy - (y * dy).sum(-1, keepdims=True))", "return dy",
        "softmax", "dy passed on", "Mistaken for the fused loss, whose gradient includes softmax's Jacobian."),
    Bug(
        "softmax: wrong axis", ops.softmax, "(y * dy).sum(-1, keepdims=True)", "(y * dy).sum(-2, keepdims=True)",
        "softmax", "wrong axis", "The sum runs over the words instead of over the classes."),
    Bug(
        "softmax: mean for sum", ops.softmax, "(y * dy).sum(-1, keepdims=True)", "(y * dy).mean(-1, keepdims=True)",
        "softmax", "other", "The term that is taken off is a mean, too small by the number of classes."),
    Bug(
        "masked_softmax: y forgotten", ops.masked_softmax,
        "return y * (dy - (y * dy).sum(-1, keepdims=True))", "return mask * (dy - (y * dy).sum(-1, keepdims=True))",
        "masked_softmax", "missing factor", "The factor y in front is replaced by the mask."),
    Bug(
        "masked_softmax: a leak", ops.masked_softmax,
        "return y * (dy - (y * dy).sum(-1, keepdims=True))",
        "return (y + 1e-5) * (dy - (y * dy).sum(-1, keepdims=True))",
        "masked_softmax", "mask not applied",
        "A small number that should avoid a zero lets gradient through the mask."),
    Bug(
        "masked_softmax: a constant added", ops.masked_softmax,
        "(y * dy).sum(-1, keepdims=True)), None", "(y * dy).sum(-1, keepdims=True)) + 1e-6, None",
        "masked_softmax", "other", "A millionth is added to every entry, as one does to avoid dividing by zero."),
    Bug(
        "masked_softmax: NaN where nothing is allowed", ops.masked_softmax,
        "return y * (dy", "return xp.where(total == 0, xp.nan, y) * (dy",
        "masked_softmax", "not finite", "A row with nothing allowed gets what 0/0 gives."),
    Bug(
        "masked_softmax: wrong axis", ops.masked_softmax,
        "(y * dy).sum(-1, keepdims=True)", "(y * dy).sum(-2, keepdims=True)",
        "masked_softmax", "wrong axis", "The sum runs over the queries instead of over the keys."),
    Bug(
        "masked_softmax: plus for minus", ops.masked_softmax, "(dy - (y * dy)", "(dy + (y * dy)",
        "masked_softmax", "other", "The sum is added instead of subtracted: a wrong sign in one of two terms."),
]  # fmt: skip

LAYER_NORM = [
    Bug(
        "layer_norm: mean(g) left out", ops.layer_norm, "g - g.mean(-1, keepdims=True) - normal", "g - normal",
        "layer_norm", "missing term", "μ is treated as a constant."),
    Bug(
        "layer_norm: x̂·mean(g·x̂) left out", ops.layer_norm, " - normal * (g * normal).mean(-1, keepdims=True)", "",
        "layer_norm", "missing term", "r is treated as a constant."),
    Bug(
        "layer_norm: both means left out", ops.layer_norm,
        "(g - g.mean(-1, keepdims=True) - normal * (g * normal).mean(-1, keepdims=True))", "g",
        "layer_norm", "missing term", "Mean and variance are treated as constants, as batch norm does in evaluation."),
    Bug(
        "layer_norm: γ forgotten", ops.layer_norm, "g = dy * gamma", "g = dy",
        "layer_norm", "gamma forgotten",
        "dx leaves out γ. At γ = 1, where training begins, this makes no difference.", blind_at_init=True),
    Bug(
        "layer_norm: γ after the means", ops.layer_norm,
        "dx = r * (g - g.mean(-1, keepdims=True) - normal * (g * normal).mean(-1, keepdims=True))",
        "dx = gamma * r * (dy - dy.mean(-1, keepdims=True) - normal * (dy * normal).mean(-1, keepdims=True))",
        "layer_norm", "other", "The means are taken of dy, and γ multiplied in afterwards.", blind_at_init=True),
    Bug(
        "layer_norm: divided by γ", ops.layer_norm, "g = dy * gamma", "g = dy / gamma",
        "layer_norm", "other", "The gradient is divided by γ, as one would divide y itself.",
        blind_at_init=True),
    Bug(
        "layer_norm: r left out", ops.layer_norm, "dx = r * (g", "dx = (g",
        "layer_norm", "missing factor", "The division by the standard deviation is forgotten."),
    Bug(
        "layer_norm: sum for mean(g)", ops.layer_norm, "g - g.mean(-1", "g - g.sum(-1",
        "layer_norm", "other", "One of the two means is a sum: too large by n, in one term."),
    Bug(
        "layer_norm: n − 1", ops.layer_norm,
        "(g * normal).mean(-1, keepdims=True)", "(g * normal).sum(-1, keepdims=True) / (x.shape[-1] - 1)",
        "layer_norm", "other", "The backward of the unbiased variance under the forward of the biased one."),
    Bug(
        "layer_norm: mean over words", ops.layer_norm, "g.mean(-1, keepdims=True)", "g.mean(-2, keepdims=True)",
        "layer_norm", "wrong axis", "mean(g) runs over the words instead of over the entries of a row."),
    Bug(
        "layer_norm: plus for minus", ops.layer_norm, "keepdims=True) - normal", "keepdims=True) + normal",
        "layer_norm", "other", "The variance's term has the wrong sign."),
    Bug(
        "layer_norm: ε misplaced", ops.layer_norm, "dx = r * (g", "dx = 1 / (1 / r + eps) * (g",
        "layer_norm", "other", "1/(σ + ε) in the backward for 1/√(σ² + ε): wrong by a hundred-thousandth."),
    Bug(
        "layer_norm: dγ of x − μ", ops.layer_norm, "sum_to(dy * normal, ", "sum_to(dy * centred, ",
        "layer_norm", "missing factor", "dγ uses the centred x, not yet divided by the standard deviation."),
    Bug(
        "layer_norm: dγ of y", ops.layer_norm, "sum_to(dy * normal, ", "sum_to(dy * (gamma * normal + beta), ",
        "layer_norm", "other", "dγ uses the output y for x̂; they agree while γ = 1 and β = 0.", blind_at_init=True),
    Bug(
        "layer_norm: dγ and dβ swapped", ops.layer_norm,
        "sum_to(dy * normal, gamma.shape), sum_to(dy, beta.shape)",
        "sum_to(dy, beta.shape), sum_to(dy * normal, gamma.shape)",
        "layer_norm", "gradients swapped", "The two have one shape, and nothing but a check tells them apart."),
    Bug(
        "layer_norm: one number for dβ", ops.layer_norm,
        "sum_to(dy, beta.shape)", "sum_to(dy, beta.shape) * 0 + dy.sum()",
        "layer_norm", "constant rows", "The sum runs over the last axis as well, and is spread over β."),
    Bug(
        "layer_norm: dβ of the last word", ops.layer_norm, "sum_to(dy, beta.shape)",
        "sum_to(dy[..., -1:, :], beta.shape)",
        "layer_norm", "some positions only", "β gets the gradient of the last word of each history alone."),
]  # fmt: skip

ATTENTION = [
    Bug(
        "attention: scale forgotten in dquery", ops.attention, "dquery = scale * (dscores @ key)",
        "dquery = dscores @ key",
        "attention, scaled", "scale", "The scores were scaled on the way up; on the way down, dquery is not scaled."),
    Bug(
        "attention: scale twice in dkey", ops.attention, "dkey = scale * (", "dkey = scale * scale * (",
        "attention, scaled", "scale", "dkey is scaled twice."),
    Bug(
        "attention: scale in dvalue", ops.attention, "dvalue = transpose(A) @ dY",
        "dvalue = scale * (transpose(A) @ dY)",
        "attention, scaled", "scale", "The values were never scaled, but their gradient is."),
    Bug(
        "attention: dquery and dkey swapped", ops.attention,
        "return dquery, dkey, dvalue", "return dkey, dquery, dvalue",
        "attention, scaled", "gradients swapped", "dquery and dkey change places."),
    Bug(
        "attention: A not transposed", ops.attention, "dvalue = transpose(A) @ dY", "dvalue = A @ dY",
        "attention, square", "factor not transposed", "dV = A·dY: the values get the gradient of other words."),
    Bug(
        "attention: dS not transposed", ops.attention, "transpose(dscores) @ query", "dscores @ query",
        "attention, causal", "factor not transposed", "dK = dS·Q for dSᵀ·Q."),
    Bug(
        "attention: value not transposed", ops.attention, "dA = dY @ transpose(value)", "dA = dY @ value",
        "attention, square", "factor not transposed", "dA = dY·V for dY·Vᵀ; the shapes allow it when Tk = d."),
    Bug(
        "attention: softmax's Jacobian left out", ops.attention,
        "dscores = softmax_backward(dA) if mask is None else softmax_backward(dA)[0]", "dscores = A * dA",
        "attention, causal", "missing term", "dS = A·dA: the sum over the keys is missing."),
    Bug(
        "attention: softmax skipped", ops.attention,
        "dscores = softmax_backward(dA) if mask is None else softmax_backward(dA)[0]", "dscores = dA",
        "attention", "other", "dA is taken for dS: the backward skips the softmax between them."),
    Bug(
        "attention: mask not applied", ops.attention, "else softmax_backward(dA)[0]", "else softmax(scores)[1](dA)",
        "attention, causal", "mask not applied",
        "The backward is that of attention without the mask: the future leaks in."),
    Bug(
        "attention: last key's value", ops.attention,
        "dvalue = transpose(A) @ dY ", "dvalue = transpose(A) @ dY; dvalue[..., -1, :] = 0 ",
        "attention", "some positions only", "The value of the last key gets no gradient: a loop that ends too early."),
    Bug(
        "attention: one entry of dvalue", ops.attention,
        "dvalue = transpose(A) @ dY ", "dvalue = transpose(A) @ dY; dvalue[0, 0, 1, 1] += 1e-4 ",
        "attention", "some positions only", "One entry of dvalue is off by a ten-thousandth."),
    Bug(
        "attention: query's gradient from the query", ops.attention, "(dscores @ key)", "(dscores @ query)",
        "attention, causal", "other", "dQ = dS·Q: the product rule with the wrong partner."),
]  # fmt: skip

LOSSES = [
    Bug(
        "cross_entropy: sum for mean", ops.cross_entropy, "(dloss / rows * counted)", "(dloss * counted)",
        "cross_entropy", "constant factor", "The loss is a mean over rows, its gradient that of the sum."),
    Bug(
        "cross_entropy: dloss ignored", ops.cross_entropy, "dloss / rows", "1.0 / rows",
        "cross_entropy", "upstream ignored", "What comes from above is taken to be 1."),
    Bug(
        "cross_entropy: one-hot not taken off", ops.cross_entropy, "dz[at_target] -= (1 - smoothing) * weight", "pass",
        "cross_entropy", "missing term", "softmax without its onehot(target): nothing pulls the right word up."),
    Bug(
        "cross_entropy: one-hot added", ops.cross_entropy,
        "dz[at_target] -= (1 - smoothing)", "dz[at_target] += (1 - smoothing)",
        "cross_entropy", "other", "The one-hot vector has the wrong sign; softmax has the right one."),
    Bug(
        "cross_entropy: target's softmax overwritten", ops.cross_entropy,
        "dz[at_target] -= (1 - smoothing) * weight", "dz[at_target] = -weight",
        "cross_entropy", "missing term", "At the target, −1 replaces softmax − 1."),
    Bug(
        "cross_entropy: sign", ops.cross_entropy, "return dz.reshape(shape)", "return -dz.reshape(shape)",
        "cross_entropy", "wrong sign", "The lab's objective without its minus sign, and its gradient."),
    Bug(
        "cross_entropy: not normalized", ops.cross_entropy, "(weight / total)[:, None]", "weight[:, None]",
        "cross_entropy", "missing factor",
        "exp(z) stands where softmax(z) should: the division by the sum is missing."),
    Bug(
        "cross_entropy: ignored rows not zeroed", ops.cross_entropy,
        "(dloss / rows * counted)", "(dloss / rows + 0 * counted)",
        "cross_entropy, ignore", "mask not applied", "Rows that do not count in the loss count in its gradient."),
    Bug(
        "cross_entropy: divided by all rows", ops.cross_entropy, "dloss / rows", "dloss / target.size",
        "cross_entropy, ignore", "constant factor",
        "The mean is over the rows that count; the gradient divides by all."),
    Bug(
        "cross_entropy: first row only", ops.cross_entropy,
        "return dz.reshape(shape)", "dz[1:] = 0; return dz.reshape(shape)",
        "cross_entropy", "some positions only", "The first row alone gets a gradient."),
    Bug(
        "mse: factor 2 forgotten", ops.mse, "dloss * 2 / entries", "dloss / entries",
        "mse", "constant factor", "The 2 of the square is missing, as if the loss had a factor ½."),
    Bug(
        "mse: mean over words", ops.mse, "dloss * 2 / entries", "dloss * 2 / len(difference)",
        "mse", "constant factor", "Divided by the number of words, not of entries: the gradient of the lab's loss."),
    Bug(
        "mse: sign of dtarget", ops.mse, "return dprediction, -dprediction", "return dprediction, dprediction",
        "mse", "wrong sign", "The target pulls in the same direction as the prediction."),
    Bug(
        "mse: dtarget zero", ops.mse, "return dprediction, -dprediction", "return dprediction, 0 * dprediction",
        "mse", "zero", "The target is taken for a constant. It is an input like the other."),
    Bug(
        "mse: dloss ignored", ops.mse, "(dloss * 2 / entries)", "(2 / entries)",
        "mse", "upstream ignored", "What comes from above is taken to be 1."),
    Bug(
        "mse: sign of the difference", ops.mse, "(dloss * 2 / entries) * difference",
        "(dloss * 2 / entries) * abs(difference)",
        "mse", "other", "The difference lost its sign, so every gradient points the same way."),
]  # fmt: skip

SCATTER = "scatter_add(dtable, words, dx[present])"

THE_REST = [
    Bug(
        "embedding: repeats overwritten", ops.embedding, SCATTER, "dtable[words] = dx[present]",
        "embedding", "repeated ids dropped", "Of a word that stands twice, the last place alone counts."),
    Bug(
        "embedding: repeats dropped by +=", ops.embedding, SCATTER, "dtable[words] += dx[present]",
        "embedding", "repeated ids dropped", "It reads like a sum, but NumPy adds once for an index that repeats."),
    Bug(
        "embedding: divided by frequency", ops.embedding, SCATTER,
        SCATTER + "; dtable /= xp.maximum(1, (xp.arange(len(table))[:, None] == words).sum(1))[:, None]",
        "embedding", "other", "A word that stands twice gets the mean of its two gradients, not their sum."),
    Bug(
        "embedding: absent words get a gradient", ops.embedding, SCATTER,
        "scatter_add(dtable, (ids * present).reshape(-1), dx.reshape(-1, dx.shape[-1]))",
        "embedding, absent words", "mask not applied", "A word that is not there moves the vector of word 0."),
    Bug(
        "mean_pool: not divided", ops.mean_pool, "dx = dy[..., None, :] * weight",
        "dx = dy[..., None, :] * (weight > 0)",
        "mean_pool", "constant factor", "The factor 1/T is missing: too large by the number of words."),
    Bug(
        "mean_pool: mask not applied", ops.mean_pool,
        "dx = dy[..., None, :] * weight",
        "dx = dy[..., None, :] * weight.max(-2, keepdims=True) * xp.ones_like(weight)",
        "mean_pool, masked", "mask not applied",
        "Words that do not count in the mean get the gradient of those that do."),
    Bug(
        "mean_pool: first word only", ops.mean_pool,
        "dx = dy[..., None, :] * weight", "dx = dy[..., None, :] * weight; dx[..., 1:, :] = 0",
        "mean_pool", "some positions only", "The first word alone gets a gradient."),
    Bug(
        "sum_pool: a mean", ops.sum_pool, "dy[..., None, :]",
        "dy[..., None, :] / shape[-2]",
        "sum_pool", "constant factor", "The backward is that of the mean."),
    Bug(
        "copied: everywhere", ops.copied, "return dy[..., None] * same", "return dy[..., None] + 0 * same",
        "copied", "mask not applied", "Places with other words than the target get a gradient, too."),
    Bug(
        "mixture: all the readout's", ops.mixture_cross_entropy, "weight = each * r", "weight = each + 0 * r",
        "mixture_cross_entropy", "missing factor", "The readout learns as if no part of p came from copying."),
    Bug(
        "mixture: gate the other way", ops.mixture_cross_entropy, "(xp.exp(ln_g) - r)", "(r - xp.exp(ln_g))",
        "mixture_cross_entropy", "wrong sign", "The gate moves away from the part that explains the target."),
    Bug(
        "mixture: share of copying forgotten", ops.mixture_cross_entropy, "xp.exp(ln_not_g - ln_p)", "xp.exp(-ln_p)",
        "mixture_cross_entropy", "missing factor", "The factor 1 − g is left out of dp_copy."),
    Bug(
        "dropout: not raised", ops.dropout, "return dy * keep * raised, None", "return dy * keep, None",
        "dropout", "constant factor", "The factor 1/(1 − rate) of the forward is missing in the backward."),
    Bug(
        "dropout: raised twice", ops.dropout, "dy * keep * raised, None", "dy * keep * raised * raised, None",
        "dropout", "constant factor", "The factor 1/(1 − rate) is applied twice."),
    Bug(
        "dropout: mask lost", ops.dropout, "dy * keep * raised, None", "dy * raised, None",
        "dropout", "mask not applied", "Entries that were dropped get a gradient."),
    Bug(
        "dropout: mask inverted", ops.dropout, "dy * keep * raised, None", "dy * ~keep * raised, None",
        "dropout", "other", "The dropped entries get the gradient of the kept ones, and these get none."),
    Bug(
        "rnn: no time", ops.rnn, "(dh[:, t] + dstate) *", "dh[:, t] *",
        "rnn", "not carried through time", "Each step sees its own output alone: nothing comes back from later steps."),
    Bug(
        "rnn: truncated", ops.rnn,
        "dstate = da[t] @ transpose(Wh)",
        "dstate = (dh[:, t] * slope(states[t + 1])) @ transpose(Wh)",
        "rnn", "not carried through time", "Each output's gradient goes one step back and no further."),
    Bug(
        "rnn: derivative off by one", ops.rnn, "slope(states[t + 1])", "slope(states[t])",
        "rnn", "off by one step", "tanh's derivative is that of the state before."),
    Bug(
        "rnn: dWh of the same step", ops.rnn, "before = xp.stack(states[:-1], axis=1)",
        "before = xp.stack(states[1:], axis=1)",
        "rnn", "off by one step", "dWh pairs da_t with h_t; Wh was multiplied by h_{t−1}."),
    Bug(
        "rnn: Wh not transposed", ops.rnn, "da[t] @ transpose(Wh)", "da[t] @ Wh",
        "rnn", "factor not transposed", "dh_{t−1} = da_t·Wh for da_t·Whᵀ; Wh is always square, so nothing stops it."),
    Bug(
        "rnn: Wx not transposed", ops.rnn, "da @ transpose(Wx)", "da @ Wx",
        "rnn, square", "factor not transposed", "dx = da·Wx for da·Wxᵀ; only a square Wx lets it pass."),
    Bug(
        "rnn: dWh transposed", ops.rnn, "(transpose(before) @ da)", "(transpose(da) @ before)",
        "rnn", "transposed", "daᵀ·h for hᵀ·da."),
    Bug(
        "rnn: tanh forgotten", ops.rnn, " * slope(states[t + 1])", "",
        "rnn", "missing factor", "The gradient passes through tanh unchanged at every step."),
    Bug(
        "rnn: dh0 halved", ops.rnn, "dstate, dWx, dWh", "0.5 * dstate, dWx, dWh",
        "rnn", "constant factor", "The first state gets half of its gradient."),
    Bug(
        "rnn: dh0 zero", ops.rnn, "dstate, dWx, dWh", "xp.zeros_like(h0), dWx, dWh",
        "rnn", "zero", "The first state is taken for a constant."),
    Bug(
        "rnn: dWx of the first example", ops.rnn, "(transpose(x) @ da).sum(0)", "(transpose(x) @ da)[0]",
        "rnn", "some positions only", "The sum over the batch is its first example."),
    Bug(
        "rnn: dWh is a mean", ops.rnn, "(transpose(before) @ da).sum(0)", "(transpose(before) @ da).mean(0)",
        "rnn", "constant factor", "dWh is averaged over the batch, the others are summed."),
    Bug(
        "rnn: db of the last step", ops.rnn, "sum_to(da, b.shape)", "sum_to(da[:, -1], b.shape)",
        "rnn", "some positions only", "The bias was used at every step, and gets the last step's gradient."),
    Bug(
        "sum_to: mean for sum", sum_to, "gradient.sum(axis=", "gradient.mean(axis=",
        "sum_to", "constant factor", "An array that was used many times gets the mean of its gradients."),
    Bug(
        "sum_to: leading axes not counted", sum_to, "tuple(leading + i for i", "tuple(leading + i - 1 for i",
        "sum_to", "wrong axis", "The axis that is summed is one too far to the left."),
    Bug(
        "sum_to: first for sum", sum_to,
        "return gradient.sum(axis=(*range(leading), *repeated), keepdims=True).reshape(shape)",
        "return gradient[tuple([slice(1 if i < leading or i in repeated else None) for i in range(gradient.ndim)])]"
        ".reshape(shape)",
        "sum_to", "some positions only", "The first of the repeated entries stands for all of them."),
]  # fmt: skip

LAYERS = [
    Bug(
        "MultiHeadAttention: key's way back forgotten", layers.MultiHeadAttention.across,
        "key_backward(self.join(dkey))", "0",
        "MultiHeadAttention", "no gradient",
        "x was used three times and gets two gradients; the key's matrix gets none."),
    Bug(
        "MultiHeadAttention: value's gradient not added", layers.MultiHeadAttention.across,
        "+ value_backward(", "+ 0 * value_backward(",
        "MultiHeadAttention", "missing term", "Of the three gradients of x, the value's is left out."),
    Bug(
        "MultiHeadAttention: query counted twice", layers.MultiHeadAttention,
        "return dx + dz", "return 2 * dx + dz",
        "MultiHeadAttention", "other", "Of the three gradients of x, the query's is added twice."),
    Bug(
        "MultiHeadAttention: heads not joined", layers.MultiHeadAttention.across,
        "value_backward(self.join(dvalue))", "value_backward(dvalue.reshape(value.shape))",
        "MultiHeadAttention", "wrong axis", "(B, H, T, m) is reshaped to (B, T, H·m) without exchanging H and T."),
    Bug(
        "MultiHeadAttention: heads not split", layers.MultiHeadAttention.across,
        "self.split(output_backward(dy))", "output_backward(dy).reshape(heads.shape)",
        "MultiHeadAttention", "wrong axis", "(B, T, H·m) is reshaped to (B, H, T, m) without exchanging T and H."),
    Bug(
        "MultiHeadAttention: query and key swapped", layers.MultiHeadAttention.across,
        "dquery, dkey, dvalue, _, _ = attention_backward", "dkey, dquery, dvalue, _, _ = attention_backward",
        "MultiHeadAttention, causal", "gradients swapped",
        "The query's matrix gets the key's gradient, and the reverse."),
    Bug(
        "attention across: gradients swapped", layers.MultiHeadAttention.across,
        "return dx, dz", "return dz, dx",
        "MultiHeadAttention, across, equal lengths", "gradients swapped",
        "The reader gets the gradient of what was read; only two sequences of one length let it pass at all."),
    Bug(
        "TransformerLayer: residual path forgotten", layers.TransformerLayer.branch,
        "return dx + before_backward(", "return before_backward(",
        "TransformerLayer", "missing term", "The gradient comes back by attention alone, not by the skip connection."),
    Bug(
        "TransformerLayer: attention's way not added", layers.TransformerLayer.branch,
        "return dx + before_backward(layer_backward(dy))",
        "before_backward(layer_backward(dy)); return dx",
        "TransformerLayer, layer norm", "missing term", "The gradient comes back by the skip connection alone."),
    Bug(
        "TransformerLayer: norm skipped", layers.TransformerLayer.after,
        "sum_backward(norm_backward(dz))", "sum_backward(norm_backward(dz) * 0 + dz)",
        "TransformerLayer, layer norm", "other",
        "The norm's backward is called, but dy goes on in place of its result."),
    Bug(
        "TransformerLayer: dropout skipped", layers.TransformerLayer.after,
        "return dx, dropout_backward(dy)", "return dx, dy",
        "TransformerLayer, training", "mask not applied", "Gradient reaches attention where its output was dropped."),
    Bug(
        "DecoderLayer: skip connection past the encoder forgotten", layers.DecoderLayer,
        "dx + before_backward(dnormal)", "before_backward(dnormal)",
        "DecoderLayer, norm before, training", "missing term",
        "The gradient comes back through attention to the other sequence alone."),
    Bug(
        "Decoder: only one layer's gradient reaches the encoder", layers.Decoder,
        "dz = dz + dz_layer", "dz = dz_layer",
        "Translator, two layers, biases, norm after", "missing term",
        "Every layer of the decoder read the encoder's output; their gradients have to be added."),
    Bug(
        "Dropout: backward skipped", layers.Dropout, "lambda dy: dropout_backward(dy)[0]", "lambda dy: dy",
        "Dropout, training", "dy passed on", "In training, too, the layer passes dy on as it is."),
    Bug(
        "Linear: bias forgotten", layers.Linear, "self.b.accumulate(db)", "pass",
        "Linear", "no gradient", "db is computed, and dropped."),
    Bug(
        "Linear: W replaced", layers.Linear, "self.W.accumulate(dW)", "self.W.grad = dW",
        "one layer used twice, weights tied", "not accumulated",
        "The layer's last use overwrites what the others gave."),
    Bug(
        "LayerNorm: γ and β swapped", layers.LayerNorm,
        "dx, dgamma, dbeta = norm_backward(dy)", "dx, dbeta, dgamma = norm_backward(dy)",
        "LayerNorm", "gradients swapped", "The op returns dγ before dβ; the layer unpacks them the other way round."),
    Bug(
        "LayerNorm: γ's gradient not divided", layers.LayerNorm, "accumulate(dgamma)", "accumulate(dgamma * len(x))",
        "LayerNorm", "batch counted twice",
        "dγ is multiplied by the size of the batch, over which it is summed already."),
    Bug(
        "PositionalEncoding: P added to the gradient", layers.PositionalEncoding, "lambda dy: dy", "lambda dy: dy + P",
        "PositionalEncoding", "other", "The backward does to dy what the forward did to x."),
    Bug(
        "Parameter: overwrites", layers.Parameter.accumulate, "gradient if self.grad is None else self.grad + gradient",
        "gradient",
        "one layer used twice, weights tied", "not accumulated",
        "Of several uses of a weight, the last to come back wins."),
    Bug(
        "Parameter: adds in place", layers.Parameter.accumulate, "else self.grad + gradient",
        "else self.grad.__iadd__(gradient)",
        "one layer used twice, one vector", "writes into arrays",
        "The first gradient was dy itself, and now dy changes."),
    Bug(
        "tied readout: not accumulated", layers.TiedReadout, "self.table.accumulate(transpose(dE_transposed))", "pass",
        MODEL, "missing term",
        "The table is used twice, as vectors and as readout; the readout's gradient is left out."),
    Bug(
        "tied readout: replaced", layers.Embedding, "self.table.accumulate(dtable)", "self.table.grad = dtable",
        MODEL, "not accumulated", "The embedding comes last in the backward and overwrites the readout's gradient."),
    Bug(
        "tied readout: not transposed", layers.TiedReadout, "self.table.accumulate(transpose(dE_transposed))",
        "self.table.accumulate(dE_transposed)",
        "LanguageTransformer, shared, tied, as many words as dimensions", "other",
        "A is the table transposed, so its gradient has to be, too; shapes object unless c = n."),
    Bug(
        "vec readout: axes exchanged", LanguageTransformer.head,
        "A_backward(dlogits).reshape(B, T, n)", "A_backward(dlogits).reshape(B, n, T).swapaxes(1, 2)",
        "LanguageTransformer, vec", "wrong axis", "vec(Φ) is undone column by column; it was done word by word."),
    Bug(
        "Trunk: layers in forward order", layers.Trunk.from_vectors,
        "backwards.append(layer_backward)", "backwards.insert(1, layer_backward)",
        "LanguageTransformer, shared, tied, training", "other",
        "The layers' backwards run in the order of the forward."),
    Bug(
        "Trunk: embeddings forgotten", layers.Trunk,
        "walk_back([embedding_backward, ", "walk_back([lambda dx: None, ",
        "LanguageTransformer, vec, every option", "no gradient", "The way back ends before the word vectors."),
    Bug(
        "LanguageTransformer: dloss ignored", LanguageTransformer.loss,
        "lambda dloss=1.0: backward(dloss)", "lambda dloss=1.0: backward(1.0)",
        MODEL, "upstream ignored", "Every gradient is as if the loss were not scaled."),
]  # fmt: skip

TEXTS = [
    Bug(
        "LearnedPositions: forgotten", layers.LearnedPositions, "self.P.accumulate(dP)", "pass",
        "LearnedPositions", "no gradient", "dP is computed, and dropped."),
    Bug(
        "LearnedPositions: of the first text", layers.LearnedPositions, "sum_to(dy, p.shape)", "dy[0]",
        "LearnedPositions", "some positions only", "All texts have the positions in common; the first alone counts."),
    Bug(
        "LearnedPositions: a mean", layers.LearnedPositions, "sum_to(dy, p.shape)", "dy.mean(0)",
        "LearnedPositions", "constant factor", "The texts' gradients are averaged, not summed."),
    Bug(
        "ClassWord: forgotten", layers.ClassWord, "self.v.accumulate(sum_to(dy[:, 0], v.shape))", "pass",
        "ClassWord", "no gradient", "[CLS] is learned, too; its vector gets no gradient."),
    Bug(
        "ClassWord: of the first text", layers.ClassWord, "sum_to(dy[:, 0], v.shape)", "dy[0, 0]",
        "ClassWord", "some positions only", "All texts begin with the same [CLS]; the first alone counts."),
    Bug(
        "ClassWord: last word for the first", layers.ClassWord, "return dy[:, 1:]", "return dy[:, :-1]",
        "ClassWord", "off by one step", "The words moved one place to the right; their gradients do not move back."),
    Bug(
        "Classifier: padding counts in the mean", classifier._mean,
        "pool_backward(de)[0]", "pool_backward(de)[0] * 0 + de[:, None] / Phi.shape[1]",
        "Classifier", "mask not applied", "The backward is that of the mean over all words, padding included."),
    Bug(
        "Classifier: last word for [CLS]", classifier._first, "dPhi[:, 0] = de", "dPhi[:, -1] = de",
        "Classifier, learned positions, [CLS]", "other", "The gradient goes to the last word, not to [CLS]."),
    Bug(
        "Classifier: every word for [CLS]", classifier._first, "dPhi[:, 0] = de", "dPhi[:] = de[:, None]",
        "Classifier, learned positions, [CLS]", "constant rows", "All words get the gradient of [CLS]."),
    Bug(
        "Classifier: [CLS] forgotten", Classifier.from_vectors,
        "backwards.append(cls_backward)", "backwards.append(lambda dx: dx[:, 1:])",
        "Classifier, learned positions, [CLS]", "no gradient", "The words' gradients go on, that of [CLS] is dropped."),
    Bug(
        "Classifier: residual path forgotten", classifier._residual,
        "lambda dy: dy + norm_backward(", "lambda dy: norm_backward(",
        "Classifier, bag of words", "missing term", "The gradient comes back by the MLP alone."),
    Bug(
        "Classifier: dropout skipped", Classifier.from_vectors,
        "[trunk_backward, pool_backward, dropout_backward]", "[trunk_backward, pool_backward, lambda de: de]",
        "Classifier, causal, training", "mask not applied", "Gradient reaches the entries of e that were dropped."),
    Bug(
        "MaskedWordModel: words that are not hidden", masked._at,
        "embedding_backward(dsome)[0].reshape", "(embedding_backward(dsome)[0] + dsome.mean(0)).reshape",
        "MaskedWordModel", "mask not applied", "Words without a loss get a gradient, too: the mean of the others'."),
    Bug(
        "MaskedWordModel: axes exchanged", masked._at,
        "[0].reshape(B, T, n)", "[0].reshape(T, B, n).swapaxes(0, 1)",
        "MaskedWordModel", "wrong axis", "The words were numbered text by text; the gradients are laid out by place."),
    Bug(
        "MaskedWordModel: first hidden word only", masked._at,
        "embedding_backward(dsome)", "embedding_backward(dsome * (places == places[0])[:, None])",
        "MaskedWordModel", "some positions only", "Of all hidden words, the first alone gives the trunk a gradient."),
    Bug(
        "Trunk: positions forgotten", layers.Trunk.place,
        "backwards.append(positions_backward)", "pass",
        "Classifier, causal, training", "no gradient", "P has no gradient where it is fixed; here it is learned."),
    Bug(
        "Trunk: scale forgotten", layers.Trunk.place, "lambda dx: dx * scale", "lambda dx: dx",
        "Translator", "constant factor", "Word vectors are multiplied, their gradient is not."),
    Bug(
        "Trunk: last norm forgotten", layers.Trunk.from_vectors, "backwards.append(norm_backward)", "pass",
        "MaskedWordModel", "dy passed on", "The gradient passes the last layer norm unchanged."),
    Bug(
        "OneAttention: positions and attention exchanged", OneAttention,
        "positions_backward, attention_backward", "attention_backward, positions_backward",
        "OneAttention", "other", "The positions get the gradient of attention's output; the shapes are the same."),
]  # fmt: skip

BUGS = [*LINEAR, *ACTIVATIONS, *SOFTMAX, *LAYER_NORM, *ATTENTION, *LOSSES, *THE_REST, *LAYERS, *TEXTS]
