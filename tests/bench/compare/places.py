# SPDX-License-Identifier: BSD-3-Clause
"""Which values of a run may be compared. The host of a virtual machine decides where its CPUs are, and moves them at any
time: what passes from one to the other, as in every measurement between two programs, takes two to six times as long where
they share no cache. So each value comes with how often a second a line went there and back before and after it."""

import math


def border(looks):
    """What is between near CPUs and far ones. None: they have been in one place all the time."""
    found = [look for pair in looks for look in pair if look]
    if not found or max(found) < 2 * min(found):
        return None
    return math.sqrt(min(found) * max(found))


def is_near(pair, limit):
    """None: they have been moved meanwhile."""
    if None in pair or (pair[0] > limit) != (pair[1] > limit):
        return None
    return pair[0] > limit


def split(values, looks):
    """[(name of the place, values)] of {figure: values} and {figure: looks}; one without a name where there is one place."""
    limit = border([pair for pairs in looks.values() for pair in pairs])
    if limit is None:
        return [("", values)]
    parts = []
    for name, near in (("CPUs near each other", True), ("CPUs far from each other", False)):
        part = {figure: [value for value, pair in zip(found, looks[figure]) if is_near(pair, limit) is near]
                for figure, found in values.items()}
        parts.append((name, {figure: found for figure, found in part.items() if found}))
    # One slow look is no other place.
    return parts if all(part for _, part in parts) else [("", values)]
