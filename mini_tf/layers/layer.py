"""Parameter and Layer: what is learned, and who owns it."""

from mini_tf.backend import to_device


class MemoryFreed(RuntimeError):
    """A model's backward was called a second time: it frees what the forward has kept as it walks back."""


class Parameter:
    """An array that is learned: `.data`, and `.grad`, the gradient of the loss with respect to it (None before any).

    With trainable=False it is a constant that belongs to the model, such as fixed word embeddings: it is saved and
    moved with the model, and no gradient is computed for it.
    """

    def __init__(self, data, trainable=True):
        self.data = data
        self.grad = None
        self.trainable = trainable

    def accumulate(self, gradient):
        """grad += gradient. A parameter may be used more than once; its gradient is the sum over its uses."""
        if gradient.shape != self.data.shape:
            raise ValueError(f"the gradient has shape {gradient.shape}, expected the parameter's {self.data.shape}")
        # A new sum, not an update in place: the first gradient may be an array that an op's caller holds as well.
        self.grad = gradient if self.grad is None else self.grad + gradient

    def __repr__(self):
        return f"Parameter({self.data.shape}, {self.data.dtype}{'' if self.trainable else ', fixed'})"


class Layer:
    """Base of layers and models: finds the parameters among its attributes.

    Attributes may be Parameters, Layers, or lists of Layers.
    """

    def parameters(self):
        """{dotted name: Parameter} in the order of definition; a parameter that is shared appears once."""
        found, seen = {}, set()
        for name, parameter in self._walk():
            if id(parameter) not in seen:
                seen.add(id(parameter))
                found[name] = parameter
        return found

    def numbers_to_learn(self):
        """How many numbers the trainable parameters have."""
        return sum(parameter.data.size for parameter in self.parameters().values() if parameter.trainable)

    def clear_gradients(self):
        """Forget all gradients, before the next batch."""
        for parameter in self.parameters().values():
            parameter.grad = None

    def state(self):
        """{name: array} of what it remembers from batch to batch, beside its parameters. Most remember nothing."""
        return {}

    def restore(self, state):
        """Go back to a state."""

    def to(self, device):
        """Move every parameter to the device ("cpu", "gpu", "gpu:1", "auto"); returns the layer itself."""
        for parameter in self.parameters().values():
            parameter.data = to_device(parameter.data, device)
            parameter.grad = None
        return self

    def _walk(self, prefix=""):
        for name, value in vars(self).items():
            members = enumerate(value) if isinstance(value, (list, tuple)) else [(None, value)]
            for index, member in members:
                path = f"{prefix}{name}" if index is None else f"{prefix}{name}.{index}"
                if isinstance(member, Parameter):
                    yield path, member
                elif isinstance(member, Layer):
                    yield from member._walk(f"{path}.")


def walk_back(backwards):
    """The backward of steps that were run one after another: call their backwards in reverse.

    backwards: list, in forward order, of functions that take dy and give dx. Each is deleted as soon as it has run, and
    with it all that it has kept. So memory falls while a model walks back, and this backward can run only once.
    """

    def backward(dy):
        if not backwards:
            raise MemoryFreed("this backward has run already and its memory is freed; call the forward again")
        while backwards:
            dy = backwards.pop()(dy)
        return dy

    return backward
