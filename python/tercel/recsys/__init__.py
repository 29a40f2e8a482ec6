"""CTR models, trained on datasets or on arrays: the trainer of `tercel train`, in Python.

    import tercel.data as td
    import tercel.recsys as tr
    session = tr.Session("dlrm", td.open_dataset("clicks"), solver={"batchsize": 512, "lr": 0.01})
    while session.step():
        pass
    print(session.evaluate())
"""

from tercel.recsys.config import layer_types, preset, preset_names, resolve_config
from tercel.recsys.graph import Graph
from tercel.recsys.model import LoadedModel, Model, load_model
from tercel.recsys.session import Gradients, OptimizerStates, Session
from tercel.recsys.trainer import Callback, Progress, Result, Trainer, WarmStart
from tercel.recsys.tuning import Trial, TuneProgress, TuneResult, tune

__all__ = ["Callback", "Gradients", "Graph", "LoadedModel", "Model", "OptimizerStates", "Progress", "Result", "Session",
           "Trainer", "Trial", "TuneProgress", "TuneResult", "WarmStart", "layer_types", "load_model", "preset",
           "preset_names", "resolve_config", "tune"]
