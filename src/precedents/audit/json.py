"""An audit as plain values, and back: what `schema.json` describes."""

from collections.abc import Mapping
from dataclasses import asdict
from math import isfinite, nan
from typing import Any, get_args

import torch

from precedents.audit.audit import Audit
from precedents.audit.instances import Case
from precedents.audit.profile import First, Offered, Profile
from precedents.audit.recommendation import Recommendation
from precedents.audit.schema import checked
from precedents.audit.scope import Scope
from precedents.criteria._judgement import Inapplicable, Judgement
from precedents.criteria._result import Result
from precedents.criteria._verdict import Verdict
from precedents.data.ids import Id
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
        **({"ids": _plain_ids(audit.ids)} if audit.ids else {}),
    }


def read(text: str) -> Audit:
    """The audit that a text in JSON holds; another format or another text is refused."""
    try:
        value = loads(text)
        if value["format"] != FORMAT:
            raise FormatError(f"The audit has the format {value['format']}; this version reads {FORMAT}.")
        _refuse_verdicts(value)
        checked(value)
        return Audit(
            scope=_scope(value["scope"]),
            judgement=Judgement(
                {(each["metric"], each["criterion"]): read_outcome(each) for each in value["outcomes"]}
            ),
            profiles={each["metric"]: read_profile(each) for each in value["portraits"]},
            norms=value["norms"],
            agreement=read_agreement(value["agreement"]),
            duplicates=[(case, index) for case, index in value["duplicates"]],
            examples=[Case(**each) for each in value["examples"]],
            recommendation=Recommendation(**value["recommendation"]),
            ids={(kind, int(i)): own for kind, ids in value.get("ids", {}).items() for i, own in ids.items()},
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RuntimeError) as error:
        raise FormatError(f"This is no audit in JSON: {type(error).__name__} {error}.") from error


def _plain_ids(ids: Mapping[tuple[str, int], Id]) -> dict[str, dict[str, Id]]:
    """By kind and by place, which is a text in JSON."""
    return {
        kind: {str(i): own for (each, i), own in ids.items() if each == kind} for kind, _ in dict.fromkeys(ids)
    }


def _scope(value: Mapping[str, Any]) -> Scope:
    """What was audited; verdicts of a version that had one rule, and did not name it, are by the paper's."""
    facts = value["facts"]
    return Scope(**{**value, "facts": facts if "rule" in facts else facts | {"rule": "paper"}})


def plain_outcome(outcome: Result | Inapplicable) -> dict[str, Any]:
    """A result, or the reason why there is none, as values that JSON has."""
    if isinstance(outcome, Inapplicable):
        return asdict(outcome)
    plain: dict[str, Any] = {
        "value": _number(outcome.mean),
        "std": _number(outcome.std),
        "low": _number(outcome.low),
        "high": _number(outcome.high),
        "chance": _number(outcome.chance),
        "verdict": outcome.verdict,
        "notes": dict(outcome.notes),
        "values": [_number(value) for value in outcome.values.tolist()],
    }
    if outcome.places is not None:
        plain["places"] = outcome.places.tolist()
    if outcome.verdict == "undecided":
        plain |= {"between": list(outcome.between), "enough": outcome.enough}
    return plain


def _number(value: float) -> float | None:
    """A number as JSON has it: what is none is null."""
    return value if isfinite(value) else None


def _read(value: float | None) -> float:
    return nan if value is None else value


def _refuse_verdicts(value: Mapping[str, Any]) -> None:
    """Refuses verdicts that there are not."""
    for each in value["outcomes"]:
        if "verdict" in each and each["verdict"] not in get_args(Verdict):
            raise FormatError(f"{each['verdict']!r} is no verdict. Known: {', '.join(get_args(Verdict))}.")


def read_outcome(value: Mapping[str, Any]) -> Result | Inapplicable:
    """The result that `plain_outcome` wrote, or the reason why there is none."""
    if "reason" in value:
        return read_lack(value)
    return Result(
        criterion=value["criterion"],
        values=torch.tensor([_read(each) for each in value["values"]], dtype=torch.double),
        low=_read(value["low"]),
        high=_read(value["high"]),
        chance=_read(value["chance"]),
        verdict=value["verdict"],
        notes=value["notes"],
        between=tuple(value.get("between", ())),
        enough=value.get("enough"),
        places=None if value.get("places") is None else torch.tensor(value["places"], dtype=torch.long),
    )


def read_lack(value: Mapping[str, Any]) -> Inapplicable:
    """The reason why there is no result, and of which kind it is; older audits do not say the kind."""
    return Inapplicable(value["reason"], value.get("kind", "not applicable"))


def read_profile(value: Mapping[str, Any]) -> Profile | Inapplicable:
    """The profile, or the reason why there is none."""
    if "reason" in value:
        return read_lack(value)
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
