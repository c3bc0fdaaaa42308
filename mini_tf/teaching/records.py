"""Grades as other programs read them: JSON, and Gradescope's results.json."""

import json
from dataclasses import asdict

from mini_tf.files import PathLike, write_text
from mini_tf.teaching.grading import Grades


def write_json(grades: Grades, path: PathLike) -> None:
    """All of it. Raises UserError if it cannot be written."""
    data = asdict(grades) | {"points": grades.points, "most": grades.most}
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def write_gradescope(grades: Grades, path: PathLike) -> None:
    """The results.json of a Gradescope autograder: a test for each gradient and blank.

    Source: https://gradescope-autograders.readthedocs.io/en/latest/specs/
    """
    tests = [
        {
            "name": f"{file.task}: {part.name}", "score": part.points, "max_score": 1,
            "status": "passed" if part.points else "failed",
            "output": f"{part.words}\n{file.words}".strip(), "output_format": "text",
        }
        for file in grades.files for part in file.parts
    ]  # fmt: skip
    write_text(path, json.dumps({"tests": tests}, indent=2, ensure_ascii=False) + "\n")
