"""Is a translator trained by mini_tf as good as PyTorch's after the same time? Both train on the same sentence pairs.

    python tests/bench/translation_yardstick.py --pairs FILE --minutes 10        (pip install torch==2.13.0)

PyTorch's is nn.Transformer with the same initial weights, and with dropout in the same places. Both get the same
batches in the same order, Adam with the same settings, gradients clipped alike, and a schedule that ends with their
time: each first measures its own steps, and so knows how many it can do. After the training PyTorch's weights are put
into our model, so that one program measures the test loss and BLEU of both. One contender after the other, each in a
process of its own.
"""

import argparse
import json
import time

from mini_tf.data import read_pairs
from mini_tf.kernels import recycled_memory
from mini_tf.models import Translator
from mini_tf.training.translation import (
    TRANSLATION,
    batches_in_order,
    bleu_of,
    bleu_of_each_pair,
    mean_loss,
    same_source,
    translated,
)

from measuring import in_fresh_process, note_settings, thread_settings

METHODS = "mini_tf", "PyTorch eager", "PyTorch compiled"
TRIAL = 40               # steps to find out how long one takes; the first half of them is to warm up


def ours(model, preset, bitext, steps):
    """A function that trains our model on the next batch."""
    return preset.training(model, bitext, steps, seed=0).one_step


def theirs(model, preset, bitext, steps, compiled):
    """The same for PyTorch's, and a function that puts its weights into our model."""
    import torch
    from torch import nn
    from torch.nn import functional as F
    from torch_translator import Translator as TorchTranslator

    rate = preset.model["dropout"]

    class WithDropout(TorchTranslator):
        """Dropout on word vectors and on each branch's output, as ours; nn.Transformer has two more places."""

        def vectors(self, embedding, ids, first=0):
            return F.dropout(super().vectors(embedding, ids, first), rate)

    torch.manual_seed(0)
    network = WithDropout(model)
    for module in network.modules():
        if isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
            for name in ("dropout1", "dropout2", "dropout3"):
                if hasattr(module, name):
                    getattr(module, name).p = rate
    optimizer = torch.optim.Adam(network.parameters(), preset.learning_rate, preset.betas, fused=True)
    as_ours = preset.training(model, bitext, steps, seed=0)
    schedule, batches = as_ours.schedule, as_ours.batches
    forward, done = torch.compile(network, dynamic=True) if compiled else network, 0

    def step():
        nonlocal done
        optimizer.zero_grad(set_to_none=True)
        network.loss(next(batches), forward).backward()
        nn.utils.clip_grad_norm_(network.parameters(), preset.clip)
        done += 1
        optimizer.param_groups[0]["lr"] = preset.learning_rate * schedule(done)
        optimizer.step()

    def take_weights():
        found = network.in_our_names()
        for name, parameter in model.parameters().items():
            parameter.data[...] = found[name].numpy()

    return step, take_weights


def measure(method, preset, pairs, minutes, threads):
    """In the child process: trains, and measures the result."""
    if method != "mini_tf":
        import torch

        torch.set_num_threads(threads)
    bitext = preset.prepare(pairs)

    def new(steps):
        model = Translator(len(bitext.french), len(bitext.english), seed=0, **preset.model)
        if method == "mini_tf":
            return model, ours(model, preset, bitext, steps), lambda: None
        return model, *theirs(model, preset, bitext, steps, method.endswith("compiled"))

    with recycled_memory():
        _, step, _ = new(10**6)
        for done in range(TRIAL):
            if done == TRIAL // 2:
                start = time.perf_counter()
            step()
        steps = int(60 * minutes / ((time.perf_counter() - start) / (TRIAL - TRIAL // 2)))
        model, step, take_weights = new(steps)
        start = time.perf_counter()
        for _ in range(steps):
            step()
        seconds = time.perf_counter() - start
    take_weights()
    examples = same_source(bitext.test)
    written = translated(model, bitext, examples, beam=5)
    loss = mean_loss(model, batches_in_order(*bitext.ids(bitext.test), preset.words))
    return {"steps": steps, "seconds": seconds, "test": loss, "bleu": bleu_of(examples, written),
            "one": bleu_of_each_pair(examples, written)}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", required=True, help="a file of lines English<TAB>French")
    parser.add_argument("--preset", choices=TRANSLATION, default="translate-hour", help="the model's sizes and settings")
    parser.add_argument("--minutes", type=float, default=10, help="of training for each (default: 10)")
    parser.add_argument("--threads", type=int, default=2, help="threads of each contender (default: 2)")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS[:2], help="the contenders")
    parser.add_argument("--measure", metavar="METHOD", help=argparse.SUPPRESS)       # the child process
    options = parser.parse_args()
    if options.measure:
        preset = TRANSLATION[options.preset]
        print(json.dumps(measure(options.measure, preset, read_pairs(options.pairs), options.minutes, options.threads)))
        return
    note_settings()
    print(f"{options.preset}, {options.minutes:g} minutes of training each, {options.threads} threads")
    print(f"{'':<18}{'steps':>8}{'seconds':>9}{'s/step':>9}{'test loss':>11}{'BLEU':>7}{'one reference':>15}")
    for method in options.methods:
        run = in_fresh_process(__file__, method, "--pairs", options.pairs, "--preset", options.preset, "--minutes",
                               options.minutes, "--threads", options.threads, **thread_settings(options.threads))  # fmt: skip
        print(f"{method:<18}{run['steps']:>8,}{run['seconds']:>9.0f}{run['seconds'] / run['steps']:>9.3f}"
              f"{run['test']:>11.3f}{run['bleu']:>7.1f}{run['one']:>15.1f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
