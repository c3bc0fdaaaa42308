"""The mistakes that may be in a student's "find and mend": each in one line of one backward, (right, wrong)."""

MISTAKES = [
    ("dloss * (p - onehot) / N", "dloss * (p - onehot)"), ("dloss * (p - onehot) / N", "dloss * (p - onehot) / c"),
    ("(dy * normal).sum(leading)", "(dy * y).sum(leading)"), ("dnormal = dy * gamma", "dnormal = dy"),
    ("- normal * mean_g_normal", "- mean_g_normal"), ("da = dy * on", "da = dy"), ("x.T @ da", "x.T @ dy"),
    ("dx = dy + da @ W.T", "dx = da @ W.T"), ("da @ W.T", "da @ W"), ("softmax_backward(dA)", "A * dA"),
    ("np.add.at(dtable, ids, dy)", "dtable[ids] += dy"), ("scale * (dscores @ key)", "dscores @ key"),
]  # fmt: skip
