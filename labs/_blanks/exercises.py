"""The blanks of the exercises: lines of each backward, {file: {variable: hints}}."""

from _blanks import Blank, command

HINTS = {
    "01_softmax": {
        "dz": [
            "Think of one row. z_j moves every y_i, so the chain rule sums over all paths from z_j to the loss:\n"
            "        dz_j = Σ_i dy_i · ∂y_i/∂z_j",
            "Find ∂y_i/∂z_j with the quotient rule, once for i = j and once for i ≠ j. Write both in terms of y, with "
            "no exp left: exp(z_i)/Σ is y_i.",
            "Put them into the sum. The expression for i ≠ j fits every i, and i = j adds one more term.",
            "Take y_j out of the bracket. What is left is a sum over the whole row, the same for each j: shape (…, 1), "
            "which keepdims=True gives.",
        ],
    },
    "02_cross_entropy": {
        "p": [
            "The first term, log Σ_i exp(z_i): the derivative of log u is u′/u.",
            "You know this fraction well: what is it called, and how do you get it from e and total?",
        ],
        "dlogits": [
            "The derivative of −z_t is one number for j = t and another for j ≠ t. Write it with onehot.",
            "Add both terms. Two factors are still missing: one from the mean over rows, one from the chain rule.",
        ],
    },
    "03_layer_norm": {
        "dbeta": [
            "To warm up: the same β_i is added in every row, so every row contributes to dβ_i.",
            "That is a sum over the axes `leading`.",
        ],
        "dgamma": ["The same γ_i multiplies x̂_i in every row: what is ∂y_i/∂γ_i there?", "Sum over `leading` again."],
        "dnormal": ["One step back, from y to x̂: y_i = γ_i·x̂_i + β_i.", "x̂_i moves y_i alone. How fast?"],
        "dx": [
            "From x̂ to x, along three paths. Write g for dnormal, and think of one row. The direct path is\n"
            "        x̂_j = (x_j − μ)·r with μ and r held fixed:   r·g_j",
            "Through μ: x_j moves μ by ∂μ/∂x_j = 1/n, and μ moves every x̂_i by −r. Sum over i.",
            "Through r: every x̂_i = (x_i − μ)·r moves with r, and r moves with x_j:\n"
            "        ∂r/∂x_j = −r³·(x_j − μ)/n\n"
            "    (from r = (σ² + ε)^(−1/2) and ∂σ²/∂x_j = 2·(x_j − μ)/n: why is there no term for μ in σ²?)\n"
            "    Sum over i, then write it with x̂ wherever (x − μ)·r stands.",
            "Every sum over i divided by n is a mean over the row: .mean(-1, keepdims=True). Factor out r.",
        ],
    },
    "04_residual_block": {
        "da": [
            "Back through the ReLU. Where it was on, it passed a unchanged: what is its slope there?",
            "Where it was off, it gave 0, whatever a was. `on` is True or False, which multiply like 1 and 0.",
        ],
        "dW": [
            "Back through the linear map, which is a_kj = Σ_i x_ki·W_ij + b_j for row k. W_ij multiplied x_ki in every "
            "row k, and affected only a_kj. So dW_ij is a sum over k of x_ki times what?",
            "Which product of two matrices is that? Follow the indices: W is square, so shapes cannot tell.",
        ],
        "db": ["b_j was added in every row, so every row contributes to db_j.", "The shape is (n,): which axis goes?"],
        "dx": [
            "Back to x, along both paths. The branch: W_ij multiplied x_ki for every j, so sum over j. That is a "
            "product of two matrices again; follow the indices.",
            "And then the skip.",
        ],
    },
    "05_embedding": {
        "dtable": [
            "The lookup is a product in disguise. Let E be the matrix with a row for each of the B·T places and a "
            "column for each of the c words, 1 where this word stands at this place and 0 elsewhere. Then\n"
            "        y as (B·T, n)  =  E·table\n"
            "    and you know from exercise 4 what comes back to the right factor of a product.",
            "E is almost all zeros, so read what the product does: row i of dtable is the sum of dy over …?",
            "Write it, in as many lines as you like: with E (np.eye makes it), or with a loop over places, or with "
            "np.add.at(dtable, ids, dy), starting from zeros. Not with dtable[ids] += dy: see question a.",
        ],
    },
    "06_attention": {
        "dvalue": [
            "The right factor: V_kd was multiplied by A_qk for every query q, and affected only y_qd.",
            "So dV_kd is a sum over q. The indices say which of the two is transposed, and the shapes agree: A is "
            "(…, Tq, Tk), and dy is (…, Tq, d).",
        ],
        "dscores": [
            "One line further back, A = softmax(S). This needs no new derivation.",
            "softmax has handed you a function for this step.",
        ],
        "dquery": [
            "Once more a product with two factors, S = scale·Q·Kᵀ: dscores plays the part that dy had above, query the "
            "part of A, and transpose(key) the part of value.",
            "And where does scale go?",
        ],
        "dkey": [
            "What comes back to transpose(key), as to the right factor, is (…, m, Tk).",
            "key itself wants (…, Tk, m), and scale.",
        ],
    },
    "07_lstm": {
        "do": [
            "h_t = o·tanh(c_t) is a product, entry by entry, and o is one of its factors. How fast does h rise with o?",
            "That times dh: nothing else in this step uses o.",
        ],
        "dc": [
            "The other factor is tanh(c_t), and tanh has the slope 1 − tanh². How fast does h_t rise with c_t?",
            "But c_t acts on two things, h_t and the next step's c. What came back from there is dc_next: add it.",
        ],
        "dc_next": [
            "And the fourth factor, c_{t−1}: this is handed to step t − 1, which is the next round of this loop.",
            "c_t = f·c_{t−1} + i·g: by what was c_{t−1} multiplied? By no matrix.",
        ],
        "da": [
            "Back through the gates: i, f and o are σ of three parts of a, and g is tanh of one. σ has the slope "
            "σ·(1 − σ), and tanh 1 − tanh²; i, f, o and g are these values already.",
            "np.concatenate([…], axis=1) makes one array of the four parts, in the order in which a was cut.",
        ],
        "dh_next": [
            "The second map, with h_{t−1} in the place of x_t: what does h_{t−1} get, and hand to the step before?",
            "dx[:, t] is what x_t gets. By which matrix was h_{t−1} multiplied?",
        ],
        "dWh": [
            "All steps use the same Wh, so its gradients add up.",
            "The line for dWx shows how; h_before is h_{t−1}, (B, k).",
        ],
    },
    "08_rotary": {
        "da": [
            "Change a alone: which of a′ and b′ change, and how fast? Both have a gradient, dy_a and dy_b.",
            "The chain rule sums over the two paths, each with its slope: cos φ and …?",
        ],
        "db": [
            "The same for b. One of the two slopes is negative.",
            "Compare da and db with the forward: by which angle have dy_a and dy_b been turned?",
        ],
        "dx": [
            "da and db go back to the places that a and b were taken from: even ones and odd ones.",
            "np.stack([…], axis=-1) puts each da next to its db, (…, T, m/2, 2); x.shape is what you want.",
        ],
    },
    "09_rms_norm": {
        "dgamma": ["The same γ_i multiplies x̂_i in every row: what is ∂y_i/∂γ_i there?", "Sum over `leading`."],
        "dnormal": ["One step back, from y to x̂: y_i = γ_i·x̂_i.", "x̂_i moves y_i alone. How fast?"],
        "dr": [
            "Now x̂_i = x_i·r. Take r as a variable, as if x were fixed: how fast does x̂_i change with it?",
            "All n entries of the row use the same r, so its gradient is a sum over the last axis; keepdims=True "
            "keeps it (…, 1).",
        ],
        "dx": [
            "x_j was used twice. First in x̂_j = x_j·r, with r held fixed.",
            "Then in r = (mean(x²) + ε)^(−1/2): the derivative of the power, times that of mean(x²), which is 2·x_j/n. "
            "Write it as a power of r, times x_j/n.",
            "dx is the sum of both: dnormal times the slope of the first, and dr times that of the second.",
        ],
    },
}

EXERCISES = {stem: [Blank(f"{stem[3:]}.backward", hints, command)] for stem, hints in HINTS.items()}
