"""Fingerprints of the formulas that have twins, written by `mini-tf gradcheck --bind-twins`."""

FINGERPRINTS = {
    "layers.transformer.TransformerLayer.decode": {
        "TransformerLayer.decode": "ba4db3a0d865f85c",
        "TransformerLayer.__call__": "8ee3953e53ad3fc6",
        "TransformerLayer.branch": "f2674e46302785c4",
        "TransformerLayer.pre_norm": "6bb644a94af3be3b",
        "identity": "3f5fc3c7925ef198",
        "TransformerLayer.post_norm": "ecd7ee6efe6eb97c",
        "MultiHeadAttention.__call__": "a968f5d553449c57",
        "MultiHeadAttention.across": "e16815b4486ec4f5",
        "MultiHeadAttention.bias": "bdec344b82bc3aff",
        "distance_bias": "cc38812af2dddbe0",
        "MultiHeadAttention.split": "47dfe475b408f0cc",
        "MultiHeadAttention.join": "3242260897e67186",
        "KVCache.extend": "64c5e0012fb91182",
        "KVCache.allocate": "d8bc99e1b2798cf8",
        "KVCache.contents": "c7429c09535e3e6c",
        "FeedForward.__call__": "38f61b2dca7685f9",
        "Linear.__call__": "ef852b5c1e9ab505",
        "LayerNorm.__call__": "cd9f2e13585b5136",
        "Dropout.__call__": "355de95aaa16722c",
        "attention": "b1bb2e681fed29b5",
        "masked_softmax": "31bed0638af133f6",
        "largest": "7fb79e2d04783653",
        "softmax": "c48d18fdfc980592",
        "sum_to": "950c223f293f782e",
        "transpose": "85afce37fa3052eb",
        "linear": "02932fc57209edca",
        "rows_of": "5acf97033cbe0fc8",
        "layer_norm": "426fa1b768255ae7",
        "residual_relu": "48982d794b8c756a",
        "relu": "6fc761ad6ab6bf47",
        "gelu": "9733d1ddcc18cdb4",
        "erf": "54a745437c761e68",
    },
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
        "attention": "b1bb2e681fed29b5",
        "masked_softmax": "31bed0638af133f6",
        "largest": "7fb79e2d04783653",
        "softmax": "c48d18fdfc980592",
        "sum_to": "950c223f293f782e",
        "transpose": "85afce37fa3052eb",
    },
    "ops.dropout.dropout": {
        "dropout": "ae12d5ab058643b3",
    },
    "ops.embedding.embedding": {
        "embedding": "2b87a42467adf31d",
        "check_ids": "0b256dc15855d47e",
        "scatter_add": "d7aefc84590f2a77",
    },
    "ops.linear.linear": {
        "linear": "02932fc57209edca",
        "rows_of": "5acf97033cbe0fc8",
        "sum_to": "950c223f293f782e",
        "transpose": "85afce37fa3052eb",
    },
    "ops.losses.cross_entropy": {
        "cross_entropy": "e3dce7361d5c363f",
        "check_ids": "0b256dc15855d47e",
        "rows_of": "5acf97033cbe0fc8",
    },
    "ops.normalization.layer_norm": {
        "layer_norm": "426fa1b768255ae7",
        "sum_to": "950c223f293f782e",
    },
    "ops.pooling.mean_pool": {
        "mean_pool": "fc0c85496b444019",
    },
    "ops.softmax.masked_softmax": {
        "masked_softmax": "31bed0638af133f6",
        "largest": "7fb79e2d04783653",
    },
    "ops.softmax.softmax": {
        "softmax": "c48d18fdfc980592",
        "largest": "7fb79e2d04783653",
    },
    "ops.updates.adam": {
        "adam": "6816cac502c5c5ff",
    },
    "ops.updates.sum_of_squares": {
        "sum_of_squares": "ccd416b27a1920d5",
    },
}
