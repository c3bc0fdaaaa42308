"""The memory that a training needs at least, and what the machine has: a hopeless one ends before it begins."""

from pathlib import Path

from mini_tf.errors import UserError
from mini_tf.models.saved import SavedModel

GB = 10**9
PARAMETER = 4 * 4                    # bytes: in float32, with its gradient and Adam's two means


def available() -> int | None:
    """The bytes of memory that this process can still get; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, ValueError, StopIteration):
        return None
    try:                                                 # a container may get less than the machine has
        limit, used = (int(Path(f"/sys/fs/cgroup/memory.{what}").read_text(encoding="ascii"))
                       for what in ("max", "current"))  # fmt: skip
    except (OSError, ValueError):
        return free
    return min(free, limit - used)


def check_memory(model_type: type[SavedModel], options: dict[str, object], words: int) -> None:
    """Raises UserError for a training that needs more memory than there is.

    options: of the model, with the sizes that come from the data: n, c, source_words, …
    words: of a batch. Each needs its vector and, for the backward, that vector's gradient.
    """
    parameters, why = model_type.least_parameters(options)
    vectors = 2 * 4 * words * int(options["n"])          # type: ignore[call-overload]
    need, have = PARAMETER * parameters + vectors, available()
    if have is None or need <= have:
        return
    what = f"{parameters:,} parameters, because of {why}, with their gradients and Adam's two means"
    if vectors > need / 2:
        what = f"a batch of {words:,} words"
    raise UserError(f"the training needs at least {need / GB:,.0f} GB of memory, for {what}; this machine has "
                    f"{have / GB:.0f} GB free: choose smaller sizes (mini-tf train --set …)")  # fmt: skip
