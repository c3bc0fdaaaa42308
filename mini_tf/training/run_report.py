"""The health report of a run: is its folder whole, is it finished, are its losses and gradients as expected?"""

from mini_tf.checks import is_number
from mini_tf.errors import UserError
from mini_tf.training.archive import read_archive
from mini_tf.training.expected_loss import as_text, band_of
from mini_tf.training.health import NORM, complaints
from mini_tf.training.run import Run, identity_of


def report_of(run: Run) -> list[tuple[str, str, str]]:
    """[(what, "good", "bad" or "", a sentence), …] about a Run, whatever state it is in."""
    try:
        config = run.config()
    except UserError as error:
        return [("settings", "bad", str(error))]
    settings = config["settings"]
    found = [("settings", "good", f"preset {settings.get('name')}, {settings.get('steps'):,} steps, seed "
                                  f"{settings.get('seed')}")]  # fmt: skip
    found += [_files(run), *_states(run)]
    try:
        rows, results = run.metrics(), _results(run) if run.is_finished() else None
    except UserError as error:
        return [*found, ("measurements", "bad", str(error))]
    found.append(_progress(run, results, config))
    if results and not rows:
        found.append(("measurements", "bad", f"{run / 'metrics.csv'} is missing, or has no rows"))
    if rows:
        found += [*_losses(rows, results, band_of(config)), _gradients(rows)]
    return found


def _files(run):
    try:
        model, _ = run.load()
    except UserError as error:
        expected = (run / "model.safetensors").exists() or run.is_finished()
        return "model", "bad" if expected else "", str(error)
    return "model", "good", f"{type(model).__name__}, {model.parameter_count():,} trainable parameters; undamaged"


def _states(run):
    for step, path in run.states():
        try:
            read_archive(path, "training")
            yield f"state, step {step:,}", "good", "undamaged"
        except UserError as error:
            yield f"state, step {step:,}", "bad", str(error)


def _progress(run, results, config):
    if results is not None:
        early = ", early: the validation loss no longer fell" if results.get("stopped") == "early" else ""
        return "training", "good", f"finished after {results['steps']:,} steps{early}"
    states = [step for step, _ in run.states()]
    done = states[-1] if states else 0
    run.command = config["command"]
    return ("training", "", f"saved up to step {done:,} of {config['settings']['steps']:,}; if it no longer runs, go "
                            f"on with: {run.how_to_go_on()}")  # fmt: skip


def _losses(rows, results, band):
    if band is None:
        best = min(rows, key=lambda row: row["validation_loss"])
        yield ("losses", "", f"best validation loss {best['validation_loss']:.3f}, at step {best['step']:,}; no "
                             "expected range was measured for these settings and this text")  # fmt: skip
        return
    yield "losses", *_validation_losses(rows, band)
    if results is not None:
        verdict = band.judge(results["test"])
        yield ("test loss", "good" if verdict == "inside" else "bad", f"{results['test']:.3f}, {verdict} the expected "
                                                                      f"range: {as_text(band.limits())}")  # fmt: skip


def _validation_losses(rows, band):
    measured = [(row, band.judge(row["validation_loss"], row["step"])) for row in rows if band.limits(row["step"])]
    if not measured:
        return "", "no expected range was measured at these steps"
    outside = [(row, verdict) for row, verdict in measured if verdict != "inside"]
    row, verdict = (outside or measured[-1:])[0]
    loss, expected = f"{row['validation_loss']:.3f}", f"expected {as_text(band.limits(row['step']))}"
    if outside:
        return "bad", (f"{verdict} the expected range at {len(outside)} of {len(measured)} measurements, first at step "
                       f"{row['step']:,}: {loss}, {expected}")  # fmt: skip
    return "good", (f"in the expected range at all {len(measured)} measurements; at the last {loss}, {expected} "
                    f"({band.seeds} seeds)")  # fmt: skip


def _gradients(rows):
    wrong = {}
    for end in range(1, len(rows) + 1):
        for what, sentence in complaints(rows[:end]).items():
            wrong.setdefault(what, f"step {rows[end - 1]['step']:,}: {sentence}")
    if wrong:
        return "gradients", "bad", "; ".join(wrong.values())
    if not any(row.get(NORM) for row in rows):
        return "gradients", "", "not measured yet"
    return "gradients", "good", "neither vanish nor explode"


def _results(run):
    """What results.json says. Raises UserError if it is damaged."""
    results = run.read_json("results.json")
    if isinstance(results, dict) and results.get("run") not in (None, identity_of(run.config())):
        raise UserError(f"{run / 'results.json'} belongs to another run, of other settings or data")
    numbers = [results.get(name) for name in ("steps", "test")] if isinstance(results, dict) else [None]
    if not all(map(is_number, numbers)):
        raise UserError(f"{run / 'results.json'} is damaged: it lacks the steps or the test loss")
    return results
