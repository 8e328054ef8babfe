"""Whether an entry takes the parameters that its manifest gives it, as far as the text says it."""

from __future__ import annotations

import re

from gpu_tasks.devices.manifest import Launch
from gpu_tasks.records import BadInput


def check_parameters(launch: Launch, text: str) -> None:
    """Raise ``BadInput`` unless the entry takes one pointer for each of the manifest's parameters.

    The driver cannot check this: it reads as many addresses as the entry declares, also beyond those given.
    """
    uncommented = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    entry = re.search(rf"\.entry\s+{re.escape(launch.entry)}\s*\(([^)]*)\)", uncommented)
    if entry is None:
        raise BadInput("wrong_entry", f"{launch.ptx}: .entry: expected {launch.entry} with parameters, found none")
    declared = [parameter for parameter in entry[1].split(",") if parameter.strip()]
    if len(declared) != len(launch.parameters):
        expected, found = len(launch.parameters), len(declared)
        raise BadInput("wrong_parameter_count", f"{launch.entry}: expected {expected} parameters, found {found}")
    for parameter in declared:
        if not re.match(r"\s*\.param\s+\.[ubs]64\b", parameter) or "[" in parameter:
            found_text = " ".join(parameter.split())
            raise BadInput("wrong_parameter_type", f"{launch.entry}: expected .param .u64 pointers, found {found_text}")
