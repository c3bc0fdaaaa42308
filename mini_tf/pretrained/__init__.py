"""Pretrained models: read from the files in which others publish them, and written back.

    model = load_gpt2(folder)            # Hugging Face's: config.json and model.safetensors
    export_gpt2(model, folder)           # which transformers can read
"""

from mini_tf.pretrained.gpt2 import export_gpt2, load_gpt2

__all__ = ["export_gpt2", "load_gpt2"]
