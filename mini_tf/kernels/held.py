"""Fingerprints of the formulas that have twins, written by `mini-tf gradcheck --bind-twins`."""

HELD = {
    "ops.activations.gelu": {
        "gelu": "9733d1ddcc18cdb4",
        "erf": "54a745437c761e68",
    },
    "ops.activations.relu": {
        "relu": "6fc761ad6ab6bf47",
    },
    "ops.activations.residual_relu": {
        "residual_relu": "48982d794b8c756a",
    },
    "ops.attention.attention": {
        "attention": "eae5af1debf9d442",
        "masked_softmax": "d1ddbe83021e8e93",
        "softmax": "0420cfc690269c82",
        "sum_to": "950c223f293f782e",
        "transpose": "85afce37fa3052eb",
    },
    "ops.dropout.dropout": {
        "dropout": "ae12d5ab058643b3",
    },
    "ops.embedding.embedding": {
        "embedding": "bfabb2a3336ee1cb",
        "check_ids": "0b256dc15855d47e",
        "scatter_add": "d7aefc84590f2a77",
    },
    "ops.linear.linear": {
        "linear": "ed500f44c1aad734",
        "sum_to": "950c223f293f782e",
        "transpose": "85afce37fa3052eb",
    },
    "ops.losses.cross_entropy": {
        "cross_entropy": "9670ac320911ec82",
        "check_ids": "0b256dc15855d47e",
    },
    "ops.normalization.layer_norm": {
        "layer_norm": "688127f1d3bdbb15",
        "sum_to": "950c223f293f782e",
    },
    "ops.pooling.mean_pool": {
        "mean_pool": "bc3d02267a6ef9e2",
    },
    "ops.softmax.masked_softmax": {
        "masked_softmax": "d1ddbe83021e8e93",
    },
    "ops.softmax.softmax": {
        "softmax": "0420cfc690269c82",
    },
    "ops.updates.adam": {
        "adam": "d86f23ec49747299",
    },
    "ops.updates.sum_of_squares": {
        "sum_of_squares": "ccd416b27a1920d5",
    },
}
