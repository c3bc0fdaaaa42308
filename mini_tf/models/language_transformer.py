"""The language transformer of ESE-2000 Lab 6: from a history of words to the next word."""

from mini_tf import kernels, ops
from mini_tf.backend import beside, to_host
from mini_tf.errors import UserError
from mini_tf.layers import Embedding, Linear, PositionalEncoding, TiedReadout, TransformerLayer, walk_back
from mini_tf.layers.embedding import ABSENT
from mini_tf.models.options import check_choice, check_dropout, check_embeddings, check_sizes, options_of
from mini_tf.models.windows import WindowModel
from mini_tf.ops.shapes import transpose

import numpy as np

READOUTS = {
    "average": "x̂ = mean over the words of Φ(X), trained by squared error against the next word's vector (Task 6.5)",
    "vec": "π = softmax(vec(Φ(X))·A), A (T·n, c), trained by cross-entropy on the word after the history (Task 6.6)",
    "shared": "π_t = softmax(Φ(X)_t·A), A (n, c) the same at every position, trained on the word after each of them",
}


class LanguageTransformer(WindowModel):
    """X_0 = embeddings of the history (+ P),   X_ℓ = X_{ℓ−1} + relu(Σ_h Y_ℓ^h),  ℓ = 1 … L,   Φ(X) = X_L,   a readout

    embeddings (c, n)    initial word vectors, usually the eigenvector embeddings of Task 6.3
    T, L, H, m           history length in words, layers, heads, dimension of a head
    readout              "average", "vec" or "shared": see READOUTS
    causal               a word sees itself and the words before it (Task 6.12)
    layer_norm           layer norm at each layer's output (Task 6.11)
    positions            None, "geometric", "fourier", or n/2 frequencies α_i (Task 6.10)
    position_scale       factor on the encoding, whose entries are of size 1
    scaled_attention     scores times 1/√m; the lab has no factor
    train_embeddings     learn the word vectors too; the lab keeps them fixed
    tied                 "shared" only: the readout's A is the embedding table, transposed
    dropout              rate at which attention outputs are dropped in training

    A batch is an integer array (B, T + 1) of consecutive words: a history and the words that follow its words. The
    readout's A starts at 0, so an untrained model says ln c, the loss of a uniform guess.
    Raises UserError for sizes and options that do not fit together.
    Source: ESE-2000 Lab 6, equations (13)–(15), Tasks 6.4, 6.6, 6.10–6.12
    """

    def __init__(
        self, embeddings, *, T=32, L=6, H=8, m=64, readout="vec", causal=False, layer_norm=False, positions=None,
        position_scale=1.0, scaled_attention=False, train_embeddings=False, tied=False, dropout=0.0, seed=0,
    ):  # fmt: skip
        self.config = options_of(locals())
        _check_options(embeddings, **self.config)
        rng = np.random.default_rng(seed)
        (c, n), dtype = embeddings.shape, embeddings.dtype
        self.T, self.readout, self.causal = T, readout, causal

        self.embedding = Embedding(embeddings, trainable=train_embeddings)
        self.positions = None if positions is None else PositionalEncoding(T, n, positions, position_scale)
        scale = m**-0.5 if scaled_attention else 1.0
        self.layers = [TransformerLayer(n, H, m, rng, layer_norm, scale, dropout, dtype) for _ in range(L)]
        if tied:
            self.A = TiedReadout(self.embedding)
        elif readout != "average":
            self.A = Linear(T * n if readout == "vec" else n, c, bias=False, dtype=dtype)

    def loss(self, windows, rng=None):
        """The mean loss over a batch of windows (B, T + 1), and its backward, which takes no argument and runs once.

        An rng turns dropout on. Cross-entropy in nats per word; for the readout "average", mean squared error.
        """
        if windows.ndim != 2 or windows.shape[1] != self.T + 1:
            raise ValueError(f"LanguageTransformer: windows have shape {windows.shape}, expected (B, {self.T + 1})")
        histories, following = windows[:, :-1], windows[:, 1:]
        if self.readout != "shared":
            following = following[:, -1]                     # (B,): one prediction for each history
        Phi, transform_backward = self.transform(histories, rng)
        prediction, readout_backward = self.read_out(Phi)
        if self.readout == "average":
            target, _ = self.embedding(following)
            loss, loss_backward = ops.mse(prediction, target)
        else:
            loss, loss_backward = kernels.cross_entropy(prediction, beside(following, prediction))
        backward = walk_back([transform_backward, readout_backward, lambda dloss: loss_backward(dloss)[0]])
        return loss, lambda dloss=1.0: backward(dloss)

    def transform(self, histories, rng=None):
        """Φ(X): the output of the last layer for histories (B, T′), T′ ≤ T; ids of −1 are absent words.

        → (B, T′, n), backward
        """
        x, embedding_backward = self.embedding(histories)        # (B, T′, n)
        backwards = [embedding_backward]
        if self.positions is not None:
            x, positions_backward = self.positions(x)
            backwards.append(positions_backward)
        mask = self.mask(histories)
        mask = None if mask is None else beside(mask, x)
        for number, layer in enumerate(self.layers):
            x, layer_backward = layer(x, mask, rng, needs_dx=number > 0 or self.embedding.table.trainable)
            backwards.append(layer_backward)
        return x, walk_back(backwards)

    def mask(self, histories):
        """Which word may see which: bool, (T′, T′), or (B, 1, T′, T′) if words are absent; None when all see all."""
        if not self.causal:
            return None
        T = histories.shape[1]
        past = np.tri(T, dtype=bool)                             # query i sees key j ≤ i
        present = to_host(histories) != ABSENT
        return past if present.all() else past & present[:, None, None, :]

    def read_out(self, Phi):
        """From Φ(X) (B, T, n) to predictions: x̂ (B, n), logits (B, c), or logits (B, T, c) for "shared"."""
        if self.readout == "average":
            return ops.mean_pool(Phi)
        if self.readout == "vec":
            B, T, n = Phi.shape
            logits, A_backward = self.A(Phi.reshape(B, T * n))   # vec(Φ(X)), word after word
            return logits, lambda dlogits: A_backward(dlogits).reshape(B, T, n)
        return self.A(Phi)

    def logits(self, ids):
        """Scores of all c words for histories (B, T): (B, c), or (B, T, c) after each word for "shared".

        softmax(logits) are the model's probabilities. For the readout "average", which predicts no probabilities,
        they are −‖x̂ − x_i‖²: the nearest word has the largest.
        """
        Phi, _ = self.transform(ids)
        prediction, _ = self.read_out(Phi)
        if self.readout == "average":
            table = self.embedding.table.data
            squares = (table * table).sum(-1) + (prediction * prediction).sum(-1, keepdims=True)     # (B, c)
            return 2 * prediction @ transpose(table) - squares
        return prediction

    def next_word_logits(self, histories):
        """Scores (B, c) of the word that follows histories (B, T′) of any length T′ from 0 to T.

        Where the readout wants T words, absent ones go in front: their vectors are zero, and masked in a causal model.
        """
        length = histories.shape[1]
        if self.readout != "shared" or length > self.T:
            return super().next_word_logits(histories)
        if length == 0:
            histories = np.full((len(histories), 1), ABSENT)
        Phi, _ = self.transform(histories)
        logits, _ = self.read_out(Phi[:, -1:])                   # only the last word's prediction is wanted
        return logits[:, 0]

    def next_word_function(self):
        """next_word_logits for writing, one history after the other, with all that is the same for each made ready.

        The function that it gives is for the weights that the model has now.
        """
        table, T = self.embedding.table.data, self.T
        if self.readout == "average" or not self.layers or not kernels.take(table):
            return self.next_word_logits
        mask = self.mask(np.zeros((1, T), int))
        mask = np.ones((T, T), bool) if mask is None else mask
        asked = mask if self.readout == "vec" else mask[-1:]     # only the last word's prediction is wanted
        steps = [layer.forward_for(mask) for layer in self.layers[:-1]] + [self.layers[-1].forward_for(asked)]
        P = 0 if self.positions is None else self.positions.P.astype(table.dtype)
        A = transpose(table) if isinstance(self.A, TiedReadout) else self.A.W.data

        def next_word_logits(histories):
            usual = histories.shape == (1, T) and histories.dtype.kind == "i" and kernels.switched_on()
            if not usual or histories.min() < 0 or histories.max() >= len(table):
                return self.next_word_logits(histories)
            x = table[histories[0]] + P
            for step in steps:
                x = step(x)
            return x.reshape(1, -1) @ A

        return next_word_logits

    def next_word_loss(self, windows):
        """The loss of the last word of windows (B, T + 1), given the T words before it; no backward, for evaluation.

        It is the loss that "average" and "vec" are trained on. "shared" learns at every position, from histories of
        1 to T words; here its longest history counts, so that all models answer the same question.
        """
        return self.loss(windows)[0] if self.readout == "average" else super().next_word_loss(windows)


def _check_options(embeddings, *, T, L, H, m, readout, causal, positions, train_embeddings, tied, dropout, **_):
    check_sizes(T=T, H=H, m=m)
    check_sizes(least=0, L=L)
    check_embeddings(embeddings)
    check_choice("readout", readout, READOUTS)
    check_dropout(dropout)
    if readout == "shared" and not causal:
        raise UserError("readout 'shared' predicts after every word and needs causal=True: else a word sees its answer")
    if readout == "average" and train_embeddings:
        raise UserError("readout 'average' needs fixed embeddings: else all words becoming equal would be the best fit")
    if tied and readout != "shared":
        raise UserError(f"tied=True needs readout 'shared', got {readout!r}: only there A has the table's shape")
    if positions is not None and embeddings.shape[1] % 2:
        raise UserError(f"n is {embeddings.shape[1]}, expected an even n: positions come in pairs of cosine and sine")
