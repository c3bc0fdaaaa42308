"""Wrong backwards: the bugs that the checker has to find.

Each is one small edit of the real source of an op or a layer, in the backward only, of the kind that learners make and
that engines have shipped. `with planted(bug): …` runs the edited code in place of the real one.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from mini_tf import layers, ops
from mini_tf.models import Classifier, LanguageTransformer, OneAttention, classifier, masked
from mini_tf.ops.shapes import sum_to


class Bug(NamedTuple):
    """A wrong backward: in the source of `target`, `find` becomes `replace`."""

    target: Callable[..., Any]
    name: str
    find: str
    replace: str
    about: str = ""          # what is wrong, where the name does not say it
    shown_by: str = ""       # the example whose check has to find it, unless the name begins with the example's

    @property
    def example(self) -> str:
        """The entry of EXAMPLES whose check has to find the bug"""
        return self.shown_by or self.name.partition(":")[0]


MODEL = "LanguageTransformer, shared, tied, every option"

BUGS = [
    Bug(ops.linear, "linear: dW is a mean", "transpose(rows_x) @ rows_dy", "transpose(rows_x) @ rows_dy / len(rows_x)",
        "dW is averaged over the rows; every row's part adds."),
    Bug(ops.linear, "linear: sign of dx", "dx = (rows_dy", "dx = -(rows_dy"),
    Bug(ops.linear, "linear: W not transposed", "rows_dy @ transpose(W)", "rows_dy @ W",
        "dx = dy·W instead of dy·Wᵀ; only a square W lets it pass at all.", shown_by="linear, square"),
    Bug(ops.linear, "linear: dx and dW swapped", "return dx, dW, db", "return dW, dx, db", shown_by="linear, square"),
    Bug(ops.linear, "linear: one number for db", "sum_to(dy, ", "dy.sum() + 0 * sum_to(dy, "),
    Bug(ops.relu, "relu: pattern lost", "return dy * on", "return dy"),
    Bug(ops.relu, "relu: pattern of dy", "dy * on", "dy * (dy > 0)"),
    Bug(ops.residual_relu, "residual_relu: skip path lost", "return dz, dz * on", "return 0 * dz, dz * on"),
    Bug(ops.residual_relu, "residual_relu: pattern lost", "dz, dz * on", "dz, dz",
        "The gradient of y passes where relu was off."),
    Bug(ops.tanh, "tanh: 1 − y", "1 - y * y", "1 - y"),
    Bug(ops.sigmoid, "sigmoid: y for y(1 − y)", "dy * y * (1 - y)", "dy * y"),
    Bug(ops.gelu, "gelu: no product rule", "(Phi + x * phi)", "Phi"),
    Bug(ops.gelu, "gelu, by tanh: inner derivative lost", "* slope * (1 + 3 * cubic * x * x)", ""),
    Bug(ops.softmax, "softmax: diagonal only", "y * (dy - (y * dy).sum(-1, keepdims=True))", "y * (1 - y) * dy"),
    Bug(ops.softmax, "softmax: wrong axis", "(y * dy).sum(-1", "(y * dy).sum(-2"),
    Bug(ops.softmax, "softmax: mean for sum", "(y * dy).sum(-1", "(y * dy).mean(-1"),
    Bug(ops.masked_softmax, "masked_softmax: a leak", "return y *", "return (y + 1e-5) *"),
    Bug(ops.masked_softmax, "masked_softmax: NaN where nothing is allowed", "return y *",
        "return xp.where(total == 0, xp.nan, y) *"),
    Bug(ops.masked_softmax, "masked_softmax: plus for minus", "(dy - (y * dy)", "(dy + (y * dy)",
        "The sum is added instead of subtracted: a wrong sign in one of two terms."),
    Bug(ops.layer_norm, "layer_norm: both means left out",
        "(g - g.mean(-1, keepdims=True) - normal * (g * normal).mean(-1, keepdims=True))", "g",
        "Mean and variance are treated as constants, as batch norm does in evaluation."),
    Bug(ops.layer_norm, "layer_norm: γ forgotten", "g = dy * gamma", "g = dy",
        "dx leaves out γ. At γ = 1, where training begins, this makes no difference."),
    Bug(ops.layer_norm, "layer_norm: n − 1", "(g * normal).mean(-1, keepdims=True)",
        "(g * normal).sum(-1, keepdims=True) / (x.shape[-1] - 1)"),
    Bug(ops.layer_norm, "layer_norm: dγ of y", "sum_to(dy * normal", "sum_to(dy * (gamma * normal + beta)"),
    Bug(ops.attention, "attention: scale forgotten in dquery", "scale * (dscores", "(dscores",
        "The scores were scaled on the way up; on the way down, dquery is not scaled.", shown_by="attention, scaled"),
    Bug(ops.attention, "attention: A not transposed", "transpose(A) @ dY", "A @ dY", shown_by="attention, square"),
    Bug(ops.attention, "attention: softmax's Jacobian left out",
        "dscores = softmax_backward(dA) if mask is None else softmax_backward(dA)[0]", "dscores = A * dA",
        shown_by="attention, causal"),
    Bug(ops.attention, "attention: mask not applied", "else softmax_backward(dA)[0]", "else softmax(scores)[1](dA)",
        shown_by="attention, causal"),
    Bug(ops.attention, "attention: one entry of dvalue", "transpose(A) @ dY",
        "transpose(A) @ dY; dvalue[0, 0, 1, 1] += 1e-4"),
    Bug(ops.cross_entropy, "cross_entropy: sum for mean", "dloss / rows *", "dloss *"),
    Bug(ops.cross_entropy, "cross_entropy: dloss ignored", "dloss / rows", "1.0 / rows"),
    Bug(ops.cross_entropy, "cross_entropy: one-hot not taken off", "dz[at_target] -= (1 - smoothing) * weight", "pass",
        "softmax without its onehot(target): nothing pulls the right word up."),
    Bug(ops.cross_entropy, "cross_entropy: ignored rows not zeroed", "rows * counted)", "rows + 0 * counted)",
        shown_by="cross_entropy, smoothed"),
    Bug(ops.mse, "mse: factor 2 forgotten", "dloss * 2 / entries", "dloss / entries"),
    Bug(ops.mse, "mse: sign of dtarget", "return dprediction, -dprediction", "return dprediction, dprediction"),
    Bug(ops.embedding, "embedding: repeats overwritten", "scatter_add(dtable, words, dx[present])",
        "dtable[words] = dx[present]", "Of a word that stands twice, the last place alone counts."),
    Bug(ops.embedding, "embedding: absent words get a gradient", "scatter_add(dtable, words, dx[present])",
        "scatter_add(dtable, (ids * present).reshape(-1), dx.reshape(-1, dx.shape[-1]))",
        shown_by="embedding, absent words"),
    Bug(ops.mean_pool, "mean_pool: mask not applied", "] * weight",
        "] * weight.max(-2, keepdims=True) * xp.ones_like(weight)", shown_by="mean_pool, masked"),
    Bug(ops.sum_pool, "sum_pool: a mean", "dy[..., None, :]", "dy[..., None, :] / shape[-2]"),
    Bug(ops.copied, "copied: everywhere", "return dy[..., None] * same", "return dy[..., None] + 0 * same"),
    Bug(ops.mixture_cross_entropy, "mixture: gate the other way", "(xp.exp(ln_g) - r)", "(r - xp.exp(ln_g))",
        shown_by="mixture_cross_entropy"),
    Bug(ops.dropout, "dropout: mask lost", "dy * keep * raised", "dy * raised"),
    Bug(ops.rnn, "rnn: truncated", "dstate = da[t] @", "dstate = (dh[:, t] * slope(states[t + 1])) @"),
    Bug(ops.rnn, "rnn: dWh of the same step", "states[:-1]", "states[1:]"),
    Bug(ops.rnn, "rnn: Wh not transposed", "da[t] @ transpose(Wh)", "da[t] @ Wh"),
    Bug(sum_to, "sum_to: mean for sum", "gradient.sum(axis=", "gradient.mean(axis="),
    Bug(layers.MultiHeadAttention.across, "MultiHeadAttention: key's way back forgotten",
        "key_backward(self.join(dkey))", "0"),
    Bug(layers.MultiHeadAttention.across, "MultiHeadAttention: value's gradient not added", "+ value_backward(",
        "+ 0 * value_backward(", "Of the three gradients of x, the value's is left out."),
    Bug(layers.MultiHeadAttention.across, "MultiHeadAttention: heads not joined", "self.join(dvalue)",
        "dvalue.reshape(value.shape)"),
    Bug(layers.TransformerLayer.branch, "TransformerLayer: residual path forgotten", "dx + pre_norm", "pre_norm",
        "The gradient comes back by attention alone, not by the skip connection."),
    Bug(layers.TransformerLayer.post_norm, "TransformerLayer: norm skipped", "norm_backward(dz)",
        "norm_backward(dz) * 0 + dz", shown_by="TransformerLayer, layer norm"),
    Bug(layers.Decoder, "Decoder: only one layer's gradient reaches the encoder", "dz = dz + dz_layer", "dz = dz_layer",
        shown_by="Translator, two layers, biases, norm after"),
    Bug(layers.Linear, "Linear: bias forgotten", "self.b.accumulate(db)", "pass"),
    Bug(layers.LayerNorm, "LayerNorm: γ and β swapped", "dgamma, dbeta =", "dbeta, dgamma ="),
    Bug(layers.PositionalEncoding, "PositionalEncoding: P added to the gradient", "lambda dy: dy", "lambda dy: dy + P"),
    Bug(layers.Parameter.accumulate, "Parameter: overwrites", "else self.grad + gradient", "else gradient",
        shown_by="one layer used twice, weights tied"),
    Bug(layers.Parameter.accumulate, "Parameter: adds in place", "else self.grad + gradient",
        "else self.grad.__iadd__(gradient)", shown_by="one layer used twice, one vector"),
    Bug(layers.Embedding, "tied readout: replaced", "self.table.accumulate(dtable)", "self.table.grad = dtable",
        shown_by=MODEL),
    Bug(layers.TiedReadout, "tied readout: not transposed", "transpose(dE_transposed)", "dE_transposed",
        shown_by="LanguageTransformer, shared, tied, as many words as dimensions"),
    Bug(LanguageTransformer.head, "vec readout: axes exchanged", "reshape(B, T, n)", "reshape(B, n, T).swapaxes(1, 2)",
        shown_by="LanguageTransformer, vec"),
    Bug(layers.Trunk.from_vectors, "Trunk: layers in forward order", "append(layer", "insert(1, layer",
        shown_by="LanguageTransformer, shared, tied, training"),
    Bug(LanguageTransformer.loss, "LanguageTransformer: dloss ignored", "backward(dloss)", "backward(1.0)",
        shown_by=MODEL),
    Bug(layers.LearnedPositions, "LearnedPositions: a mean", "sum_to(dy, p.shape)", "dy.mean(0)"),
    Bug(layers.ClassWord, "ClassWord: last word for the first", "return dy[:, 1:]", "return dy[:, :-1]"),
    Bug(classifier._mean, "Classifier: padding counts in the mean", "pool_backward(de)[0]",
        "pool_backward(de)[0] * 0 + de[:, None] / Phi.shape[1]"),
    Bug(classifier._first, "Classifier: every word for [CLS]", "dPhi[:, 0] = de", "dPhi[:] = de[:, None]",
        shown_by="Classifier, learned positions, [CLS]"),
    Bug(Classifier.from_vectors, "Classifier: [CLS] forgotten", "append(cls_backward)", "append(lambda dx: dx[:, 1:])",
        shown_by="Classifier, learned positions, [CLS]"),
    Bug(masked._at, "MaskedWordModel: words that are not hidden", "embedding_backward(dsome)[0].reshape",
        "(embedding_backward(dsome)[0] + dsome.mean(0)).reshape"),
    Bug(layers.Trunk.add_positions, "Trunk: positions forgotten", "backwards.append(positions_backward)", "pass",
        shown_by="Classifier, causal, training"),
    Bug(layers.Trunk.add_positions, "Trunk: scale forgotten", "lambda dx: dx * scale", "lambda dx: dx",
        shown_by="Translator"),
    Bug(OneAttention, "OneAttention: positions and attention exchanged", "positions_backward, attention_backward",
        "attention_backward, positions_backward"),
]  # fmt: skip
