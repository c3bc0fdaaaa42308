"""Pretrained models: read from the files in which others publish them, and written to such files.

    model = load_llama("stories260K.bin")    # llama2.c's; or Hugging Face's folder: config.json, model.safetensors
    model = load_gpt2(folder)                # Hugging Face's
    export_llama2c(model, "mine.bin")        # which llama2.c's run.c can read
    export_llama(model, folder)              # which transformers can read; likewise export_gpt2
"""

from mini_tf.pretrained.gpt2 import export_gpt2, load_gpt2
from mini_tf.pretrained.llama import export_llama, load_llama
from mini_tf.pretrained.llama2c import export_llama2c

__all__ = ["export_gpt2", "export_llama", "export_llama2c", "load_gpt2", "load_llama"]
