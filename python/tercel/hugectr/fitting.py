"""The loop of Model.fit(), and what it prints."""

import re
import time
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Sequence, Tuple

import tercel.data as td
from tercel import _C
from tercel.hugectr import _ranks, log
from tercel.hugectr.enums import MetricsType
from tercel.hugectr.translate import bottoms_of, tops_of

if TYPE_CHECKING:
    from tercel.hugectr.model import Model

__all__ = ["evaluation_batches", "fit", "print_summary"]

_RULE = "=" * 99


def evaluation_batches(model: "Model") -> Iterator[td.Batch]:
    """
    The batches of one evaluation: the next max_eval_batches in repeat mode, else the first ones of the files, as many
    as there are.
    """
    reader = model.eval_reader()
    if not model.solver.repeat_dataset:
        reader.set_source()
    for _ in range(model.solver.max_eval_batches):
        batch = reader.next()
        if batch is None:
            return
        yield batch


class _Loop:
    """One call of fit()."""

    def __init__(self, model: "Model", display: int, eval_interval: int, snapshot: int, prefix: str) -> None:
        self.model, self.solver = model, model.solver
        self.display, self.eval_interval, self.snapshot, self.prefix = display, eval_interval, snapshot, prefix
        self.done = 0
        self.started = self.shown = time.perf_counter()
        self.results: Dict[str, float] = {}

    def iterate(self, batch: td.Batch) -> bool:
        """Trains a batch and does what is due after it; whether training goes on."""
        rate = self.model.session.learning_rate
        self.model.train_batch(batch)
        self.done += 1
        if self.display > 0 and self.done % self.display == 0:
            now = time.perf_counter()
            log.info(f"Iter: {self.done} Time({self.display} iters): {now - self.shown:.6g}s "
                     f"Loss: {self.model.get_current_loss():.6g} lr:{rate:.6g}")
            self.shown = now
        stop = self.eval_interval > 0 and self.done % self.eval_interval == 0 and self.evaluate()
        if self.snapshot > 0 and self.done % self.snapshot == 0:
            self.model.save_params_to_files(self.prefix, self.done)
        return not stop

    def call(self, event: str, *arguments: Any) -> bool:
        """
        Calls every callback of the solver; whether one of them, of several processes on rank 0, ends the training.
        Epoch mode has none.
        """
        if not self.solver.repeat_dataset:
            return False
        stops = [bool(getattr(callback, event)(*arguments)) for callback in self.solver.training_callbacks]
        return bool(_ranks.of_first(any(stops))) if stops else False

    def evaluate(self) -> bool:
        """Evaluates and prints the metrics; whether the training ends."""
        iteration, before = self.done - 1, time.perf_counter()
        stop = self.call("on_eval_start", iteration)
        batches = 0
        for batch in evaluation_batches(self.model):
            self.model.evaluate_batch(batch)
            batches += 1
        self.results = dict(self.model.get_eval_metrics())
        for name, value in self.results.items():
            log.info(f"Evaluation, {name}: {value:.6g}")
        for label, value in self.model.aucs_of_labels():
            log.info(f"Evaluation, AUC of {label}: {value:.6g}")
        log.info(f"Eval Time for {batches} iters: {time.perf_counter() - before:.6g}s")
        stop |= self.call("on_eval_end", iteration, dict(self.results))
        target = self.solver.metrics_spec.get(MetricsType.AUC)
        if target is not None and self.results.get("AUC", 0.0) > target:
            seconds = time.perf_counter() - self.started
            rows = self.done * self.solver.batchsize
            log.info(f"Hit target accuracy AUC {target:.6f} at {self.done} iterations with batchsize "
                     f"{self.solver.batchsize} in {seconds:.2f}s. Average speed {rows / seconds:.6f} records/s.")
            return True
        return stop

    def repeat(self, max_iter: int) -> None:
        """Trains a number of iterations of a reader without end."""
        reader = self.model.get_data_reader_train()
        while self.done < max_iter:
            batch = reader.next()
            if batch is None or not self.iterate(batch):
                return

    def epochs(self, num_epochs: int) -> None:
        """Trains all sources a number of times."""
        reader = self.model.get_data_reader_train()
        for epoch in range(num_epochs):
            log.info(f"{'-' * 35}Epoch {epoch}{'-' * 35}")
            reader.set_source()
            for batch in reader:
                if not self.iterate(batch):
                    return


def fit(model: "Model", num_epochs: int, max_iter: int, display: int, eval_interval: int, snapshot: int,
        prefix: str) -> None:
    """Model.fit()."""
    solver, session = model.solver, model.session
    if not solver.repeat_dataset and num_epochs < 1:
        raise _C.ConfigError("Model: fit: with repeat_dataset=False expected num_epochs of at least 1")
    if solver.repeat_dataset and max_iter < 1:
        raise _C.ConfigError("Model: fit: with repeat_dataset=True expected max_iter of at least 1")
    sources = model.get_data_reader_train().sources
    log.info(f"{'=' * 21}Model Fit{'=' * 21}")
    if solver.repeat_dataset:
        log.info(f"Use non-epoch mode with number of iterations: {max_iter}")
    else:
        log.info(f"Use epoch mode with number of epochs: {num_epochs}")
    log.info(f"Training batchsize: {solver.batchsize}, evaluation batchsize: {solver.batchsize_eval}")
    log.info(f"Evaluation interval: {eval_interval}, snapshot interval: {snapshot}")
    log.info(f"Frozen: {', '.join(session.frozen) or 'nothing'}")
    log.info(f"lr: {solver.lr:.6f}, warmup_steps: {solver.warmup_steps}, end_lr: {solver.end_lr:.6f}")
    log.info(f"decay_start: {solver.decay_start}, decay_steps: {solver.decay_steps}, "
             f"decay_power: {solver.decay_power:.6f}")
    log.info(f"Training source file: {', '.join(sources[:1] if solver.repeat_dataset else sources)}")
    log.info(f"Evaluation source file: {', '.join(model.get_data_reader_eval().sources) or 'none'}")
    loop = _Loop(model, display, eval_interval, snapshot, prefix)
    loop.call("on_training_start")
    if solver.repeat_dataset:
        loop.repeat(max_iter)
    else:
        loop.epochs(num_epochs)
    loop.call("on_training_end", loop.done - 1)
    log.info(f"Finish {loop.done} iterations with batchsize: {solver.batchsize} in "
             f"{time.perf_counter() - loop.started:.2f}s.")


def _rows(title: Tuple[str, ...], rows: List[Tuple[str, ...]]) -> List[str]:
    """The rows of a table with columns of equal width."""
    widths = [max(len(row[i]) for row in [title, *rows]) for i in range(len(title))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in [title, *rows]]
    return [lines[0], "-" * 99, *lines[1:]]


def _listed(names: List[str]) -> str:
    """Names side by side; of many, the first and the last one."""
    return ", ".join(names) if len(names) <= 4 else f"{names[0]}, ..., {names[-1]} ({len(names)})"


def print_summary(layers: Sequence[Dict[str, Any]], summary: Optional[str]) -> None:
    """
    Prints the inputs, and each layer with its tensors, and with its shapes and parameters, of Tercel's summary of them,
    which there is when the model is compiled; of several processes the first one does.
    """
    if not _ranks.is_first():
        return
    data = layers[0]
    dims = data["label"]["label_dim"]
    labels = [f"{name}: (None, {dim})" for name, dim in zip(
        [data["label"]["top"]] if isinstance(data["label"]["top"], str) else data["label"]["top"],
        dims if isinstance(dims, list) else [dims])]
    sparse = [f"{part['top']}: (None, {part['slot_num']})" for part in data["sparse"]]
    print("\n".join([_RULE, "Model Summary", f"Label   {', '.join(labels)}",
                     f"Dense   {data['dense']['top']}: (None, {data['dense']['dense_dim']})",
                     f"Sparse  {', '.join(sparse) or 'none'}", _RULE]))
    rows: List[Tuple[str, ...]] = []
    lines = {line[line.index(" ") + 1:line.rindex(" -> ")]: line for line in (summary or "").splitlines()}
    for layer in layers[1:]:
        line = lines.get(tops_of(layer)[0])  # "MLP top -> [batch, 1], 10 parameters"
        if summary is not None and line is None:
            continue  # it reads only dense values, and there are none
        names = (layer["type"], _listed(bottoms_of(layer)), _listed(tops_of(layer)))
        if line is None:
            rows.append((*names, "", ""))
            continue
        shapes = re.findall(r"\[[^]]*\]|scalar", line[line.rindex(" -> "):])
        parameters = re.search(r"(\d+) parameters$", line)
        rows.append((*names, ", ".join(shape.replace("[batch", "(None").replace("]", ")") for shape in shapes),
                     f"{int(parameters[1]):,}" if parameters else ""))
    title = ("Layer Type", "Input Name", "Output Name", "Output Shape", "Parameters")
    print("\n".join([*_rows(title, rows), _RULE]), flush=True)
