"""Wrong backwards: the bugs that the checker has to find.

Each is one small edit of the real source of an op or a layer, in the backward only, of the kind that learners make and
that engines have shipped. `with planted(bug): …` runs the edited code in place of the real one.
"""

from collections.abc import Callable
from typing import NamedTuple

from mini_tf import layers, ops
from mini_tf.models import Classifier, LanguageTransformer, OneAttention, classifier, masked
from mini_tf.ops.shapes import sum_to


class Bug(NamedTuple):
    """A wrong backward: in the source of `target`, `find` becomes `replace`."""

    target: Callable
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
    # Linear
    Bug(ops.linear, "linear: dW is a mean", "transpose(rows_x) @ rows_dy", "transpose(rows_x) @ rows_dy / len(rows_x)",
        "dW is averaged over the rows; every row's part adds."),
    Bug(ops.linear, "linear: sign of dx", "dx = (rows_dy", "dx = -(rows_dy"),
    Bug(ops.linear, "linear: W not transposed", "rows_dy @ transpose(W)", "rows_dy @ W",
        "dx = dy·W instead of dy·Wᵀ; only a square W lets it pass at all.", "linear, square"),
    Bug(ops.linear, "linear: dx and dW swapped", "return dx, dW, db", "return dW, dx, db", shown_by="linear, square"),
    Bug(ops.linear, "linear: one number for db", "sum_to(dy, ", "dy.sum() + 0 * sum_to(dy, ",
        "sum() without its axis: one number, which broadcasting spreads over b."),
    # Activations
    Bug(ops.relu, "relu: pattern lost", "return dy * on", "return dy"),
    Bug(ops.relu, "relu: pattern of dy", "dy * on", "dy * (dy > 0)",
        "The sign of dy decides instead of the sign of x: the deconvolution of Zeiler and Fergus."),
    Bug(ops.residual_relu, "residual_relu: skip path lost", "return dz, dz * on", "return 0 * dz, dz * on",
        "Nothing comes back to x, though the skip connection passes all of it."),
    Bug(ops.residual_relu, "residual_relu: pattern lost", "dz, dz * on", "dz, dz",
        "The gradient of y passes where relu was off."),
    Bug(ops.tanh, "tanh: 1 − y", "1 - y * y", "1 - y"),
    Bug(ops.tanh, "tanh: 1 − x²", "1 - y * y", "1 - x * x"),
    Bug(ops.sigmoid, "sigmoid: y for y(1 − y)", "dy * y * (1 - y)", "dy * y"),
    Bug(ops.gelu, "gelu: no product rule", "(Phi + x * phi)", "Phi"),
    Bug(ops.gelu, "gelu: density not normalized", " / math.sqrt(2 * math.pi)", ""),
    Bug(ops.gelu, "gelu: approximate backward", "phi = xp.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)",
        "phi = (1 - xp.tanh(0.79788456 * (x + 0.044715 * x**3)) ** 2) * 0.39894228 * (1 + 0.134145 * x * x)",
        "The forward is exact, the backward is that of the approximation by tanh."),
    Bug(ops.gelu, "gelu, by tanh: inner derivative lost", "* slope * (1 + 3 * cubic * x * x)", ""),
    # Softmax
    Bug(ops.softmax, "softmax: diagonal only", "y * (dy - (y * dy).sum(-1, keepdims=True))", "y * (1 - y) * dy",
        "Only ∂y_i/∂z_i is used: the Jacobian off its diagonal is left out."),
    Bug(ops.softmax, "softmax: wrong axis", "(y * dy).sum(-1", "(y * dy).sum(-2"),
    Bug(ops.softmax, "softmax: mean for sum", "(y * dy).sum(-1", "(y * dy).mean(-1"),
    Bug(ops.masked_softmax, "masked_softmax: a leak", "return y *", "return (y + 1e-5) *",
        "A small number that should avoid a zero lets gradient through the mask."),
    Bug(ops.masked_softmax, "masked_softmax: NaN where nothing is allowed", "return y *",
        "return xp.where(total == 0, xp.nan, y) *", "A row with nothing allowed gets what 0/0 gives."),
    Bug(ops.masked_softmax, "masked_softmax: plus for minus", "(dy - (y * dy)", "(dy + (y * dy)",
        "The sum is added instead of subtracted: a wrong sign in one of two terms."),
    # Layer norm
    Bug(ops.layer_norm, "layer_norm: both means left out",
        "(g - g.mean(-1, keepdims=True) - normal * (g * normal).mean(-1, keepdims=True))", "g",
        "Mean and variance are treated as constants, as batch norm does in evaluation."),
    Bug(ops.layer_norm, "layer_norm: γ forgotten", "g = dy * gamma", "g = dy",
        "dx leaves out γ. At γ = 1, where training begins, this makes no difference."),
    Bug(ops.layer_norm, "layer_norm: n − 1", "(g * normal).mean(-1, keepdims=True)",
        "(g * normal).sum(-1, keepdims=True) / (x.shape[-1] - 1)",
        "The backward of the unbiased variance under the forward of the biased one."),
    Bug(ops.layer_norm, "layer_norm: dγ of y", "sum_to(dy * normal", "sum_to(dy * (gamma * normal + beta)",
        "dγ uses the output y for x̂; they agree while γ = 1 and β = 0."),
    # Attention
    Bug(ops.attention, "attention: scale forgotten in dquery", "scale * (dscores", "(dscores",
        "The scores were scaled on the way up; on the way down, dquery is not scaled.", "attention, scaled"),
    Bug(ops.attention, "attention: A not transposed", "transpose(A) @ dY", "A @ dY",
        "dV = A·dY: the values get the gradient of other words.", "attention, square"),
    Bug(ops.attention, "attention: softmax's Jacobian left out",
        "dscores = softmax_backward(dA) if mask is None else softmax_backward(dA)[0]", "dscores = A * dA",
        "dS = A·dA: the sum over the keys is missing.", "attention, causal"),
    Bug(ops.attention, "attention: mask not applied", "else softmax_backward(dA)[0]", "else softmax(scores)[1](dA)",
        "The backward is that of attention without the mask: the future leaks in.", "attention, causal"),
    Bug(ops.attention, "attention: one entry of dvalue", "transpose(A) @ dY",
        "transpose(A) @ dY; dvalue[0, 0, 1, 1] += 1e-4", "One entry of dvalue is off by a ten-thousandth."),
    # Losses
    Bug(ops.cross_entropy, "cross_entropy: sum for mean", "dloss / rows *", "dloss *"),
    Bug(ops.cross_entropy, "cross_entropy: dloss ignored", "dloss / rows", "1.0 / rows"),
    Bug(ops.cross_entropy, "cross_entropy: one-hot not taken off", "dz[at_target] -= (1 - smoothing) * weight", "pass",
        "softmax without its onehot(target): nothing pulls the right word up."),
    Bug(ops.cross_entropy, "cross_entropy: ignored rows not zeroed", "rows * counted)", "rows + 0 * counted)",
        "Rows that do not count in the loss count in its gradient.", "cross_entropy, smoothed"),
    Bug(ops.mse, "mse: factor 2 forgotten", "dloss * 2 / entries", "dloss / entries"),
    Bug(ops.mse, "mse: sign of dtarget", "return dprediction, -dprediction", "return dprediction, dprediction"),
    # Other ops
    Bug(ops.embedding, "embedding: repeats overwritten", "scatter_add(dtable, words, dx[present])",
        "dtable[words] = dx[present]", "Of a word that stands twice, the last place alone counts."),
    Bug(ops.embedding, "embedding: absent words get a gradient", "scatter_add(dtable, words, dx[present])",
        "scatter_add(dtable, (ids * present).reshape(-1), dx.reshape(-1, dx.shape[-1]))",
        "A word that is not there moves the vector of word 0.", "embedding, absent words"),
    Bug(ops.mean_pool, "mean_pool: not divided", "] * weight", "] * (weight > 0)"),
    Bug(ops.mean_pool, "mean_pool: mask not applied", "] * weight",
        "] * weight.max(-2, keepdims=True) * xp.ones_like(weight)",
        "Words that do not count in the mean get the gradient of those that do.", "mean_pool, masked"),
    Bug(ops.sum_pool, "sum_pool: a mean", "dy[..., None, :]", "dy[..., None, :] / shape[-2]"),
    Bug(ops.copied, "copied: everywhere", "return dy[..., None] * same", "return dy[..., None] + 0 * same",
        "Places with other words than the target get a gradient, too."),
    Bug(ops.mixture_cross_entropy, "mixture: gate the other way", "(xp.exp(ln_g) - r)", "(r - xp.exp(ln_g))",
        "The gate moves away from the part that explains the target.", "mixture_cross_entropy"),
    Bug(ops.mixture_cross_entropy, "mixture: share of copying forgotten", "xp.exp(ln_not_g - ln_p)", "xp.exp(-ln_p)",
        "The factor 1 − g is left out of dp_copy.", "mixture_cross_entropy"),
    Bug(ops.dropout, "dropout: not raised", "dy * keep * raised", "dy * keep"),
    Bug(ops.dropout, "dropout: mask lost", "dy * keep * raised", "dy * raised"),
    Bug(ops.rnn, "rnn: truncated", "dstate = da[t] @", "dstate = (dh[:, t] * slope(states[t + 1])) @"),
    Bug(ops.rnn, "rnn: dWh of the same step", "states[:-1]", "states[1:]",
        "dWh pairs da_t with h_t; Wh was multiplied by h_{t−1}."),
    Bug(ops.rnn, "rnn: Wh not transposed", "da[t] @ transpose(Wh)", "da[t] @ Wh",
        "dh_{t−1} = da_t·Wh for da_t·Whᵀ; Wh is always square, so nothing stops it."),
    Bug(sum_to, "sum_to: mean for sum", "gradient.sum(axis=", "gradient.mean(axis="),
    Bug(sum_to, "sum_to: leading axes not counted", "tuple(leading + i for i", "tuple(leading + i - 1 for i",
        "The axis that is summed is one too far to the left."),
    # Layers
    Bug(layers.MultiHeadAttention.across, "MultiHeadAttention: key's way back forgotten",
        "key_backward(self.join(dkey))", "0",
        "x was used three times and gets two gradients; the key's matrix gets none."),
    Bug(layers.MultiHeadAttention.across, "MultiHeadAttention: value's gradient not added", "+ value_backward(",
        "+ 0 * value_backward(", "Of the three gradients of x, the value's is left out."),
    Bug(layers.MultiHeadAttention.across, "MultiHeadAttention: heads not joined", "self.join(dvalue)",
        "dvalue.reshape(value.shape)", "(B, H, T, m) is reshaped to (B, T, H·m) without exchanging H and T."),
    Bug(layers.TransformerLayer.branch, "TransformerLayer: residual path forgotten", "dx + before", "before",
        "The gradient comes back by attention alone, not by the skip connection."),
    Bug(layers.TransformerLayer.after, "TransformerLayer: norm skipped", "norm_backward(dz)",
        "norm_backward(dz) * 0 + dz",
        "The norm's backward is called, but dy goes on in place of its result.", "TransformerLayer, layer norm"),
    Bug(layers.Decoder, "Decoder: only one layer's gradient reaches the encoder", "dz = dz + dz_layer", "dz = dz_layer",
        "Every layer of the decoder read the encoder's output; their gradients have to be added.",
        "Translator, two layers, biases, norm after"),
    Bug(layers.Dropout, "Dropout: backward skipped", "lambda dy: dropout_backward(dy)[0]", "lambda dy: dy",
        "In training, too, the layer passes dy on as it is.", "Dropout, training"),
    Bug(layers.Linear, "Linear: bias forgotten", "self.b.accumulate(db)", "pass"),
    Bug(layers.LayerNorm, "LayerNorm: γ and β swapped", "dgamma, dbeta =", "dbeta, dgamma ="),
    Bug(layers.LayerNorm, "LayerNorm: γ's gradient not divided", "accumulate(dgamma)", "accumulate(dgamma * len(x))"),
    Bug(layers.PositionalEncoding, "PositionalEncoding: P added to the gradient", "lambda dy: dy", "lambda dy: dy + P"),
    Bug(layers.Parameter.accumulate, "Parameter: overwrites", "else self.grad + gradient", "else gradient",
        "Of several uses of a weight, the last to come back wins.", "one layer used twice, weights tied"),
    Bug(layers.Parameter.accumulate, "Parameter: adds in place", "else self.grad + gradient",
        "else self.grad.__iadd__(gradient)",
        "The first gradient was dy itself, and now dy changes.", "one layer used twice, one vector"),
    Bug(layers.TiedReadout, "tied readout: not accumulated", "self.table.accumulate(transpose(dE_transposed))", "pass",
        "The table is used twice, as vectors and as readout; the readout's gradient is left out.", MODEL),
    Bug(layers.Embedding, "tied readout: replaced", "self.table.accumulate(dtable)", "self.table.grad = dtable",
        "The embedding comes last in the backward and overwrites the readout's gradient.", MODEL),
    Bug(layers.TiedReadout, "tied readout: not transposed", "transpose(dE_transposed)", "dE_transposed",
        "A is the table transposed, so its gradient has to be, too; shapes object unless c = n.",
        "LanguageTransformer, shared, tied, as many words as dimensions"),
    Bug(LanguageTransformer.head, "vec readout: axes exchanged", "reshape(B, T, n)", "reshape(B, n, T).swapaxes(1, 2)",
        "vec(Φ) is undone column by column; it was done word by word.", "LanguageTransformer, vec"),
    Bug(layers.Trunk.from_vectors, "Trunk: layers in forward order", "append(layer", "insert(1, layer",
        "The layers' backwards run in the order of the forward.", "LanguageTransformer, shared, tied, training"),
    Bug(LanguageTransformer.loss, "LanguageTransformer: dloss ignored", "backward(dloss)", "backward(1.0)",
        "Every gradient is as if the loss were not scaled.", MODEL),
    # Layers of texts, and models
    Bug(layers.LearnedPositions, "LearnedPositions: a mean", "sum_to(dy, p.shape)", "dy.mean(0)"),
    Bug(layers.ClassWord, "ClassWord: of the first text", "sum_to(dy[:, 0], v.shape)", "dy[0, 0]",
        "All texts begin with the same [CLS]; the first alone counts."),
    Bug(layers.ClassWord, "ClassWord: last word for the first", "return dy[:, 1:]", "return dy[:, :-1]",
        "The words moved one place to the right; their gradients do not move back."),
    Bug(classifier._mean, "Classifier: padding counts in the mean", "pool_backward(de)[0]",
        "pool_backward(de)[0] * 0 + de[:, None] / Phi.shape[1]",
        "The backward is that of the mean over all words, padding included."),
    Bug(classifier._first, "Classifier: every word for [CLS]", "dPhi[:, 0] = de", "dPhi[:] = de[:, None]",
        "All words get the gradient of [CLS].", "Classifier, learned positions, [CLS]"),
    Bug(Classifier.from_vectors, "Classifier: [CLS] forgotten", "append(cls_backward)", "append(lambda dx: dx[:, 1:])",
        "The words' gradients go on, that of [CLS] is dropped.", "Classifier, learned positions, [CLS]"),
    Bug(masked._at, "MaskedWordModel: words that are not hidden", "embedding_backward(dsome)[0].reshape",
        "(embedding_backward(dsome)[0] + dsome.mean(0)).reshape",
        "Words without a loss get a gradient, too: the mean of the others'."),
    Bug(masked._at, "MaskedWordModel: axes exchanged", "[0].reshape(B, T, n)", "[0].reshape(T, B, n).swapaxes(0, 1)",
        "The words were numbered text by text; the gradients are laid out by place."),
    Bug(layers.Trunk.place, "Trunk: positions forgotten", "backwards.append(positions_backward)", "pass",
        "P has no gradient where it is fixed; here it is learned.", "Classifier, causal, training"),
    Bug(layers.Trunk.place, "Trunk: scale forgotten", "lambda dx: dx * scale", "lambda dx: dx", shown_by="Translator"),
    Bug(OneAttention, "OneAttention: positions and attention exchanged", "positions_backward, attention_backward",
        "attention_backward, positions_backward",
        "The positions get the gradient of attention's output; the shapes are the same."),
]  # fmt: skip
