"""Names that differ for us and not for a person, or not on this disk: told apart before grading."""

import tempfile
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from autograder.records.results import all_results
from autograder.submissions.finding import Entry
from autograder.submissions.naming import some_of

_SHOWN = 20


def told_apart(entries: Sequence[Entry], out: Path) -> tuple[list[Entry], str]:
    """The entries that may be graded into `out`, and a sentence on the others, "" for none.

    Left out is whose name differs from another one's, here or among the results, only in how its
    letters are stored (Unicode normalisation), or in case where the disk does not tell that. A name
    that has results stays.
    """
    recorded = {result.student for result in all_results(out)}
    names = recorded | {entry.student for entry in entries}
    folded = {name: unicodedata.normalize("NFC", name) for name in names}
    if not _tells_case(out):
        folded = {name: same.casefold() for name, same in folded.items()}
    groups: dict[str, set[str]] = {}
    for name, same in folded.items():
        groups.setdefault(same, set()).add(name)
    kept, mixed = [], {}
    for entry in entries:
        others = groups[folded[entry.student]] - {entry.student}
        if entry.student in recorded or not others:
            kept.append(entry)
        else:
            like = min(others & recorded or others)
            mixed[entry.student] = f"{_spelled(entry.student)}, like {_spelled(like)}"
    return kept, _sentence(list(mixed.values()))


def _sentence(mixed: Sequence[str]) -> str:
    if not mixed:
        return ""
    return (
        "Not graded, since their names differ from another only in upper and lower case or in how"
        f" the letters are stored, and results would be mixed up: {some_of(mixed, _SHOWN)}."
        " If it is one student, give the file or folder the other name; if it is not, add something"
        " to one of them; then run the same command again."
    )


def _spelled(name: str) -> str:
    """The name so that two which look the same do not."""
    return name if name.isascii() else f"{name} ({ascii(name)[1:-1]})"


def _tells_case(folder: Path) -> bool:
    """Whether two names in a folder, which is there, may differ in case alone."""
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".case-", suffix=".part") as probe:
        path = Path(probe.name)
        return not path.with_name(path.name.upper()).exists()
