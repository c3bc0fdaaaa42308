"""For pytest: an `assert gradcheck(…)` that does not hold shows the whole report, where pytest would cut it short.

FAIL says what is wrong; NOT TESTED says what could not be judged, and the argument that helps.

It is loaded by every pytest that runs where mini_tf is installed, whatever is tested. So it stands beside the package
and imports nothing of it, which would also change OPENBLAS_THREAD_TIMEOUT.
"""

import sys

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Add the words of the gradient check that the failed assertion was about."""
    report = yield
    module = sys.modules.get("mini_tf.gradcheck.report")             # not imported: no gradient was checked
    if call.excinfo is not None and call.excinfo.errisinstance(AssertionError) and module is not None:
        doubted = module.Report.doubted
        if doubted is not None and f"gradients of {doubted.name}" in str(call.excinfo.value):
            report.sections.append(("gradcheck", doubted.explain()))
    return report
