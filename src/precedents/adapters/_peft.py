"""Models that are tuned by adapters of peft (LoRA and others): what is tuned, and what is inside."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from torch import nn

from precedents.classifier.clone import sharing_clone
from precedents.classifier.construction import without_graph
from precedents.errors import InputError


def is_peft(model: Any) -> bool:
    """Whether it is a model that peft has wrapped."""
    return isinstance(
        model, (_type("peft.peft_model", "PeftModel"), _type("peft.mixed_model", "PeftMixedModel"))
    )


def base_of(model: Any) -> Any:
    """The model inside, as it is called with its own arguments; any other model is its own."""
    if not is_peft(model):
        return model
    return model.get_base_model() if hasattr(model, "get_base_model") else model.base_model.model


def is_tuned(module: nn.Module) -> bool:
    """Whether a module is a layer with an adapter around it."""
    return isinstance(module, _type("peft.tuners.tuners_utils", "BaseTunerLayer"))


def title(model: Any) -> str:
    """What the model is called: by its type, and by the kind of its adapter."""
    name = type(base_of(model)).__name__
    if not is_peft(model):
        return name
    kinds = sorted({str(getattr(each.peft_type, "value", each.peft_type)) for each in _configs(model)})
    return f"{name} with {' and '.join(kinds)}"


def tuned(model: nn.Module) -> nn.Module:
    """The model with gradients of what was tuned; adapters that take no part in predictions are refused.

    What was loaded for predictions alone is frozen: all that its active adapter holds, the heads that were
    saved with it among them, has gradients then, in a clone that shares the numbers.
    """
    layers = [module for module in model.modules() if is_tuned(module)]
    if not layers and not is_peft(model):
        return model
    _refuse(layers)
    loaded = any(each.inference_mode for each in _configs(model))
    if not loaded and any(parameter.requires_grad for parameter in model.parameters()):
        return model
    clone = sharing_clone(model, known=without_graph(model))
    own = set(map(id, _active(clone)))
    fresh: dict[int, nn.Parameter] = {}
    for module in clone.modules():
        for name, parameter in list(module._parameters.items()):
            if parameter is not None and id(parameter) in own:
                module._parameters[name] = fresh.setdefault(id(parameter), nn.Parameter(parameter.detach()))
    return clone


def refuse_quantised(model: nn.Module) -> None:
    """Refuses weights that are whole numbers, as bitsandbytes and others keep them."""
    for name, parameter in model.named_parameters():
        if not (parameter.is_floating_point() or parameter.is_complex()):
            raise InputError(
                f"The weight {name} of the model is quantised ({parameter.dtype}). Gradients through it would "
                "be those of another model. Load it without quantization_config, and the adapter on top of it."
            )


def _refuse(layers: Iterable[Any]) -> None:
    for layer in layers:
        if layer.merged:
            raise InputError(
                f"The adapter {', '.join(layer.merged_adapters)} is merged into the weights of the model, so "
                "that its own parameters take no part in a prediction. Type: model.unmerge_adapter()."
            )
        if layer.disable_adapters:
            raise InputError(
                "The adapters of the model are disabled, so that they take no part in a prediction. Type: "
                "model.enable_adapter_layers(), or model.enable_adapters() for a model of transformers. To "
                "explain the model without them, pass model.unload() or the model that they were added to."
            )


def _active(model: Any) -> Iterator[nn.Parameter]:
    """The parameters of the active adapters: in layers, in heads that were saved with them, in prompts."""
    held: list[tuple[Any, Any]] = [
        (getattr(model, "prompt_encoder", None), getattr(model, "active_adapters", ()))
    ]
    for module in model.modules():
        if is_tuned(module) or isinstance(module, _type("peft.utils.other", "ModulesToSaveWrapper")):
            held += [
                (getattr(module, name, None), module.active_adapters) for name in module.adapter_layer_names
            ]
    for parts, names in held:
        for name in names if isinstance(parts, (nn.ModuleDict, nn.ParameterDict)) else ():
            if name in parts:
                found: Any = parts[name]
                yield from found.parameters() if isinstance(found, nn.Module) else [found]


def _configs(model: Any) -> list[Any]:
    """Of the active adapters; of a model of transformers, which does not say which are active, of all."""
    every = getattr(model, "peft_config", {})
    active = getattr(model, "active_adapter", None) if is_peft(model) else list(every)
    return [every[name] for name in ([active] if isinstance(active, str) else active or ()) if name in every]


def _type(module: str, name: str) -> Any:
    """A class of peft; none if that is not loaded, and then nothing is an instance of it."""
    return getattr(sys.modules.get(module), name, ())
