# %% [markdown]
# # Lab 03d: sequence to sequence, and attention
#
# - **Goals:** say what one vector between two networks costs; write multiplicative and additive attention, forward and
#   backward; train a translator with it, decode with a beam, and read a map of attention.
# - **Before it:** Lab 03, better 03c; softmax's gradient (Lab 02 or exercise 01). **Work:** about 4 hours.
# - **Hand in:** `multiplicative.backward`, `additive.backward`; an experiment from “Try”.
#
# Source: CMU 10-417/617, recitation for homework 3a, fall 2022 (no address is printed on the slides): "Language
# Modelling with RNNs", "Attention in RNNs", and its slides on decoding. The networks: Sutskever, Vinyals, Le 2014,
# [arXiv:1409.3215](https://arxiv.org/abs/1409.3215); Bahdanau, Cho, Bengio 2015,
# [arXiv:1409.0473](https://arxiv.org/abs/1409.0473) (additive attention); Luong, Pham, Manning 2015,
# [arXiv:1508.04025](https://arxiv.org/abs/1508.04025) (multiplicative attention).
#
# One recurrent network reads a sentence, a second one writes its translation. Only one vector passes between them, so
# whatever the second needs to know of the sentence has to fit into it.
#
# Letters: **B** batch, **S** words of a source sentence, **U** words of its translation, **n** size of a word vector,
# **k** size of a state, **c** words of a vocabulary. **z** (S, k) are the states of the network that reads, the
# **encoder**, **h** (U, k) those of the network that writes, the **decoder**. A vector is a row here, x·W.
#
# It runs in about two minutes on one CPU core, half a minute with `--quick`.

# %%
from dataclasses import replace

from _common import quick_mode, show
from _drawing import lab_03d
from _expect import about, above, at_least, at_most, below, expect
from mini_tf import ops
from mini_tf.data import french_pairs
from mini_tf.data.french.lexicon import COLOURS, NOUNS
from mini_tf.decoding import translations
from mini_tf.gradcheck import gradcheck
from mini_tf.layers.sequence_attention import AdditiveAttention, MultiplicativeAttention
from mini_tf.metrics import corpus_bleu
from mini_tf.models import RecurrentTranslator
from mini_tf.text.sentences import SOS
from mini_tf.training import Adam, Schedule, Training
from mini_tf.training.pair_batches import sentence_batch
from mini_tf.training.translation import TRANSLATION

import numpy as np

QUICK = quick_mode("Lab 03d: sequence to sequence by recurrent networks, without attention and with it")

# %% [markdown]
# ## 1. Two networks and one vector
#
# The encoder is an LSTM in each direction: $z_j$ has what →LSTM makes of the words up to j, and what ←LSTM makes of
# those from j on, k/2 entries each. The decoder is an LSTM that starts from the two last states,
#
# $$
# h_0 = \tanh([z^{\to}_S, z^{\leftarrow}_1] \cdot W + b), \qquad
# h_u = \operatorname{LSTM}(y_{u-1}, h_{u-1}), \qquad \Phi_u = \tanh(h_u \cdot W' + b'), \qquad
# \pi_u = \operatorname{softmax}(\Phi_u \cdot E^\top)
# $$
#
# and its cell $c_0$ starts likewise. At each step the decoder reads the word before, $y_{u-1}$, [SOS] at first, and
# gives the probabilities of the next one, up to [EOS]; E is the table of its own word vectors. This is
# `RecurrentTranslator` with `attention="none"`.
#
# **Teacher forcing.** In training the decoder reads the *right* words so far, not those that it would have written.
# So all words of a translation are learned in one pass.
#
# The task: random letters out of 16, which the decoder has to write backwards. There is nothing to translate and
# nothing to guess: a letter that is not known is right 1 time in 16. A string of S letters holds 4·S bits.

# %%
LETTERS, FIRST = 16, 3                                   # ids 0, 1, 2 are [SOS], [EOS], [UNK]
LONGEST, STEPS = (12, 250) if QUICK else (24, 800)
LENGTHS = range(2, LONGEST + 1, 2)


def backwards(lengths, rng):
    """Random strings of these lengths, and the same backwards, as a batch"""
    read = [rng.integers(FIRST, FIRST + LETTERS, size=S) for S in lengths]
    return sentence_batch(read, [ids[::-1] for ids in read])


def endless(rng, B=64):
    while True:
        yield backwards(rng.integers(1, LONGEST + 1, size=B), rng)


def learned(attention, k):
    """A translator of strings, trained"""
    rng = np.random.default_rng([3, k])
    model = RecurrentTranslator(FIRST + LETTERS, FIRST + LETTERS, attention=attention, n=32, k=k, T=LONGEST + 1,
                                dropout=0.0, smoothing=0.0, seed=k)  # fmt: skip
    training = Training(model, endless(rng), Adam(5e-3, (0.9, 0.98)), Schedule(50, STEPS), clip=1.0)
    while training.step < STEPS:
        training.one_step()
    return model


def right_by_place(model, S, many=300):
    """How often each letter of a string of S is right, given the right ones before it: (S,)"""
    batch = backwards([S] * many, np.random.default_rng(4))
    written = model.logits(batch.source, batch.target[:, :-1]).argmax(-1)
    return (written == batch.target[:, 1:])[:, :-1].mean(0)


# %% [markdown]
# The source names the drawback: "the effect of the earlier words gets diminished over time (all the input information
# is encoded into just one single vector)". **Expect** at least 95 % of the letters of strings of 4 to be right, and
# fewer than half of those of strings of 24. And **expect** the first letter written, which is the last one read, to be
# right more often than those in the middle, by 0.2 or more.
#
# Is the vector too small? **Expect** one of twice the size, with three times the parameters, to gain about 0.1 on 24
# letters, and to fail on long strings all the same. (64 numbers in float32 have far more than 96 bits and could hold 24
# letters; but 800 training steps do not find out how.)
#
# And **expect** fewer letters to be right, by 0.1 or more, when the model reads what it wrote itself: a wrong letter
# leads it astray.

# %%
models, right = {}, {}                                   # {name: model}, {name: {S: (S,)}}


def measure(name, attention, k):
    model = models[name] = learned(attention, k)
    right[name] = {S: right_by_place(model, S) for S in LENGTHS}
    shares = "".join(f"{right[name][S].mean():>7.2f}" for S in LENGTHS[1::2])
    print(f"  {name:<26}{model.parameter_count():>8,} parameters{shares}")


def whole(name, S):
    return right[name][S].mean()


HEAD = f"  {'letters right, S =':<45}" + "".join(f"{S:>7}" for S in LENGTHS[1::2])
print("1. One vector between the two networks\n" + HEAD)
measure("one vector, k = 64", "none", 64)
measure("one vector, k = 128", "none", 128)
small = "one vector, k = 64"
batch = backwards([LONGEST] * 300, np.random.default_rng(4))
alone = [found.words for found in translations(models[small], list(batch.source), beam=1)]
own = sum(mine == true for ids, S in zip(alone, batch.source) for mine, true in zip(ids, S[::-1])) / batch.source.size
expect("k = 64, S = 4", above(0.95), whole(small, 4), quick=above(0.5))
expect(f"k = 64, S = {LONGEST}", about(0.42, within=0.05), whole(small, LONGEST), quick=below(0.6))
gain = whole("one vector, k = 128", LONGEST) - whole(small, LONGEST)
expect(f"k = 128 − k = 64, S = {LONGEST}", about(0.1, within=0.05), gain, quick=None)
places = right[small][LONGEST]
expect("k = 64: first letter − the middle third", above(0.2), places[0] - places[LONGEST // 3 : -LONGEST // 3].mean())
expect("k = 64: given the right letters − its own", above(0.1), whole(small, LONGEST) - own, quick=None)

# %% [markdown]
# ## 2. A look at all states
#
# The encoder has made a state $z_j$ for each word, and all but the last are thrown away. Keep them, and let the
# decoder decide at each step which of them to read. Its state h is compared with each $z_j$; softmax turns the scores
# into weights that sum to 1; and what it gets is the weighted mean, the **context**:
#
# $$
# s_j = \text{score}(h, z_j), \qquad A = \operatorname{softmax}(s), \qquad \text{context} = \sum_j A_j \cdot z_j, \qquad
# \Phi = \tanh([h, \text{context}] \cdot W' + b')
# $$
#
# The source takes the dot product $h \cdot z_j^\top$. That supposes that both networks happen to mean the same by each
# entry. A learned matrix between the two needs no such luck (**multiplicative**, Luong), nor does a small network with
# one hidden layer (**additive**, Bahdanau, the older of the two):
#
# $$
# s_j = h \cdot W \cdot z_j^\top \qquad \text{or} \qquad s_j = \tanh(h \cdot W + z_j \cdot U) \cdot v^\top
# $$
#
# Backward, $z_j$ gets two gradients: as a *value*, of which the context is made, and as a *key*, by which it is found:
#
# $$
# dA_j = d\text{context} \cdot z_j^\top, \qquad ds = A \cdot \Bigl(dA - \sum_j A_j \cdot dA_j\Bigr), \qquad
# dz_j = A_j \cdot d\text{context} + ds_j \cdot q \quad \text{with } q = h \cdot W
# $$
#
# for the multiplicative score. **Expect** PASS for both, and the same contexts and gradients as from mini_tf's layers.

# %%
def multiplicative(h, z, W):
    """context = A·z, A = softmax(s), s_j = h·W·z_j:   h (k,), z (S, d), W (k, d)  →  context (d,)"""
    q = h @ W
    A, softmax_backward = ops.softmax(z @ q)             # (S,)

    def backward(dcontext):
        ds = softmax_backward(z @ dcontext)
        dq = ds @ z
        dz = np.outer(A, dcontext) + np.outer(ds, q)     # as value, as key
        return W @ dq, dz, np.outer(h, dq)

    return A @ z, backward


def additive(h, z, W, U, v):
    """The same with s_j = tanh(h·W + z_j·U)·v:   W (k, d), U (d, d), v (d,)"""
    H = np.tanh(h @ W + z @ U)                           # (S, d)
    A, softmax_backward = ops.softmax(H @ v)

    def backward(dcontext):
        ds = softmax_backward(z @ dcontext)
        da = np.outer(ds, v) * (1 - H**2)                # of h·W + z·U
        dq = da.sum(0)                                   # h·W was added to each row
        dz = np.outer(A, dcontext) + da @ U.T
        return W @ dq, dz, np.outer(h, dq), z.T @ da, ds @ H

    return A @ z, backward


# %%
print("\n2. One step of attention")
rng = np.random.default_rng(5)
h, z, dcontext = rng.standard_normal(6), rng.standard_normal((5, 4)), rng.standard_normal(4)
for f, kind in ((multiplicative, MultiplicativeAttention), (additive, AdditiveAttention)):
    layer = kind(6, 4, rng, np.float64)
    parameters = list(layer.parameters().values())       # W; or W, U, v
    arguments = h, z, *(parameter.data for parameter in parameters)
    report = gradcheck(f, *arguments)
    print(report)
    expect(f"gradcheck finds {f.__name__} right", True, bool(report))
    context, backward = f(*arguments)
    theirs, layer_backward = layer(h[None, None], z[None])               # a batch of one, one word to be written
    dh, dz = layer_backward(dcontext[None, None])
    theirs = [theirs, dh, dz, *(parameter.grad for parameter in parameters)]
    ours = context, *backward(dcontext)
    off = max(abs(mine - np.reshape(its, mine.shape)).max() for mine, its in zip(ours, theirs))
    expect(f"{kind.__name__}: largest difference", at_most(1e-12), off, form="{:.0e}")

# %% [markdown]
# The gradient of a written word reaches every word read in one step: through its context, not through all steps of two
# networks. And nothing has to fit into one vector: the encoder hands over S of them.
#
# ## 3. The way out
#
# The same task, k = 64. **Expect** both kinds of attention to get at least 97 % of the letters of the longest strings
# right, with about a third of the parameters of the larger network without attention.
#
# No one tells the model where to look. **Expect** it to look at the right letter all the same: the largest weight in a
# row is on the letter that is about to be written.

# %%
print("\n3. Attention\n" + HEAD)
measure("multiplicative, k = 64", "multiplicative", 64)
measure("additive, k = 64", "additive", 64)
for name in ("multiplicative", "additive"):
    expect(f"{name}, S = {LONGEST}", above(0.97), whole(f"{name}, k = 64", LONGEST), quick=above(0.8))
batch = backwards([LONGEST] * 100, np.random.default_rng(4))
maps = np.stack([models["multiplicative, k = 64"].attention_weights(source, target[:-1])["across"][0, 0]
                 for source, target in zip(batch.source, batch.target)])     # (100, S + 1, S), the last row for [EOS]
looks_at = maps[:, :-1].argmax(-1) == np.arange(LONGEST)[::-1]
expect("rows with the largest weight on that letter", above(0.9), looks_at.mean(), quick=above(0.5), form="{:.0%}")
show(lab_03d.by_length_and_place(right, LONGEST), "03d_bottleneck")

# %% [markdown]
# ## 4. French to English
#
# A grammar generates sentences with their translations; no test sentence is in the training part (Lab 08, section 3).
# The model is a smaller version of the preset `translate-rnn`: an LSTM with multiplicative attention.
#
# To translate, we need the most probable sentence, and there are far too many to try them all. **Greedy** decoding
# takes the most probable word at each step, and can never take it back. **Beam search** keeps the w most probable
# beginnings. Both are in `mini_tf.decoding`, the same for every translator: all they ask of a model is the scores of
# the next word. (Lab 08b writes the search by hand, and measures w.)
#
# **Expect** a BLEU above 90, and the beam's sentences to be at least as probable as the greedy ones, with nearly the
# same BLEU.

# %%
preset = TRANSLATION["translate-rnn"]
options = preset.model | {"n": 64, "k": 128, "dropout": 0.0}
preset = replace(preset, model=options, longest=8 if QUICK else 10, words=1500, learning_rate=6e-3, warm_up=80)
print("\n4. French to English")
bitext = preset.prepare(french_pairs(40_000, seed=0), say=print)
model = preset.new_model(bitext, seed=0)
steps = 300 if QUICK else 1000
training = preset.training(model, bitext, steps, seed=0)
while training.step < steps:
    training.one_step()

tested = bitext.test[:300]
sources, references = [bitext.french.encode(french) for french, _ in tested], [[english] for _, english in tested]
found = {w: translations(model, sources, beam=w) for w in (1, 5)}
written = {w: [bitext.english.decode(each.words) for each in some] for w, some in found.items()}
bleu = {w: 100 * corpus_bleu(some, references).score for w, some in written.items()}
log_p = {w: np.array([each.log_probability for each in some]) for w, some in found.items()}
for (french, english), mine in zip(tested[:6], written[1]):
    print(f"  {' '.join(french):<46}{'✓ ' if mine == english else '  '}{' '.join(mine)}")
for w in found:
    print(f"  width {w}: BLEU {bleu[w]:.1f}, mean ln p {log_p[w].mean():.3f}")
expect("BLEU, greedy", above(90), bleu[1], quick=above(20), form="{:.1f}")
expect("BLEU, width 5 − greedy", about(0, within=2), bleu[5] - bleu[1], quick=about(0, within=10), form="{:.1f}")
no_less = np.mean(log_p[5] - log_p[1] > -1e-4)
expect("width 5 is no less probable than greedy", at_least(0.98), no_less, quick=at_least(0.9), form="{:.1%}")

# %% [markdown]
# ## 5. Where it looks
#
# The source draws the weights of each word written over the words read. A row is named after the word **about to be
# written**: A is computed from the state that has read the word before it.
#
# Is the word with the largest weight the one being translated? For nouns and colours the grammar's lexicon can tell. In
# French, colours follow the noun, so the word at the same place is wrong more often than not. **Expect** the largest
# weight to be right for 95 % or more of both.

# %%
LEXICON = {                                              # {(French, English), …}
    "nouns": {pair for kind in NOUNS.values() for noun in kind
              for pair in ((noun.fr, noun.en), (noun.fr_plural, noun.en_plural))},
    "colours": {(form, colour.en) for colour in COLOURS for form in colour[:4] if colour.en != "orange"},
}  # fmt: skip


def places(kind, french, english):
    """[(place in the English sentence, place in the French one), …] of words that are in both exactly once"""
    return [(english.index(en), french.index(fr)) for fr, en in LEXICON[kind]
            if french.count(fr) == 1 and english.count(en) == 1]  # fmt: skip


def weights(french, english):
    """A (U + 1, S), a row for each word about to be written and for [EOS]"""
    source, target = bitext.french.encode(french), np.array([SOS, *bitext.english.encode(english)])
    return model.attention_weights(source, target)["across"][0, 0]


print("\n5. The largest weight is on the word being translated; the word at the same place is that word")
for kind in LEXICON:
    some = [(pair, at) for pair in bitext.test if (at := places(kind, *pair))][:200]
    hits = np.array([(A[u].argmax() == s, u == s) for pair, at in some for A in [weights(*pair)] for u, s in at])
    by_weight, by_place = hits.mean(0)
    expect(f"{kind}, largest weight ({len(hits)} words)", above(0.95), by_weight, quick=above(0.5), form="{:.0%}")
    expect(f"{kind}, the same place", below(0.6), by_place, quick=below(0.8), form="{:.0%}")

# %% [markdown]
# The letters first, whose map is a line from corner to corner, then two sentences that are translated right: a colour
# after its noun, and a negation, whose two French words stand around the verb.

# %%
LOOK_FOR = {
    "a colour after its noun": lambda french, english: any(u != s for u, s in places("colours", french, english)),
    "ne … pas around the verb": lambda french, english: "pas" in french and "did" in english,
}
ids = batch.source[0][:12]
A = models["multiplicative, k = 64"].attention_weights(ids, np.array([SOS, *ids[::-1]]))["across"][0, 0]
letters = [chr(ord("a") + i - FIRST) for i in ids]
shown = {"letters, backwards": (letters, [*letters[::-1], "[EOS]"], A)}
for title, wanted in LOOK_FOR.items():
    fitting = [pair for pair in bitext.test if wanted(*pair)][:40]
    found = translations(model, [bitext.french.encode(french) for french, _ in fitting], beam=1)
    is_right = [bitext.english.decode(each.words) == english for each, (_, english) in zip(found, fitting)]
    french, english = fitting[np.argmax(is_right)]       # the first
    shown[title] = french, [*english, "[EOS]"], weights(french, english)
show(lab_03d.maps(shown), "03d_maps")

# %% [markdown]
# ## What to remember
#
# - A fixed vector is a bottleneck: the longer the sentence, the less of it arrives. In the same training, a larger one
#   moves the limit and does not remove it.
# - Attention keeps a state for each word read, and weights them by a softmax of scores. That costs U·S scores, and
#   gives the gradient a path of one step to each word.
# - Multiplicative scores are one product of matrices; additive ones need a tanh for each pair of words. Here they do
#   equally well.
# - In training the model reads the right words, in use its own; without attention, it then loses more than half of the
#   letters that it would have had right.
# - What is read and what is written are still one word after the other. The transformer keeps attention and gives up
#   the recurrence (Labs 04b to 08). `translation.md` compares the two on the same sentences; `ladder.md` shows how fast
#   each learns from the same words.
#
# **Try:** the string as it is instead of backwards. Train on strings of up to 16 letters and test on 24: which of the
# models can do that? `"cell": "gru"`. `"attention": "none"` for French: BLEU and the sentences it writes. A map of a
# sentence that is translated wrong.
