"""Embedding tables of a model: their keys, and the memory that they need."""

import os
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

from tercel import _C
from tercel.data import Schema
from tercel.hugectr import log
from tercel.hugectr.solver import bytes_of_row, states_of

__all__ = ["Table", "check_memory", "inputs_of", "placements_of", "tables_of"]

_WORTH_A_LINE = 1 << 30  # bytes


@dataclass(frozen=True)
class Table:
    """
    A table: its name, its keys, which begin at `first_key`, its width, and numbers that are kept for each weight. A
    `bounded` table has as many keys as the script says, others as many as the files say. One that `grows` has a row for
    each key that has occurred, at most as many as the workspace holds. `by_slots`: the keys of its slots follow one
    another.
    """

    name: str
    first_key: int
    rows: int
    width: int
    states: int
    bounded: bool
    grows: bool = False
    by_slots: bool = False

    @property
    def bytes(self) -> int:
        """Memory of vectors and states; of a table that grows, 0, as it has no rows yet."""
        return 0 if self.grows else self.rows * self.width * 4 * (1 + self.states)

    def bytes_of(self, placement: Optional[Dict[str, Any]], rank: int, ranks: int) -> int:
        """About so many of one of several processes, of a table with this entry of solver.table_placements."""
        if placement is None or placement["placement"] == "replicated":
            return self.bytes
        having = placement.get("ranks") or list(range(ranks))
        return -(-self.bytes // len(having)) if rank in having else 0


def _ranges(layers: Sequence[Dict[str, Any]], schema: Schema) -> Dict[str, List[Tuple[int, int]]]:
    """For each sparse input (first key, end) of its slots; (0, 0) where any key may occur."""
    out, next_slot = {}, 0
    for part in layers[0]["sparse"]:
        slots = schema.slots[next_slot:next_slot + part["slot_num"]]
        out[part["top"]] = [(slot.first_key, slot.first_key + slot.size) if slot.size else (0, 0) for slot in slots]
        next_slot += part["slot_num"]
    return out


def tables_of(layers: Sequence[Dict[str, Any]], schema: Schema) -> List[Table]:
    """The tables of a graph's layers for rows of the schema."""
    by_input = _ranges(layers, schema)
    described: Dict[str, Dict[str, Any]] = {}
    ranges: Dict[str, List[Tuple[int, int]]] = {}
    for layer in layers:
        if layer["type"] == "EmbeddingLookup":
            name = layer["table"]
        elif "sparse_embedding_hparam" in layer:
            name = layer["top"]
        else:
            continue
        if layer["bottom"] not in by_input:
            raise _C.ConfigError(f"{layer['type']} {layer['top']!r}: there is no input {layer['bottom']!r}; known: "
                                 f"{', '.join(by_input)}")
        described.setdefault(name, layer)
        ranges.setdefault(name, []).extend(by_input[layer["bottom"]])
    return [_table(name, layer, ranges[name]) for name, layer in described.items()]


def _table(name: str, layer: Dict[str, Any], ranges: List[Tuple[int, int]]) -> Table:
    hparam, optimizer = layer["sparse_embedding_hparam"], layer.get("optimizer", {})
    states = states_of(optimizer)
    width = int(hparam["embedding_vec_size"])
    known = all(end > first for first, end in ranges)
    first = min(first for first, _ in ranges) if known else 0
    rows = max(end for _, end in ranges) - first
    given = sum(hparam.get("slot_size_array", ())) or max(0, hparam.get("max_vocabulary_size_global", 0))
    bounded = given > 0
    grows = not bounded and (not known or hparam.get("max_vocabulary_size_global", 0) < 0)
    if not known and not given:
        given = (int(hparam.get("workspace_size_per_gpu_in_mb", 0)) << 20) // bytes_of_row(width, optimizer)
    by_slots = (all(end == begin for (_, end), (begin, _) in zip(ranges, ranges[1:])) if known
                else bool(hparam.get("slot_size_array")) and not any(end for _, end in ranges))
    return Table(name, first, max(rows, given), width, states, bounded, grows, by_slots)


def placements_of(layers: Sequence[Dict[str, Any]], tables: Sequence[Table]) -> List[Dict[str, Any]]:
    """
    Where the types of embeddings say that their tables are, as solver.table_placements has it: by key, or by slot if they
    are Localized and have rows for each slot.
    """
    by_name, out = {table.name: table for table in tables}, []
    for layer in layers:
        if "sparse_embedding_hparam" not in layer or layer["type"] == "EmbeddingLookup":
            continue
        table = by_name[layer["top"]]
        localized = layer["type"].startswith("Localized") and table.by_slots and not table.grows
        out.append({"table": table.name, "placement": "localized" if localized else "distributed"})
    return out


def inputs_of(layers: Sequence[Dict[str, Any]], tables: Sequence[Table]) -> List[Dict[str, Any]]:
    """
    How a reader groups the slots, with the smallest table that reads each input: a key that it does not have is an
    error that names file and row.
    """
    by_name, out = {table.name: table for table in tables}, []
    for part in layers[0]["sparse"]:
        names = [layer["table"] if layer["type"] == "EmbeddingLookup" else layer["top"] for layer in layers
                 if "bottom" in layer and part["top"] == layer["bottom"]]
        bounded = [by_name[name] for name in names if name in by_name and by_name[name].bounded]
        out.append({"name": part["top"], "slot_num": part["slot_num"]})
        if bounded:
            smallest = min(bounded, key=lambda table: table.rows)
            out[-1].update(table=smallest.name, num_keys=smallest.rows)
    return out


def _available() -> int:
    """Bytes of memory that programs can still have; 0 if the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) << 10
    except (OSError, ValueError):
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def check_memory(tables: Dict[Table, int]) -> None:
    """
    OutOfMemoryError that says how much the tables need, which have so many bytes in this process, if that is more than
    there is. Prints a line where filling them takes seconds.
    """
    needed, there = sum(tables.values()), _available()
    if needed <= there:
        if needed >= _WORTH_A_LINE:
            log.info(f"initializing {needed / 1e9:.1f} GB of embedding tables")
        return
    largest = max(tables, key=lambda table: tables[table])
    subject = "the embedding table needs" if len(tables) == 1 else f"the {len(tables)} embedding tables need"
    parts = "vectors and states of the optimizer" if any(table.states for table in tables) else "vectors"
    raise _C.OutOfMemoryError(
        f"Model: {subject} {needed / 1e9:.1f} GB ({parts}), and {there / 1e9:.1f} GB are free; "
        f"{'it' if len(tables) == 1 else 'the largest'}, {largest.name!r}, has {largest.rows:,} rows of "
        f"{largest.width}: smaller vectors or vocabularies need less")
