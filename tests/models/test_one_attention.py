"""The smallest model with attention, beside the source's own in PyTorch: same weights, scores, gradients."""

from mini_tf.errors import UserError
from mini_tf.models import OneAttention
from mini_tf.training import load_checkpoint, save_checkpoint

import numpy as np
import pytest

c, T, n = 7, 5, 6


def one_attention(**options):
    rng = np.random.default_rng(3)
    made = OneAttention(rng.standard_normal((c, n)), **{"T": T} | options)
    for parameter in made.parameters().values():
        parameter.data = rng.standard_normal(parameter.data.shape) * 0.5
    return made


def test_it_is_the_sources_model(rng):
    """`MyLanguageModel` of the course notebook, with its nn.MultiheadAttention, mask and sizes, in float64."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed; it is only a peer")
    from tests.bench.torch_translator import in_our_names

    class MyLanguageModel(torch.nn.Module):
        def __init__(self, vocab_size, seq_len, embedding_dim):
            super().__init__()
            self.embedding = torch.nn.Embedding(vocab_size, embedding_dim)
            self.position_embedding = torch.nn.Embedding(seq_len, embedding_dim)
            self.sequence_model = torch.nn.MultiheadAttention(embedding_dim, num_heads=1, batch_first=True)
            self.fc = torch.nn.Linear(embedding_dim, vocab_size)
            self.seq_len = seq_len
            self.mask = torch.tril(torch.ones(seq_len, seq_len)) != 1

        def forward(self, x):
            e = self.embedding(x)
            p = self.position_embedding(torch.arange(self.seq_len)).unsqueeze(0)
            x = e + p
            x = self.sequence_model(x, x, x, attn_mask=self.mask, is_causal=True, need_weights=False)[0]
            return self.fc(x)

    def in_ours(of):
        attention = {f"attention.{name}": x for name, x in in_our_names(theirs.sequence_model, of).items()}
        readout = {f"A.{name}": x for name, x in in_our_names(theirs.fc, of).items()}
        vectors = {"embedding.table": of(theirs.embedding.weight), "positions.P": of(theirs.position_embedding.weight)}
        return vectors | attention | readout

    ours, theirs = one_attention(), MyLanguageModel(c, T, n).double()
    parameters, copies = ours.parameters(), in_ours(lambda parameter: parameter.data)
    assert set(parameters) == set(copies)
    for name, parameter in parameters.items():
        copies[name].copy_(torch.from_numpy(parameter.data))
    windows = rng.integers(0, c, (4, T + 1))

    logits = theirs(torch.from_numpy(windows[:, :-1]))
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.from_numpy(windows[:, 1:]).flatten())
    loss.backward()
    np.testing.assert_allclose(ours(windows[:, :-1])[0], logits.detach().numpy(), rtol=0, atol=1e-12)
    ours_loss, backward = ours.loss(windows)
    backward()
    assert ours_loss == pytest.approx(loss.item(), rel=1e-12)
    for name, gradient in in_ours(lambda parameter: parameter.grad).items():
        assert name == "attention.key.b" or np.abs(parameters[name].grad).max() > 1e-3, name     # that one's is 0
        np.testing.assert_allclose(parameters[name].grad, gradient.numpy(), rtol=0, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("H", [1, 2, 3])
def test_a_word_sees_no_later_word(rng, H):
    model, ids = one_attention(H=H), rng.integers(0, c, (1, T))
    other = ids.copy()
    other[0, 3] = (other[0, 3] + 1) % c
    before, after = model(ids)[0], model(other)[0]
    np.testing.assert_array_equal(after[:, :3], before[:, :3])
    assert (np.abs(after[:, 3:] - before[:, 3:]).max(-1) > 1e-6).all()


def test_order_matters_by_positions_alone():
    model, ids = one_attention(), np.array([[1, 2, 3, 4], [2, 1, 3, 4]])
    first, second = model.logits(ids)
    assert np.abs(first - second).max() > 1e-6
    model.positions.P.data[:] = 0
    first, second = model.logits(ids)
    np.testing.assert_allclose(first, second, rtol=1e-12, atol=1e-14)


def test_short_histories(rng):
    model, ids = one_attention(), rng.integers(0, c, 12)
    log_p = model.log_probabilities(ids)
    assert np.isfinite(log_p).all()
    scores = model(ids[None, :3])[0][0]                  # after the words 0, 1, 2
    expected = [scores[t, ids[t + 1]] - np.logaddexp.reduce(scores[t]) for t in range(3)]
    np.testing.assert_allclose(log_p[1:4], expected, rtol=1e-12)
    assert model.logits(np.empty((2, 0), dtype=int)).shape == (2, c)


def test_a_checkpoint_gives_the_same_model(rng, tmp_path):
    model, ids = one_attention(H=2), rng.integers(0, c, (2, T))
    save_checkpoint(tmp_path / "model.safetensors", model)
    again = load_checkpoint(tmp_path / "model.safetensors")
    assert again.config == {"T": T, "H": 2}
    np.testing.assert_array_equal(again.logits(ids), model.logits(ids))


@pytest.mark.parametrize(
    ("options", "message"),
    [({"T": 0}, "T is 0"), ({"H": 0}, "H is 0"), ({"H": 4}, "n = 6 is not a multiple of H = 4"), ({"H": 12}, "n = 6 is not a multiple of H = 12"), ({"H": -1}, "H is -1")],
)
def test_sizes_that_do_not_fit(options, message):
    with pytest.raises(UserError, match=message):
        one_attention(**options)


def test_wrong_windows(rng):
    with pytest.raises(ValueError, match=r"OneAttention: windows have shape \(2, 5\), expected \(B, 6\)"):
        one_attention().loss(rng.integers(0, c, (2, T)))
    with pytest.raises(ValueError, match="histories of 6 words, expected at most T = 5"):
        one_attention().logits(rng.integers(0, c, (2, T + 1)))
