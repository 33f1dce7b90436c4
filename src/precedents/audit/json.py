"""An audit as plain values, and back: what `schema.json` describes."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch

from precedents.audit.audit import Audit
from precedents.audit.instances import Case
from precedents.audit.profile import First, Offered, Profile
from precedents.audit.recommendation import Recommendation
from precedents.audit.schema import checked
from precedents.audit.scope import Scope
from precedents.criteria._judgement import Inapplicable, Judgement
from precedents.criteria._result import Result
from precedents.errors import FormatError
from precedents.runtime.strict_json import loads

FORMAT = 1


def plain(audit: Audit) -> dict[str, Any]:
    """An audit as values that JSON has: everything but costs and pictures."""
    outcomes = audit.judgement.outcomes.items()
    return {
        "format": FORMAT,
        "scope": asdict(audit.scope),
        "recommendation": asdict(audit.recommendation),
        "cautions": audit.cautions,
        "outcomes": [
            {"metric": metric, "criterion": criterion, **plain_outcome(outcome)}
            for (metric, criterion), outcome in outcomes
        ],
        "portraits": [{"metric": name, **asdict(profile)} for name, profile in audit.profiles.items()],
        "norms": {kernel: list(values) for kernel, values in audit.norms.items()},
        "agreement": plain_agreement(audit.agreement),
        "duplicates": [list(pair) for pair in audit.duplicates],
        "examples": [asdict(example) for example in audit.examples],
    }


def read(text: str) -> Audit:
    """The audit that a text in JSON holds; another format or another text is refused."""
    try:
        value = loads(text)
        if value["format"] != FORMAT:
            raise FormatError(f"The audit has the format {value['format']}; this version reads {FORMAT}.")
        checked(value)
        return Audit(
            scope=Scope(**value["scope"]),
            judgement=Judgement(
                {(each["metric"], each["criterion"]): read_outcome(each) for each in value["outcomes"]}
            ),
            profiles={each["metric"]: read_profile(each) for each in value["portraits"]},
            norms=value["norms"],
            agreement=read_agreement(value["agreement"]),
            duplicates=[(case, index) for case, index in value["duplicates"]],
            examples=[Case(**each) for each in value["examples"]],
            recommendation=Recommendation(**value["recommendation"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RuntimeError) as error:
        raise FormatError(f"This is no audit in JSON: {type(error).__name__} {error}.") from error


def plain_outcome(outcome: Result | Inapplicable) -> dict[str, Any]:
    """A result, or the reason why there is none, as values that JSON has."""
    if isinstance(outcome, Inapplicable):
        return asdict(outcome)
    return {
        "value": outcome.mean,
        "std": outcome.std,
        "low": outcome.low,
        "high": outcome.high,
        "chance": outcome.chance,
        "verdict": outcome.verdict,
        "notes": dict(outcome.notes),
        "values": outcome.values.tolist(),
    }


def read_outcome(value: Mapping[str, Any]) -> Result | Inapplicable:
    """The result that `plain_outcome` wrote, or the reason why there is none."""
    if "reason" in value:
        return Inapplicable(value["reason"])
    return Result(
        criterion=value["criterion"],
        values=torch.tensor(value["values"], dtype=torch.double),
        low=value["low"],
        high=value["high"],
        chance=value["chance"],
        verdict=value["verdict"],
        notes=value["notes"],
    )


def read_profile(value: Mapping[str, Any]) -> Profile | Inapplicable:
    """The profile, or the reason why there is none."""
    if "reason" in value:
        return Inapplicable(value["reason"])
    return Profile(
        kernel=value["kernel"],
        label_agreement=value["label_agreement"],
        firsts=[First(**each) for each in value["firsts"]],
        selected=value["selected"],
        examples=[[Offered(**each) for each in case] for case in value["examples"]],
        work=value["work"],
    )


def plain_agreement(
    agreement: Mapping[str, Mapping[tuple[str, str], float]],
) -> dict[str, list[dict[str, Any]]]:
    """The agreement of metrics with each pair as an object."""
    return {
        measure: [{"first": a, "second": b, "value": value} for (a, b), value in pairs.items()]
        for measure, pairs in agreement.items()
    }


def read_agreement(value: Mapping[str, Any]) -> dict[str, dict[tuple[str, str], float]]:
    """The agreement that `plain_agreement` wrote, with pairs of metrics as keys."""
    return {
        measure: {(each["first"], each["second"]): each["value"] for each in pairs}
        for measure, pairs in value.items()
    }
